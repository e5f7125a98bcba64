/* Exact search against the best of all placements: every interval problem of up to six storages of
 * one to three bytes, random graphs with several streams, groups and alignments, and parts of them.
 * The oracle tries every offset of every block and knows of safe pairs only.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/rough_graph.h"
#include "planner/place/core.h"
#include "planner/place/exact/exact.h"
#include "planner/place/exact/rules.h"
#include "planner/place/place.h"
#include "streams/base/region.h"
#include "support/random_graph.h"
#include "tarn/plan.h"

enum { STORAGES_MAX = 64, SIZES = 3, RANDOM_GRAPHS = DRAWS(3000) };
#ifdef FEW_DRAWS
enum { SMALL = 5 };
#else
enum { SMALL = 6 };
#endif

/* ---- Problems ---- */

struct setup {
    struct tarn_region region; /* of the problem */
    struct tarn_graph *graph;
    struct tarn_problem problem;
    bool is_left_out[STORAGES_MAX]; /* by block */
    uint64_t offset[STORAGES_MAX];
    uint64_t unsafe[STORAGES_MAX]; /* storage -> bits of those that it must not share bytes with */
};

/* Takes the graph. */
static void set_up(struct setup *setup, struct tarn_graph *graph, uint64_t alignment)
{
    memset(setup, 0, sizeof *setup);
    setup->graph = graph;
    assert_true(graph->planned_count <= STORAGES_MAX);
    assert_int_equal(tarn_problem_init(&setup->problem, &setup->region, graph, alignment, NULL),
                     TARN_OK);
    assert_int_equal(tarn_conflicts_init_rows(&setup->problem.conflicts, &setup->region), TARN_OK);
    for (uint32_t p = 0; p < graph->planned_count; p++)
        for (uint32_t q = 0; q < graph->planned_count; q++)
            setup->unsafe[p] |= (uint64_t)!tarn_reuse_is_safe(&setup->problem.conflicts.reuse, p, q)
                                << q;
}

/* Takes the graph. False: it has too many storages, and is gone. */
static bool set_up_small(struct setup *setup, struct tarn_graph *graph, uint64_t alignment)
{
    bool is_small = graph->planned_count <= STORAGES_MAX;
    if (is_small)
        set_up(setup, graph, alignment);
    else
        tarn_graph_destroy(graph);
    return is_small;
}

/* The same of a random graph of up to so many ops. */
static bool set_up_random(struct setup *setup, uint64_t seed, uint32_t ops_max, uint64_t alignment)
{
    struct random_graph_options knobs = random_graph_knobs(seed, ops_max);
    return set_up_small(setup, random_graph(&knobs), alignment);
}

static void tear_down(struct setup *setup)
{
    tarn_region_finish(&setup->region);
    tarn_graph_destroy(setup->graph);
}

struct interval {
    unsigned begin, last; /* steps, both included */
    uint64_t size;
};

static struct tarn_graph *interval_graph(const struct interval *intervals, unsigned count,
                                         unsigned steps)
{
    struct tarn_builder *builder = tarn_builder_create("intervals");
    struct tarn_graph *graph;
    tarn_builder_stream(builder, "stream");
    for (unsigned i = 0; i < count; i++)
        tarn_builder_tensor(builder, &(struct tarn_tensor_info){.size = intervals[i].size});
    for (unsigned step = 0; step < steps; step++) {
        uint32_t outputs[STORAGES_MAX], inputs[STORAGES_MAX];
        struct tarn_op_info op = {.outputs = {outputs, 0}, .inputs = {inputs, 0}};
        for (unsigned i = 0; i < count; i++) {
            if (intervals[i].begin == step) outputs[op.outputs.count++] = i;
            if (intervals[i].last == step && intervals[i].begin != step)
                inputs[op.inputs.count++] = i;
        }
        tarn_builder_op(builder, &op);
    }
    assert_int_equal(tarn_builder_finish(builder, &graph, NULL), TARN_OK);
    return graph;
}

/* ---- The oracle ---- */

/* Do the blocks, at the offsets of their members, share a byte that they must not share? */
static bool collide(const struct setup *setup, uint32_t b, uint32_t c)
{
    struct tarn_block x = tarn_block_at(&setup->problem.blocks, b),
                      y = tarn_block_at(&setup->problem.blocks, c);
    for (uint32_t i = 0; i < x.members_count; i++) {
        for (uint32_t k = 0; k < y.members_count; k++) {
            uint32_t p = x.members[i], q = y.members[k];
            if (setup->unsafe[p] >> q & 1 &&
                setup->offset[p] < setup->offset[q] + setup->problem.blocks.reserved[q] &&
                setup->offset[q] < setup->offset[p] + setup->problem.blocks.reserved[p])
                return true;
        }
    }
    return false;
}

static void move(struct setup *setup, uint32_t b, uint64_t offset)
{
    const struct tarn_block block = tarn_block_at(&setup->problem.blocks, b);
    for (uint32_t i = 0; i < block.members_count; i++)
        setup->offset[block.members[i]] = offset + setup->problem.blocks.within[block.members[i]];
}

/* Is there room within the capacity for the free blocks from b on? */
static bool fits(struct setup *setup, uint32_t b, uint64_t capacity)
{
    if (b == setup->problem.blocks.count) return true;
    if (setup->is_left_out[b]) return fits(setup, b + 1, capacity);
    const struct tarn_block block = tarn_block_at(&setup->problem.blocks, b);
    for (uint64_t at = 0; at + block.size <= capacity; at += block.alignment) {
        bool collides = false;
        move(setup, b, at);
        for (uint32_t c = 0; c < b && !collides; c++)
            collides = !setup->is_left_out[c] && collide(setup, b, c);
        if (!collides && fits(setup, b + 1, capacity)) return true;
    }
    return false;
}

