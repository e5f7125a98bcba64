/* Joins contiguous groups that share members into one group with an offset for every member. A
 * given group says that each member lies right after the member before it, or at the offset that it
 * names. Each such rule is a difference of two offsets, and a walk along the rules gives the
 * offsets of all connected members. If two walks to one member disagree, the groups contradict each
 * other. The result is usually a chain, [a b] and [b c] as [a b c]. But two members may overlap, as
 * b and c do in [a b] and [a c]: that is allowed if one of them ends before the other is produced.
 * Ending before is transitive, so a member is compared only with the one that had the byte right
 * before it. Cost: linear, and O(k log k) for k members that share; clocks if members overlap. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "clocks.h"
#include "derive.h"
#include "streams/base/region.h"
#include "validate.h"

/* A member of a joined group, and its offset relative to the first member found. */
struct member {
    uint32_t storage;
    int64_t at; /* sums of sizes are below 2^62 */
    uint64_t size;
};

struct layout {
    struct tarn_graph *graph;
    const struct tarn_report *report;
    struct tarn_region scratch;
    uint32_t *begin, *groups_of; /* storage -> the given groups that have it: storages_count + 1 */
    int64_t *at;                 /* storage -> offset, if it was found */
    bool *met;                   /* by storage */
    bool *joined;                /* by given group */
    struct member *members;      /* of what is looked at now */
    uint32_t members_count;
    uint32_t *queue; /* given groups */
    bool has_layers;
};

/* ---- Given groups ---- */

static enum tarn_status take_given(struct layout *layout, const struct tarn_group *groups)
{
    struct tarn_graph *graph = layout->graph;
    struct tarn_group *given = tarn_region_take(&graph->region, graph->given_count, sizeof *given);
    graph->given = given;
    if (!given) return TARN_SYSTEM;
    for (uint32_t g = 0; g < graph->given_count; g++) {
        const struct tarn_group *group = &groups[g];
        uint32_t count = group->tensors_count, filled = 0;
        uint32_t *storages = tarn_region_take(&graph->region, count, sizeof *storages);
        uint64_t *within = NULL;
        if (group->offsets) within = tarn_region_take(&graph->region, count, sizeof *within);
        if (!storages || (group->offsets && !within)) return TARN_SYSTEM;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t storage = graph->tensors[group->tensors[i]].storage;
            if (graph->storages[storage].size == 0) continue;
            if (within) within[filled] = group->offsets[i];
            storages[filled++] = storage;
        }
        given[g] = *group;
        given[g].storages = storages;
        given[g].within = within;
        given[g].storages_count = filled;
        given[g].persistent = tarn_kind_is_persistent(graph->tensors[group->tensors[0]].kind);
    }
    return TARN_OK;
}

static bool list_groups(struct layout *layout)
{
    const struct tarn_graph *graph = layout->graph;
    size_t entries = 0, count = graph->storages_count;
    for (uint32_t g = 0; g < graph->given_count; g++) entries += graph->given[g].storages_count;
    layout->begin = tarn_region_take(&layout->scratch, count + 2, sizeof *layout->begin);
    layout->groups_of = tarn_region_take(&layout->scratch, entries, sizeof *layout->groups_of);
    layout->at = tarn_region_take(&layout->scratch, count, sizeof *layout->at);
    layout->met = tarn_region_take(&layout->scratch, count, sizeof *layout->met);
    layout->members = tarn_region_take(&layout->scratch, count, sizeof *layout->members);
    layout->joined = tarn_region_take(&layout->scratch, graph->given_count, 1);
    layout->queue = tarn_region_take(&layout->scratch, graph->given_count, sizeof(uint32_t));
    if (layout->scratch.is_exhausted) return false;
    for (int pass = 0; pass < 2; pass++) { /* count, then fill */
        for (uint32_t g = 0; g < graph->given_count; g++)
            for (uint32_t i = 0; i < graph->given[g].storages_count; i++) {
                uint32_t a = graph->given[g].storages[i];
                if (pass == 0)
                    layout->begin[a + 2]++;
                else
                    layout->groups_of[layout->begin[a + 1]++] = g;
            }
        for (uint32_t a = 0; pass == 0 && a <= count; a++) layout->begin[a + 1] += layout->begin[a];
    }
    return true;
}

/* ---- Connected members ---- */

