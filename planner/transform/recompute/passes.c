/* Finds which versions may be dropped and recomputed, and the place at which each of them is
 * dropped. Only the uses of versions decide this, not the names of ops.
 *
 * A version idles between two of its uses that have other ops between them. Its **gap** is the idle
 * span in which the list needs the most bytes. If a forward pass made the version for the backward
 * pass, this is the span over the turn from one pass to the other. A list may have several passes
 * (shards, gradient accumulation, the microbatches of a pipeline stage). A version with a gap is
 * droppable if the chain of ops that recomputes it, from versions that are used at the end of the
 * gap or later, is short. A chain is short if none of its ops reads, at the end of a gap, a version
 * that is gone by then. It is also short if its ops together take less than a part of the work in
 * the gap (CHEAP), and keep fewer bytes alive than the version has. Results of the forward pass
 * have short chains, since the backward pass uses their inputs even later. Gradients do not: to
 * recompute one takes most of both passes. The intermediate results of a short chain are droppable
 * too: each ends at its last use and is recomputed together with the version that needs it.
 *
 * A **turn** is a place at which the bytes that idle in such gaps have a peak. Only gaps that span
 * a turn count: other gaps, such as the gap of a tensor that waits for two other factors, belong to
 * no passes. No version is dropped before the first turn, so the list up to there is the same for
 * all policies.
 *
 * With TARN_REPEAT_ANY all versions that idle and can be recomputed, by any chain, are droppable.
 *
 * Cost: linear in the reads, with a logarithm of the places for each, and CHAIN_MAX ops, or with
 * TARN_REPEAT_ANY all, for each version with a gap. */
#include <string.h>

#include "forms.h"

/* Chains of forward ops between two results that are there are shorter in all networks seen: about
 * 20 ops in a transformer's attention. */
enum { CHAIN_MAX = 64, CHEAP = 4, PROMINENCE = 64, GAPS_MAX = 256 };

struct gap {
    uint32_t begin, end; /* places of the uses around it; begin == TARN_NONE: there is none */
    uint64_t peak;       /* most bytes that the list needs in it */
};

struct passes {
    struct tarn_recompute_model *model;
    uint64_t *tree;        /* bytes by place as the leaves of a segment tree, maxima above */
    uint64_t *work;        /* place -> time of the ops before it, in ns, one more for each op */
    uint32_t *place_of;    /* op -> place */
    uint32_t *last;        /* version -> place of its last use so far */
    struct gap *gaps;      /* by version */
    uint8_t *again;        /* version: some form writes it that may run again */
    uint32_t *stamp;       /* version -> 1 + the last version whose chain contained it */
    uint32_t *chain;       /* versions of the chain that is followed */
    uint32_t *turn_before; /* place -> the last turn up to it, or TARN_NONE */
    uint32_t *sorting;     /* place -> versions that are dropped there or earlier */
};

static struct tarn_range reads_of(const struct tarn_recompute_model *model, uint32_t place)
{
    struct tarn_range forms = model->op_forms[model->order[place]];
    return (struct tarn_range){model->forms[forms.begin].reads.begin,
                               model->forms[forms.end - 1].reads.end};
}

/* ---- Bytes by place ---- */

static bool is_pinned(const struct tarn_recompute_model *model, uint32_t version)
{
    return model->graph->storages[model->versions[version].storage].pinned;
}

static void sum_work(const struct passes *passes)
{
    const struct tarn_recompute_model *model = passes->model;
    for (uint32_t place = 0; place < model->ops_count; place++) {
        const struct tarn_form *own = &model->forms[model->op_forms[model->order[place]].begin];
        passes->place_of[model->order[place]] = place;
        passes->work[place + 1] =
            passes->work[place] + model->choices[own->choices.begin].time_ns + 1;
    }
}

static void note_last_uses(const struct passes *passes)
{
    const struct tarn_recompute_model *model = passes->model;
    for (uint32_t w = 0; w < model->versions_count; w++)
        passes->last[w] = passes->place_of[model->versions[w].producer];
    for (uint32_t place = 0; place < model->ops_count; place++) {
        struct tarn_range reads = reads_of(model, place);
        for (uint32_t i = reads.begin; i < reads.end; i++) passes->last[model->reads[i]] = place;
    }
}