static uint64_t least_capacity(struct setup *setup, uint64_t from)
{
    uint64_t capacity = from;
    while (!fits(setup, 0, capacity)) capacity++;
    return capacity;
}

static void assert_valid(const struct setup *setup, uint64_t capacity)
{
    for (uint32_t b = 0; b < setup->problem.blocks.count; b++) {
        const struct tarn_block block = tarn_block_at(&setup->problem.blocks, b);
        uint64_t at = setup->offset[block.members[0]];
        if (setup->is_left_out[b]) continue;
        for (uint32_t i = 0; i < block.members_count; i++)
            assert_int_equal(setup->offset[block.members[i]],
                             at + setup->problem.blocks.within[block.members[i]]);
        for (uint32_t c = 0; c < b; c++)
            assert_true(setup->is_left_out[c] || !collide(setup, b, c));
        assert_int_equal(at % block.alignment, 0);
        assert_true(at + block.size <= capacity);
    }
}

/* ---- What is expected ---- */

static struct tarn_exact_report search(struct setup *setup, uint64_t capacity,
                                       const struct tarn_exact_options *options)
{
    struct tarn_exact_report report;
    assert_int_equal(tarn_exact_place(&setup->problem, setup->is_left_out, capacity, options,
                                      setup->offset, &report),
                     TARN_OK);
    if (report.result == TARN_EXACT_FOUND) assert_valid(setup, capacity);
    return report;
}

/* Found at the least capacity of all, none being below `from`, and proved impossible below. Returns
 * how many storages there was no need to search. */
static uint32_t assert_exact(struct setup *setup, uint64_t from, uint64_t seed)
{
    const struct tarn_exact_options options = {.seed = seed, .threads = 1};
    uint64_t least = least_capacity(setup, from);
    struct tarn_exact_report report = search(setup, least, &options);
    assert_int_equal(report.result, TARN_EXACT_FOUND);
    if (least > 0)
        assert_int_equal(search(setup, least - 1, &options).result, TARN_EXACT_INFEASIBLE);
    return setup->problem.blocks.storages_count - report.storages;
}

/* ---- Every small interval problem ---- */

/* Each step must be the first of some interval and the last of some: then every interval order is
 * met once, for this is its shortest representation. */
static bool is_shortest(const struct interval *intervals, unsigned count, unsigned steps)
{
    unsigned begins = 0, lasts = 0;
    for (unsigned i = 0; i < count; i++) {
        begins |= 1u << intervals[i].begin;
        lasts |= 1u << intervals[i].last;
    }
    return begins == (1u << steps) - 1 && lasts == begins;
}

/* The sum of sizes that are alive in one step: they need as much. */
static uint64_t greatest_load(const struct interval *intervals, unsigned count, unsigned steps)
{
    uint64_t greatest = 0;
    for (unsigned step = 0; step < steps; step++) {
        uint64_t load = 0;
        for (unsigned i = 0; i < count; i++) {
            if (intervals[i].begin <= step && step <= intervals[i].last) load += intervals[i].size;
        }
        if (load > greatest) greatest = load;
    }
    return greatest;
}

static void try_all_sizes(struct interval *intervals, unsigned count, unsigned steps)
{
    unsigned combinations = 1;
    for (unsigned i = 0; i < count; i++) combinations *= SIZES;
    for (unsigned number = 0; number < combinations; number++) {
        struct setup setup;
        for (unsigned i = 0, rest = number; i < count; i++, rest /= SIZES)
            intervals[i].size = 1 + rest % SIZES;
        set_up(&setup, interval_graph(intervals, count, steps), 1);
        assert_exact(&setup, greatest_load(intervals, count, steps), number);
        tear_down(&setup);
    }
}

/* Chooses interval i and on, in order of (begin, last); returns how many orders there are. */
static unsigned try_from(struct interval *intervals, unsigned i, unsigned count, unsigned steps)
{
    unsigned orders = 0;
    if (i == count) {
        if (!is_shortest(intervals, count, steps)) return 0;
        try_all_sizes(intervals, count, steps);
        return 1;
    }
    for (unsigned begin = i ? intervals[i - 1].begin : 0; begin < steps; begin++) {
        bool same = i > 0 && begin == intervals[i - 1].begin;
        for (unsigned last = same ? intervals[i - 1].last : begin; last < steps; last++) {
            intervals[i] = (struct interval){begin, last, 1};
            orders += try_from(intervals, i + 1, count, steps);
        }
    }
    return orders;
}

static void exact_on_every_interval_problem_of_up_to_six_storages(void **state)
{
    static const unsigned fishburn[] = {1, 1, 2, 5, 15, 53, 217}; /* interval orders of n things */
    (void)state;
    for (unsigned count = 1; count <= SMALL; count++) {
        struct interval intervals[SMALL];
        unsigned orders = 0;
        for (unsigned steps = 1; steps <= count; steps++)
            orders += try_from(intervals, 0, count, steps);
        assert_int_equal(orders, fishburn[count]);
    }
}

/* ---- Random problems ---- */

