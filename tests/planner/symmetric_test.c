/* Families of different graphs with symmetric groups: equal offsets in equal windows, whatever the
 * graphs are; as small as brute force finds for small ones; bytes of the window lent to compute;
 * and words for what cannot be proved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "planner/symmetric.h"
#include "support/forge.h"
#include "support/session_calls.h"
#include "tarn.h"

enum { ALIGNMENT = 16, FAMILY_MAX = 4 };

static uint64_t offset_of(const struct tarn_plan *plan, const char *name)
{
    return tarn_plan_offset(plan, tarn_graph_find_tensor(tarn_plan_graph(plan), name));
}

/* ---- Whatever the graphs are ---- */

/* Where a group begins: of a group with offsets, before its first member that has bytes. */
static uint64_t group_offset(const struct tarn_plan *plan, uint32_t g)
{
    struct tarn_tensor_info info;
    struct tarn_list members = tarn_graph_group(tarn_plan_graph(plan), g);
    const uint64_t *offsets = tarn_graph_group_offsets(tarn_plan_graph(plan), g);
    for (size_t i = 0; i < members.count; i++) {
        tarn_graph_tensor(tarn_plan_graph(plan), members.ids[i], &info);
        if (info.size == 0) continue;
        return tarn_plan_offset(plan, members.ids[i]) - (offsets ? offsets[i] : 0);
    }
    return UINT64_MAX;
}

/* Looked at by public calls alone. */
static void assert_alike(struct tarn_plan **plans, size_t count)
{
    struct tarn_window window, other;
    struct tarn_plan_summary summary;
    bool has_window = tarn_plan_window(plans[0], &window);
    for (size_t p = 0; p < count; p++) {
        const struct tarn_graph *graph = tarn_plan_graph(plans[p]);
        assert_int_equal(tarn_plan_window(plans[p], &other), has_window);
        assert_true(window.space == other.space && window.offset == other.offset &&
                    window.size == other.size);
        tarn_plan_summarize(plans[p], &summary);
        assert_true(window.offset + window.size <= summary.footprint);
        for (uint32_t g = 0; g < tarn_graph_groups_count(graph); g++) {
            const char *name = tarn_graph_group_symmetric(graph, g);
            uint64_t at, bytes;
            if (!name) continue;
            assert_int_equal(tarn_plan_group(plans[p], g, &at, &bytes), TARN_OK);
            assert_true(at >= window.offset && at + bytes <= window.offset + window.size);
            for (size_t q = 0; q < p; q++) {
                const struct tarn_graph *before = tarn_plan_graph(plans[q]);
                for (uint32_t h = 0; h < tarn_graph_groups_count(before); h++) {
                    const char *word = tarn_graph_group_symmetric(before, h);
                    if (word && strcmp(word, name) == 0)
                        assert_int_equal(group_offset(plans[p], g), group_offset(plans[q], h));
                }
            }
        }
    }
}

/* Random groups of planned tensors become symmetric, and their users collectives. */
static struct tarn_graph *make_symmetric(const struct tarn_graph *graph,
                                         struct random_source *source)
{
    static const char *const names[] = {"s0", "s1", "s2", "s3"};
    struct forgery *f = forgery_of(graph, graph);
    uint32_t next = random_below(source, 4);
    for (uint32_t g = 0; g < f->groups_count && next < 4; g++) {
        struct tarn_list members = f->groups[g];
        bool may = f->tensors[members.ids[0]].kind < TARN_PARAMETER, has_bytes = false;
        for (size_t i = 0; i < members.count; i++)
            has_bytes = has_bytes || f->tensors[members.ids[i]].size > 0;
        if (!may || !has_bytes || random_percent(source, 20)) continue;
        f->symmetric[g] = names[next];
        next += 1 + random_below(source, 2);
        for (size_t i = 0; i < members.count; i++) {
            const struct tarn_storage *storage =
                &graph->storages[graph->tensors[members.ids[i]].storage];
            uint32_t user =
                tarn_storage_users(graph, storage)[random_below(source, storage->users_count)];
            f->ops[user].op_class = TARN_CLASS_COLLECTIVE;
        }
    }
    struct tarn_graph *made = forgery_build(f);
    assert_non_null(made);
    forgery_destroy(f);
    return made;
}

