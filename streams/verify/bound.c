/* Checks the plan's bound: recomputes what the certificate proves, from the program alone. The
 * certificate names
 *
 *     thresholds   how many launches of each stream lie before a cut. A = the storages that are
 *                  produced before the cut and are not yet free for the last launch before it in
 *                  any stream. No two of them may share bytes: if the users of one came before
 *                  the producer of the other, which is before the cut in its stream, they would
 *                  come before that stream's last launch before the cut.
 *     gaps         runs of group members outside A, by their first member.
 *
 * No arena ends before a storage with a fixed offset does; that needs no certificate.
 *
 * "Comes before" is decided by forward clocks, kept for the launches that matter.
 * Cost: O(steps + waits S) for the clocks, O(touches S) for A; more for gaps. */
#include <assert.h>
#include <string.h>

#include "past.h"
#include "streams/base/bisect.h"
#include "streams/base/checked.h"
#include "streams/base/region.h"
#include "streams/graph/report.h"
#include "verdict.h"

/* ---- The proof and its state ---- */

/* Consecutive members of a group, or a lone storage. */
struct proof_run {
    const uint32_t *members;
    uint32_t count;
    uint32_t group;        /* TARN_NONE: a lone storage */
    uint64_t size, within; /* bytes, and the byte of its group where it begins */
    uint32_t left, right;  /* of a gap: the neighbouring runs of A; TARN_NONE: the group ends */
};

/* lone, items, gaps and sums are NULL until a gap is asked for. */
struct proof {
    struct tarn_region *region; /* of all arrays */
    const struct tarn_plan *plan;
    struct tarn_claim claim; /* the bound and its certificate */
    uint32_t space;          /* that they are of */
    const struct tarn_program *program;
    uint64_t *reserved; /* by planned storage */
    bool *inside;       /* by planned storage: in A */
    bool *halved;       /* by stream: the cut goes through its next launch */
    uint32_t *lone;     /* storage -> itself: a list of one member */
    uint32_t *row_of;   /* step -> its row of clocks; TARN_NONE: not kept */
    uint32_t *rows;     /* [row][stream]: the nodes of the stream that lie before the step */
    uint32_t rows_count;
    struct proof_run *items, *gaps; /* runs of A; gaps that the certificate names */
    uint32_t items_count, gaps_count;
    unsigned char *sums; /* [sum]: 1 if the sizes of some items add up to it */
    uint64_t effort;     /* spent so far: tests of a pair of storages, and sums */
};

static uint32_t producer_of(const struct proof *proof, uint32_t storage)
{
    return proof->program->step_of[proof->plan->graph->storages[storage].producer];
}

/* ---- Clocks ---- */

/* Rows of forward clocks for the steps of a certificate. They are computed from the compiled
 * program (past.h), independently of the clocks that made the bound.
 * Cost: O(steps + waits S) to fill the rows, linear in users to ask. */

static bool proof_init(struct proof *proof, const struct tarn_verification *verification,
                       const struct tarn_claim *claim, uint32_t space)
{
    const struct tarn_plan *plan = verification->plan;
    struct tarn_region *region = verification->region;
    size_t count = plan->graph->planned_count;
    *proof = (struct proof){.region = region, .plan = plan, .program = verification->program};
    proof->claim = *claim;
    proof->space = space;
    proof->reserved = tarn_region_take(region, count, sizeof *proof->reserved);
    proof->inside = tarn_region_take(region, count, sizeof *proof->inside);
    proof->row_of = tarn_region_take(region, proof->program->steps_count, sizeof *proof->row_of);
    proof->halved = tarn_region_take(region, plan->streams_count, sizeof *proof->halved);
    for (uint32_t i = 0; i < claim->inside_count && proof->halved; i++)
        proof->halved[claim->inside[i]] = true;
    return proof->reserved && proof->inside && proof->row_of && proof->halved;
}

/* Says why the certificate proves nothing. Returns TARN_REJECTED. tensor: TARN_NONE, or the gap. */
static enum tarn_status proof_refuse(struct tarn_verdict *verdict, uint32_t tensor, const char *why)
{
    struct tarn_violation violation = tarn_violation_of(TARN_WRONG_BOUND);
    violation.tensor = tensor;
    tarn_verdict_add(verdict, violation, TARN_NO_SUSPECTS, "%s", why);
    return TARN_REJECTED;
}

