/* What the plan's certificate proves, worked out anew from the program alone. It names
 *
 *     thresholds   how many launches of each stream lie before a cut. A = the storages that are
 *                  produced before the cut and are not yet free for the last launch before it in
 *                  any stream. No two of them may share bytes: if the users of one came before
 *                  the producer of the other, which is before the cut in its stream, they would
 *                  come before that stream's last launch before the cut.
 *     gaps         runs of group members outside A, by their first member (bound_gaps.c).
 *
 * "Comes before" is asked of forward clocks, kept for the launches that matter (bound_rows.c).
 * Cost: O(steps + waits S) for the clocks, O(touches S) for A; more for gaps. */
#include "bound.h"

#include "streams/base/checked.h"
#include "streams/base/region.h"
#include "streams/graph/report.h"

/* ---- Reserved sizes ---- */

static bool is_sum_small(const struct tarn_proof *proof)
{
    uint64_t sum = 0;
    for (uint32_t a = 0; a < proof->plan->graph->planned_count; a++)
        if (!tarn_size_add(sum, proof->reserved[a], &sum)) return false;
    return true;
}

/* The verifier's own sizes: the planner's (order/reserved.c) are what is to be checked. False when
 * they exceed 64 bits together; after this no sum of them does. */
static bool reserve(struct tarn_proof *proof)
{
    const struct tarn_plan *plan = proof->plan;
    for (uint32_t a = 0; a < plan->graph->planned_count; a++)
        proof->reserved[a] = tarn_storage_reserved(plan->graph, a, plan->alignment);
    return is_sum_small(proof);
}

/* ---- The antichain ---- */

/* The last launch of a stream of which some part lies before the cut; TARN_NONE: there is none. */
static uint32_t last_before_cut(const struct tarn_proof *proof, uint32_t s)
{
    uint32_t count = proof->claim.threshold[s] + proof->halved[s];
    return count > 0 ? proof->program->begin[s] + count - 1 : TARN_NONE;
}

/* The workspace of an op that is done with it before it writes its outputs. */
static bool is_done_early(const struct tarn_proof *proof, uint32_t storage)
{
    const struct tarn_graph *graph = proof->plan->graph;
    return graph->storages[storage].tensor == TARN_NONE &&
           graph->ops[graph->storages[storage].producer].workspace_first;
}

static bool is_inside(const struct tarn_proof *proof, uint32_t storage)
{
    const struct tarn_program *program = proof->program;
    uint32_t producer = tarn_proof_producer(proof, storage);
    if (proof->plan->graph->storages[storage].space != proof->space) return false;
    uint32_t stream = program->steps[producer].stream, last = last_before_cut(proof, stream);
    if (last == TARN_NONE || producer > last) return false;
    /* a cut through the producer has its outputs behind it; with all of the producer before it, a
     * workspace that ends early has ended */
    if (producer == last && proof->halved[stream] != is_done_early(proof, storage)) return false;
    for (uint32_t s = 0; s < program->streams_count; s++) {
        last = last_before_cut(proof, s);
        if (last != TARN_NONE && tarn_proof_is_free_at(proof, storage, last)) return false;
    }
    return true;
}

static bool may_be_halved(const struct tarn_proof *proof, uint32_t s)
{
    const struct tarn_program *program = proof->program;
    uint32_t step = program->begin[s] + proof->claim.threshold[s];
    return step < program->begin[s + 1] &&
           proof->plan->graph->ops[program->steps[step].op].workspace_first;
}

static enum tarn_status find_members(struct tarn_proof *proof, uint64_t *proved,
                                     struct tarn_verdict *verdict)
{
    const struct tarn_program *program = proof->program;
    const uint32_t *threshold = proof->claim.threshold;
    tarn_proof_forget_rows(proof);
    for (uint32_t s = 0; s < program->streams_count; s++) {
        if (threshold[s] > program->begin[s + 1] - program->begin[s])
            return tarn_proof_refuse(verdict, TARN_NONE,
                                     "a threshold of the certificate is beyond its stream");
        if (proof->halved[s] && !may_be_halved(proof, s))
            return tarn_proof_refuse(verdict, TARN_NONE,
                                     "the certificate's cut goes through an op that does not end "
                                     "its workspace before it writes its outputs");
        if (last_before_cut(proof, s) != TARN_NONE)
            tarn_proof_keep_row(proof, last_before_cut(proof, s));
    }
    if (tarn_proof_fill_rows(proof) != TARN_OK) return TARN_SYSTEM;
    for (uint32_t a = 0; a < proof->plan->graph->planned_count; a++) {
        proof->inside[a] = is_inside(proof, a);
        if (proof->inside[a]) *proved += proof->reserved[a];
    }
    return TARN_OK;
}

/* ---- All of it ---- */

static enum tarn_status prove(struct tarn_proof *proof, struct tarn_verdict *verdict)
{
    uint64_t proved = 0;
    if (!reserve(proof))
        return tarn_proof_refuse(verdict, TARN_NONE,
                                 "the sizes exceed 64 bits at the plan's alignment");
    enum tarn_status status = find_members(proof, &proved, verdict);
    if (status == TARN_OK) status = tarn_proof_add_waste(proof, &proved, verdict);
    if (status != TARN_OK) return status;
    tarn_size_round_up(
        proved, tarn_space_alignment(proof->plan->graph, proof->space, proof->plan->alignment),
        &proved); /* as all blocks */
    if (proved >= proof->claim.bound) return TARN_OK;
    tarn_verdict_add(verdict, tarn_violation_of(TARN_WRONG_BOUND), TARN_NO_SUSPECTS,
                     "the plan claims that none is below %llu bytes; its certificate proves %llu%s",
                     (unsigned long long)proof->claim.bound, (unsigned long long)proved,
                     tarn_space_phrase(proof->plan->graph, proof->space).text);
    return TARN_REJECTED;
}

static enum tarn_status prove_one(const struct tarn_verification *verification,
                                  const struct tarn_claim *claim, uint32_t space)
{
    struct tarn_proof proof;
    if (!claim->threshold) return TARN_OK;
    struct tarn_region_mark mark = tarn_region_mark(verification->region);
    enum tarn_status status = tarn_proof_init(&proof, verification, claim, space)
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
