/* The gaps that a certificate names: is each a gap of A, is it true that no two of them share
 * bytes, and how many bytes of each can A not fill? The rules are those of order/gaps.c; the code
 * shares nothing with it, nor the subset sums (bytes here, bits there): it is what is to be
 * checked. Cost: a row of clocks for every member of A and of a gap, a test for each pair of them;
 * subset sums beyond EFFORT_MAX are not accepted as a proof. */
#include <assert.h>
#include <string.h>

#include "bound.h"
#include "streams/base/bisect.h"
#include "streams/base/region.h"

static const uint64_t EFFORT_MAX = UINT64_C(1) << 27;
enum { SUMS_MAX = 1 << 18 }; /* units of the sizes */

/* ---- Items and gaps ---- */

static bool is_named(const struct tarn_proof *proof, uint32_t storage)
{
    uint32_t low = 0, high = proof->claim.gaps_count;
    uint32_t tensor = proof->plan->graph->storages[storage].tensor;
    TARN_BISECT(low, high, middle, proof->claim.gaps[middle] < tensor);
    return low < proof->claim.gaps_count && proof->claim.gaps[low] == tensor;
}

/* Cuts a group into runs inside and outside of A, which alternate; keeps those of A, and named
 * gaps. */
static void cut_group(struct tarn_proof *proof, uint32_t g)
{
    const struct tarn_group *group = &proof->plan->graph->groups[g];
    uint32_t left = TARN_NONE;
    uint64_t end = 0;
    struct tarn_proof_run *open = NULL; /* a gap whose right side is not known yet */
    for (uint32_t i = 0, begin = 0; begin < group->storages_count; begin = i) {
        struct tarn_proof_run run = {group->storages + begin, 0, g, 0, end, left, TARN_NONE};
        bool inside = proof->inside[group->storages[begin]];
        for (; i < group->storages_count && proof->inside[group->storages[i]] == inside; i++)
            run.size += proof->reserved[group->storages[i]];
        run.count = i - begin;
        end += run.size;
        if (inside) {
            left = proof->items_count;
            proof->items[proof->items_count++] = run;
            if (open) open->right = left;
            open = NULL;
        } else if (is_named(proof, run.members[0])) {
            open = &proof->gaps[proof->gaps_count++];
            *open = run;
        }
    }
}

static bool runs_init(struct tarn_proof *proof)
{
    size_t count = proof->plan->graph->planned_count;
    proof->lone = tarn_region_take(proof->region, count, sizeof *proof->lone);
    proof->items = tarn_region_take(proof->region, count, sizeof *proof->items);
    proof->gaps = tarn_region_take(proof->region, proof->claim.gaps_count, sizeof *proof->gaps);
    proof->sums = tarn_region_take(proof->region, SUMS_MAX + 1, sizeof *proof->sums);
    for (uint32_t a = 0; a < count && proof->lone; a++) proof->lone[a] = a;
    return proof->lone && proof->items && proof->gaps && proof->sums;
}

static enum tarn_status find_runs(struct tarn_proof *proof, struct tarn_verdict *verdict)
{
    const struct tarn_graph *graph = proof->plan->graph;
    for (uint32_t i = 0; i < proof->claim.gaps_count; i++)
        if (i > 0 && proof->claim.gaps[i] <= proof->claim.gaps[i - 1])
            return tarn_proof_refuse(verdict, proof->claim.gaps[i],
                                     "the certificate's gaps do not ascend");
    for (uint32_t g = 0; g < graph->groups_count; g++)
        if (!graph->groups[g].persistent &&
            graph->storages[graph->groups[g].storages[0]].space == proof->space)
            cut_group(proof, g);
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        if (proof->inside[a] && graph->storages[a].group == TARN_NONE)
            proof->items[proof->items_count++] = (struct tarn_proof_run){
                &proof->lone[a], 1, TARN_NONE, proof->reserved[a], 0, TARN_NONE, TARN_NONE};
    }
    assert(proof->items_count <= graph->planned_count);
    assert(proof->gaps_count <= proof->claim.gaps_count); /* as they ascend, none is met twice */
    if (proof->gaps_count == proof->claim.gaps_count) return TARN_OK;
    return tarn_proof_refuse(verdict, TARN_NONE, "the certificate names a gap that is none");
}

static enum tarn_status fill_producer_rows(struct tarn_proof *proof)
{
    tarn_proof_forget_rows(proof);
    for (uint32_t a = 0; a < proof->plan->graph->planned_count; a++)
        if (proof->inside[a]) tarn_proof_keep_row(proof, tarn_proof_producer(proof, a));
    for (uint32_t i = 0; i < proof->gaps_count; i++)
        for (uint32_t k = 0; k < proof->gaps[i].count; k++)
            tarn_proof_keep_row(proof, tarn_proof_producer(proof, proof->gaps[i].members[k]));
    return tarn_proof_fill_rows(proof);
}

/* ---- What A can fill ---- */

/* Is storage a safe with b, a member of a gap? */
static bool is_safe(const struct tarn_proof *proof, uint32_t a, uint32_t b)
{
    const struct tarn_graph *graph = proof->plan->graph;
    return tarn_proof_is_free_at(proof, a, tarn_proof_producer(proof, b)) ||
           tarn_proof_is_free_at(proof, b, tarn_proof_producer(proof, a)) ||
           tarn_storages_take_turns(graph, a, b); /* members are no workspaces */
}

static bool spend(struct tarn_proof *proof, uint64_t effort)
{
    bool enough = effort <= EFFORT_MAX - proof->effort;
    proof->effort = enough ? proof->effort + effort : EFFORT_MAX;
    return enough;
}