/* Adds a step whose row of clocks is kept; there is none at first. */
static void proof_keep_row(struct proof *proof, uint32_t step)
{
    if (proof->row_of[step] == TARN_NONE) proof->row_of[step] = proof->rows_count++;
}

static void proof_forget_rows(struct proof *proof)
{
    proof->rows_count = 0;
    for (uint32_t i = 0; i < proof->program->steps_count; i++) proof->row_of[i] = TARN_NONE;
}

static enum tarn_status proof_fill_rows(struct proof *proof)
{
    const struct tarn_program *program = proof->program;
    struct tarn_past past;
    size_t width = program->streams_count;
    assert(proof->rows_count <= program->steps_count);
    proof->rows = tarn_region_take(proof->region, proof->rows_count * width, sizeof *proof->rows);
    if (!proof->rows) return TARN_SYSTEM;
    struct tarn_region_mark mark = tarn_region_mark(proof->region);
    enum tarn_status status = tarn_past_init(&past, proof->region, program);
    for (uint32_t i = 0; i < program->steps_count && status == TARN_OK; i++) {
        uint32_t step = program->order[i];
        tarn_past_enter(&past, step);
        if (proof->row_of[step] != TARN_NONE)
            memcpy(proof->rows + proof->row_of[step] * width,
                   past.clocks + program->steps[step].stream * width, width * sizeof *proof->rows);
        status = tarn_past_leave(&past);
    }
    tarn_region_release(proof->region, mark);
    return status;
}

static bool proof_is_free_at(const struct proof *proof, uint32_t storage, uint32_t step)
{
    const struct tarn_storage *record = &proof->plan->graph->storages[storage];
    assert(proof->row_of[step] < proof->rows_count);
    const uint32_t *row = proof->rows + (size_t)proof->row_of[step] * proof->program->streams_count;
    if (record->pinned) return false;
    for (uint32_t i = record->users_count; i-- > 0;) {
        uint32_t user = proof->program->step_of[tarn_storage_users(proof->plan->graph, record)[i]];
        if (row[proof->program->steps[user].stream] <= user) return false;
    }
    return true;
}

/* Checks the gaps that a certificate names: is each a gap of A, do no two of them share bytes, and
 * how many bytes of each can A not fill? The rules are the same as in order/gaps.c. The code shares
 * nothing with it, not even the subset sums (bytes here, bits there), since order/gaps.c is what is
 * checked.
 * Cost: a row of clocks for every member of A and of a gap, a test for each pair of them; subset
 * sums beyond EFFORT_MAX are not accepted as a proof. */

static const uint64_t EFFORT_MAX = UINT64_C(1) << 27;
enum { SUMS_MAX = 1 << 18 }; /* units of the sizes */

/* ---- Items and gaps ---- */

static bool is_named(const struct proof *proof, uint32_t storage)
{
    uint32_t low = 0, high = proof->claim.gaps_count;
    uint32_t tensor = proof->plan->graph->storages[storage].tensor;
    TARN_BISECT(low, high, middle, proof->claim.gaps[middle] < tensor);
    return low < proof->claim.gaps_count && proof->claim.gaps[low] == tensor;
}

/* Members that may overlap leave no gaps; each member of A is an item. */
static void keep_layers(struct proof *proof, uint32_t g)
{
    const struct tarn_group *group = &proof->plan->graph->groups[g];
    for (uint32_t i = 0; i < group->storages_count; i++)
        if (proof->inside[group->storages[i]])
            proof->items[proof->items_count++] = (struct proof_run){
                &group->storages[i], 1,         g,        proof->reserved[group->storages[i]],
                group->within[i],    TARN_NONE, TARN_NONE};
}

/* Cuts a group into runs inside and outside of A, which alternate; keeps the runs of A, and named
 * gaps. */