/* i: the member of group g that lies elsewhere already. */
static enum tarn_status contradict(const struct layout *layout, uint32_t g, uint32_t i,
                                   int64_t wanted)
{
    const struct tarn_graph *graph = layout->graph;
    const struct tarn_group *group = &graph->given[g];
    uint32_t a = group->storages[i];
    int64_t further = layout->at[a] - wanted;
    char where[64] = "right after ";
    if (group->within)
        snprintf(where, sizeof where, "at offset %llu, and begins with ",
                 (unsigned long long)group->within[i]);
    return tarn_report_bad(
        layout->report, tarn_location_at(TARN_NONE, graph->storages[a].tensor, "/contiguous/%u", g),
        "contiguous group %u wants %s %s%s, but together with other groups that share members it "
        "would lie %s %s: they cannot all hold",
        g, tarn_storage_label(graph, a).text, where,
        tarn_storage_label(graph, group->storages[group->within ? 0 : i - 1]).text,
        tarn_bytes_phrase((uint64_t)(further < 0 ? -further : further)).text,
        further < 0 ? "before" : "after");
}

/* Sets a member's offset; the other groups of the member are next. */
static void place(struct layout *layout, uint32_t a, int64_t at, uint32_t *queued)
{
    layout->met[a] = true;
    layout->at[a] = at;
    layout->members[layout->members_count++] =
        (struct member){a, at, layout->graph->storages[a].size};
    for (uint32_t k = layout->begin[a]; k < layout->begin[a + 1]; k++) {
        uint32_t other = layout->groups_of[k];
        if (layout->joined[other]) continue;
        layout->joined[other] = true;
        layout->queue[(*queued)++] = other;
    }
}

/* Places the members of a given group that has one placed member. */
static enum tarn_status walk(struct layout *layout, uint32_t g, uint32_t *queued)
{
    const struct tarn_graph *graph = layout->graph;
    const struct tarn_group *group = &graph->given[g];
    uint32_t known = 0;
    while (!layout->met[group->storages[known]]) known++;
    int64_t begin = layout->at[group->storages[known]], behind = 0;
    for (uint32_t i = 0; i < known && !group->within; i++)
        begin -= (int64_t)graph->storages[group->storages[i]].size;
    if (group->within) begin -= (int64_t)group->within[known];
    for (uint32_t i = 0; i < group->storages_count; i++) {
        uint32_t a = group->storages[i];
        int64_t at = begin + (group->within ? (int64_t)group->within[i] : behind);
        if (!layout->met[a])
            place(layout, a, at, queued);
        else if (layout->at[a] != at) /* a later member than the known one */
            return contradict(layout, g, i, at);
        behind += (int64_t)graph->storages[a].size;
    }
    return TARN_OK;
}

/* By start, then by size, then by id. */
static int compare_places(const void *left, const void *right)
{
    const struct member *a = left, *b = right;
    if (a->at != b->at) return a->at < b->at ? -1 : 1;
    if (a->size != b->size) return a->size < b->size ? -1 : 1;
    return a->storage < b->storage ? -1 : 1;
}

/* By end; equal ends as compare_places orders them. */
static int compare_ends(const void *left, const void *right)
{
    const struct member *a = left, *b = right;
    int64_t a_end = a->at + (int64_t)a->size, b_end = b->at + (int64_t)b->size;
    if (a_end != b_end) return a_end < b_end ? -1 : 1;
    return compare_places(left, right);
}

static bool is_chain(const struct layout *layout)
{
    for (uint32_t i = 1; i < layout->members_count; i++) {
        const struct member *before = &layout->members[i - 1];
        if (layout->members[i].at != before->at + (int64_t)before->size) return false;
    }
    return true;
}

/* Makes one group of all members, in the order of their addresses; of members that may overlap the
 * first one is followed by the others in the order of their ends. */
