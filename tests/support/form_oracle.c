/* What is said of a plan by its numbers alone: form, hashes, and what its certificate proves, by
 * the rules of docs/formats.md and of streams/order/gaps.c, each as it is written there. Subset
 * sums are a table of bytes; sizes are small. */
#include <stdlib.h>
#include <string.h>

#include "plan_oracle.h"
#include "reach_oracle.h"

static void *take(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    if (!memory) abort();
    return memory;
}

/* ---- Lists and waits ---- */

/* How often every op is launched, in the stream that it belongs to; NULL: something else is. */
static uint32_t *count_launches(const struct tarn_plan *plan)
{
    const struct tarn_graph *graph = plan->graph;
    uint32_t *launches = take(graph->ops_count, sizeof *launches);
    bool ok = plan->streams_count == graph->streams_count;
    for (uint32_t s = 0; ok && s < plan->streams_count; s++) {
        for (uint32_t i = plan->list_begin[s]; ok && i < plan->list_begin[s + 1]; i++) {
            uint32_t op = plan->list[i];
            ok = op < graph->ops_count && !graph->ops[op].view && graph->ops[op].stream == s;
            if (ok) launches[op]++;
        }
    }
    if (ok) return launches;
    free(launches);
    return NULL;
}

static bool are_launched(const struct tarn_plan *plan, const struct tarn_wait *waits,
                         uint32_t count)
{
    const struct tarn_graph *graph = plan->graph;
    for (uint32_t i = 0; i < count; i++) {
        if (waits[i].op >= graph->ops_count || waits[i].on >= graph->ops_count) return false;
        if (graph->ops[waits[i].op].view || graph->ops[waits[i].on].view) return false;
    }
    return true;
}

static bool is_schedule_whole(const struct tarn_plan *plan)
{
    uint32_t *launches = count_launches(plan);
    bool ok = launches != NULL;
    for (uint32_t v = 0; ok && v < plan->graph->ops_count; v++)
        ok = launches[v] == !plan->graph->ops[v].view;
    free(launches);
    return ok && are_launched(plan, plan->waits, plan->waits_count) &&
           are_launched(plan, plan->boundary_waits, plan->boundary_waits_count);
}

/* ---- Places ---- */

/* One place with the id and the size, and as many places as storages of that sort. */
static bool has_place(const struct tarn_place *places, uint32_t count, uint32_t id, uint64_t size)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) found += places[i].id == id && places[i].size == size;
    return found == 1;
}

static bool are_places_whole(const struct tarn_plan *plan)
{
    const struct tarn_graph *graph = plan->graph;
    uint32_t roots = 0, workspaces = 0, persistent = 0;
    bool ok = true;
    for (uint32_t a = 0; ok && a < graph->storages_count; a++) {
        const struct tarn_storage *record = &graph->storages[a];
        if (record->persistent) {
            persistent++;
            ok = has_place(plan->places_persistent, plan->places_persistent_count, record->tensor,
                           record->size);
        } else if (record->tensor == TARN_NONE) {
            workspaces++;
            ok =
                has_place(plan->workspaces, plan->workspaces_count, record->producer, record->size);
        } else {
            roots++;
            ok = has_place(plan->storages, plan->storages_count, record->tensor, record->size);
        }
    }
    return ok && roots == plan->storages_count && workspaces == plan->workspaces_count &&
           persistent == plan->places_persistent_count;
}

static bool is_in_range(const struct tarn_plan *plan, uint32_t a)
{
    const struct tarn_storage *record = &plan->graph->storages[a];
    uint64_t limit = record->persistent ? plan->persistent : plan->footprint, begin = 0;
    uint64_t reserved = oracle_reserved(plan->graph, a, plan->alignment);
    for (uint32_t s = 0; plan->spaces && s <= record->space; s++) {
        const struct tarn_plan_space *space = &plan->spaces[s];
        if (s == record->space) limit = record->persistent ? space->persistent : space->footprint;
        if (s < record->space) begin += record->persistent ? space->persistent : space->footprint;
    }
    uint64_t offset = oracle_offset(plan, a);
    return reserved <= limit && offset >= begin && offset - begin <= limit - reserved;
}

/* Spaces as the graph has them, within their capacities, and sums of them. */
static bool are_spaces_right(const struct tarn_plan *plan)
{
    uint64_t footprint = 0, persistent = 0;
    if (plan->spaces_count != plan->graph->spaces_count) return false;
    for (uint32_t s = 0; s < plan->spaces_count; s++) {
        const struct tarn_plan_space *space = &plan->spaces[s];
        uint64_t capacity = plan->graph->spaces[s].capacity;
        if (space->begin != footprint || space->persistent_begin != persistent) return false;
        if (capacity > 0 && space->footprint + space->persistent > capacity) return false;
        if (space->claim.threshold && space->claim.bound > space->footprint) return false;
        footprint += space->footprint;
        persistent += space->persistent;
    }
    return !plan->spaces || (footprint == plan->footprint && persistent == plan->persistent);
}