/* A graph with few planned storages, sizes of 1 to 3 bytes or up to `size_max`. */
static struct tarn_graph *small_graph(struct random_source *source, uint32_t groups)
{
    for (;;) {
        struct tarn_graph *graph =
            random_graph(&(struct random_graph_options){.seed = random_next(source),
                                                        .ops = 3 + random_below(source, 4),
                                                        .streams = 1 + random_below(source, 4),
                                                        .workspace_share = 20,
                                                        .dead_share = 20,
                                                        .output_share = 5,
                                                        .inplace_share = 10,
                                                        .control_share = 20,
                                                        .group_share = groups,
                                                        .tiny_share = 80,
                                                        .size_max = 7});
        if (graph->planned_count > 0 && graph->planned_count <= 7) return graph;
        tarn_graph_destroy(graph);
    }
}

static void exact_with_several_streams(void **state)
{
    struct random_source source = {1};
    uint32_t spared = 0;
    (void)state;
    for (uint32_t i = 0; i < RANDOM_GRAPHS; i++) {
        struct setup setup;
        set_up(&setup, small_graph(&source, 0), 1);
        spared += assert_exact(&setup, 0, i);
        tear_down(&setup);
    }
    assert_true(spared > RANDOM_GRAPHS); /* in conflict with all others */
}

static void exact_with_groups_and_alignment(void **state)
{
    struct random_source source = {2};
    uint32_t spared = 0;
    (void)state;
    for (uint32_t i = 0; i < RANDOM_GRAPHS; i++) {
        struct setup setup;
        uint64_t alignment = UINT64_C(1) << random_below(&source, 3);
        set_up(&setup, small_graph(&source, 80), alignment);
        bool alone = setup.problem.blocks.count == 1;
        uint32_t less = assert_exact(&setup, 0, i);
        spared += alone ? 0 : less;
        tear_down(&setup);
    }
    assert_true(spared > RANDOM_GRAPHS); /* the same, or one piece with another member */
}

/* Some blocks are left out, as those outside of a core are. */
static void exact_without_what_is_left_out(void **state)
{
    struct random_source source = {3};
    (void)state;
    for (uint32_t i = 0; i < RANDOM_GRAPHS; i++) {
        struct setup setup;
        set_up(&setup, small_graph(&source, i % 2 ? 50 : 0), 1);
        for (uint32_t b = 0; b < setup.problem.blocks.count; b++) {
            setup.is_left_out[b] = random_percent(&source, 25);
            move(&setup, b, random_below(&source, 16));
        }
        assert_exact(&setup, 0, i);
        tear_down(&setup);
    }
}

/* ---- What the rules keep ---- */

/* The placement of the free blocks within the capacity with the least sum of positions. */
struct least {
    uint64_t capacity, sum;
    uint64_t offset[STORAGES_MAX];
};

static void find_least(struct setup *setup, uint32_t b, uint64_t sum, struct least *least)
{
    if (sum >= least->sum) return;
    if (b == setup->problem.blocks.count) {
        least->sum = sum;
        memcpy(least->offset, setup->offset, sizeof least->offset);
        return;
    }
    const struct tarn_block block = tarn_block_at(&setup->problem.blocks, b);
    for (uint64_t at = 0; at + block.size <= least->capacity; at += block.alignment) {
        bool collides = false;
        move(setup, b, at);
        for (uint32_t c = 0; c < b && !collides; c++) collides = collide(setup, b, c);
        if (!collides) find_least(setup, b + 1, sum + at, least);
    }
}

static int64_t least_position(const struct setup *setup, const struct tarn_exact_instance *instance,
                              const struct least *least, uint32_t b)
{
    const struct tarn_block block = tarn_block_at(&setup->problem.blocks, instance->block[b]);
    return (int64_t)(least->offset[block.members[0]] / instance->unit);
}

/* Any unplaced block that has no lower unplaced neighbour. */
static uint32_t pick_any(struct random_source *source, const struct tarn_exact_state *state)
{
    uint32_t b = random_below(source, state->instance->count);
    while (!tarn_set_has(state->unplaced, b)) b = (b + 1) % state->instance->count;
    for (uint32_t c = 0; c < state->instance->count; c++) {
        if (tarn_set_has(tarn_exact_adjacent(state, b), c) && tarn_set_has(state->unplaced, c) &&
            state->limit[c] < state->limit[b]) {
            b = c;
            c = UINT32_MAX;
        }
    }
    return b;
}

/* A failed state is explained by all that the limits of its open blocks follow from. */
static void assert_explains_all_limits(struct tarn_exact_state *state)
{
    tarn_exact_explain_failed(state, state->unplaced);
    for (uint32_t b = 0; b < state->instance->count; b++) {
        const uint64_t *explanation = tarn_exact_explanation(state, b);
        for (uint32_t c = 0; c < state->instance->count && tarn_set_has(state->unplaced, b); c++) {
            bool placed = !tarn_set_has(state->unplaced, c);
            bool next_to_it = placed && tarn_set_has(tarn_exact_adjacent(state, b), c);
            if (next_to_it || tarn_set_has(explanation, c))
                assert_true(tarn_set_has(state->failure, c));
        }
    }
}

/* Goes down to the least placement by right decisions, in any order: no rule may object, and none
 * may raise a block above its place there. */