/* Sums the bytes alive while each op of the list runs, with the smallest workspace. */
static void sum_bytes(const struct passes *passes)
{
    const struct tarn_recompute_model *model = passes->model;
    uint32_t places = model->ops_count;
    uint64_t *leaves = passes->tree + places, alive = 0;
    memset(passes->tree, 0, (2 * (size_t)places + 1) * sizeof *passes->tree);
    for (uint32_t w = 0; w < model->versions_count; w++) {
        uint32_t end = is_pinned(model, w) ? places : passes->last[w] + 1;
        leaves[passes->place_of[model->versions[w].producer]] += model->versions[w].size;
        if (end < places) leaves[end] -= model->versions[w].size; /* wraps, and back in the sum */
    }
    for (uint32_t place = 0; place < places; place++) {
        const struct tarn_form *own = &model->forms[model->op_forms[model->order[place]].begin];
        alive += leaves[place];
        leaves[place] = alive + model->choices[own->choices.end - 1].workspace;
    }
    for (uint32_t i = places; i-- > 1;) {
        uint64_t left = passes->tree[2 * i], right = passes->tree[2 * i + 1];
        passes->tree[i] = left > right ? left : right;
    }
}

/* The maximum of bytes at the places begin..end - 1. */
static uint64_t peak_between(const struct passes *passes, uint32_t begin, uint32_t end)
{
    uint64_t peak = 0;
    uint32_t places = passes->model->ops_count;
    for (begin += places, end += places; begin < end; begin /= 2, end /= 2) {
        if (begin % 2 == 1 && passes->tree[begin] > peak) peak = passes->tree[begin];
        if (end % 2 == 1 && passes->tree[end - 1] > peak) peak = passes->tree[end - 1];
        begin += begin % 2;
    }
    return peak;
}

/* ---- Gaps ---- */

static void note_use(const struct passes *passes, uint32_t version, uint32_t place)
{
    struct gap *gap = &passes->gaps[version];
    uint32_t begin = passes->last[version];
    passes->last[version] = place;
    if (place <= begin + 1) return;
    uint64_t peak = peak_between(passes, begin + 1, place);
    bool longer = gap->begin == TARN_NONE || place - begin > gap->end - gap->begin;
    if (gap->begin == TARN_NONE || peak > gap->peak || (peak == gap->peak && longer))
        *gap = (struct gap){begin, place, peak};
}

static void note_writes(const struct passes *passes, uint32_t place)
{
    const struct tarn_recompute_model *model = passes->model;
    struct tarn_range forms = model->op_forms[model->order[place]];
    for (uint32_t f = forms.begin; f < forms.end; f++) {
        const struct tarn_form *form = &model->forms[f];
        for (uint32_t i = form->writes.begin; i < form->writes.end; i++) {
            uint32_t w = model->writes[i];
            const struct tarn_storage *storage =
                &model->graph->storages[model->versions[w].storage];
            passes->last[w] = place;
            passes->again[w] =
                passes->again[w] || (form->repeats && !storage->pinned &&
                                     storage->group == TARN_NONE && !model->versions[w].forced);
        }
    }
}

static void find_gaps(const struct passes *passes)
{
    const struct tarn_recompute_model *model = passes->model;
    memset(passes->gaps, 0xff, model->versions_count * sizeof *passes->gaps);
    for (uint32_t place = 0; place < model->ops_count; place++) {
        struct tarn_range reads = reads_of(model, place);
        for (uint32_t i = reads.begin; i < reads.end; i++) note_use(passes, model->reads[i], place);
        note_writes(passes, place);
    }
}

/* ---- Chains ---- */

/* The form by which a version is made again: as written, unless only another one may run again. */
static const struct tarn_form *form_again(const struct tarn_recompute_model *model,
                                          uint32_t version)
{
    struct tarn_range forms = model->op_forms[model->versions[version].producer];
    for (uint32_t f = forms.begin; f < forms.end; f++) {
        const struct tarn_form *form = &model->forms[f];
        for (uint32_t i = form->writes.begin; i < form->writes.end && form->repeats; i++) {
            if (model->writes[i] == version) return form;
        }
    }
    return NULL;
}

/* Does the op at the place read the version at the end of its gap, and nothing reads it later? */
static bool is_gone(const struct passes *passes, uint32_t version, uint32_t place, uint32_t later)
{
    return passes->gaps[version].end == place && passes->last[version] < later;
}

static bool is_cheap(const struct passes *passes, uint32_t version, uint64_t work)
{
    const struct gap *gap = &passes->gaps[version];
    uint64_t between = passes->work[gap->end] - passes->work[gap->begin + 1];
    return work <= between / CHEAP;
}

/* Lists the version and all versions that must be recomputed before it at the end of its gap.
 * Versions that have ended by then and cannot be recomputed have to stay for it. 0: the chain is
 * not short. */