/* Alone or first of its group: aligned; else behind the one before. */
static bool lies_well(const struct tarn_plan *plan, uint32_t a)
{
    const struct tarn_storage *record = &plan->graph->storages[a];
    uint64_t offset = oracle_offset(plan, a), own = tarn_own_alignment(plan->graph, record),
             step = plan->alignment;
    uint64_t begin = 0;
    if (plan->spaces) {
        const struct tarn_plan_space *space = &plan->spaces[record->space];
        begin = record->persistent ? space->persistent_begin : space->begin;
        if (plan->graph->spaces[record->space].alignment > 0)
            step = plan->graph->spaces[record->space].alignment;
    }
    if (record->group != TARN_NONE) {
        const uint32_t *members = plan->graph->groups[record->group].storages;
        uint32_t i = 0;
        while (members[i] != a) i++;
        if (i > 0)
            return offset == oracle_offset(plan, members[i - 1]) +
                                 oracle_reserved(plan->graph, members[i - 1], plan->alignment);
    }
    return (offset - begin) % step == 0 && (own == 0 || (offset - begin) % own == 0);
}

bool oracle_is_well_formed(const struct tarn_plan *plan)
{
    uint64_t alignment = plan->alignment;
    if (alignment == 0 || (alignment & (alignment - 1)) != 0) return false;
    if (plan->footprint > UINT64_MAX - plan->persistent) return false;
    if (!is_schedule_whole(plan) || !are_places_whole(plan) || !are_spaces_right(plan))
        return false;
    for (uint32_t a = 0; a < plan->graph->storages_count; a++) {
        if (!is_in_range(plan, a) || !lies_well(plan, a)) return false;
    }
    return !plan->claim.threshold || plan->claim.bound <= plan->footprint;
}

/* ---- The certificate ---- */

/* Consecutive members of a group that are all in A, or all not; or a lone storage in A. */
struct run {
    const uint32_t *members;
    uint32_t count, group;
    uint64_t size, within; /* bytes; from the group's begin */
    uint32_t left, right;  /* of a gap: the runs of A beside it, or TARN_NONE */
};

struct proof {
    const struct tarn_plan *plan; /* with the certificate of one space */
    uint32_t space;
    struct reach *reach;
    bool *inside; /* by storage: in A */
    uint32_t *lone;
    struct run *items, *gaps;
    uint32_t items_count, gaps_count;
};

/* Is the op one whose workspace ends before its outputs begin, and the storage that workspace? */
static bool is_early_workspace(const struct tarn_graph *graph, uint32_t a, uint32_t op)
{
    return graph->ops[op].workspace_first && tarn_extra(&graph->ops[op])->workspace_storage == a;
}

/* Have all users ended when a launch starts, or, if not, when it writes its outputs? */
static bool is_free_at(const struct proof *proof, uint32_t a, uint32_t op, bool late)
{
    const struct tarn_graph *graph = proof->plan->graph;
    if (graph->storages[a].pinned) return false;
    if (late && is_early_workspace(graph, a, op)) return true;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        if (oracle_touches(graph, v, a) && !reach_is_before(proof->reach, v, 0, op, 0))
            return false;
    }
    return true;
}

static bool is_cut_inside(const struct tarn_plan *plan, uint32_t s)
{
    for (uint32_t i = 0; i < plan->claim.inside_count; i++)
        if (plan->claim.inside[i] == s) return true;
    return false;
}

static bool is_in_antichain(const struct proof *proof, uint32_t a)
{
    const struct tarn_plan *plan = proof->plan;
    uint32_t producer = plan->graph->storages[a].producer;
    uint32_t stream = plan->graph->ops[producer].stream;
    uint32_t place = proof->reach->index[producer] - plan->list_begin[stream];
    bool is_begun = is_cut_inside(plan, stream) && place == plan->claim.threshold[stream] &&
                    is_early_workspace(plan->graph, a, producer);
    if (place >= plan->claim.threshold[stream] && !is_begun) return false;
    for (uint32_t s = 0; s < plan->streams_count; s++) {
        uint32_t end = plan->list_begin[s] + plan->claim.threshold[s];
        if (is_cut_inside(plan, s) && is_free_at(proof, a, plan->list[end], false)) return false;
        if (plan->claim.threshold[s] > 0 && is_free_at(proof, a, plan->list[end - 1], true))
            return false;
    }
    return true;
}

