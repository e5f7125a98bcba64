/* Rows of forward clocks for the steps that a certificate is about. They are worked out anew from
 * the compiled program (past.h), and owe nothing to the clocks that made the bound.
 * Cost: O(steps + waits S) to fill the rows, linear in users to ask. */
#include <assert.h>
#include <string.h>

#include "bound.h"
#include "past.h"
#include "streams/base/region.h"

bool tarn_proof_init(struct tarn_proof *proof, const struct tarn_verification *verification,
                     const struct tarn_claim *claim, uint32_t space)
{
    const struct tarn_plan *plan = verification->plan;
    struct tarn_region *region = verification->region;
    size_t count = plan->graph->planned_count;
    *proof = (struct tarn_proof){.region = region, .plan = plan, .program = verification->program};
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

enum tarn_status tarn_proof_refuse(struct tarn_verdict *verdict, uint32_t tensor, const char *why)
{
    struct tarn_violation violation = tarn_violation_of(TARN_WRONG_BOUND);
    violation.tensor = tensor;
    tarn_verdict_add(verdict, violation, TARN_NO_SUSPECTS, "%s", why);
    return TARN_REJECTED;
}

void tarn_proof_keep_row(struct tarn_proof *proof, uint32_t step)
{
    if (proof->row_of[step] == TARN_NONE) proof->row_of[step] = proof->rows_count++;
}

void tarn_proof_forget_rows(struct tarn_proof *proof)
{
    proof->rows_count = 0;
    for (uint32_t i = 0; i < proof->program->steps_count; i++) proof->row_of[i] = TARN_NONE;
}

enum tarn_status tarn_proof_fill_rows(struct tarn_proof *proof)
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

bool tarn_proof_is_free_at(const struct tarn_proof *proof, uint32_t storage, uint32_t step)
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
