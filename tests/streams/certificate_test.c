/* Certificates that name gaps, on graphs of one stream:
 *
 *     rows of a kind, rows of the next kind, ... sides, items | use of sides, use of items
 *
 * Groups (side, row, side, row, ..., side): a row is read by nobody, so that it is a gap between
 * two sides at the cut (|), and safe with rows of other kinds. Items lie in no group, and may lie
 * in a gap that is large enough. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "streams/verify/verdict.h"
#include "tarn/plan.h"

/* Groups of one kind. */
struct gaps {
    uint32_t groups, gaps, members; /* gaps in a group, members in a gap */
    uint64_t member_size, side_size;
    uint32_t items;
    uint64_t item_size; /* every second one is a byte larger */
    uint64_t last_size; /* of the last side; 0: as the others */
    bool open;          /* the last side is not there */
};

static tarn_tensor add_tensor(struct tarn_builder *builder, uint64_t size)
{
    return tarn_builder_tensor(builder, &(struct tarn_tensor_info){.size = size});
}

static void add_op(struct tarn_builder *builder, struct tarn_list inputs, struct tarn_list outputs)
{
    tarn_builder_op(builder, &(struct tarn_op_info){.inputs = inputs, .outputs = outputs});
}

enum { GAPS_MAX = 120000 };

struct gap_lists {
    uint32_t sides[GAPS_MAX], rows[GAPS_MAX], starts[GAPS_MAX], items[1000];
    uint32_t sides_count, rows_count, starts_count, items_count;
};

static void add_gap_group(struct tarn_builder *builder, const struct gaps *gaps,
                          struct gap_lists *lists)
{
    uint32_t count = 0, *group = malloc(GAPS_MAX * sizeof *group);
    for (uint32_t g = 0; g <= gaps->gaps; g++) {
        bool is_last = g == gaps->gaps;
        if (is_last && gaps->open) break;
        tarn_tensor side =
            add_tensor(builder, is_last && gaps->last_size > 0 ? gaps->last_size : gaps->side_size);
        lists->sides[lists->sides_count++] = group[count++] = side;
        for (uint32_t m = 0; g < gaps->gaps && m < gaps->members; m++) {
            tarn_tensor member = add_tensor(builder, gaps->member_size);
            if (m == 0) lists->starts[lists->starts_count++] = member;
            lists->rows[lists->rows_count++] = group[count++] = member;
        }
    }
    tarn_builder_group(builder, (struct tarn_list){group, count});
    free(group);
}

static struct tarn_graph *graph_with_gaps(const struct gaps *kinds, struct gap_lists *lists)
{
    struct tarn_builder *builder = tarn_builder_create("gaps");
    struct tarn_list none = {0};
    tarn_builder_stream(builder, "");
    memset(lists, 0, sizeof *lists);
    for (; kinds->groups > 0; kinds++) {
        uint32_t first = lists->rows_count;
        for (uint32_t g = 0; g < kinds->groups; g++) add_gap_group(builder, kinds, lists);
        add_op(builder, none, (struct tarn_list){lists->rows + first, lists->rows_count - first});
        for (uint32_t i = 0; i < kinds->items; i++)
            lists->items[lists->items_count++] = add_tensor(builder, kinds->item_size + i % 2);
    }
    struct tarn_list sides = {lists->sides, lists->sides_count};
    struct tarn_list items = {lists->items, lists->items_count};
    add_op(builder, none, sides);
    add_op(builder, none, items);
    add_op(builder, sides, none);
    add_op(builder, items, none);
    struct tarn_graph *graph;
    assert_int_equal(tarn_builder_finish(builder, &graph, NULL), TARN_OK);
    return graph;
}

/* Everything behind everything else, in the order of the tensors. */
static struct tarn_plan *plan_with_gaps(const struct gaps *kinds)
{
    struct gap_lists *lists = malloc(sizeof *lists);
    struct tarn_graph *graph = graph_with_gaps(kinds, lists);
    struct tarn_plan *plan = tarn_plan_of_graph(graph);
    plan->alignment = 1;
    for (uint32_t i = 0; i < plan->storages_count; i++) {
        plan->storages[i].offset = plan->footprint;
        plan->footprint += plan->storages[i].size;
    }
    plan->claim.threshold = tarn_region_take(&plan->region, 1, sizeof *plan->claim.threshold);
    plan->claim.threshold[0] = graph->ops_count - 2;
    plan->claim.gaps = tarn_region_copy(&plan->region, lists->starts, lists->starts_count,
                                        sizeof *plan->claim.gaps);
    plan->claim.gaps_count = lists->starts_count;
    tarn_graph_destroy(graph);
    free(lists);
    return plan;
}

static void require_rejected(const struct tarn_plan *plan, const char *part)
{
    struct tarn_verdict *verdict;
    assert_int_equal(tarn_plan_verify(plan, plan->graph, NULL, &verdict, NULL), TARN_REJECTED);
    assert_int_equal(tarn_verdict_count(verdict), 1);
    const struct tarn_violation *violation = tarn_verdict_get(verdict, 0);
    assert_int_equal(violation->kind, TARN_WRONG_BOUND);
    if (!strstr(violation->text, part)) fail_msg("%s", violation->text);
    tarn_verdict_destroy(verdict);
}