static bool are_cuts_right(const struct tarn_plan *plan)
{
    for (uint32_t i = 0; i < plan->claim.inside_count; i++) {
        uint32_t s = plan->claim.inside[i], next = plan->list_begin[s] + plan->claim.threshold[s];
        if (next >= plan->list_begin[s + 1]) return false;
        if (!plan->graph->ops[plan->list[next]].workspace_first) return false;
    }
    return true;
}

static bool are_thresholds_in_range(const struct tarn_plan *plan)
{
    for (uint32_t s = 0; s < plan->streams_count; s++) {
        if (plan->claim.threshold[s] > plan->list_begin[s + 1] - plan->list_begin[s]) return false;
    }
    return true;
}

static bool is_named(const struct tarn_plan *plan, uint32_t storage)
{
    for (uint32_t i = 0; i < plan->claim.gaps_count; i++) {
        if (plan->claim.gaps[i] == plan->graph->storages[storage].tensor) return true;
    }
    return false;
}

static void cut_group(struct proof *proof, const struct tarn_group *group, uint32_t g)
{
    uint32_t left = TARN_NONE, end = 0;
    uint64_t within = 0;
    struct run *open = NULL;
    for (uint32_t begin = 0; begin < group->storages_count; begin = end) {
        bool inside = proof->inside[group->storages[begin]];
        struct run run = {group->storages + begin, 0, g, 0, within, left, TARN_NONE};
        for (end = begin; end < group->storages_count; end++) {
            if (proof->inside[group->storages[end]] != inside) break;
            run.size +=
                oracle_reserved(proof->plan->graph, group->storages[end], proof->plan->alignment);
        }
        run.count = end - begin;
        within += run.size;
        if (inside) {
            left = proof->items_count;
            if (open) open->right = left;
            proof->items[proof->items_count++] = run;
            open = NULL;
        } else if (is_named(proof->plan, run.members[0])) {
            open = &proof->gaps[proof->gaps_count++];
            *open = run;
        }
    }
}

static void find_runs(struct proof *proof)
{
    const struct tarn_graph *graph = proof->plan->graph;
    for (uint32_t g = 0; g < graph->groups_count; g++) {
        const struct tarn_storage *first = &graph->storages[graph->groups[g].storages[0]];
        if (!first->persistent && first->space == proof->space)
            cut_group(proof, &graph->groups[g], g);
    }
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        if (!proof->inside[a] || graph->storages[a].group != TARN_NONE) continue;
        uint64_t size = oracle_reserved(graph, a, proof->plan->alignment);
        proof->lone[a] = a;
        proof->items[proof->items_count++] =
            (struct run){&proof->lone[a], 1, TARN_NONE, size, 0, TARN_NONE, TARN_NONE};
    }
}

/* ---- Gaps ---- */

static bool is_safe_with_some(const struct proof *proof, uint32_t a, const struct run *gap)
{
    for (uint32_t i = 0; i < gap->count; i++) {
        if (reach_may_share(proof->reach, a, gap->members[i])) return true;
    }
    return false;
}

static bool is_closed(const struct run *gap)
{
    return gap->left != TARN_NONE && gap->right != TARN_NONE;
}

static uint64_t alignment_of(const struct proof *proof)
{
    uint64_t own = proof->plan->graph->spaces[proof->space].alignment;
    return own > 0 ? own : proof->plan->alignment;
}

/* Can all of an item be inside the gap, at an offset where its block may begin? */
static bool fits_inside(const struct proof *proof, const struct run *item, const struct run *gap)
{
    uint64_t alignment = alignment_of(proof);
    bool fits = false;
    if (item->group == gap->group) return false;
    for (uint64_t at = gap->within; at + item->size <= gap->within + gap->size; at++)
        fits = fits || at % alignment == item->within % alignment;
    for (uint32_t i = 0; i < item->count; i++)
        fits = fits && is_safe_with_some(proof, item->members[i], gap);
    return fits;
}

/* Rule (2). */
static uint64_t fill_of_closed(const struct proof *proof, const struct run *gap)
{
    bool *sums = take(gap->size, sizeof *sums);
    sums[0] = true;
    for (uint32_t i = 0; i < proof->items_count; i++) {
        if (!fits_inside(proof, &proof->items[i], gap)) continue;
        for (uint64_t sum = gap->size; sum >= proof->items[i].size; sum--)
            sums[sum] = sums[sum] || sums[sum - proof->items[i].size];
    }
    uint64_t best = gap->size;
    while (!sums[best]) best--;
    free(sums);
    return best;
}