static enum tarn_status join(struct layout *layout, bool padded, bool has_offsets)
{
    struct tarn_graph *graph = layout->graph;
    uint32_t count = layout->members_count;
    struct member *members = layout->members;
    qsort(members, count, sizeof *members, compare_places);
    bool is_layered = has_offsets || !is_chain(layout);
    if (is_layered) qsort(members + 1, count - 1, sizeof *members, compare_ends);
    uint32_t *storages = tarn_region_take(&graph->region, count, sizeof *storages);
    uint64_t *within = tarn_region_take(&graph->region, count, sizeof *within);
    if (!storages || !within) return TARN_SYSTEM;
    for (uint32_t i = 0; i < count; i++) {
        storages[i] = members[i].storage;
        within[i] = (uint64_t)(members[i].at - members[0].at);
        uint32_t t = graph->storages[storages[i]].tensor;
        if (within[i] > 0 && graph->tensors[t].alignment > 0)
            return tarn_report_bad(
                layout->report, tarn_location_at(TARN_NONE, t, "/tensors/%u/alignment", t),
                "%s has an alignment of its own, but lies inside the contiguous "
                "groups that share members, after %s",
                tarn_tensor_label(graph, t).text, tarn_storage_label(graph, storages[0]).text);
    }
    if (is_layered && padded)
        return tarn_report_bad(
            layout->report, tarn_location_at(TARN_NONE, TARN_NONE, "/contiguous"),
            "padded contiguous groups put members over each other, among them %s and %s; only "
            "exact ones may",
            tarn_storage_label(graph, storages[0]).text,
            tarn_storage_label(graph, storages[count - 1]).text);
    if (is_layered && count > TARN_LAYERS_MAX)
        return tarn_report_bad(
            layout->report, tarn_location_at(TARN_NONE, TARN_NONE, "/contiguous"),
            "contiguous groups lay out %u members by offsets, among them %s; %u are supported",
            count, tarn_storage_label(graph, storages[0]).text, TARN_LAYERS_MAX);
    layout->has_layers |= is_layered;
    graph->groups[graph->groups_count++] =
        (struct tarn_group){.storages = storages,
                            .within = is_layered ? within : NULL,
                            .storages_count = count,
                            .persistent = graph->storages[storages[0]].persistent,
                            .padded = padded};
    return TARN_OK;
}

static enum tarn_status connect(struct layout *layout, uint32_t g)
{
    struct tarn_graph *graph = layout->graph;
    const struct tarn_group *first = &graph->given[g];
    uint32_t queued = 0, number = graph->groups_count;
    bool has_offsets = false;
    enum tarn_status status = TARN_OK;
    layout->members_count = 0;
    layout->joined[g] = true;
    layout->queue[queued++] = g;
    if (first->storages_count > 0) place(layout, first->storages[0], 0, &queued);
    for (uint32_t next = 0; next < queued && status == TARN_OK; next++) {
        const struct tarn_group *group = &graph->given[layout->queue[next]];
        if (group->padded != first->padded)
            return tarn_report_bad(
                layout->report,
                tarn_location_at(TARN_NONE, group->tensors[0], "/contiguous/%u",
                                 layout->queue[next]),
                "contiguous groups %u and %u share members, but only one of them is padded", g,
                layout->queue[next]);
        has_offsets = has_offsets || group->within;
        if (group->storages_count > 0) status = walk(layout, layout->queue[next], &queued);
    }
    bool is_lone = queued == 1 && (!has_offsets || layout->members_count < 2);
    if (status == TARN_OK && !is_lone)
        status = join(layout, first->padded, has_offsets);
    else if (status == TARN_OK)
        graph->groups[graph->groups_count++] = *first;
    if (status == TARN_OK && is_lone) graph->groups[number].within = NULL; /* one member, at 0 */
    for (uint32_t i = 0; i < layout->members_count; i++)
        graph->storages[layout->members[i].storage].group = number;
    return status;
}

/* ---- Overlapping members ---- */

static bool precedes(const struct tarn_graph *graph, const struct tarn_clocks *clocks, uint32_t a,
                     uint32_t b, uint32_t *user)
{
    const struct tarn_storage *x = &graph->storages[a], *y = &graph->storages[b];
    *user = TARN_NONE;
    if (x->persistent || x->pinned) return false;
    for (uint32_t k = 0; k < x->users_count; k++) {
        *user = tarn_storage_users(graph, x)[k];
        if (!tarn_clocks_before(clocks, graph, *user, y->producer)) return false;
    }
    return true;
}

static enum tarn_status refuse_layers(const struct layout *layout, uint32_t a, uint32_t b,
                                      uint32_t user)
{
    const struct tarn_graph *graph = layout->graph;
    uint32_t tensor = graph->storages[a].tensor;
    const char *why = graph->storages[b].persistent || graph->storages[b].pinned
                          ? "and the latter is never free for another one"
                          : "and both are in use at once";
    if (user == TARN_NONE)
        return tarn_report_bad(layout->report, tarn_location_at(TARN_NONE, tensor, "/contiguous"),
                               "contiguous groups put %s over bytes of %s, %s",
                               tarn_storage_label(graph, a).text, tarn_storage_label(graph, b).text,
                               why);
    return tarn_report_bad(
        layout->report, tarn_location_at(user, tensor, "/contiguous"),
        "contiguous groups put %s over bytes of %s, %s: %s uses that, and nothing orders it before "
        "%s",
        tarn_storage_label(graph, a).text, tarn_storage_label(graph, b).text, why,
        tarn_op_label(graph, user).text, tarn_op_label(graph, graph->storages[a].producer).text);
}