/* Is a storage safe with some member of a gap? When out of effort, it might be. */
static bool meets(struct tarn_proof *proof, uint32_t storage, const struct tarn_proof_run *gap)
{
    if (!spend(proof, gap->count)) return true;
    for (uint32_t i = 0; i < gap->count; i++)
        if (is_safe(proof, storage, gap->members[i])) return true;
    return false;
}

/* May all of an item lie inside a gap that A closes on both sides? */
static bool may_enter(struct tarn_proof *proof, const struct tarn_proof_run *item,
                      const struct tarn_proof_run *gap)
{
    if (!spend(proof, 1)) return true;
    if (item->group == gap->group || item->size > gap->size) return false;
    uint64_t alignment =
        tarn_storage_alignment(proof->plan->graph, gap->members[0], proof->plan->alignment);
    uint64_t begin =
        gap->within + (alignment + item->within % alignment - gap->within % alignment) % alignment;
    if (begin > gap->within + gap->size - item->size) return false;
    for (uint32_t i = 0; i < item->count; i++)
        if (!meets(proof, item->members[i], gap)) return false;
    return true;
}

static uint64_t divisor_of(uint64_t a, uint64_t b) { return b == 0 ? a : divisor_of(b, a % b); }

/* The greatest sum of some of the sizes up to `room`; sizes and room count units. */
static uint64_t greatest_sum(struct tarn_proof *proof, const uint64_t *sizes, uint32_t count,
                             uint64_t room)
{
    if (room >= SUMS_MAX || !spend(proof, count * room)) return room;
    memset(proof->sums, 0, (size_t)room + 1);
    proof->sums[0] = 1;
    for (uint32_t i = 0; i < count; i++)
        for (uint64_t sum = room; sum >= sizes[i]; sum--)
            proof->sums[sum] |= proof->sums[sum - sizes[i]];
    while (!proof->sums[room]) room--;
    return room;
}

static uint64_t fill_of_closed(struct tarn_proof *proof, const struct tarn_proof_run *gap,
                               uint64_t *sizes)
{
    uint64_t sum = 0, unit = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < proof->items_count; i++) {
        if (!may_enter(proof, &proof->items[i], gap)) continue;
        sizes[count++] = proof->items[i].size;
        unit = divisor_of(proof->items[i].size, unit);
        sum += proof->items[i].size;
    }
    if (sum <= gap->size) return sum;
    for (uint32_t i = 0; i < count; i++) sizes[i] /= unit;
    return greatest_sum(proof, sizes, count, gap->size / unit) * unit;
}

static uint64_t fill_of_open(struct tarn_proof *proof, const struct tarn_proof_run *gap)
{
    const struct tarn_graph *graph = proof->plan->graph;
    uint64_t sum = 0;
    for (uint32_t a = 0; a < graph->planned_count && sum < gap->size; a++)
        if (proof->inside[a] && graph->storages[a].group != gap->group && meets(proof, a, gap))
            sum += proof->reserved[a];
    return sum < gap->size ? sum : gap->size;
}

static bool is_closed(const struct tarn_proof_run *gap)
{
    return gap->left != TARN_NONE && gap->right != TARN_NONE;
}

/* ---- Gaps beside each other ---- */

static bool are_disjoint(struct tarn_proof *proof, const struct tarn_proof_run *a,
                         const struct tarn_proof_run *b)
{
    if (a->group == b->group) return true;
    bool may_meet = false;
    for (uint32_t i = 0; i < a->count && !may_meet; i++) may_meet = meets(proof, a->members[i], b);
    if (!may_meet) return true;
    if (!is_closed(a) || !is_closed(b)) return false;
    bool a_left = may_enter(proof, &proof->items[a->left], b);
    bool a_right = may_enter(proof, &proof->items[a->right], b);
    bool b_left = may_enter(proof, &proof->items[b->left], a);
    bool b_right = may_enter(proof, &proof->items[b->right], a);
    return !(a_left && a_right) && !(b_left && b_right) && !(a_right && b_left) &&
           !(a_left && b_right);
}

static bool are_all_disjoint(struct tarn_proof *proof)
{
    uint64_t count = proof->gaps_count;
    if (!spend(proof, count * (count - 1) / 2)) return false;
    for (uint32_t i = 0; i < proof->gaps_count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (!are_disjoint(proof, &proof->gaps[i], &proof->gaps[k])) return false;
    return true;
}

enum tarn_status tarn_proof_add_waste(struct tarn_proof *proof, uint64_t *proved,
                                      struct tarn_verdict *verdict)
{
    if (proof->claim.gaps_count == 0) return TARN_OK;
    enum tarn_status status = runs_init(proof) ? find_runs(proof, verdict) : TARN_SYSTEM;
    if (status == TARN_OK) status = fill_producer_rows(proof);
    uint64_t *sizes = tarn_region_take(proof->region, proof->items_count, sizeof *sizes);
    if (!sizes) status = TARN_SYSTEM;
    if (status == TARN_OK && !are_all_disjoint(proof))
        status = tarn_proof_refuse(verdict, TARN_NONE, "gaps of the certificate might share bytes");
    for (uint32_t i = 0; i < proof->gaps_count && status == TARN_OK; i++) {
        const struct tarn_proof_run *gap = &proof->gaps[i];
        *proved += gap->size -
                   (is_closed(gap) ? fill_of_closed(proof, gap, sizes) : fill_of_open(proof, gap));
        if (proof->effort == EFFORT_MAX)
            status = tarn_proof_refuse(verdict, TARN_NONE,
                                       "the certificate's gaps take too long to check");
    }
    return status;
}
