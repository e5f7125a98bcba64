/* What the plan's certificate proves, worked out anew from the program alone. It names
 *
 *     thresholds   how many launches of each stream lie before a cut. A = the storages that are
 *                  produced before the cut and are not yet free for the last launch before it in
 *                  any stream. No two of them may share bytes: if the touchers of one came before
 *                  the producer of the other, which is before the cut in its stream, they would
 *                  come before that stream's last launch before the cut.
 *     gaps         runs of group members outside A, by their first member; bytes of them that A
 *                  cannot fill are proved as order/gaps.c explains.
 *
 * "Comes before" is asked of forward clocks, kept for the launches that matter.
 * Cost: O(steps + waits S) for the clocks, O(touches S) for A; for gaps a row of clocks for every
 * member of A, and their tests; subset sums beyond EFFORT_MAX are not accepted as a proof. */
#include <stdlib.h>
#include <string.h>

#include "past.h"
#include "streams/base/checked.h"
#include "streams/graph/report.h"
#include "verdict.h"

static const uint64_t EFFORT_MAX = UINT64_C(1) << 27;
enum { SUMS_MAX = 1 << 18 };

/* Consecutive members of a group, or a lone storage. */
struct run {
    const uint32_t *members;
    uint32_t count;
    uint32_t group;
    uint64_t size, within;
    uint32_t left, right; /* of a gap: the runs of A beside it; TARN_NONE: the group ends */
};

struct proof {
    const struct tarn_plan *plan;
    const struct tarn_program *program;
    uint64_t *reserved; /* by planned storage */
    bool *inside;       /* by planned storage: in A */
    uint32_t *lone;     /* storages, each its own list of members */
    uint32_t *row_of;   /* step -> its row of clocks; TARN_NONE: not kept */
    uint32_t *rows;
    uint32_t rows_count;
    struct run *items, *gaps; /* runs of A; gaps that the certificate names */
    uint32_t items_count, gaps_count;
    unsigned char *sums;
    uint64_t effort;
};

static void proof_finish(struct proof *proof)
{
    free(proof->reserved);
    free(proof->inside);
    free(proof->lone);
    free(proof->row_of);
    free(proof->rows);
    free(proof->items);
    free(proof->gaps);
    free(proof->sums);
}

static bool proof_init(struct proof *proof, const struct tarn_plan *plan,
                       const struct tarn_program *program)
{
    size_t count = (size_t)plan->graph->planned_count + 1;
    *proof = (struct proof){.plan = plan, .program = program};
    proof->reserved = malloc(count * sizeof *proof->reserved);
    proof->inside = calloc(count, sizeof *proof->inside);
    proof->lone = malloc(count * sizeof *proof->lone);
    proof->row_of = malloc(((size_t)program->steps_count + 1) * sizeof *proof->row_of);
    proof->items = malloc(count * sizeof *proof->items);
    proof->gaps = malloc(((size_t)plan->gaps_count + 1) * sizeof *proof->gaps);
    proof->sums = malloc(SUMS_MAX + 1);
    return proof->reserved && proof->inside && proof->lone && proof->row_of && proof->items &&
           proof->gaps && proof->sums;
}

static enum tarn_status refuse(struct tarn_verdict *verdict, uint32_t tensor, const char *why)
{
    struct tarn_violation violation = tarn_violation_of(TARN_WRONG_BOUND);
    violation.tensor = tensor;
    tarn_verdict_add(verdict, &violation, NULL, "%s", why);
    return TARN_REJECTED;
}

/* ---- Reserved sizes ---- */

static bool is_sum_small(const struct proof *proof)
{
    uint64_t sum = 0;
    for (uint32_t a = 0; a < proof->plan->graph->planned_count; a++)
        if (!tarn_size_add(sum, proof->reserved[a], &sum)) return false;
    return true;
}