/* ---- Where collectives begin ---- */

static bool touches(const struct tarn_graph *graph, uint32_t op, tarn_tensor tensor)
{
    struct tarn_op_info info;
    uint32_t storage = graph->tensors[tensor].storage;
    tarn_graph_op(graph, op, &info);
    for (size_t i = 0; i < info.inputs.count; i++)
        if (graph->tensors[info.inputs.ids[i]].storage == storage) return true;
    for (size_t i = 0; i < info.outputs.count; i++)
        if (graph->tensors[info.outputs.ids[i]].storage == storage) return true;
    return false;
}

/* Where a member of a group lies in it; padded to some bytes, or not. */
static uint64_t within(const struct tarn_graph *graph, uint32_t g, size_t member, uint64_t padding)
{
    struct tarn_tensor_info info;
    struct tarn_list members = tarn_graph_group(graph, g);
    const uint64_t *offsets = tarn_graph_group_offsets(graph, g);
    uint64_t at = 0;
    if (offsets) return offsets[member];
    for (size_t i = 0; i < member; i++) {
        tarn_graph_tensor(graph, members.ids[i], &info);
        at += (info.size + padding - 1) / padding * padding;
    }
    return at;
}

/* Does a collective begin with a member that lies elsewhere in another graph's group of that name?
 * By sizes; members without bytes lie nowhere. */
static bool begins_elsewhere(struct tarn_graph **graphs, size_t count, uint64_t padding)
{
    struct tarn_tensor_info info;
    for (size_t p = 0; p < count; p++)
        for (uint32_t g = 0; g < tarn_graph_groups_count(graphs[p]); g++) {
            const char *name = tarn_graph_group_symmetric(graphs[p], g);
            struct tarn_list members = tarn_graph_group(graphs[p], g);
            for (uint32_t op = 0; name && op < tarn_graph_ops_count(graphs[p]); op++) {
                size_t first = members.count;
                if (tarn_graph_op_class(graphs[p], op) != TARN_CLASS_COLLECTIVE) continue;
                for (size_t i = 0; i < members.count; i++) {
                    tarn_graph_tensor(graphs[p], members.ids[i], &info);
                    if (info.size > 0 && touches(graphs[p], op, members.ids[i]) &&
                        (first == members.count ||
                         within(graphs[p], g, i, padding) < within(graphs[p], g, first, padding)))
                        first = i;
                }
                for (size_t q = 0; q < count && first < members.count; q++)
                    for (uint32_t h = 0; h < tarn_graph_groups_count(graphs[q]); h++) {
                        const char *other = tarn_graph_group_symmetric(graphs[q], h);
                        struct tarn_list theirs = tarn_graph_group(graphs[q], h);
                        if (!other || strcmp(other, name) != 0 || first >= theirs.count) continue;
                        tarn_graph_tensor(graphs[q], theirs.ids[first], &info);
                        if (info.size > 0 && within(graphs[q], h, first, padding) !=
                                                 within(graphs[p], g, first, padding))
                            return true;
                    }
            }
        }
    return false;
}

/* For one arena, or for ranks. */
static enum tarn_status plan_of_a_kind(uint64_t seed, struct tarn_graph **graphs, size_t count,
                                       const struct tarn_plan_options *options,
                                       struct tarn_plan **plans, struct tarn_error *error)
{
    return (seed % 2 ? tarn_ranks_plan : tarn_family_plan)(graphs, count, options, plans, error);
}