/* Proves that many bytes and not one more. */
static void require_proved(const struct gaps *kinds, uint64_t bytes)
{
    struct tarn_plan *plan = plan_with_gaps(kinds);
    struct tarn_error error;
    plan->claim.bound = bytes;
    if (tarn_plan_verify(plan, plan->graph, NULL, NULL, &error)) fail_msg("%s", error.text);
    plan->claim.bound++;
    require_rejected(plan, plan->claim.bound > plan->footprint ? "" : "its certificate proves");
    tarn_plan_destroy(plan);
}

static void require_refused(const struct gaps *kinds, const char *part)
{
    struct tarn_plan *plan = plan_with_gaps(kinds);
    require_rejected(plan, part);
    tarn_plan_destroy(plan);
}

static void accepts_the_bytes_that_a_gap_wastes(void **state)
{
    (void)state;
    const struct gaps alone[] = {{1, 1, 1, 1000, 10, 0, 0, 0, false}, {0}};
    const struct gaps small[] = {{1, 1, 1, 1000, 10, 2, 300, 0, false},
                                 {0}}; /* 300 and 301 lie inside */
    const struct gaps filled[] = {{1, 1, 1, 1000, 10, 4, 300, 0, false},
                                  {0}}; /* three of them do */
    const struct gaps large[] = {{1, 1, 1, 1000, 10, 2, 2000, 0, false}, {0}}; /* none does */
    const struct gaps huge[] = {{1, 1, 1, 300000, 10, 4, 100000, 0, false},
                                {0}}; /* sums are not looked at */
    const struct gaps wide[] = {{1, 1, 1, 1000000, 10, 2, 1000, 0, false},
                                {0}}; /* all lie inside */
    require_proved(alone, 20 + 1000);
    require_proved(small, 20 + 601 + 399);
    require_proved(filled, 20 + 1202 + 98);
    require_proved(large, 20 + 4001 + 1000);
    require_proved(huge, 20 + 400002);
    require_proved(wide, 20 + 2001 + 1000000 - 2001);
}

/* A gap at the end of its group: what fits may lie across the end. */
static void a_gap_with_one_side_is_filled_by_parts(void **state)
{
    (void)state;
    const struct gaps alone[] = {{1, 1, 1, 1000, 10, 0, 0, 0, true}, {0}};
    const struct gaps some[] = {{1, 1, 1, 1000, 10, 2, 300, 0, true}, {0}};
    const struct gaps enough[] = {{1, 1, 1, 1000, 10, 4, 300, 0, true}, {0}};
    const struct gaps larger[] = {{1, 1, 1, 1000, 10, 2, 2000, 0, true}, {0}};
    require_proved(alone, 10 + 1000);
    require_proved(some, 10 + 601 + 399);
    require_proved(enough, 10 + 1202);
    require_proved(larger, 10 + 4001);
}

/* Two groups with a gap each: may a side of one lie in the gap of the other, so that the gaps lie
 * over each other? A large side does not fit. */
static void gaps_may_share_bytes_where_their_sides_let_them(void **state)
{
    (void)state;
    for (unsigned small = 0; small < 16; small++) {
        bool a_left = small & 1, a_right = small & 2, b_left = small & 4, b_right = small & 8;
        uint64_t sides[4], sum = 0, entering = 0;
        for (unsigned i = 0; i < 4; i++) {
            sum += sides[i] = small >> i & 1 ? 10 : 2000;
            entering += small >> i & 1 ? 10 : 0;
        }
        const struct gaps groups[] = {{1, 1, 1, 1000, sides[0], 0, 0, sides[1], false},
                                      {1, 1, 1, 1000, sides[2], 0, 0, sides[3], false},
                                      {0}};
        if ((a_left && a_right) || (b_left && b_right) || (a_right && b_left) ||
            (a_left && b_right))
            require_refused(groups, "might share bytes");
        else
            require_proved(groups, sum + 2000 - entering);
    }
    for (unsigned open = 1; open < 4; open++) {
        const struct gaps groups[] = {{1, 1, 1, 1000, 2000, 0, 0, 0, open & 1},
                                      {1, 1, 1, 1000, 2000, 0, 0, 0, open & 2},
                                      {0}};
        require_refused(groups, "might share bytes");
    }
}

static void rejects_a_certificate_that_takes_too_long_to_check(void **state)
{
    (void)state;
    const struct gaps sums[] = {{1, 1, 1, 262143, 10, 600, 1000, 0, false}, {0}};
    const struct gaps pairs[] = {{1, 17000, 1, 1, 1, 0, 0, 0, false}, {0}};
    const struct gaps members[] = {
        {1, 1, 100000, 1, 1000000, 0, 0, 0, false}, {1400, 1, 1, 1, 1000000, 0, 0, 0, false}, {0}};
    require_refused(sums, "take too long to check");
    require_refused(pairs, "might share bytes");
    require_refused(members, "might share bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_the_bytes_that_a_gap_wastes),
        cmocka_unit_test(a_gap_with_one_side_is_filled_by_parts),
        cmocka_unit_test(gaps_may_share_bytes_where_their_sides_let_them),
        cmocka_unit_test(rejects_a_certificate_that_takes_too_long_to_check),
    };
    return cmocka_run_group_tests_name("certificate", tests, NULL, NULL);
}