/* False when they exceed 64 bits together; after this no sum of them does. */
static bool reserve(struct proof *proof)
{
    const struct tarn_plan *plan = proof->plan;
    for (uint32_t a = 0; a < plan->graph->planned_count; a++) {
        proof->lone[a] = a;
        proof->reserved[a] = tarn_storage_reserved(plan->graph, a, plan->alignment);
    }
    return is_sum_small(proof);
}

/* ---- Clocks ---- */

static void keep_row(struct proof *proof, uint32_t step)
{
    if (proof->row_of[step] == TARN_NONE) proof->row_of[step] = proof->rows_count++;
}

static void forget_rows(struct proof *proof)
{
    free(proof->rows);
    proof->rows = NULL;
    proof->rows_count = 0;
    for (uint32_t i = 0; i < proof->program->steps_count; i++) proof->row_of[i] = TARN_NONE;
}

/* Runs the first iteration and keeps what lies before the steps that have rows. */
static enum tarn_status fill_rows(struct proof *proof)
{
    const struct tarn_program *program = proof->program;
    struct tarn_past past;
    size_t width = program->streams_count;
    proof->rows = malloc((proof->rows_count * width + 1) * sizeof *proof->rows);
    if (!proof->rows || tarn_past_init(&past, program) != TARN_OK) return TARN_SYSTEM;
    enum tarn_status status = TARN_OK;
    for (uint32_t i = 0; i < program->steps_count && status == TARN_OK; i++) {
        uint32_t step = program->order[i];
        tarn_past_enter(&past, step);
        if (proof->row_of[step] != TARN_NONE)
            memcpy(proof->rows + proof->row_of[step] * width,
                   past.clocks + program->steps[step].stream * width, width * sizeof *proof->rows);
        status = tarn_past_leave(&past);
    }
    tarn_past_finish(&past);
    return status;
}

/* Do all touchers of the storage come before a step that has a row? */
static bool is_free_at(const struct proof *proof, uint32_t storage, uint32_t step)
{
    const struct tarn_storage *record = &proof->plan->graph->storages[storage];
    const uint32_t *row = proof->rows + (size_t)proof->row_of[step] * proof->program->streams_count;
    if (record->pinned) return false;
    for (uint32_t i = record->touchers_count; i-- > 0;) {
        uint32_t toucher = proof->program->step_of[record->touchers[i]];
        if (row[proof->program->steps[toucher].stream] <= toucher) return false;
    }
    return true;
}

static uint32_t producer_of(const struct proof *proof, uint32_t storage)
{
    return proof->program->step_of[proof->plan->graph->storages[storage].producer];
}

static bool is_safe(const struct proof *proof, uint32_t a, uint32_t b)
{
    return is_free_at(proof, a, producer_of(proof, b)) ||
           is_free_at(proof, b, producer_of(proof, a));
}

/* ---- The antichain ---- */

static bool is_inside(const struct proof *proof, uint32_t storage)
{
    const struct tarn_program *program = proof->program;
    const uint32_t *threshold = proof->plan->threshold;
    uint32_t producer = producer_of(proof, storage);
    uint32_t stream = program->steps[producer].stream;
    if (producer - program->begin[stream] >= threshold[stream]) return false;
    for (uint32_t s = 0; s < program->streams_count; s++) {
        if (threshold[s] > 0 && is_free_at(proof, storage, program->begin[s] + threshold[s] - 1))
            return false;
    }
    return true;
}

static enum tarn_status find_members(struct proof *proof, uint64_t *proved,
                                     struct tarn_verdict *verdict)
{
    const struct tarn_program *program = proof->program;
    const uint32_t *threshold = proof->plan->threshold;
    forget_rows(proof);
    for (uint32_t s = 0; s < program->streams_count; s++) {
        if (threshold[s] > program->begin[s + 1] - program->begin[s])
            return refuse(verdict, TARN_NONE,
                          "a threshold of the certificate is beyond its stream");
        if (threshold[s] > 0) keep_row(proof, program->begin[s] + threshold[s] - 1);
    }
    if (fill_rows(proof) != TARN_OK) return TARN_SYSTEM;
    for (uint32_t a = 0; a < proof->plan->graph->planned_count; a++) {
        proof->inside[a] = is_inside(proof, a);
        if (proof->inside[a]) *proved += proof->reserved[a];
    }
    return TARN_OK;
}