static void random_families_lie_alike_and_every_plan_is_proved(void **state)
{
    (void)state;
    uint32_t with_window = 0, refused = 0;
    for (uint64_t seed = 0; seed < DRAWS(300); seed++) {
        struct tarn_graph *graphs[FAMILY_MAX];
        struct tarn_plan *plans[FAMILY_MAX];
        struct tarn_error error;
        struct random_source source = {seed};
        size_t count = 1 + random_below(&source, FAMILY_MAX);
        for (size_t i = 0; i < count; i++) {
            struct random_graph_options knobs = random_graph_knobs(seed * FAMILY_MAX + i, 24);
            if (seed % 2 == 0) knobs.parameters = 0; /* those of one name would be the same bytes */
            knobs.spaces = 0;
            if (knobs.group_share == 0) knobs.group_share = 40;
            struct tarn_graph *graph = random_graph(&knobs);
            graphs[i] = make_symmetric(graph, &source);
            tarn_graph_destroy(graph);
        }
        struct tarn_plan_options *options =
            TARN_PLAN_OPTIONS(.alignment = 1u << random_below(&source, 7), .effort = 50,
                              .threads = 1,
                              .boundary = random_percent(&source, 30) ? TARN_BOUNDARY_SIMPLE
                                                                      : TARN_BOUNDARY_REFINED);
        static const char *const kinds[] = {"work"};
        struct tarn_in_place_options *in_place =
            TARN_IN_PLACE_OPTIONS(.kinds = kinds, .kinds_count = 1);
        struct tarn_reorder_options *reorder = TARN_REORDER_OPTIONS(.slowdown_max = 0.5);
        struct tarn_couple_options *couple = TARN_COUPLE_OPTIONS(.keep = 0);
        struct tarn_assign_options *assign = TARN_ASSIGN_OPTIONS(.streams = 2);
        if (seed % 7 == 1) options->reorder = reorder;
        if (seed % 7 == 2) options->in_place = in_place;
        if (seed % 7 == 3) options->couple = couple;
        if (seed % 7 == 4) options->assign = assign;
        if (seed % 7 == 5) options->pad_groups = TARN_GROUPS_PADDED;
        bool is_wrong = begins_elsewhere(
            graphs, count, options->pad_groups == TARN_GROUPS_PADDED ? options->alignment : 1);
        enum tarn_status status = plan_of_a_kind(seed, graphs, count, options, plans, &error);
        if (is_wrong) {
            refused++;
            assert_int_equal(status, TARN_BAD_INPUT);
            assert_says(&error, "give the member a group of its own");
            for (size_t i = 0; i < count; i++) tarn_graph_destroy(graphs[i]);
            continue;
        }
        require(status, &error);
        for (size_t i = 0; i < count; i++)
            require(tarn_plan_verify(plans[i], graphs[i], NULL, NULL, &error), &error);
        require(tarn_family_verify(plans, count, &error), &error);
        assert_alike(plans, count);
        with_window += tarn_plan_window(plans[0], NULL);
        for (size_t i = 0; i < count; i++) {
            tarn_plan_destroy(plans[i]);
            tarn_graph_destroy(graphs[i]);
        }
    }
    assert_true(with_window > DRAWS(300) / 4);
    if (!HAS_FEW_DRAWS) assert_true(refused > 0);
}

/* ---- As small as brute force finds ---- */

enum { BLOCKS_MAX = 5, UNITS_MAX = 24 };

/* A small graph as the oracle sees it: storages of some units, made by an op and used until another
 * one, on two streams without waits between them but the given ones. */
struct small {
    uint32_t count;
    uint32_t size[BLOCKS_MAX], name[BLOCKS_MAX]; /* name: TARN_NONE: not symmetric */
    bool meets[BLOCKS_MAX][BLOCKS_MAX];          /* both in use in some legal order */
};

struct tiny_family {
    uint32_t count;
    struct small of[FAMILY_MAX];
};

/* Op i makes storage i and reads some earlier ones. What an op comes after is the closure of stream
 * order and reads, kept as bits: no code of the planner's. */