static uint32_t follow_chain(const struct passes *passes, uint32_t version)
{
    const struct tarn_recompute_model *model = passes->model;
    uint32_t count = 1, end = passes->gaps[version].end;
    uint64_t work = 0, stays = 0;
    bool is_short = true;
    passes->chain[0] = version;
    passes->stamp[version] = version + 1;
    for (uint32_t next = 0; next < count; next++) {
        const struct tarn_form *form = form_again(model, passes->chain[next]);
        uint32_t place = passes->place_of[form->op];
        work += passes->work[place + 1] - passes->work[place];
        for (uint32_t i = form->reads.begin; i < form->reads.end; i++) {
            uint32_t read = model->reads[i];
            if (is_gone(passes, read, place, end)) is_short = false;
            if (passes->last[read] >= end || passes->stamp[read] == version + 1) continue;
            passes->stamp[read] = version + 1;
            if (!passes->again[read]) {
                stays += model->versions[read].size;
                continue;
            }
            if (count == CHAIN_MAX && !(model->rules & TARN_REPEAT_ANY)) return 0;
            passes->chain[count++] = read;
        }
    }
    if (model->rules & TARN_REPEAT_ANY) return count;
    bool is_smaller = stays == 0 || stays < model->versions[version].size;
    return is_short || (is_smaller && is_cheap(passes, version, work)) ? count : 0;
}

/* Forgets gaps whose version cannot be recomputed by a short chain. */
static void judge_chains(const struct passes *passes)
{
    for (uint32_t w = 0; w < passes->model->versions_count; w++) {
        struct gap *gap = &passes->gaps[w];
        if (gap->begin == TARN_NONE) continue;
        if (!passes->again[w] || follow_chain(passes, w) == 0) gap->begin = TARN_NONE;
    }
}

/* ---- Turns ---- */

/* Bytes that idle in gaps, while each op of the list runs. Gaps of a few ops show no turn. */
static void sum_idle(const struct passes *passes, uint64_t *idle)
{
    const struct tarn_recompute_model *model = passes->model;
    memset(idle, 0, ((size_t)model->ops_count + 2) * sizeof *idle);
    for (uint32_t w = 0; w < model->versions_count; w++) {
        const struct gap *gap = &passes->gaps[w];
        if (gap->begin == TARN_NONE || gap->end - gap->begin < model->ops_count / GAPS_MAX)
            continue;
        idle[gap->begin + 1] += model->versions[w].size;
        idle[gap->end + 1] -= model->versions[w].size; /* wraps, and back in the sum */
    }
    for (uint32_t place = 1; place <= model->ops_count; place++) idle[place] += idle[place - 1];
}

/* Peaks of `idle`: between two of them it falls, and rises again, by more than a part of its
 * highest. */
static void find_turns(const struct passes *passes, const uint64_t *idle)
{
    struct tarn_recompute_model *model = passes->model;
    uint64_t highest = 0, high = 0, low = 0;
    uint32_t turn = 0;
    bool rises = true;
    for (uint32_t place = 0; place < model->ops_count; place++) {
        if (idle[place] > highest) highest = idle[place];
    }
    memset(passes->turn_before, 0xff, ((size_t)model->ops_count + 2) * sizeof *passes->turn_before);
    for (uint32_t place = 0; place <= model->ops_count; place++) {
        if (rises && idle[place] > high) {
            high = idle[place];
            turn = place;
        } else if (rises && high - idle[place] > highest / PROMINENCE) {
            passes->turn_before[turn] = turn;
            low = idle[place];
            rises = false;
        } else if (!rises && idle[place] < low) {
            low = idle[place];
        } else if (!rises && idle[place] - low > highest / PROMINENCE) {
            high = idle[place];
            turn = place;
            rises = true;
        }
    }
    uint32_t before = TARN_NONE;
    model->first_backward = model->ops_count;
    for (uint32_t place = 0; place <= model->ops_count; place++) {
        if (passes->turn_before[place] == TARN_NONE) {
            passes->turn_before[place] = before;
            continue;
        }
        before = place;
        if (model->reversals_count++ == 0) model->first_backward = place;
    }
}

static bool spans_turn(const struct passes *passes, const struct gap *gap)
{
    if (gap->begin == TARN_NONE || passes->model->rules & TARN_REPEAT_ANY)
        return gap->begin != TARN_NONE;
    uint32_t turn = passes->turn_before[gap->end];
    return turn != TARN_NONE && turn > gap->begin;
}