static void follow_least(struct setup *setup, const struct least *least,
                         struct random_source *source)
{
    struct tarn_region region = {.chunks = NULL};
    struct tarn_exact_instance instance;
    struct tarn_exact_state state;
    struct tarn_exact_mark mark;
    const struct tarn_deadline forever = {0};
    uint64_t work;
    assert_int_equal(tarn_exact_instance_init(&instance, &region, &setup->problem, NULL, NULL,
                                              &forever, 0, &work),
                     TARN_OK);
    assert_true(tarn_exact_state_init(&state, &region, &instance,
                                      (int64_t)(least->capacity / instance.unit)));
    assert_true(tarn_exact_begin(&state));
    while (state.unplaced_count > 0) {
        uint32_t b = pick_any(source, &state);
        assert_true(tarn_exact_state_open(&state, &mark));
        if (state.limit[b] == least_position(setup, &instance, least, b)) {
            assert_true(tarn_exact_put(&state, b));
        } else {
            for (uint32_t w = 0; w < instance.set_words; w++) state.failure[w] = ~state.unplaced[w];
            assert_true(tarn_exact_postpone(&state, b));
        }
        for (uint32_t c = 0; c < instance.count; c++)
            assert_true(state.limit[c] <= least_position(setup, &instance, least, c));
        assert_explains_all_limits(&state);
        assert_true(tarn_exact_state_is_valid(&state));
    }
    tarn_exact_state_finish(&state);
    tarn_region_finish(&region);
}

/* What a level may change, as bytes. */
struct picture {
    int64_t limit[STORAGES_MAX], hole[STORAGES_MAX], piece_limit[STORAGES_MAX];
    struct tarn_exact_fingerprint fingerprint[STORAGES_MAX];
    uint64_t explanations[STORAGES_MAX];
    int64_t section_end[STORAGES_MAX];
};

static struct picture picture_of(const struct tarn_exact_state *state)
{
    const struct tarn_exact_instance *instance = state->instance;
    struct picture picture;
    memset(&picture, 0, sizeof picture);
    assert_true(instance->set_words == 1 && instance->sections_count <= STORAGES_MAX);
    memcpy(picture.limit, state->limit, instance->count * sizeof *state->limit);
    memcpy(picture.hole, state->hole, instance->count * sizeof *state->hole);
    memcpy(picture.piece_limit, state->piece_limit,
           instance->piece_begin[instance->count] * sizeof *state->piece_limit);
    memcpy(picture.fingerprint, state->fingerprint, instance->count * sizeof *state->fingerprint);
    memcpy(picture.explanations, state->explanations,
           instance->count * sizeof *state->explanations);
    memcpy(picture.section_end, state->section_end,
           instance->sections_count * sizeof *state->section_end);
    return picture;
}

/* Places blocks, each in a level inside the one before, as far as that goes, and takes them back.
 */
static void go_and_come_back(struct tarn_exact_state *state, struct random_source *source)
{
    struct tarn_exact_mark mark;
    struct picture before = picture_of(state), after;
    if (state->unplaced_count == 0) return;
    uint32_t b = pick_any(source, state);
    assert_true(tarn_exact_state_open(state, &mark));
    if (tarn_exact_put(state, b)) go_and_come_back(state, source);
    tarn_exact_state_count(state, b, false);
    tarn_exact_state_close(state, &mark);
    assert_true(tarn_exact_state_is_valid(state));
    after = picture_of(state);
    assert_memory_equal(&before, &after, sizeof before);
}

static void closing_a_level_takes_back_all_that_was_set_in_it(void **state)
{
    struct random_source source = {6};
    (void)state;
    for (uint32_t i = 0; i < RANDOM_GRAPHS / 6; i++) {
        struct setup setup;
        struct tarn_region region = {.chunks = NULL};
        struct tarn_exact_instance instance;
        struct tarn_exact_state partial;
        const struct tarn_deadline forever = {0};
        uint64_t work;
        set_up(&setup, small_graph(&source, i % 2 ? 40 : 0), 1);
        assert_int_equal(tarn_exact_instance_init(&instance, &region, &setup.problem, NULL, NULL,
                                                  &forever, 0, &work),
                         TARN_OK);
        assert_true(tarn_exact_state_init(&partial, &region, &instance,
                                          (int64_t)(least_capacity(&setup, 0) / instance.unit)));
        assert_true(tarn_exact_begin(&partial));
        for (uint32_t k = 0; k < 4; k++) go_and_come_back(&partial, &source);
        tarn_exact_state_finish(&partial);
        tarn_region_finish(&region);
        tear_down(&setup);
    }
}

/* At the least capacity of all and with a little more room. */
static void assert_least_is_kept(struct setup *setup, struct random_source *source)
{
    struct least least = {.capacity = least_capacity(setup, 0)};
    for (uint32_t extra = 0; extra < 3; extra++, least.capacity++) {
        least.sum = UINT64_MAX;
        find_least(setup, 0, 0, &least);
        for (uint32_t i = 0; i < 4; i++) follow_least(setup, &least, source);
    }
}

static void rules_keep_the_least_placement(void **state)
{
    struct random_source source = {5};
    (void)state;
    for (uint32_t i = 0; i < RANDOM_GRAPHS / 10; i++) {
        struct setup setup;
        set_up(&setup, small_graph(&source, i % 2 ? 40 : 0), 1);
        assert_least_is_kept(&setup, &source);
        tear_down(&setup);
    }
}

/* ---- What the rules prove ---- */

/* What rules of exact search speak of: placements within the capacity of which no block can be
 * moved to a lower place that is free. All of them. */