static struct tarn_graph *draw_small(struct random_source *source, struct small *small)
{
    static const char *const names[] = {"a", "b", "c"};
    uint32_t count = 2 + random_below(source, BLOCKS_MAX - 1), next_name = random_below(source, 3);
    uint32_t before[BLOCKS_MAX] = {0}, stream[BLOCKS_MAX], reads[BLOCKS_MAX] = {0};
    struct tarn_builder *b = tarn_builder_create("small");
    *small = (struct small){.count = count};
    tarn_builder_stream(b, "s");
    tarn_builder_stream(b, "t");
    for (uint32_t i = 0; i < count; i++) {
        small->size[i] = 1 + random_below(source, 4);
        small->name[i] = TARN_NONE;
        if (next_name < 3 && random_percent(source, 50)) small->name[i] = next_name++;
        tarn_builder_tensor(b, &(struct tarn_tensor_info){.size = small->size[i] * UINT64_C(16)});
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t inputs[BLOCKS_MAX], inputs_count = 0;
        stream[i] = random_below(source, 2);
        for (uint32_t k = 0; k < i; k++) {
            if (random_percent(source, 35)) reads[i] |= 1u << k, inputs[inputs_count++] = k;
            if (stream[k] == stream[i] || reads[i] >> k & 1) before[i] |= before[k] | 1u << k;
        }
        tarn_builder_op(b, &(struct tarn_op_info){.stream = stream[i],
                                                  .op_class = TARN_CLASS_COLLECTIVE,
                                                  .inputs = {inputs, inputs_count},
                                                  .outputs = TARN_TENSORS(i)});
    }
    for (uint32_t i = 0; i < count; i++)
        if (small->name[i] != TARN_NONE) {
            tarn_builder_group(b, TARN_TENSORS(i));
            uint32_t group = 0;
            for (uint32_t k = 0; k < i; k++) group += small->name[k] != TARN_NONE;
            tarn_builder_group_symmetric(b, group, names[small->name[i]]);
        }
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < i; k++) {
            bool ends = before[i] >> k & 1; /* k and all of its readers before i? */
            for (uint32_t v = 0; v < count; v++)
                if (reads[v] >> k & 1) ends = ends && v != i && (before[i] >> v & 1);
            small->meets[i][k] = small->meets[k][i] = !ends;
        }
    struct tarn_graph *graph;
    struct tarn_error error;
    require(tarn_builder_finish(b, &graph, &error), &error);
    return graph;
}

/* Can the storages from `i` on be placed below `height`, the named ones where `seat` says? */
static bool can_place(const struct small *small, const uint32_t *seat, uint32_t height, uint32_t i,
                      uint32_t *at)
{
    if (i == small->count) return true;
    bool is_named = small->name[i] != TARN_NONE;
    uint32_t from = is_named ? seat[small->name[i]] : 0;
    for (uint32_t o = from; o + small->size[i] <= height; o++) {
        bool is_free = true;
        for (uint32_t k = 0; k < i && is_free; k++)
            is_free =
                !small->meets[i][k] || o >= at[k] + small->size[k] || at[k] >= o + small->size[i];
        at[i] = o;
        if (is_free && can_place(small, seat, height, i + 1, at)) return true;
        if (is_named) return false;
    }
    return false;
}

static bool fits(const struct tiny_family *family, uint32_t height)
{
    uint32_t seat[3], at[BLOCKS_MAX];
    for (seat[0] = 0; seat[0] < height; seat[0]++)
        for (seat[1] = 0; seat[1] < height; seat[1]++)
            for (seat[2] = 0; seat[2] < height; seat[2]++) {
                bool ok = true;
                for (uint32_t g = 0; g < family->count && ok; g++)
                    ok = can_place(&family->of[g], seat, height, 0, at);
                if (ok) return true;
            }
    return false;
}

/* Where the family needs more than each graph alone, that much is no capacity for it. */
static bool is_refused_within_what_each_needs_alone(struct tarn_graph **graphs, uint32_t count,
                                                    uint64_t highest)
{
    struct tarn_plan *plans[FAMILY_MAX], *alone;
    struct tarn_error error;
    uint64_t capacity = 0;
    for (uint32_t g = 0; g < count; g++) {
        struct tarn_plan_summary summary;
        require(tarn_plan_create(graphs[g], TARN_PLAN_OPTIONS(.alignment = ALIGNMENT, .threads = 1),
                                 &alone, &error),
                &error);
        tarn_plan_summarize(alone, &summary);
        if (summary.footprint > capacity) capacity = summary.footprint;
        tarn_plan_destroy(alone);
    }
    if (capacity >= highest) return false;
    enum tarn_status status = tarn_family_plan(
        graphs, count,
        TARN_PLAN_OPTIONS(.alignment = ALIGNMENT, .threads = 1, .capacity = capacity), plans,
        &error);
    for (uint32_t g = 0; g < count; g++) tarn_plan_destroy(plans[g]);
    if (status == TARN_OK) return false; /* a search that ends elsewhere */
    assert_int_equal(status, TARN_DOES_NOT_FIT);
    assert_says(&error, "with the symmetric groups of its family");
    assert_says(&error, "the capacity is");
    return true;
}