/* Rule (1). */
static uint64_t fill_of_open(const struct proof *proof, const struct run *gap)
{
    const struct tarn_graph *graph = proof->plan->graph;
    uint64_t sum = 0;
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        if (proof->inside[a] && graph->storages[a].group != gap->group &&
            is_safe_with_some(proof, a, gap))
            sum += oracle_reserved(graph, a, proof->plan->alignment);
    }
    return sum < gap->size ? sum : gap->size;
}

static bool enters(const struct proof *proof, uint32_t item, const struct run *gap)
{
    return fits_inside(proof, &proof->items[item], gap);
}

/* Rules (3) and (4). */
static bool are_disjoint(const struct proof *proof, const struct run *a, const struct run *b)
{
    bool all_unsafe = true;
    if (a->group == b->group) return true;
    for (uint32_t i = 0; i < a->count; i++)
        all_unsafe = all_unsafe && !is_safe_with_some(proof, a->members[i], b);
    if (all_unsafe || !is_closed(a) || !is_closed(b)) return all_unsafe;
    bool contains = (enters(proof, a->left, b) && enters(proof, a->right, b)) ||
                    (enters(proof, b->left, a) && enters(proof, b->right, a));
    bool crosses = (enters(proof, a->right, b) && enters(proof, b->left, a)) ||
                   (enters(proof, b->right, a) && enters(proof, a->left, b));
    return !contains && !crosses;
}

/* False: the certificate names no gaps, or gaps that may share bytes. */
static bool add_waste(const struct proof *proof, uint64_t *proved)
{
    const struct tarn_plan *plan = proof->plan;
    if (proof->gaps_count != plan->claim.gaps_count) return false;
    for (uint32_t i = 1; i < plan->claim.gaps_count; i++) {
        if (plan->claim.gaps[i] <= plan->claim.gaps[i - 1]) return false;
    }
    for (uint32_t i = 0; i < proof->gaps_count; i++) {
        const struct run *gap = &proof->gaps[i];
        for (uint32_t k = 0; k < i; k++) {
            if (!are_disjoint(proof, gap, &proof->gaps[k])) return false;
        }
        *proved +=
            gap->size - (is_closed(gap) ? fill_of_closed(proof, gap) : fill_of_open(proof, gap));
    }
    return true;
}

static bool is_proved(struct proof *proof)
{
    const struct tarn_plan *plan = proof->plan;
    uint64_t proved = 0;
    if (!are_thresholds_in_range(plan) || !are_cuts_right(plan)) return false;
    for (uint32_t a = 0; a < plan->graph->planned_count; a++) {
        proof->inside[a] =
            plan->graph->storages[a].space == proof->space && is_in_antichain(proof, a);
        if (proof->inside[a]) proved += oracle_reserved(plan->graph, a, plan->alignment);
    }
    find_runs(proof);
    if (!add_waste(proof, &proved)) return false;
    uint64_t step = alignment_of(proof);
    return plan->claim.bound <= (proved + step - 1) / step * step;
}

static bool believes_bound_of(const struct tarn_plan *plan, uint32_t space)
{
    size_t count = plan->graph->storages_count;
    struct proof proof = {.plan = plan, .space = space};
    if (!plan->claim.threshold) return true;
    proof.reach = reach_create(plan);
    proof.inside = take(count, sizeof *proof.inside);
    proof.lone = take(count, sizeof *proof.lone);
    proof.items = take(count, sizeof *proof.items);
    proof.gaps = take(count, sizeof *proof.gaps);
    bool ok = is_proved(&proof);
    reach_destroy(proof.reach);
    free(proof.inside);
    free(proof.lone);
    free(proof.items);
    free(proof.gaps);
    return ok;
}

bool oracle_believes_bound(const struct tarn_plan *plan)
{
    bool ok = plan->spaces || believes_bound_of(plan, 0);
    struct tarn_plan *copy = take(1, sizeof *copy);
    for (uint32_t s = 0; ok && s < plan->spaces_count; s++) {
        memcpy(copy, plan, sizeof *copy);
        copy->claim = plan->spaces[s].claim;
        ok = believes_bound_of(copy, s);
    }
    free(copy);
    return ok;
}

static bool is_hash_of(struct tarn_hash hash, const struct tarn_graph *graph)
{
    return hash.word[0] == graph->hash.word[0] && hash.word[1] == graph->hash.word[1];
}

bool oracle_is_for(const struct tarn_plan *plan, const struct tarn_graph *source)
{
    return is_hash_of(plan->source_hash, source) &&
           (plan->transformed || is_hash_of(plan->graph->hash, source));
}

bool oracle_judges(const struct tarn_plan *plan, const struct tarn_graph *source)
{
    return oracle_is_for(plan, source) && oracle_is_well_formed(plan) && oracle_accepts(plan) &&
           oracle_believes_bound(plan);
}
