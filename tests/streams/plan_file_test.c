/* Plan and order files: what is saved comes back equal, down to the byte; every file in
 * data/invalid_plans breaks one rule, with the status, the place (a JSON pointer or nothing) and a
 * part of the message in NAME.expected beside it; no text makes the loader do anything worse than
 * refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "streams/plan/program.h"
#include "support/random_graph.h"
#include "tarn.h"

#define DATA TARN_SOURCE_DIR "/tests/data/invalid_plans"

/* ---- Files ---- */

struct file {
    char path[64];
};

static struct file file_create(const char *suffix)
{
    struct file file;
    snprintf(file.path, sizeof file.path, "/tmp/tarn-plan-test-XXXXXX%s", suffix);
    int fd = mkstemps(file.path, (int)strlen(suffix));
    assert_true(fd >= 0);
    close(fd);
    return file;
}

static void write_text(const char *path, const char *text, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

enum { TEXT_MAX = 1 << 20 };

/* The bytes as they are; the caller frees them. */
static char *read_text(const char *path, size_t *size)
{
    char *text = malloc(TEXT_MAX);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_non_null(text);
    *size = fread(text, 1, TEXT_MAX - 1, file);
    text[*size] = '\0';
    assert_true(*size < TEXT_MAX - 1);
    fclose(file);
    return text;
}

static struct tarn_graph *load_graph(const char *path)
{
    struct tarn_graph *graph;
    struct tarn_error error;
    if (tarn_graph_load(path, NULL, &graph, &error)) fail_msg("%s", error.text);
    return graph;
}

static struct tarn_plan *load_plan(const char *path, struct tarn_graph *graph)
{
    struct tarn_plan *plan;
    struct tarn_error error;
    if (tarn_plan_load(path, graph, TARN_VERIFY, NULL, &plan, &error)) fail_msg("%s", error.text);
    return plan;
}

static void save_plan(const struct tarn_plan *plan, const char *path)
{
    struct tarn_error error;
    if (tarn_plan_save(plan, path, &error)) fail_msg("%s", error.text);
}

static struct tarn_plan *make_plan(struct tarn_graph *graph, uint64_t alignment)
{
    struct tarn_plan *plan;
    struct tarn_error error;
    if (tarn_plan_create(
            graph,
            TARN_PLAN_OPTIONS(.alignment = alignment, .threads = 1, .effort = TARN_NO_EFFORT),
            &plan, &error))
        fail_msg("%s", error.text);
    return plan;
}

/* ---- Round trip ---- */

static void require_equal_waits(const struct tarn_wait *a, const struct tarn_wait *b,
                                uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(a[i].op, b[i].op);
        assert_int_equal(a[i].on, b[i].on);
    }
}

static void require_equal_places(const struct tarn_place *a, const struct tarn_place *b,
                                 uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(a[i].id, b[i].id);
        assert_int_equal(a[i].offset, b[i].offset);
        assert_int_equal(a[i].size, b[i].size);
    }
}

static void require_equal_certificates(const struct tarn_plan *a, const struct tarn_plan *b)
{
    assert_int_equal(!a->claim.threshold, !b->claim.threshold);
    for (uint32_t s = 0; a->claim.threshold && s < a->streams_count; s++)
        assert_int_equal(a->claim.threshold[s], b->claim.threshold[s]);
    assert_int_equal(a->claim.gaps_count, b->claim.gaps_count);
    for (uint32_t i = 0; i < a->claim.gaps_count; i++)
        assert_int_equal(a->claim.gaps[i], b->claim.gaps[i]);
}