static void small_families_are_as_small_as_brute_force_finds(void **state)
{
    (void)state;
    uint32_t families = 0, smallest = 0, refused = 0;
    for (uint64_t seed = 0; seed < DRAWS(250); seed++) {
        struct random_source source = {seed + 77};
        struct tiny_family family = {.count = 2 + random_below(&source, FAMILY_MAX - 1)};
        struct tarn_graph *graphs[FAMILY_MAX];
        struct tarn_plan *plans[FAMILY_MAX];
        struct tarn_error error;
        uint64_t highest = 0;
        uint32_t height = 1;
        for (uint32_t g = 0; g < family.count; g++) graphs[g] = draw_small(&source, &family.of[g]);
        require(tarn_family_plan(graphs, family.count,
                                 TARN_PLAN_OPTIONS(.alignment = ALIGNMENT, .threads = 1), plans,
                                 &error),
                &error);
        for (uint32_t g = 0; g < family.count; g++) {
            struct tarn_plan_summary summary;
            tarn_plan_summarize(plans[g], &summary);
            if (summary.footprint > highest) highest = summary.footprint;
        }
        assert_alike(plans, family.count);
        while (!fits(&family, height)) height++;
        assert_true(highest >= height * UINT64_C(16)); /* else one of the two is wrong */
        families++;
        refused += is_refused_within_what_each_needs_alone(graphs, family.count, highest);
        smallest += highest == height * UINT64_C(16);
        for (uint32_t g = 0; g < family.count; g++) {
            tarn_plan_destroy(plans[g]);
            tarn_graph_destroy(graphs[g]);
        }
    }
    if (!HAS_FEW_DRAWS) assert_true(refused > 0);
    if (!HAS_FEW_DRAWS && smallest * 100 < families * 93)
        fail_msg("only %u of %u families are as small as can be", smallest, families);
}

/* ---- By hand ---- */

/* Compute makes x and ends, then the collective makes y: with one stream, nothing is in use with
 * anything but its neighbour. */
static struct tarn_graph *build(const char *graph_name, uint64_t x, uint64_t y, uint64_t z,
                                const char *symmetric)
{
    struct tarn_graph *graph;
    struct tarn_error error;
    struct tarn_builder *b = tarn_builder_create(graph_name);
    tarn_stream s = tarn_builder_stream(b, "s");
    tarn_tensor tx = tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = "x", .size = x});
    tarn_tensor ty = tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = "y", .size = y});
    tarn_tensor tz = tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = "z", .size = z});
    tarn_builder_op(b, &(struct tarn_op_info){.stream = s, .outputs = TARN_TENSORS(tx)});
    tarn_builder_op(b, &(struct tarn_op_info){.stream = s, .inputs = TARN_TENSORS(tx)});
    tarn_builder_op(
        b, &(struct tarn_op_info){.kind = "all_gather", .stream = s, .outputs = TARN_TENSORS(ty)});
    tarn_builder_op(b, &(struct tarn_op_info){
                           .stream = s, .inputs = TARN_TENSORS(ty), .outputs = TARN_TENSORS(tz)});
    tarn_builder_group(b, TARN_TENSORS(ty));
    if (symmetric) tarn_builder_group_symmetric(b, 0, symmetric);
    require(tarn_builder_finish(b, &graph, &error), &error);
    return graph;
}

static void finish(struct tarn_graph **graphs, struct tarn_plan **plans, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        tarn_plan_destroy(plans[i]);
        tarn_graph_destroy(graphs[i]);
    }
}

static void bytes_of_the_window_are_lent_to_what_is_not_in_use_with_it(void **state)
{
    (void)state;
    struct tarn_graph *graphs[] = {build("first", 512, 512, 32, "gathered"),
                                   build("second", 512, 256, 64, "gathered"),
                                   build("third", 64, 32, 16, NULL)};
    struct tarn_plan *plans[3];
    struct tarn_window window;
    struct tarn_plan_summary summary;
    struct tarn_error error;
    require(tarn_family_plan(graphs, 3, TARN_PLAN_OPTIONS(.alignment = 16), plans, &error), &error);
    assert_alike(plans, 3);
    assert_true(tarn_plan_window(plans[0], &window));
    assert_int_equal(window.size, 512);
    assert_true(offset_of(plans[0], "x") < window.offset + window.size);
    assert_true(window.offset < offset_of(plans[0], "x") + 512);
    tarn_plan_summarize(plans[0], &summary);
    assert_int_equal(summary.footprint, 544);
    tarn_plan_summarize(plans[2], &summary); /* has no such group, but the window of the family */
    assert_true(summary.footprint >= window.offset + window.size);
    finish(graphs, plans, 3);
}