/* ---- Items and gaps ---- */

static bool is_named(const struct proof *proof, uint32_t storage)
{
    uint32_t low = 0, high = proof->plan->gaps_count;
    uint32_t tensor = proof->plan->graph->storages[storage].tensor;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (proof->plan->gaps[middle] < tensor)
            low = middle + 1;
        else
            high = middle;
    }
    return low < proof->plan->gaps_count && proof->plan->gaps[low] == tensor;
}

/* Cuts a group into runs inside and outside of A, in turn; keeps those of A, and named gaps. */
static void cut_group(struct proof *proof, uint32_t g)
{
    const struct tarn_group *group = &proof->plan->graph->groups[g];
    uint32_t left = TARN_NONE;
    uint64_t end = 0;
    struct run *open = NULL; /* a gap whose right side is not known yet */
    for (uint32_t i = 0, begin = 0; begin < group->storages_count; begin = i) {
        struct run run = {group->storages + begin, 0, g, 0, end, left, TARN_NONE};
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

static enum tarn_status find_runs(struct proof *proof, struct tarn_verdict *verdict)
{
    const struct tarn_graph *graph = proof->plan->graph;
    for (uint32_t i = 0; i < proof->plan->gaps_count; i++)
        if (i > 0 && proof->plan->gaps[i] <= proof->plan->gaps[i - 1])
            return refuse(verdict, proof->plan->gaps[i], "the certificate's gaps do not ascend");
    for (uint32_t g = 0; g < graph->groups_count; g++)
        if (!graph->groups[g].persistent) cut_group(proof, g);
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        if (proof->inside[a] && graph->storages[a].group == TARN_NONE)
            proof->items[proof->items_count++] = (struct run){
                &proof->lone[a], 1, TARN_NONE, proof->reserved[a], 0, TARN_NONE, TARN_NONE};
    }
    if (proof->gaps_count == proof->plan->gaps_count) return TARN_OK;
    return refuse(verdict, TARN_NONE, "the certificate names a gap that is none");
}

static enum tarn_status fill_producer_rows(struct proof *proof)
{
    forget_rows(proof);
    for (uint32_t a = 0; a < proof->plan->graph->planned_count; a++)
        if (proof->inside[a]) keep_row(proof, producer_of(proof, a));
    for (uint32_t i = 0; i < proof->gaps_count; i++)
        for (uint32_t k = 0; k < proof->gaps[i].count; k++)
            keep_row(proof, producer_of(proof, proof->gaps[i].members[k]));
    return fill_rows(proof);
}

/* ---- What A can fill ---- */

static bool spend(struct proof *proof, uint64_t effort)
{
    bool enough = effort <= EFFORT_MAX - proof->effort;
    proof->effort = enough ? proof->effort + effort : EFFORT_MAX;
    return enough;
}

/* Is a storage safe with some member of a gap? When out of effort, it might be. */
static bool meets(struct proof *proof, uint32_t storage, const struct run *gap)
{
    if (!spend(proof, gap->count)) return true;
    for (uint32_t i = 0; i < gap->count; i++)
        if (is_safe(proof, storage, gap->members[i])) return true;
    return false;
}

/* May all of an item lie inside a gap that A closes on both sides? */
static bool may_enter(struct proof *proof, const struct run *item, const struct run *gap)
{
    if (!spend(proof, 1)) return true;
    if (item->group == gap->group || item->size > gap->size) return false;
    uint64_t alignment = proof->plan->alignment;
    uint64_t begin =
        gap->within + (alignment + item->within % alignment - gap->within % alignment) % alignment;
    if (begin > gap->within + gap->size - item->size) return false;
    for (uint32_t i = 0; i < item->count; i++)
        if (!meets(proof, item->members[i], gap)) return false;
    return true;
}

static uint64_t divisor_of(uint64_t a, uint64_t b) { return b == 0 ? a : divisor_of(b, a % b); }

/* The greatest sum of some of the sizes up to `room`; sizes and room count units. */
static uint64_t greatest_sum(struct proof *proof, const uint64_t *sizes, uint32_t count,
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

static uint64_t fill_of_closed(struct proof *proof, const struct run *gap, uint64_t *sizes)
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

static uint64_t fill_of_open(struct proof *proof, const struct run *gap)
{
    const struct tarn_graph *graph = proof->plan->graph;
    uint64_t sum = 0;
    for (uint32_t a = 0; a < graph->planned_count && sum < gap->size; a++)
        if (proof->inside[a] && graph->storages[a].group != gap->group && meets(proof, a, gap))
            sum += proof->reserved[a];
    return sum < gap->size ? sum : gap->size;
}

static bool is_closed(const struct run *gap)
{
    return gap->left != TARN_NONE && gap->right != TARN_NONE;
}

/* ---- Gaps beside each other ---- */

static bool are_disjoint(struct proof *proof, const struct run *a, const struct run *b)
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

static bool are_all_disjoint(struct proof *proof)
{
    uint64_t count = proof->gaps_count;
    if (!spend(proof, count * (count - 1) / 2)) return false;
    for (uint32_t i = 0; i < proof->gaps_count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (!are_disjoint(proof, &proof->gaps[i], &proof->gaps[k])) return false;
    return true;
}

static enum tarn_status add_waste(struct proof *proof, uint64_t *proved,
                                  struct tarn_verdict *verdict)
{
    if (proof->plan->gaps_count == 0) return TARN_OK;
    enum tarn_status status = find_runs(proof, verdict);
    if (status == TARN_OK) status = fill_producer_rows(proof);
    uint64_t *sizes = malloc(((size_t)proof->items_count + 1) * sizeof *sizes);
    if (!sizes) status = TARN_SYSTEM;
    if (status == TARN_OK && !are_all_disjoint(proof))
        status = refuse(verdict, TARN_NONE, "gaps of the certificate might share bytes");
    for (uint32_t i = 0; i < proof->gaps_count && status == TARN_OK; i++) {
        const struct run *gap = &proof->gaps[i];
        *proved += gap->size -
                   (is_closed(gap) ? fill_of_closed(proof, gap, sizes) : fill_of_open(proof, gap));
        if (proof->effort == EFFORT_MAX)
            status = refuse(verdict, TARN_NONE, "the certificate's gaps take too long to check");
    }
    free(sizes);
    return status;
}

/* ---- All of it ---- */

static enum tarn_status prove(struct proof *proof, struct tarn_verdict *verdict)
{
    uint64_t proved = 0;
    if (!reserve(proof))
        return refuse(verdict, TARN_NONE, "the sizes exceed 64 bits at the plan's alignment");
    enum tarn_status status = find_members(proof, &proved, verdict);
    if (status == TARN_OK) status = add_waste(proof, &proved, verdict);
    if (status != TARN_OK) return status;
    tarn_size_round_up(proved, proof->plan->alignment, &proved); /* as all blocks are */
    if (proved >= proof->plan->bound) return TARN_OK;
    struct tarn_violation violation = tarn_violation_of(TARN_WRONG_BOUND);
    tarn_verdict_add(verdict, &violation, NULL,
                     "the plan claims that none is below %llu bytes; its certificate proves %llu",
                     (unsigned long long)proof->plan->bound, (unsigned long long)proved);
    return TARN_REJECTED;
}

enum tarn_status tarn_verify_bound(const struct tarn_plan *plan, const struct tarn_program *program,
                                   struct tarn_verdict *verdict)
{
    struct proof proof;
    if (!plan->threshold) return TARN_OK;
    enum tarn_status status =
        proof_init(&proof, plan, program) ? prove(&proof, verdict) : TARN_SYSTEM;
    proof_finish(&proof);
    return status == TARN_SYSTEM ? TARN_SYSTEM : TARN_OK;
}