enum { SHIFTED_MAX = 20000, BLOCKS_MAX = 6 };
struct shifted {
    const struct tarn_exact_instance *instance;
    uint32_t count;
    int64_t position[SHIFTED_MAX][BLOCKS_MAX];
};

static bool collides(const struct setup *setup, uint32_t b, uint32_t end)
{
    for (uint32_t c = 0; c < end; c++)
        if (c != b && collide(setup, b, c)) return true;
    return false;
}

static bool is_shifted(struct setup *setup)
{
    for (uint32_t b = 0; b < setup->problem.blocks.count; b++) {
        const struct tarn_block block = tarn_block_at(&setup->problem.blocks, b);
        uint64_t at = setup->offset[block.members[0]];
        bool lower = false;
        for (uint64_t less = 0; less < at && !lower; less += block.alignment) {
            move(setup, b, less);
            lower = !collides(setup, b, setup->problem.blocks.count);
        }
        move(setup, b, at);
        if (lower) return false;
    }
    return true;
}

static void list_shifted(struct setup *setup, uint32_t b, uint64_t capacity, struct shifted *list)
{
    if (b == setup->problem.blocks.count) {
        if (list->count == SHIFTED_MAX || !is_shifted(setup)) return;
        int64_t *position = list->position[list->count++];
        for (uint32_t i = 0; i < b; i++) {
            uint32_t first =
                tarn_block_at(&setup->problem.blocks, list->instance->block[i]).members[0];
            position[i] = (int64_t)(setup->offset[first] / list->instance->unit);
        }
        return;
    }
    const struct tarn_block block = tarn_block_at(&setup->problem.blocks, b);
    for (uint64_t at = 0; at + block.size <= capacity; at += block.alignment) {
        move(setup, b, at);
        if (!collides(setup, b, b)) list_shifted(setup, b + 1, capacity, list);
    }
}

/* "b is not at this limit", said when these blocks were placed. */
struct postponement {
    uint32_t b;
    int64_t limit;
    uint64_t placed;
};

struct descent {
    struct tarn_exact_state state;
    uint32_t count;
    struct postponement list[64];
};

/* Is there a placement with the blocks of the set where they are placed, and with what was said of
 * others for no reason but these, in which b is below the limit? b: TARN_NONE, in which none is. */
static bool is_refuted(const struct shifted *shifted, const struct descent *descent, uint64_t set,
                       uint32_t b, int64_t limit)
{
    for (uint32_t i = 0; i < shifted->count; i++) {
        const int64_t *position = shifted->position[i];
        bool agrees = b == TARN_NONE || position[b] < limit;
        for (uint32_t c = 0; c < shifted->instance->count && agrees; c++)
            agrees = !(set >> c & 1) || position[c] == descent->state.limit[c];
        for (uint32_t k = 0; k < descent->count && agrees; k++) {
            const struct postponement *said = &descent->list[k];
            agrees = (said->placed & ~set) != 0 || position[said->b] > said->limit;
        }
        if (agrees) return true;
    }
    return false;
}

/* At random decisions, until a rule objects: what it names proves that there is nothing. Before,
 * what a limit follows from proves that nothing is below it. */
static bool descend(const struct shifted *shifted, struct descent *descent,
                    struct random_source *source)
{
    struct tarn_exact_state *state = &descent->state;
    struct tarn_exact_mark mark;
    bool goes_on = tarn_exact_begin(state);
    for (descent->count = 0; goes_on && state->unplaced_count > 0 && descent->count < 64;) {
        uint32_t b = pick_any(source, state);
        uint64_t placed = ((UINT64_C(1) << shifted->instance->count) - 1) & ~state->unplaced[0];
        assert_true(tarn_exact_state_open(state, &mark));
        if (random_percent(source, 60)) {
            goes_on = tarn_exact_put(state, b);
        } else {
            descent->list[descent->count++] = (struct postponement){b, state->limit[b], placed};
            state->failure[0] = placed;
            goes_on = tarn_exact_postpone(state, b);
        }
        for (uint32_t c = 0; goes_on && c < shifted->instance->count; c++) {
            uint64_t near = tarn_exact_adjacent(state, c)[0] & ~state->unplaced[0];
            if (tarn_set_has(state->unplaced, c))
                assert_false(is_refuted(shifted, descent,
                                        tarn_exact_explanation(state, c)[0] | near, c,
                                        state->limit[c]));
        }
    }
    if (!goes_on) assert_false(is_refuted(shifted, descent, state->failure[0], TARN_NONE, 0));
    return goes_on;
}

static void what_rules_name_proves_what_they_say(void **state)
{
    struct random_source source = {8};
    struct shifted *shifted = malloc(sizeof *shifted);
    uint32_t failures = 0;
    (void)state;
    for (uint32_t i = 0; i < RANDOM_GRAPHS; i++) {
        struct setup setup;
        struct tarn_region region = {.chunks = NULL};
        struct tarn_exact_instance instance;
        const struct tarn_deadline forever = {0};
        uint64_t work;
        set_up(&setup, small_graph(&source, i % 2 ? 40 : 0), 1);
        uint64_t capacity = least_capacity(&setup, 0) + i % 3;
        assert_int_equal(tarn_exact_instance_init(&instance, &region, &setup.problem, NULL, NULL,
                                                  &forever, 0, &work),
                         TARN_OK);
        shifted->instance = &instance;
        shifted->count = 0;
        if (instance.count <= BLOCKS_MAX && capacity <= 16)
            list_shifted(&setup, 0, capacity, shifted);
        assert_true(shifted->count < SHIFTED_MAX);
        for (uint32_t k = 0; k < 8 && shifted->count > 0; k++) {
            struct descent descent;
            assert_true(tarn_exact_state_init(&descent.state, &region, &instance,
                                              (int64_t)(capacity / instance.unit)));
            failures += !descend(shifted, &descent, &source);
            tarn_exact_state_finish(&descent.state);
        }
        tarn_region_finish(&region);
        tear_down(&setup);
    }
    free(shifted);
    assert_true(failures > RANDOM_GRAPHS);
}

