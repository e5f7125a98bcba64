/* Order and address against the integer program of the MODeL paper, solved by CBC where that is
 * installed (Debian: coinor-cbc). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/joint_program.h"
#include "support/random_graph.h"
#include "tarn.h"

enum { OPS_MAX = 7, STORAGES_MAX = 5, GRAPHS = DRAWS(24) };
enum { EFFORT = 1000 }; /* the default's steps, which no clock ends */

static bool has_solver(void) { return system("cbc -quit >/dev/null 2>&1") == 0; }

/* Small enough for a solver. */
static struct tarn_graph *small_graph(uint64_t seed)
{
    for (;; seed += GRAPHS) {
        struct random_graph_options options = random_graph_knobs(seed, OPS_MAX);
        options.streams = 1;
        options.shuffled = false;
        options.group_share = options.alignment_share = options.view_share = 0;
        options.size_max = 64;
        struct tarn_graph *graph = random_graph(&options);
        if (graph->planned_count > 1 && graph->planned_count <= STORAGES_MAX) return graph;
        tarn_graph_destroy(graph);
    }
}

/* The optimum, or UINT64_MAX when the solver does not finish within a few seconds. */
static uint64_t solve(const struct tarn_graph *graph, const char *folder)
{
    char program[128], answer[128], command[320], line[256];
    double optimum = -1;
    snprintf(program, sizeof program, "%s/joint.lp", folder);
    snprintf(answer, sizeof answer, "%s/joint.txt", folder);
    FILE *file = fopen(program, "w");
    assert_non_null(file);
    joint_program_write(graph, file);
    assert_int_equal(fclose(file), 0);
    snprintf(command, sizeof command, "cbc %s sec 2 solve solution %s >/dev/null", program, answer);
    assert_int_equal(system(command), 0);
    file = fopen(answer, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    bool finished = sscanf(line, "Optimal - objective value %lf", &optimum) == 1;
    assert_int_equal(fclose(file), 0);
    assert_int_equal(remove(program), 0);
    assert_int_equal(remove(answer), 0);
    return finished ? (uint64_t)(optimum + 0.5) : UINT64_MAX;
}

static void reordered_and_placed_graphs_equal_the_integer_program(void **state)
{
    char folder[] = "/tmp/joint_test_XXXXXX";
    (void)state;
    if (!has_solver()) skip();
    uint32_t compared = 0;
    assert_non_null(mkdtemp(folder));
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        struct tarn_graph *graph = small_graph(seed);
        struct tarn_plan_summary made;
        struct tarn_plan *plan;
        assert_int_equal(
            tarn_plan_create(graph,
                             TARN_PLAN_OPTIONS(.alignment = 1, .threads = 1, .effort = EFFORT,
                                               .reorder = TARN_REORDER_OPTIONS(.alignment = 1)),
                             &plan, NULL),
            TARN_OK);
        tarn_plan_summarize(plan, &made);
        uint64_t optimum = solve(graph, folder);
        if (optimum != UINT64_MAX) assert_int_equal(made.footprint, optimum);
        compared += optimum != UINT64_MAX;
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
    assert_int_equal(rmdir(folder), 0);
    assert_true(compared >= (GRAPHS + 3) / 4);
    print_message("# %u of %d programs solved\n", compared, GRAPHS);
}

/* What a solver is given needs no solver to be looked at. */
static void the_program_names_every_op_and_every_storage(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct tarn_graph *graph = small_graph(seed);
        char *text = NULL, name[32];
        size_t size = 0;
        FILE *file = open_memstream(&text, &size);
        assert_non_null(file);
        joint_program_write(graph, file);
        assert_int_equal(fclose(file), 0);
        for (uint32_t v = 0; v < tarn_graph_ops_count(graph); v++) {
            snprintf(name, sizeof name, " R_%u_", v);
            assert_non_null(strstr(text, name));
        }
        for (uint32_t a = 0; a < graph->planned_count; a++) {
            snprintf(name, sizeof name, " peak - A_%u >=", a);
            assert_non_null(strstr(text, name));
        }
        assert_non_null(strstr(text, "\nEnd\n"));
        free(text);
        tarn_graph_destroy(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reordered_and_placed_graphs_equal_the_integer_program),
        cmocka_unit_test(the_program_names_every_op_and_every_storage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