static void require_equal(const struct tarn_plan *a, const struct tarn_plan *b)
{
    assert_true(tarn_hash_equal(a->graph->hash, b->graph->hash));
    assert_true(tarn_hash_equal(a->source_hash, b->source_hash));
    assert_int_equal(a->transformed, b->transformed);
    assert_string_equal(a->method, b->method);
    assert_int_equal(a->alignment, b->alignment);
    assert_int_equal(a->footprint, b->footprint);
    assert_int_equal(a->persistent, b->persistent);
    assert_int_equal(a->claim.bound, b->claim.bound);
    require_equal_certificates(a, b);
    assert_int_equal(a->streams_count, b->streams_count);
    for (uint32_t s = 0; s <= a->streams_count; s++)
        assert_int_equal(a->list_begin[s], b->list_begin[s]);
    for (uint32_t i = 0; i < a->list_begin[a->streams_count]; i++)
        assert_int_equal(a->list[i], b->list[i]);
    assert_int_equal(a->waits_count, b->waits_count);
    assert_int_equal(a->boundary_waits_count, b->boundary_waits_count);
    require_equal_waits(a->waits, b->waits, a->waits_count);
    require_equal_waits(a->boundary_waits, b->boundary_waits, a->boundary_waits_count);
    assert_int_equal(a->storages_count, b->storages_count);
    assert_int_equal(a->workspaces_count, b->workspaces_count);
    assert_int_equal(a->places_persistent_count, b->places_persistent_count);
    require_equal_places(a->storages, b->storages, a->storages_count);
    require_equal_places(a->workspaces, b->workspaces, a->workspaces_count);
    require_equal_places(a->places_persistent, b->places_persistent, a->places_persistent_count);
}

/* Saves, loads, saves again: equal plans, equal bytes. */
static void go_round(struct tarn_plan *plan, struct tarn_graph *graph, const char *suffix)
{
    struct file first = file_create(suffix), second = file_create(suffix);
    size_t first_size, second_size;
    save_plan(plan, first.path);
    struct tarn_plan *back = load_plan(first.path, graph);
    require_equal(plan, back);
    save_plan(back, second.path);
    char *first_text = read_text(first.path, &first_size);
    char *second_text = read_text(second.path, &second_size);
    assert_int_equal(first_size, second_size);
    assert_memory_equal(first_text, second_text, first_size);
    free(first_text);
    free(second_text);
    tarn_plan_destroy(back);
    unlink(first.path);
    unlink(second.path);
}

static void drop_bound(struct tarn_plan *plan)
{
    plan->claim.threshold = plan->claim.gaps = NULL;
    plan->claim.bound = plan->claim.gaps_count = 0;
}

static void a_saved_plan_loads_equal_and_saves_to_the_same_bytes(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 120; seed++) {
        struct random_graph_options options = random_graph_knobs(seed, 30);
        struct tarn_graph *graph = random_graph(&options);
        struct tarn_plan *plan = make_plan(graph, UINT64_C(1) << seed % 10);
        assert_non_null(plan->claim.threshold);
        if (seed % 3 == 0) drop_bound(plan);
        go_round(plan, graph, seed % 5 == 0 ? ".gz" : ".json");
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
}

static void a_plan_of_a_transformed_graph_brings_its_graph_along(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 30; seed++) {
        struct random_graph_options options = random_graph_knobs(seed, 20);
        struct tarn_graph *graph = random_graph(&options);
        struct tarn_plan *plan = make_plan(graph, 64);
        plan->transformed = true;
        go_round(plan, graph, ".json");
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
}