static void cut_group(struct proof *proof, uint32_t g)
{
    const struct tarn_group *group = &proof->plan->graph->groups[g];
    uint32_t left = TARN_NONE;
    uint64_t end = 0;
    struct proof_run *open = NULL; /* a gap whose right side is not known yet */
    for (uint32_t i = 0, begin = 0; begin < group->storages_count; begin = i) {
        struct proof_run run = {group->storages + begin, 0, g, 0, end, left, TARN_NONE};
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

static bool runs_init(struct proof *proof)
{
    size_t count = proof->plan->graph->planned_count;
    proof->lone = tarn_region_take(proof->region, count, sizeof *proof->lone);
    proof->items = tarn_region_take(proof->region, count, sizeof *proof->items);
    proof->gaps = tarn_region_take(proof->region, proof->claim.gaps_count, sizeof *proof->gaps);
    proof->sums = tarn_region_take(proof->region, SUMS_MAX + 1, sizeof *proof->sums);
    for (uint32_t a = 0; a < count && proof->lone; a++) proof->lone[a] = a;
    return proof->lone && proof->items && proof->gaps && proof->sums;
}

static enum tarn_status find_runs(struct proof *proof, struct tarn_verdict *verdict)
{
    const struct tarn_graph *graph = proof->plan->graph;
    for (uint32_t i = 0; i < proof->claim.gaps_count; i++)
        if (i > 0 && proof->claim.gaps[i] <= proof->claim.gaps[i - 1])
            return proof_refuse(verdict, proof->claim.gaps[i],
                                "the certificate's gaps do not ascend");
    for (uint32_t g = 0; g < graph->groups_count; g++)
        if (!graph->groups[g].persistent && graph->groups[g].storages_count > 0 &&
            graph->storages[graph->groups[g].storages[0]].space == proof->space) {
            if (graph->groups[g].within)
                keep_layers(proof, g);
            else
                cut_group(proof, g);
        }
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        if (proof->inside[a] && graph->storages[a].group == TARN_NONE)
            proof->items[proof->items_count++] = (struct proof_run){
                &proof->lone[a], 1, TARN_NONE, proof->reserved[a], 0, TARN_NONE, TARN_NONE};
    }
    assert(proof->items_count <= graph->planned_count);
    assert(proof->gaps_count <= proof->claim.gaps_count); /* gaps ascend, so none is found twice */
    if (proof->gaps_count == proof->claim.gaps_count) return TARN_OK;
    return proof_refuse(verdict, TARN_NONE, "the certificate names a gap that is none");
}

static enum tarn_status fill_producer_rows(struct proof *proof)
{
    proof_forget_rows(proof);
    for (uint32_t a = 0; a < proof->plan->graph->planned_count; a++)
        if (proof->inside[a]) proof_keep_row(proof, producer_of(proof, a));
    for (uint32_t i = 0; i < proof->gaps_count; i++)
        for (uint32_t k = 0; k < proof->gaps[i].count; k++)
            proof_keep_row(proof, producer_of(proof, proof->gaps[i].members[k]));
    return proof_fill_rows(proof);
}

/* ---- What A can fill ---- */

/* Is storage a safe with b, a member of a gap? */
static bool is_safe(const struct proof *proof, uint32_t a, uint32_t b)
{
    const struct tarn_graph *graph = proof->plan->graph;
    return proof_is_free_at(proof, a, producer_of(proof, b)) ||
           proof_is_free_at(proof, b, producer_of(proof, a)) ||
           tarn_storages_take_turns(graph, a, b); /* members are no workspaces */
}

static bool spend(struct proof *proof, uint64_t effort)
{
    bool enough = effort <= EFFORT_MAX - proof->effort;
    proof->effort = enough ? proof->effort + effort : EFFORT_MAX;
    return enough;
}

/* Is a storage safe with some member of a gap? If the effort is used up, the answer is yes. */
static bool meets(struct proof *proof, uint32_t storage, const struct proof_run *gap)
{
    if (!spend(proof, gap->count)) return true;
    for (uint32_t i = 0; i < gap->count; i++)
        if (is_safe(proof, storage, gap->members[i])) return true;
    return false;
}

/* May all of an item lie inside a gap that A closes on both sides? */
static bool may_enter(struct proof *proof, const struct proof_run *item,
                      const struct proof_run *gap)
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

/* The largest sum of some of the sizes up to `room`; sizes and room count units. */
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

static uint64_t fill_of_closed(struct proof *proof, const struct proof_run *gap, uint64_t *sizes)
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

static uint64_t fill_of_open(struct proof *proof, const struct proof_run *gap)
{
    const struct tarn_graph *graph = proof->plan->graph;
    uint64_t sum = 0;
    for (uint32_t a = 0; a < graph->planned_count && sum < gap->size; a++)
        if (proof->inside[a] && graph->storages[a].group != gap->group && meets(proof, a, gap))
            sum += proof->reserved[a];
    return sum < gap->size ? sum : gap->size;
}

static bool is_closed(const struct proof_run *gap)
{
    return gap->left != TARN_NONE && gap->right != TARN_NONE;
}

/* ---- Disjoint gaps ---- */

static bool are_disjoint(struct proof *proof, const struct proof_run *a, const struct proof_run *b)
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

static enum tarn_status proof_add_waste(struct proof *proof, uint64_t *proved,
                                        struct tarn_verdict *verdict)
{
    if (proof->claim.gaps_count == 0) return TARN_OK;
    if (proof->plan->graph->conditionals_count > 0)
        return proof_refuse(verdict, TARN_NONE,
                            "a graph with conditionals has a certificate with gaps, which may be "
                            "filled by other arms");
    enum tarn_status status = runs_init(proof) ? find_runs(proof, verdict) : TARN_SYSTEM;
    if (status == TARN_OK) status = fill_producer_rows(proof);
    uint64_t *sizes = tarn_region_take(proof->region, proof->items_count, sizeof *sizes);
    if (!sizes) status = TARN_SYSTEM;
    if (status == TARN_OK && !are_all_disjoint(proof))
        status = proof_refuse(verdict, TARN_NONE, "gaps of the certificate might share bytes");
    for (uint32_t i = 0; i < proof->gaps_count && status == TARN_OK; i++) {
        const struct proof_run *gap = &proof->gaps[i];
        *proved += gap->size -
                   (is_closed(gap) ? fill_of_closed(proof, gap, sizes) : fill_of_open(proof, gap));
        if (proof->effort == EFFORT_MAX)
            status =
                proof_refuse(verdict, TARN_NONE, "the certificate's gaps take too long to check");
    }
    return status;
}

/* ---- Reserved sizes ---- */

static bool is_sum_small(const struct proof *proof)
{
    uint64_t sum = 0;
    for (uint32_t a = 0; a < proof->plan->graph->planned_count; a++)
        if (!tarn_size_add(sum, proof->reserved[a], &sum)) return false;
    return true;
}

/* Computes the verifier's own sizes, since the planner's sizes (order/reserved.c) are what is
 * checked. False if their sum exceeds 64 bits; after this no sum of them does. */
static bool reserve(struct proof *proof)
{
    const struct tarn_plan *plan = proof->plan;
    for (uint32_t a = 0; a < plan->graph->planned_count; a++)
        proof->reserved[a] = tarn_storage_reserved(plan->graph, a, plan->alignment);
    return is_sum_small(proof);
}

/* ---- The antichain ---- */

/* The last launch of a stream that lies at least partly before the cut; TARN_NONE: no launch. */
static uint32_t last_before_cut(const struct proof *proof, uint32_t s)
{
    uint32_t count = proof->claim.threshold[s] + proof->halved[s];
    return count > 0 ? proof->program->begin[s] + count - 1 : TARN_NONE;
}

/* The workspace of an op that is done with it before it writes its outputs. */
static bool is_done_early(const struct proof *proof, uint32_t storage)
{
    const struct tarn_graph *graph = proof->plan->graph;
    return graph->storages[storage].tensor == TARN_NONE &&
           graph->ops[graph->storages[storage].producer].workspace_first;
}

static bool is_inside(const struct proof *proof, uint32_t storage)
{
    const struct tarn_program *program = proof->program;
    uint32_t producer = producer_of(proof, storage);
    if (proof->plan->graph->storages[storage].space != proof->space) return false;
    if (proof->reserved[storage] == 0) return false;
    if (proof->plan->graph->conditionals_count > 0 &&
        !tarn_storage_is_there(proof->plan->graph, storage, proof->claim.arms))
        return false;
    uint32_t stream = program->steps[producer].stream, last = last_before_cut(proof, stream);
    if (last == TARN_NONE || producer > last) return false;
    /* a cut through the producer has its outputs after it; with all of the producer before it, a
     * workspace that ends early has ended */
    if (producer == last && proof->halved[stream] != is_done_early(proof, storage)) return false;
    for (uint32_t s = 0; s < program->streams_count; s++) {
        last = last_before_cut(proof, s);
        if (last != TARN_NONE && proof_is_free_at(proof, storage, last)) return false;
    }
    return true;
}

static bool may_be_halved(const struct proof *proof, uint32_t s)
{
    const struct tarn_program *program = proof->program;
    uint32_t step = program->begin[s] + proof->claim.threshold[s];
    return step < program->begin[s + 1] &&
           proof->plan->graph->ops[program->steps[step].op].workspace_first;
}

static enum tarn_status find_members(struct proof *proof, uint64_t *proved,
                                     struct tarn_verdict *verdict)
{
    const struct tarn_program *program = proof->program;
    const uint32_t *threshold = proof->claim.threshold;
    proof_forget_rows(proof);
    for (uint32_t s = 0; s < program->streams_count; s++) {
        if (threshold[s] > program->begin[s + 1] - program->begin[s])
            return proof_refuse(verdict, TARN_NONE,
                                "a threshold of the certificate is beyond its stream");
        if (proof->halved[s] && !may_be_halved(proof, s))
            return proof_refuse(verdict, TARN_NONE,
                                "the certificate's cut goes through an op that does not end "
                                "its workspace before it writes its outputs");
        if (last_before_cut(proof, s) != TARN_NONE)
            proof_keep_row(proof, last_before_cut(proof, s));
    }
    if (proof_fill_rows(proof) != TARN_OK) return TARN_SYSTEM;
    for (uint32_t a = 0; a < proof->plan->graph->planned_count; a++) {
        proof->inside[a] = is_inside(proof, a);
        if (proof->inside[a]) *proved += proof->reserved[a];
    }
    return TARN_OK;
}

/* ---- Fixed storages ---- */

/* Raises *proved to the end of the last storage of this space that has a fixed offset. */
static void raise_to_fixed(const struct proof *proof, uint64_t *proved)
{
    const struct tarn_graph *graph = proof->plan->graph;
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        uint64_t end;
        if (storage->space != proof->space || !tarn_storage_is_fixed(graph, a)) continue;
        if (tarn_size_add(tarn_tensor_wanted(&graph->tensors[storage->tensor]), proof->reserved[a],
                          &end))
            *proved = tarn_larger(*proved, end);
    }
}