/* ---- Larger problems ---- */

/* Cuts a rectangle of steps and bytes at random places: pieces that fit together without a gap. */
static unsigned cut(struct random_source *source, struct interval rectangle,
                    struct interval *pieces, unsigned count)
{
    unsigned steps = rectangle.last - rectangle.begin;
    bool small = count == 1 || (steps == 0 && rectangle.size == 1);
    if (small) {
        pieces[0] = rectangle;
        return 1;
    }
    struct interval first = rectangle, second = rectangle;
    if (rectangle.size == 1 || (steps > 0 && random_percent(source, 50))) {
        first.last = rectangle.begin + random_below(source, steps);
        second.begin = first.last + 1;
    } else {
        first.size = 1 + random_below(source, (uint32_t)rectangle.size - 1);
        second.size = rectangle.size - first.size;
    }
    unsigned share = 1 + random_below(source, count - 1);
    unsigned made = cut(source, first, pieces, share);
    return made + cut(source, second, pieces + made, count - share);
}

static struct tarn_graph *puzzle(uint64_t seed, unsigned count)
{
    struct random_source source = {seed};
    struct interval pieces[STORAGES_MAX];
    unsigned made = cut(&source, (struct interval){0, 39, 1000}, pieces, count);
    return interval_graph(pieces, made, 40);
}

/* Puzzles of which one piece was made larger or longer: most steps are full, some too full for the
 * height that the others would make do with. Here most is proved by what cannot be first. */
static void exact_on_nearly_full_puzzles(void **state)
{
    enum { PIECES = 8, STEPS = 6, HEIGHT = 9 };
    struct random_source source = {4};
    (void)state;
    for (uint32_t i = 0; i < RANDOM_GRAPHS; i++) {
        struct interval pieces[PIECES];
        struct setup setup;
        unsigned made = cut(&source, (struct interval){0, STEPS - 1, HEIGHT}, pieces, PIECES);
        struct interval *piece = &pieces[random_below(&source, made)];
        if (random_percent(&source, 50))
            piece->size++;
        else if (piece->last + 1 < STEPS)
            piece->last++;
        set_up(&setup, interval_graph(pieces, made, STEPS), 1);
        assert_exact(&setup, greatest_load(pieces, made, STEPS), i);
        if (i % 50 == 0) assert_least_is_kept(&setup, &source);
        tear_down(&setup);
    }
}

static void solves_puzzles_without_a_gap(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct setup setup;
        const struct tarn_exact_options options = {.seed = seed, .nodes_max = 10000000};
        set_up(&setup, puzzle(seed, 24), 1);
        assert_int_equal(search(&setup, 1000, &options).result, TARN_EXACT_FOUND);
        assert_int_equal(search(&setup, 999, &options).result, TARN_EXACT_INFEASIBLE);
        tear_down(&setup);
    }
}

static void the_same_for_any_number_of_threads(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct setup setup;
        uint64_t first[STORAGES_MAX];
        struct tarn_exact_report reports[2];
        set_up(&setup, puzzle(seed, 40), 1);
        for (uint32_t threads = 1; threads <= 8; threads *= 2) {
            struct tarn_exact_options options = {
                .seed = seed, .nodes_max = 60000, .threads = threads};
            memset(setup.offset, 0, sizeof setup.offset);
            reports[threads > 1] = search(&setup, 1000, &options);
            assert_int_equal(reports[0].result, reports[threads > 1].result);
            assert_int_equal(reports[0].rounds, reports[threads > 1].rounds);
            if (threads == 1) memcpy(first, setup.offset, sizeof first);
            assert_memory_equal(first, setup.offset, sizeof first);
        }
        tear_down(&setup);
    }
}

static void valid_on_graphs_with_every_feature(void **state)
{
    uint32_t found = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct setup setup;
        uint64_t row[STORAGES_MAX];
        if (!set_up_random(&setup, seed, 40, UINT64_C(1) << seed % 10)) continue;
        uint64_t end = tarn_blocks_place_in_a_row(&setup.problem.blocks, row);
        for (uint64_t percent = 30; percent <= 100; percent += 10) {
            const struct tarn_exact_options options = {.seed = seed, .nodes_max = 2000};
            found += search(&setup, end * percent / 100, &options).result == TARN_EXACT_FOUND;
        }
        tear_down(&setup);
    }
    assert_true(found > 300);
}

/* ---- Cores ---- */

/* From one behind the other down to what is asked for, or as near as it comes; what it proves
 * impossible, exact search of everything does not find. */