static void a_plan_of_nothing_goes_round(void **state)
{
    (void)state;
    struct tarn_graph *graph = load_graph(TARN_SOURCE_DIR "/tests/data/valid/least.json");
    struct tarn_plan *plan = make_plan(graph, 64);
    assert_int_equal(plan->streams_count, 0);
    go_round(plan, graph, ".json");
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

static void saving_where_nothing_can_be_written_is_a_system_error(void **state)
{
    (void)state;
    struct tarn_graph *graph = load_graph(DATA "/graph.json");
    struct tarn_plan *plan = load_plan(DATA "/sound.json", graph);
    struct tarn_error error;
    assert_int_equal(tarn_plan_save(plan, "/nowhere/at/all.json", &error), TARN_SYSTEM);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

static void a_number_that_json_cannot_say_is_not_saved(void **state)
{
    (void)state;
    struct tarn_graph *graph = load_graph(DATA "/graph.json");
    struct tarn_plan *plan = load_plan(DATA "/sound.json", graph);
    uint64_t *numbers[] = {&plan->footprint, &plan->persistent, &plan->alignment};
    for (size_t i = 0; i < 3; i++) {
        struct file file = file_create(".json");
        struct tarn_error error;
        uint64_t before = *numbers[i];
        *numbers[i] = UINT64_C(1) << 53;
        assert_int_equal(tarn_plan_save(plan, file.path, &error), TARN_BAD_INPUT);
        assert_non_null(strstr(error.text, "2^53 - 1"));
        *numbers[i] = before;
        unlink(file.path);
    }
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

static void the_size_of_the_persistent_part_may_be_left_out(void **state)
{
    (void)state;
    struct tarn_graph *graph = load_graph(DATA "/graph.json");
    struct file file = file_create(".json");
    size_t size;
    char *text = read_text(DATA "/sound.json", &size);
    static const char field[] = "\"persistent_bytes\":128,";
    const char *found = strstr(text, field);
    assert_non_null(found);
    size_t front = (size_t)(found - text), back = front + strlen(field);
    memmove(text + front, text + back, size - back);
    write_text(file.path, text, size - strlen(field));
    struct tarn_plan *plan = load_plan(file.path, graph);
    assert_int_equal(plan->persistent, 128);
    tarn_plan_destroy(plan);
    free(text);
    unlink(file.path);
    tarn_graph_destroy(graph);
}

static void no_graph_can_be_said_with_null(void **state)
{
    (void)state;
    struct tarn_graph *graph = load_graph(DATA "/graph.json");
    struct file file = file_create(".json");
    size_t size;
    char *text = read_text(DATA "/sound.json", &size), *more = malloc(size + 32);
    int front = snprintf(more, size + 32, "{\"graph\":null,%s", strchr(text, '{') + 1);
    write_text(file.path, more, (size_t)front);
    struct tarn_plan *plan = load_plan(file.path, graph);
    struct tarn_plan_outline *outline;
    assert_false(plan->transformed);
    assert_int_equal(tarn_plan_outline_load(file.path, &outline, NULL), TARN_OK);
    assert_null(outline->graph);
    tarn_plan_outline_destroy(outline);
    tarn_plan_destroy(plan);
    free(text);
    free(more);
    unlink(file.path);
    tarn_graph_destroy(graph);
}

/* ---- Refusing ---- */

struct expected {
    int status;
    char pointer[128], part[256];
};

static struct expected read_expected(const char *path)
{
    struct expected expected = {0};
    char line[16];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    assert_non_null(fgets(expected.pointer, sizeof expected.pointer, file));
    assert_non_null(fgets(expected.part, sizeof expected.part, file));
    fclose(file);
    expected.status = atoi(line);
    expected.pointer[strcspn(expected.pointer, "\n")] = '\0';
    expected.part[strcspn(expected.part, "\n")] = '\0';
    return expected;
}

/* "wrong graph: wrong graph: ..." */
static bool begins_twice(const char *text)
{
    const char *colon = strstr(text, ": ");
    return colon && strncmp(text, colon + 2, (size_t)(colon - text) + 2) == 0;
}

static void require_refused(struct tarn_graph *graph, const char *name)
{
    char path[512];
    struct tarn_error error;
    struct tarn_plan *plan;
    int length = (int)(strlen(name) - strlen(".expected"));
    snprintf(path, sizeof path, "%s/%s", DATA, name);
    struct expected expected = read_expected(path);
    snprintf(path, sizeof path, "%s/%.*s.json", DATA, length, name);
    int status = (int)tarn_plan_load(path, graph, TARN_VERIFY, NULL, &plan, &error);
    assert_null(plan);
    if (status != expected.status || strcmp(error.pointer, expected.pointer) != 0 ||
        !strstr(error.text, expected.part))
        fail_msg("%s: %d, '%s', %s", name, status, error.pointer, error.text);
    if (status == TARN_BAD_INPUT) assert_non_null(strstr(error.text, path + strlen(path) - 20));
    struct tarn_verdict *verdict;
    status = (int)tarn_plan_verify_file(path, graph, NULL, &verdict, &error);
    assert_int_equal(status, expected.status);
    assert_non_null(strstr(error.text, expected.part));
    assert_false(begins_twice(error.text));
    assert_int_equal(verdict != NULL, status == TARN_REJECTED);
    tarn_verdict_destroy(verdict);
    status = (int)tarn_plan_load(path, graph, TARN_TRUST, NULL, &plan, &error);
    if (expected.status == TARN_BAD_INPUT) assert_int_equal(status, TARN_BAD_INPUT);
    assert_true(status == TARN_OK || status == TARN_BAD_INPUT);
    tarn_plan_destroy(plan);
}

static void every_invalid_plan_is_refused_with_place_and_reason(void **state)
{
    (void)state;
    struct tarn_graph *graph = load_graph(DATA "/graph.json");
    uint32_t files = 0;
    DIR *folder = opendir(DATA);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (!strstr(entry->d_name, ".expected")) continue;
        require_refused(graph, entry->d_name);
        files++;
    }
    closedir(folder);
    assert_true(files >= 60);
    tarn_plan_destroy(load_plan(DATA "/sound.json", graph));
    tarn_graph_destroy(graph);
}

/* What an outline looks at; the rest is the loader's to refuse. */
static void an_outline_is_refused_only_for_what_its_plan_is(void **state)
{
    (void)state;
    uint32_t shown = 0, refused = 0;
    DIR *folder = opendir(DATA);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[512];
        struct tarn_plan_outline *outline;
        struct tarn_error error;
        int length = (int)(strlen(entry->d_name) - strlen(".expected"));
        if (!strstr(entry->d_name, ".expected")) continue;
        snprintf(path, sizeof path, "%s/%s", DATA, entry->d_name);
        struct expected expected = read_expected(path);
        snprintf(path, sizeof path, "%s/%.*s.json", DATA, length, entry->d_name);
        enum tarn_status status = tarn_plan_outline_load(path, &outline, &error);
        assert_int_equal(outline != NULL, status == TARN_OK);
        status ? refused++ : shown++;
        if (status && ((int)status != expected.status || strcmp(error.pointer, expected.pointer)))
            fail_msg("%s: %s", entry->d_name, error.text);
        tarn_plan_outline_destroy(outline);
    }
    closedir(folder);
    assert_true(shown >= 20 && refused >= 20);
}

/* sound.json with one memory space, whose fields are these. */
static enum tarn_status outline_with_space(const char *fields, struct tarn_plan_outline **outline,
                                           struct tarn_error *error)
{
    struct file file = file_create(".json");
    size_t size;
    char *text = read_text(DATA "/sound.json", &size), *more = malloc(size + 256);
    int length = snprintf(more, size + 256, "{\"spaces\":[{%s}],%s", fields, strchr(text, '{') + 1);
    write_text(file.path, more, (size_t)length);
    enum tarn_status status = tarn_plan_outline_load(file.path, outline, error);
    free(text);
    free(more);
    unlink(file.path);
    return status;
}

static void an_outline_tells_of_spaces_with_and_without_a_bound(void **state)
{
    (void)state;
    struct tarn_plan_outline *outline;
    struct tarn_error error;
    static const char bound[] = "\"footprint_bytes\":9,\"persistent_bytes\":2,\"bound_bytes\":7",
                      none[] = "\"footprint_bytes\":9,\"persistent_bytes\":2,\"bound_bytes\":null",
                      missing[] = "\"footprint_bytes\":9,\"persistent_bytes\":2},{";
    assert_int_equal(outline_with_space(bound, &outline, &error), TARN_OK);
    assert_int_equal(outline->spaces_count, 1);
    assert_int_equal(outline->spaces[0].footprint, 9);
    assert_int_equal(outline->spaces[0].persistent, 2);
    assert_int_equal(outline->spaces[0].bound, 7);
    tarn_plan_outline_destroy(outline);
    assert_int_equal(outline_with_space(none, &outline, &error), TARN_OK);
    assert_int_equal(outline->spaces[0].bound, 0);
    tarn_plan_outline_destroy(outline);
    assert_int_equal(outline_with_space(missing, &outline, &error), TARN_BAD_INPUT);
    assert_string_equal(error.pointer, "/spaces/0");
    assert_non_null(strstr(error.text, "\"bound_bytes\" is missing"));
}

static void a_file_is_verified_also_for_those_who_ask_for_no_verdict(void **state)
{
    (void)state;
    struct tarn_graph *graph = load_graph(DATA "/graph.json");
    assert_int_equal(tarn_plan_verify_file(DATA "/sound.json", graph, NULL, NULL, NULL), TARN_OK);
    assert_int_equal(tarn_plan_verify_file(DATA "/place_overlaps.json", graph, NULL, NULL, NULL),
                     TARN_REJECTED);
    tarn_graph_destroy(graph);
}

static void a_trusted_plan_is_complete_and_in_range_even_when_it_is_unsafe(void **state)
{
    (void)state;
    static const char *const harmful[] = {"place_overlaps", "wait_dropped", "streams_swapped",
                                          "persistent_overlaps", "source_hash_other"};
    struct tarn_graph *graph = load_graph(DATA "/graph.json");
    for (size_t i = 0; i < sizeof harmful / sizeof harmful[0]; i++) {
        char path[512];
        struct tarn_error error;
        struct tarn_plan *plan;
        snprintf(path, sizeof path, "%s/%s.json", DATA, harmful[i]);
        if (tarn_plan_load(path, graph, TARN_TRUST, NULL, &plan, &error))
            fail_msg("%s", error.text);
        assert_int_equal(tarn_plan_verify(plan, graph, NULL, NULL, NULL), TARN_REJECTED);
        tarn_plan_destroy(plan);
    }
    tarn_graph_destroy(graph);
}

/* ---- Any text ---- */

/* Changes, removes, repeats or moves a few bytes; text has room for twice its size. */
static size_t mutate(char *text, size_t size, struct random_source *source)
{
    static const char alphabet[] = "0123456789[]{},:\"-.eE \\natrue";
    for (uint32_t n = 1 + random_below(source, 4); n > 0 && size > 8; n--) {
        size_t i = random_below(source, (uint32_t)size), length = 1 + random_below(source, 6);
        if (i + length > size) length = size - i;
        switch (random_below(source, 3)) {
        case 0: text[i] = alphabet[random_below(source, sizeof alphabet - 1)]; break;
        case 1:
            memmove(text + i, text + i + length, size - i - length);
            size -= length;
            break;
        default: memmove(text + i + length, text + i, size - i); size += length;
        }
    }
    return size;
}

/* What a session needs of a plan that it trusts. */
static void require_executable(const struct tarn_plan *plan)
{
    struct tarn_program program;
    for (uint32_t a = 0; a < plan->graph->storages_count; a++) {
        const struct tarn_place *place = tarn_plan_place(plan, a);
        uint64_t limit = a < plan->graph->planned_count ? plan->footprint : plan->persistent;
        assert_int_equal(place->size, plan->graph->storages[a].size);
        assert_true(place->size <= limit && place->offset <= limit - place->size);
    }
    if (tarn_program_init(&program, plan, NULL) != TARN_OK)
        return; /* a deadlock is refused there */
    tarn_program_finish(&program);
}

static void mutate_and_load(const char *path)
{
    struct tarn_graph *graph = load_graph(DATA "/graph.json");
    struct random_source source = {2024};
    struct file file = file_create(".json");
    uint32_t verified = 0, trusted = 0;
    size_t size;
    char *sound = read_text(path, &size);
    char *text = malloc(2 * size + 64);
    for (uint32_t i = 0; i < 3000; i++) {
        struct tarn_plan *plan;
        memcpy(text, sound, size);
        write_text(file.path, text, mutate(text, size, &source));
        if (tarn_plan_load(file.path, graph, TARN_VERIFY, NULL, &plan, NULL) == TARN_OK) verified++;
        tarn_plan_destroy(plan);
        if (tarn_plan_load(file.path, graph, TARN_TRUST, NULL, &plan, NULL) == TARN_OK) {
            trusted++;
            require_executable(plan);
        }
        tarn_plan_destroy(plan);
    }
    assert_true(trusted > verified && verified > 0);
    free(text);
    free(sound);
    unlink(file.path);
    tarn_graph_destroy(graph);
}

static void no_mutation_of_a_plan_file_harms_the_loader(void **state)
{
    (void)state;
    mutate_and_load(DATA "/sound.json");
    mutate_and_load(DATA "/sound_with_bound.json");
}

/* ---- Orders ---- */

static void a_saved_order_loads_equal(void **state)
{
    (void)state;
    const struct tarn_step steps[] = {{0, 0}, {7, 0}, {4294967294u, 3}, {0, 1}};
    struct file file = file_create(".json");
    struct tarn_step *back;
    size_t count;
    for (size_t length = 0; length <= 4; length++) {
        assert_int_equal(tarn_order_save(steps, length, file.path, NULL), TARN_OK);
        assert_int_equal(tarn_order_load(file.path, &back, &count, NULL), TARN_OK);
        assert_int_equal(count, length);
        for (size_t i = 0; i < length; i++) {
            assert_int_equal(back[i].op, steps[i].op);
            assert_int_equal(back[i].iteration, steps[i].iteration);
        }
        free(back);
    }
    unlink(file.path);
}

static enum tarn_status load_order(const char *text, struct tarn_step **steps, size_t *count,
                                   struct tarn_error *error)
{
    struct file file = file_create(".json");
    write_text(file.path, text, strlen(text));
    enum tarn_status status = tarn_order_load(file.path, steps, count, error);
    unlink(file.path);
    return status;
}

static void a_bare_list_of_ops_is_an_order_of_one_iteration(void **state)
{
    (void)state;
    struct tarn_step *steps;
    size_t count;
    assert_int_equal(load_order(" [3, 1,2]\n", &steps, &count, NULL), TARN_OK);
    assert_int_equal(count, 3);
    assert_int_equal(steps[0].op, 3);
    assert_int_equal(steps[2].op, 2);
    assert_int_equal(steps[2].iteration, 0);
    free(steps);
}

static void malformed_orders_are_refused_with_place_and_reason(void **state)
{
    (void)state;
    static const struct {
        const char *text, *pointer, *part;
    } cases[] = {
        {"[1,2", "", "line 1"},
        {"[1,-2]", "/1", "must be an integer from 0"},
        {"[-1,2]", "/0", "must be an integer from 0"},
        {"[[1,0]]", "/0", "must be an integer"},
        {"{\"format\":\"tarn.plan\",\"version\":1}", "/format", "not a \"tarn.order\""},
        {"{\"format\":\"tarn.order\",\"version\":1}", "", "the field \"order\" is missing"},
        {"{\"format\":\"tarn.order\",\"version\":1,\"order\":7}", "/order", "must be an array"},
        {"{\"format\":\"tarn.order\",\"version\":1,\"order\":[[1]]}", "/order/0",
         "must be [op, iteration], not a list of 1"},
        {"{\"format\":\"tarn.order\",\"version\":1,\"order\":[1]}", "/order/0", "must be an array"},
        {"{\"format\":\"tarn.order\",\"version\":1,\"order\":[[\"a\",0]]}", "/order/0/0",
         "must be an integer"},
        {"{\"format\":\"tarn.order\",\"version\":1,\"order\":[[1,0],[2,4294967296]]}", "/order/1/1",
         "must be an integer from 0"},
        {"{\"format\":\"tarn.order\",\"version\":1,\"order\":[],\"x\":1}", "/x", "unknown field"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tarn_step *steps;
        struct tarn_error error;
        size_t count;
        assert_int_equal(load_order(cases[i].text, &steps, &count, &error), TARN_BAD_INPUT);
        assert_null(steps);
        assert_int_equal(count, 0);
        if (strcmp(error.pointer, cases[i].pointer) != 0 || !strstr(error.text, cases[i].part))
            fail_msg("%s: '%s', %s", cases[i].text, error.pointer, error.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_saved_plan_loads_equal_and_saves_to_the_same_bytes),
        cmocka_unit_test(a_plan_of_a_transformed_graph_brings_its_graph_along),
        cmocka_unit_test(a_plan_of_nothing_goes_round),
        cmocka_unit_test(saving_where_nothing_can_be_written_is_a_system_error),
        cmocka_unit_test(a_number_that_json_cannot_say_is_not_saved),
        cmocka_unit_test(the_size_of_the_persistent_part_may_be_left_out),
        cmocka_unit_test(no_graph_can_be_said_with_null),
        cmocka_unit_test(every_invalid_plan_is_refused_with_place_and_reason),
        cmocka_unit_test(an_outline_is_refused_only_for_what_its_plan_is),
        cmocka_unit_test(an_outline_tells_of_spaces_with_and_without_a_bound),
        cmocka_unit_test(a_file_is_verified_also_for_those_who_ask_for_no_verdict),
        cmocka_unit_test(a_trusted_plan_is_complete_and_in_range_even_when_it_is_unsafe),
        cmocka_unit_test(no_mutation_of_a_plan_file_harms_the_loader),
        cmocka_unit_test(a_saved_order_loads_equal),
        cmocka_unit_test(a_bare_list_of_ops_is_an_order_of_one_iteration),
        cmocka_unit_test(malformed_orders_are_refused_with_place_and_reason),
    };
    return cmocka_run_group_tests_name("plan_file", tests, NULL, NULL);
}