static void equal_graphs_cost_nothing(void **state)
{
    (void)state;
    struct tarn_graph *graphs[] = {build("rank0", 512, 512, 32, "g"),
                                   build("rank1", 512, 512, 32, "g")};
    struct tarn_plan *plans[2], *alone;
    struct tarn_error error;
    require(tarn_plan_create(graphs[0], TARN_PLAN_OPTIONS(.alignment = 16), &alone, &error),
            &error);
    require(tarn_family_plan(graphs, 2, TARN_PLAN_OPTIONS(.alignment = 16), plans, &error), &error);
    struct tarn_plan_identity first = tarn_plan_identify(plans[0]),
                              second = tarn_plan_identify(plans[1]);
    assert_memory_equal(&first, &second, sizeof first);
    assert_int_equal(tarn_plan_offset(alone, 1), tarn_plan_offset(plans[0], 1));
    assert_true(tarn_plan_window(alone, NULL)); /* a plan by itself has one, too */
    tarn_plan_destroy(alone);
    finish(graphs, plans, 2);
}

static void plans_that_were_made_apart_are_refused(void **state)
{
    (void)state;
    struct tarn_graph *graphs[] = {build("first", 512, 512, 32, "g"),
                                   build("second", 512, 512, 32, "g"),
                                   build("third", 512, 480, 32, "g")};
    struct tarn_plan *plans[3];
    struct tarn_error error;
    struct tarn_placed elsewhere = {.id = 1, .offset = 64};
    for (size_t i = 0; i < 3; i++)
        require(tarn_plan_create(graphs[i],
                                 TARN_PLAN_OPTIONS(.alignment = 16, .capacity = 1024,
                                                   .keep = {&elsewhere, i == 1 ? 1 : 0}),
                                 &plans[i], &error),
                &error);
    assert_int_equal(tarn_family_verify(plans, 2, &error), TARN_REJECTED);
    assert_says(&error, "plan them together, as a family");
    assert_says(&error, "\"second\"");
    struct tarn_plan *both[] = {plans[0], plans[2]};
    assert_int_equal(tarn_family_verify(both, 2, &error), TARN_REJECTED);
    assert_says(&error, "a window of 512 bytes");
    assert_int_equal(tarn_family_verify(plans, 1, &error), TARN_OK);
    finish(graphs, plans, 3);
}

/* A group of two members, and a collective that reads the second one, or both. */
static struct tarn_graph *build_pair(const char *graph_name, uint64_t first, uint64_t second,
                                     bool reads_both)
{
    struct tarn_graph *graph;
    struct tarn_error error;
    struct tarn_builder *b = tarn_builder_create(graph_name);
    tarn_stream s = tarn_builder_stream(b, "s");
    tarn_tensor x = tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = "x", .size = first});
    tarn_tensor y = tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = "y", .size = second});
    tarn_builder_op(b, &(struct tarn_op_info){.stream = s, .outputs = TARN_TENSORS(x, y)});
    if (!reads_both)
        tarn_builder_op(b, &(struct tarn_op_info){
                               .kind = "all_reduce", .stream = s, .inputs = TARN_TENSORS(x)});
    tarn_builder_op(
        b, &(struct tarn_op_info){.name = "reduce y",
                                  .kind = "all_reduce",
                                  .stream = s,
                                  .inputs = reads_both ? TARN_TENSORS(x, y) : TARN_TENSORS(y)});
    tarn_builder_group(b, TARN_TENSORS(x, y));
    tarn_builder_group_symmetric(b, 0, "pair");
    require(tarn_builder_finish(b, &graph, &error), &error);
    return graph;
}