static void cores_keep_plans_safe_and_lower_them(void **state)
{
    uint32_t reached = 0, lowered = 0, proved = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct setup setup;
        struct tarn_core_report report;
        if (!set_up_random(&setup, seed, 40, UINT64_C(1) << seed % 10)) continue;
        uint64_t row = tarn_blocks_place_in_a_row(&setup.problem.blocks, setup.offset), end = row;
        const struct tarn_core_options options = {.aim = row * (30 + seed % 60) / 100,
                                                  .visits = 100000,
                                                  .seed = seed,
                                                  .threads = 1 + (uint32_t)seed % 3};
        assert_int_equal(tarn_core_place(&setup.problem, &options, setup.offset, &end, &report),
                         TARN_OK);
        assert_int_equal(end, tarn_blocks_footprint(&setup.problem.blocks, setup.offset));
        assert_true(end <= row);
        assert_valid(&setup, end);
        if (report.impossible) {
            const struct tarn_exact_options exact = {.seed = seed, .nodes_max = 20000};
            assert_int_not_equal(search(&setup, options.aim, &exact).result, TARN_EXACT_FOUND);
        }
        proved += report.impossible;
        reached += end <= options.aim;
        lowered += end < row;
        tear_down(&setup);
    }

    assert_true(reached > 75 && lowered > 75 && proved > 25);
}

/* ---- Why not ---- */

/* Two storages of 512 bytes at multiples of 1024, alive at once: 1024 bytes would do but for that.
 */
static void says_when_search_proves_that_nothing_fits(void **state)
{
    struct tarn_builder *builder = tarn_builder_create("aligned");
    struct tarn_graph *graph;
    struct tarn_plan *plan;
    struct tarn_error error;
    uint32_t outputs[] = {0, 1};
    (void)state;
    tarn_builder_stream(builder, "stream");
    for (int i = 0; i < 2; i++)
        tarn_builder_tensor(builder, &(struct tarn_tensor_info){.size = 512, .alignment = 1024});
    tarn_builder_op(builder, &(struct tarn_op_info){.outputs = {outputs, 2}});
    assert_int_equal(tarn_builder_finish(builder, &graph, NULL), TARN_OK);
    assert_int_equal(tarn_plan_create(graph, TARN_PLAN_OPTIONS(.capacity = 1024), &plan, &error),
                     TARN_DOES_NOT_FIT);
    assert_non_null(strstr(error.text, "exact search went through all placements"));
    assert_int_equal(tarn_plan_create(graph, TARN_PLAN_OPTIONS(.capacity = 1536), &plan, &error),
                     TARN_OK);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

/* ---- Limits ---- */

static void stops_when_told_to(void **state)
{
    atomic_bool stop = true;
    struct setup setup;
    (void)state;
    set_up(&setup, puzzle(1, 60), 1);
    const struct tarn_exact_options options = {.deadline = {.stop = &stop}};
    assert_int_equal(search(&setup, 1000, &options).result, TARN_EXACT_STOPPED);
    tear_down(&setup);
}

static void stops_at_its_number_of_nodes(void **state)
{
    struct setup setup;
    (void)state;
    set_up(&setup, puzzle(1, 60), 1);
    const struct tarn_exact_options options = {.nodes_max = 8};
    struct tarn_exact_report report = search(&setup, 1000, &options);
    assert_int_equal(report.result, TARN_EXACT_STOPPED);
    assert_true(report.nodes < 100);
    tear_down(&setup);
}

/* Each searcher looks at the limit once for each node. */
static void stops_at_its_work_for_any_number_of_threads(void **state)
{
    struct setup setup;
    (void)state;
    set_up(&setup, puzzle(1, 60), 1);
    for (uint64_t work_max = 1; work_max <= 10000000; work_max *= 10) {
        struct tarn_exact_options options = {.work_max = work_max, .threads = 1};
        struct tarn_exact_report one = search(&setup, 1000, &options), other;
        options.threads = 3;
        other = search(&setup, 1000, &options);
        assert_int_equal(one.work, other.work);
        assert_int_equal(one.nodes, other.nodes);
        assert_int_equal(one.result, other.result);
        assert_true(one.work < work_max + 1000000);
    }
    tear_down(&setup);
}

static struct tarn_place_result climb(struct setup *setup, uint64_t capacity, uint64_t work_max,
                                      uint32_t threads)
{
    const struct tarn_place_request request = {.improve = {.bound = setup->problem.antichain.bound,
                                                           .capacity = capacity,
                                                           .steps = 20,
                                                           .work_max = work_max,
                                                           .threads = threads}};
    struct tarn_place_result result = {.offset = setup->offset};
    assert_int_equal(tarn_place(&setup->problem, &request, &result), TARN_OK);
    assert_int_equal(result.footprint,
                     tarn_blocks_footprint(&setup->problem.blocks, setup->offset));
    assert_valid(setup, result.footprint);
    return result;
}

static void assert_same_climb(struct setup *setup, struct tarn_place_result one, uint64_t work_max)
{
    uint64_t before[STORAGES_MAX];
    memcpy(before, setup->offset, sizeof before);
    struct tarn_place_result other = climb(setup, 0, work_max, 3);
    assert_string_equal(one.method, other.method);
    assert_int_equal(one.stopped, other.stopped);
    assert_memory_equal(before, setup->offset,
                        setup->problem.blocks.storages_count * sizeof *before);
}

/* Wherever work ends a climb, it does so in the same place for any number of threads; a climb that
 * it does not end comes as low as without a limit. */
static void a_limit_of_work_only_cuts(void **state)
{
    uint32_t cut = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct setup setup;
        if (!set_up_random(&setup, seed, 60, 1)) continue;
        for (uint64_t work_max = 1; work_max <= 100000000; work_max *= 100) {
            struct tarn_place_result one = climb(&setup, 0, work_max, 1);
            cut += one.stopped == TARN_STOP_WORK;
            assert_same_climb(&setup, one, work_max);
            if (one.stopped != TARN_STOP_WORK)
                assert_int_equal(one.footprint, climb(&setup, 0, 0, 1).footprint);
        }
        tear_down(&setup);
    }
    assert_true(cut > 20);
}