/* ---- All of it ---- */

static enum tarn_status prove(struct proof *proof, struct tarn_verdict *verdict)
{
    uint64_t proved = 0;
    if (proof->claim.arms_count != proof->plan->graph->conditionals_count)
        return proof_refuse(verdict, TARN_NONE,
                            "the certificate does not tell which arms conditionals take");
    if (!reserve(proof))
        return proof_refuse(verdict, TARN_NONE, "the sizes exceed 64 bits at the plan's alignment");
    enum tarn_status status = find_members(proof, &proved, verdict);
    if (status == TARN_OK) status = proof_add_waste(proof, &proved, verdict);
    if (status != TARN_OK) return status;
    raise_to_fixed(proof, &proved);
    tarn_size_round_up(
        proved, tarn_space_alignment(proof->plan->graph, proof->space, proof->plan->alignment),
        &proved); /* as all blocks */
    if (proved >= proof->claim.bound) return TARN_OK;
    tarn_verdict_add(verdict, tarn_violation_of(TARN_WRONG_BOUND), TARN_NO_SUSPECTS,
                     "the plan claims that none is below %s; its certificate proves %llu%s",
                     tarn_bytes_phrase(proof->claim.bound).text, (unsigned long long)proved,
                     tarn_space_phrase(proof->plan->graph, proof->space).text);
    return TARN_REJECTED;
}

static enum tarn_status prove_one(const struct tarn_verification *verification,
                                  const struct tarn_claim *claim, uint32_t space)
{
    struct proof proof;
    if (!claim->threshold) return TARN_OK;
    struct tarn_region_mark mark = tarn_region_mark(verification->region);
    enum tarn_status status = proof_init(&proof, verification, claim, space)
                                  ? prove(&proof, verification->verdict)
                                  : TARN_SYSTEM;
    tarn_region_release(verification->region, mark);
    return status == TARN_SYSTEM ? TARN_SYSTEM : TARN_OK;
}

enum tarn_status tarn_verify_bound(const struct tarn_verification *verification)
{
    const struct tarn_plan *plan = verification->plan;
    enum tarn_status status = TARN_OK;
    if (!plan->spaces) return prove_one(verification, &plan->claim, 0);
    for (uint32_t s = 0; s < plan->spaces_count && status == TARN_OK; s++)
        status = prove_one(verification, &plan->spaces[s].claim, s);
    return status;
}