static void a_member_that_a_collective_begins_with_lies_alike_in_all_graphs(void **state)
{
    (void)state;
    struct tarn_graph *graphs[] = {
        build_pair("first", 32, 64, false), build_pair("second", 48, 48, false),
        build_pair("third", 32, 16, false), build_pair("fourth", 48, 48, true),
        build_pair("fifth", 32, 64, true)};
    struct tarn_plan *plans[5];
    struct tarn_error error;
    assert_int_equal(tarn_ranks_plan(graphs, 2, TARN_PLAN_OPTIONS(.alignment = 16), plans, &error),
                     TARN_BAD_INPUT);
    assert_says(&error, "the collective");
    assert_says(&error, "begins with");
    assert_says(&error, "give the member a group of its own");
    assert_int_equal(error.tensor, 1);
    /* a member without bytes is one, too */
    struct tarn_graph *empty[] = {build_pair("empty", 0, 64, false), graphs[1]};
    assert_int_equal(tarn_ranks_plan(empty, 2, TARN_PLAN_OPTIONS(.alignment = 16), plans, &error),
                     TARN_BAD_INPUT);
    assert_says(&error, "begins with");
    tarn_graph_destroy(empty[0]);
    /* behind an equal member, or from the group's begin on, sizes may differ */
    struct tarn_graph *alike[] = {graphs[0], graphs[2]}, *whole[] = {graphs[3], graphs[4]};
    for (size_t i = 0; i < 2; i++) {
        require(tarn_ranks_plan(i ? whole : alike, 2, TARN_PLAN_OPTIONS(.alignment = 16), plans,
                                &error),
                &error);
        for (size_t p = 0; p < 2; p++) tarn_plan_destroy(plans[p]);
    }
    /* plans that were made apart, with equal windows and groups at one offset */
    for (size_t i = 0; i < 5; i++)
        require(tarn_plan_create(graphs[i], TARN_PLAN_OPTIONS(.alignment = 16), &plans[i], &error),
                &error);
    assert_int_equal(tarn_family_verify(plans, 2, &error), TARN_REJECTED);
    assert_says(&error, "begins with");
    assert_int_equal(tarn_family_verify(plans + 3, 2, &error), TARN_OK);
    struct tarn_plan *mixed[] = {plans[4], plans[1]};
    assert_int_equal(tarn_family_verify(mixed, 2, &error), TARN_REJECTED);
    finish(graphs, plans, 5);
}

/* ---- Deadlines ---- */

static uint64_t lay_out(struct tarn_graph **graphs, uint32_t count, const bool *stop)
{
    struct tarn_plan *plans[FAMILY_MAX];
    struct tarn_plan_summary summary;
    struct tarn_error error;
    uint64_t highest = 0;
    for (uint32_t g = 0; g < count; g++)
        require(tarn_plan_create(graphs[g], TARN_PLAN_OPTIONS(.alignment = ALIGNMENT, .threads = 1),
                                 &plans[g], &error),
                &error);
    require(tarn_symmetric_lay_out(
                plans, count, TARN_PLAN_OPTIONS(.alignment = ALIGNMENT, .threads = 1, .stop = stop),
                &error),
            &error);
    assert_alike(plans, count);
    for (uint32_t g = 0; g < count; g++) {
        require(tarn_plan_verify(plans[g], graphs[g], NULL, NULL, &error), &error);
        tarn_plan_summarize(plans[g], &summary);
        if (summary.footprint > highest) highest = summary.footprint;
        tarn_plan_destroy(plans[g]);
    }
    return highest;
}

static void a_lay_out_that_is_stopped_is_the_best_so_far(void **state)
{
    (void)state;
    static const bool is_set = true;
    uint32_t larger = 0;
    for (uint64_t seed = 0; seed < DRAWS(100); seed++) {
        struct random_source source = {seed + 4000};
        struct tarn_graph *graphs[FAMILY_MAX];
        struct small small;
        uint32_t count = 2 + random_below(&source, 2);
        for (uint32_t g = 0; g < count; g++) graphs[g] = draw_small(&source, &small);
        uint64_t searched = lay_out(graphs, count, NULL), stopped = lay_out(graphs, count, &is_set);
        assert_true(stopped >= searched);
        larger += stopped > searched;
        for (uint32_t g = 0; g < count; g++) tarn_graph_destroy(graphs[g]);
    }
    if (!HAS_FEW_DRAWS) assert_true(larger > 0);
}