static struct tarn_place_result search_alone(struct setup *setup, uint64_t work_max)
{
    const struct tarn_place_request request = {
        .method = TARN_PLACE_EXACT,
        .improve = {.bound = setup->problem.antichain.bound, .steps = 1, .work_max = work_max}};
    struct tarn_place_result result = {.offset = setup->offset};
    assert_int_equal(tarn_place(&setup->problem, &request, &result), TARN_OK);
    assert_valid(setup, result.footprint);
    return result;
}

/* What exact search decides without a limit of work, it decides within one too, or it says that the
 * limit has ended it. */
static void assert_ended_or_decided(struct setup *setup, struct tarn_place_result unlimited,
                                    uint32_t *ended, uint32_t *decided)
{
    for (uint64_t work_max = 1000; work_max <= 1000000000; work_max *= 2) {
        struct tarn_place_result some = search_alone(setup, work_max);
        bool is_ended = some.stopped == TARN_STOP_WORK;
        *ended += is_ended;
        *decided += !is_ended;
        if (is_ended) continue;
        assert_int_equal(some.stopped, TARN_STOP_NONE);
        assert_int_equal(some.footprint, unlimited.footprint);
        assert_int_equal(some.cannot_fit, unlimited.cannot_fit);
    }
}

static void exact_search_tells_that_its_limit_of_work_has_ended_it(void **state)
{
    uint32_t ended = 0, decided = 0, found = 0, proved = 0;
    (void)state;
    for (uint64_t seed = 100; seed < 170; seed++) {
        struct setup setup;
        if (!set_up_random(&setup, seed, 60, 1)) continue;
        struct tarn_place_result unlimited = search_alone(&setup, 0);
        bool is_found = strcmp(unlimited.method, "exact") == 0;
        found += is_found;
        proved += unlimited.cannot_fit;
        if (is_found || unlimited.cannot_fit)
            assert_ended_or_decided(&setup, unlimited, &ended, &decided);
        tear_down(&setup);
    }
    assert_true(ended > 50 && decided > 50 && found >= 5 && proved >= 5);
}

/* A climb with little work may miss the capacity that a longer one kept to; it proves nothing. */
static void never_says_that_nothing_fits_where_something_does(void **state)
{
    uint32_t missed = 0, by_core = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 28; seed++) {
        struct setup setup;
        const struct rough_graph_options options = {(enum rough_kind)(seed % ROUGH_KINDS), 40, 4,
                                                    seed};
        if (!set_up_small(&setup, rough_graph(&options), 1)) continue;
        uint64_t capacity = climb(&setup, 0, 10000000, 1).footprint;
        for (uint64_t work_max = 10000; work_max <= 1000000; work_max *= 10) {
            struct tarn_place_result result = climb(&setup, capacity, work_max, 1);
            assert_false(result.cannot_fit);
            missed += result.footprint > capacity;
            by_core += strcmp(result.method, "exact:core") == 0;
        }
        tear_down(&setup);
    }
    assert_true(missed > 10 && by_core > 0);
}

static void offsets_stay_when_nothing_was_found(void **state)
{
    struct setup setup;
    (void)state;
    set_up(&setup, puzzle(1, 20), 1);
    memset(setup.offset, 0x55, sizeof setup.offset);
    uint64_t before[STORAGES_MAX];
    memcpy(before, setup.offset, sizeof before);
    const struct tarn_exact_options options = {.nodes_max = 1000};
    assert_int_equal(search(&setup, 999, &options).result, TARN_EXACT_INFEASIBLE);
    assert_memory_equal(before, setup.offset, sizeof before);
    tear_down(&setup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_on_every_interval_problem_of_up_to_six_storages),
        cmocka_unit_test(exact_with_several_streams),
        cmocka_unit_test(exact_with_groups_and_alignment),
        cmocka_unit_test(exact_without_what_is_left_out),
        cmocka_unit_test(rules_keep_the_least_placement),
        cmocka_unit_test(what_rules_name_proves_what_they_say),
        cmocka_unit_test(closing_a_level_takes_back_all_that_was_set_in_it),
        cmocka_unit_test(exact_on_nearly_full_puzzles),
        cmocka_unit_test(solves_puzzles_without_a_gap),
        cmocka_unit_test(the_same_for_any_number_of_threads),
        cmocka_unit_test(valid_on_graphs_with_every_feature),
        cmocka_unit_test(cores_keep_plans_safe_and_lower_them),
        cmocka_unit_test(says_when_search_proves_that_nothing_fits),
        cmocka_unit_test(stops_when_told_to),
        cmocka_unit_test(stops_at_its_number_of_nodes),
        cmocka_unit_test(stops_at_its_work_for_any_number_of_threads),
        cmocka_unit_test(a_limit_of_work_only_cuts),
        cmocka_unit_test(exact_search_tells_that_its_limit_of_work_has_ended_it),
        cmocka_unit_test(never_says_that_nothing_fits_where_something_does),
        cmocka_unit_test(offsets_stay_when_nothing_was_found),
    };
    if (getenv("ONLY")) cmocka_set_test_filter(getenv("ONLY"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