/* ---- Droppable versions ---- */

/* A version without a gap ends at its last use. */
static void make_droppable(const struct passes *passes, uint32_t version)
{
    const struct gap *gap = &passes->gaps[version];
    struct tarn_version *made = &passes->model->versions[version];
    uint32_t first = passes->model->first_backward;
    made->droppable = true;
    made->last_early = gap->begin != TARN_NONE ? gap->begin : passes->last[version];
    made->dropped_at = made->last_early + 1 > first ? made->last_early + 1 : first;
}

static void choose_droppable(const struct passes *passes)
{
    struct tarn_recompute_model *model = passes->model;
    for (uint32_t w = 0; w < model->versions_count; w++) {
        model->versions[w].last_early = passes->last[w];
        model->versions[w].repeatable = passes->again[w];
        if (!spans_turn(passes, &passes->gaps[w])) passes->gaps[w].begin = TARN_NONE;
    }
    memset(passes->stamp, 0, model->versions_count * sizeof *passes->stamp);
    for (uint32_t w = 0; w < model->versions_count; w++) {
        if (passes->gaps[w].begin == TARN_NONE) continue;
        uint32_t count = follow_chain(passes, w);
        for (uint32_t i = 0; i < count; i++) make_droppable(passes, passes->chain[i]);
    }
}

/* Marks the ops that may run again, and the ops that write versions which such an op reads. */
static void mark_forward(const struct passes *passes)
{
    const struct tarn_recompute_model *model = passes->model;
    memset(model->is_forward, 0, model->ops_count * sizeof *model->is_forward);
    for (uint32_t w = 0; w < model->versions_count; w++) {
        if (!model->versions[w].droppable) continue;
        uint32_t v = model->versions[w].producer;
        struct tarn_range reads = reads_of(model, passes->place_of[v]);
        model->is_forward[passes->place_of[v]] = true;
        for (uint32_t i = reads.begin; i < reads.end; i++)
            model->is_forward[passes->place_of[model->versions[model->reads[i]].producer]] = true;
    }
}

static void list_drops(const struct passes *passes)
{
    struct tarn_recompute_model *model = passes->model;
    memset(passes->sorting, 0, ((size_t)model->ops_count + 2) * sizeof *passes->sorting);
    for (uint32_t w = 0; w < model->versions_count; w++) {
        struct tarn_version *version = &model->versions[w];
        if (!version->droppable) continue;
        passes->sorting[version->dropped_at + 1]++;
    }
    for (uint32_t place = 0; place <= model->ops_count; place++)
        passes->sorting[place + 1] += passes->sorting[place];
    for (uint32_t w = 0; w < model->versions_count; w++) {
        if (model->versions[w].droppable)
            model->drops[passes->sorting[model->versions[w].dropped_at]++] = w;
    }
    model->drops_count = passes->sorting[model->ops_count];
}

enum tarn_status tarn_model_find_passes(struct tarn_recompute_model *model,
                                        struct tarn_region *region)
{
    size_t versions = model->versions_count, places = (size_t)model->ops_count + 2;
    struct tarn_region_mark mark = tarn_region_mark(region);
    struct passes passes = {
        .model = model,
        .tree = tarn_region_take(region, 2 * places, sizeof *passes.tree),
        .work = tarn_region_take(region, places, sizeof *passes.work),
        .place_of = tarn_region_take(region, model->graph->ops_count, sizeof *passes.place_of),
        .last = tarn_region_take(region, versions, sizeof *passes.last),
        .gaps = tarn_region_take(region, versions, sizeof *passes.gaps),
        .again = tarn_region_take(region, versions, sizeof *passes.again),
        .stamp = tarn_region_take(region, versions, sizeof *passes.stamp),
        .chain = tarn_region_take(region, versions + CHAIN_MAX, sizeof *passes.chain),
        .turn_before = tarn_region_take(region, places, sizeof *passes.turn_before),
        .sorting = tarn_region_take(region, places, sizeof *passes.sorting)};
    bool enough = !region->is_exhausted;
    if (enough) {
        sum_work(&passes);
        note_last_uses(&passes);
        sum_bytes(&passes);
        find_gaps(&passes);
        judge_chains(&passes);
        sum_idle(&passes, passes.tree);
        find_turns(&passes, passes.tree);
        choose_droppable(&passes);
        mark_forward(&passes);
        list_drops(&passes);
    }
    tarn_region_release(region, mark);
    return enough ? TARN_OK : TARN_SYSTEM;
}