/* Bytes of a group, and which member had them last. */
struct held {
    uint64_t begin, end;
    uint32_t storage;
};

/* By their producers' ranks, which order all that precedes. */
struct turn {
    uint32_t rank, member;
};

static int compare_turns(const void *left, const void *right)
{
    const struct turn *a = left, *b = right;
    if (a->rank != b->rank) return a->rank < b->rank ? -1 : 1;
    return a->member < b->member ? -1 : a->member > b->member;
}

/* Gives the bytes of a member to it. `held` is sorted and disjoint, `next` gets the result. */
static enum tarn_status hand_over(const struct layout *layout, const struct tarn_clocks *clocks,
                                  const struct held *held, uint32_t *count, struct held mine,
                                  struct held *next)
{
    uint32_t kept = 0, user;
    bool is_in = false;
    for (uint32_t i = 0; i < *count; i++) {
        const struct held *range = &held[i];
        bool meets = range->begin < mine.end && mine.begin < range->end;
        if (meets && !precedes(layout->graph, clocks, range->storage, mine.storage, &user))
            return refuse_layers(layout, mine.storage, range->storage, user);
        if (range->begin < mine.begin)
            next[kept++] = (struct held){
                range->begin, range->end < mine.begin ? range->end : mine.begin, range->storage};
        if (range->end <= mine.end) continue;
        if (!is_in) next[kept++] = mine;
        is_in = true;
        next[kept++] = (struct held){range->begin > mine.end ? range->begin : mine.end, range->end,
                                     range->storage};
    }
    if (!is_in) next[kept++] = mine;
    *count = kept;
    return TARN_OK;
}

static enum tarn_status check_layers(struct layout *layout, const struct tarn_clocks *clocks,
                                     const struct tarn_group *group)
{
    const struct tarn_graph *graph = layout->graph;
    uint32_t count = group->storages_count, held_count = 0;
    struct tarn_region_mark mark = tarn_region_mark(&layout->scratch);
    struct turn *turns = tarn_region_take(&layout->scratch, count, sizeof *turns);
    struct held *held = tarn_region_take(&layout->scratch, (size_t)count * 2, sizeof *held);
    struct held *next = tarn_region_take(&layout->scratch, (size_t)count * 2, sizeof *next);
    enum tarn_status status = turns && held && next ? TARN_OK : TARN_SYSTEM;
    for (uint32_t i = 0; i < count && status == TARN_OK; i++) {
        const struct tarn_storage *storage = &graph->storages[group->storages[i]];
        turns[i] = (struct turn){storage->persistent ? 0 : graph->rank[storage->producer], i};
    }
    if (status == TARN_OK) qsort(turns, count, sizeof *turns, compare_turns);
    for (uint32_t i = 0; i < count && status == TARN_OK; i++) {
        uint32_t member = turns[i].member, a = group->storages[member];
        uint64_t begin = group->within[member];
        struct held mine = {begin, begin + graph->storages[a].size, a}, *swap = held;
        status = hand_over(layout, clocks, held, &held_count, mine, next);
        held = next;
        next = swap;
    }
    tarn_region_release(&layout->scratch, mark);
    return status;
}

static enum tarn_status check_all_layers(struct layout *layout)
{
    struct tarn_clocks clocks;
    enum tarn_status status = tarn_clocks_init(&clocks, &layout->scratch, layout->graph);
    for (uint32_t g = 0; g < layout->graph->groups_count && status == TARN_OK; g++)
        if (layout->graph->groups[g].within)
            status = check_layers(layout, &clocks, &layout->graph->groups[g]);
    return status;
}

/* ---- All of it ---- */

enum tarn_status tarn_derive_layout(struct tarn_graph *graph, const struct tarn_group *groups,
                                    const struct tarn_report *report)
{
    struct layout layout = {.graph = graph, .report = report};
    graph->given_count = graph->groups_count;
    graph->groups_count = 0;
    graph->groups = tarn_region_take(&graph->region, graph->given_count, sizeof *graph->groups);
    enum tarn_status status = graph->groups ? take_given(&layout, groups) : TARN_SYSTEM;
    if (status == TARN_OK && !list_groups(&layout)) status = TARN_SYSTEM;
    for (uint32_t g = 0; g < graph->given_count && status == TARN_OK; g++)
        if (!layout.joined[g]) status = connect(&layout, g);
    if (status == TARN_OK && layout.has_layers) status = check_all_layers(&layout);
    tarn_region_finish(&layout.scratch);
    return status;
}