/* ---- Words ---- */

static void refuse(void (*change)(struct tarn_builder *b, tarn_stream s), enum tarn_status expected,
                   const char *words)
{
    struct tarn_graph *graph;
    struct tarn_error error;
    struct tarn_builder *b = tarn_builder_create("refused");
    tarn_stream s = tarn_builder_stream(b, "s");
    change(b, s);
    assert_int_equal(tarn_builder_finish(b, &graph, &error), expected);
    assert_says(&error, words);
}

static tarn_tensor make(struct tarn_builder *b, tarn_stream s, const char *kind, uint64_t size)
{
    tarn_tensor t = tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = "t", .size = size});
    tarn_builder_op(b,
                    &(struct tarn_op_info){.kind = kind, .stream = s, .outputs = TARN_TENSORS(t)});
    return t;
}

static void no_collective(struct tarn_builder *b, tarn_stream s)
{
    tarn_builder_group(b, TARN_TENSORS(make(b, s, "matmul", 8)));
    tarn_builder_group_symmetric(b, 0, "g");
}

static void persistent(struct tarn_builder *b, tarn_stream s)
{
    tarn_tensor t = tarn_builder_tensor(
        b, &(struct tarn_tensor_info){.name = "w", .size = 8, .kind = TARN_PARAMETER});
    tarn_builder_op(
        b, &(struct tarn_op_info){.kind = "all_reduce", .stream = s, .inputs = TARN_TENSORS(t)});
    tarn_builder_group(b, TARN_TENSORS(t));
    tarn_builder_group_symmetric(b, 0, "g");
}

static void twice(struct tarn_builder *b, tarn_stream s)
{
    for (uint32_t i = 0; i < 2; i++) {
        tarn_builder_group(b, TARN_TENSORS(make(b, s, "all_reduce", 8)));
        tarn_builder_group_symmetric(b, i, "g");
    }
}

static void without_a_name(struct tarn_builder *b, tarn_stream s)
{
    tarn_builder_group(b, TARN_TENSORS(make(b, s, "all_reduce", 8)));
    tarn_builder_group_symmetric(b, 0, "");
}

static void at_null(struct tarn_builder *b, tarn_stream s)
{
    tarn_builder_group(b, TARN_TENSORS(make(b, s, "all_reduce", 8)));
    tarn_builder_group_symmetric(b, 0, NULL);
}

static void of_no_group(struct tarn_builder *b, tarn_stream s)
{
    make(b, s, "all_reduce", 8);
    tarn_builder_group_symmetric(b, 0, "g");
}

static void without_bytes(struct tarn_builder *b, tarn_stream s)
{
    tarn_builder_group(b, TARN_TENSORS(make(b, s, "all_reduce", 0)));
    tarn_builder_group_symmetric(b, 0, "g");
}

static void what_cannot_be_proved_is_refused(void **state)
{
    (void)state;
    refuse(no_collective, TARN_BAD_INPUT, "no op of class collective reads or writes it");
    refuse(persistent, TARN_BAD_INPUT, "only planned tensors can be symmetric");
    refuse(twice, TARN_BAD_INPUT, "are both the symmetric group \"g\"");
    refuse(without_a_name, TARN_BAD_INPUT, "has no name");
    refuse(at_null, TARN_USAGE, "the name of group 0 is NULL");
    refuse(of_no_group, TARN_USAGE, "there is no group 0");
    refuse(without_bytes, TARN_BAD_INPUT, "has bytes that could lie anywhere");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_families_lie_alike_and_every_plan_is_proved),
        cmocka_unit_test(small_families_are_as_small_as_brute_force_finds),
        cmocka_unit_test(bytes_of_the_window_are_lent_to_what_is_not_in_use_with_it),
        cmocka_unit_test(equal_graphs_cost_nothing),
        cmocka_unit_test(plans_that_were_made_apart_are_refused),
        cmocka_unit_test(a_member_that_a_collective_begins_with_lies_alike_in_all_graphs),
        cmocka_unit_test(a_lay_out_that_is_stopped_is_the_best_so_far),
        cmocka_unit_test(what_cannot_be_proved_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
