/* The independent verifier. It shares no algorithm with the planner: it takes the plan's graph and
 * the compiled program as they are, and proves
 *     form         everything exists once, in range, aligned, groups back to back
 *     safety       no legal order of two iterations lets a write hit bytes that are still needed,
 *                  whatever arms conditionals take
 *     refinement   every op reads what the source graph says it reads
 *     bound        its certificate proves that no safe plan is smaller
 * Failures are named, with a legal order that corrupts data if one is found.
 * Cost: near-linear; witnesses are searched only if the caller takes the verdict. */

#include "verify.h"
#include "streams/base/error.h"
#include "streams/base/memory.h"
#include "streams/base/options.h"
#include "verdict.h"

/* The plan's waits use the ids of its graph, so they must not be checked against another graph. */
static bool check_hashes(const struct tarn_plan *plan, const struct tarn_graph *source,
                         struct tarn_verdict *verdict)
{
    bool same = tarn_hash_equal(plan->source_hash, source->hash);
    if (same && (plan->transformed || tarn_hash_equal(plan->graph->hash, source->hash)))
        return true;
    tarn_verdict_add(verdict, tarn_violation_of(TARN_WRONG_GRAPH), TARN_NO_SUSPECTS,
                     "the plan was made for a graph with hash %s, this one has %s",
                     tarn_hash_format(same ? plan->graph->hash : plan->source_hash).text,
                     tarn_hash_format(source->hash).text);
    return false;
}

/* The program, or a violation that says why there is none. */
static enum tarn_status compile(const struct tarn_plan *plan, const struct tarn_program **program,
                                struct tarn_verdict *verdict)
{
    struct tarn_error error;
    tarn_error_clear(&error);
    enum tarn_status status = tarn_plan_program(plan, program, &error);
    if (status == TARN_REJECTED) {
        struct tarn_violation violation = tarn_violation_of(TARN_DEADLOCK);
        violation.op = error.op;
        tarn_verdict_add(verdict, violation, TARN_NO_SUSPECTS, "%s", error.text);
    }
    return status;
}

static enum tarn_status run_checks(const struct tarn_plan *plan, const struct tarn_graph *source,
                                   const struct tarn_verify_options *allowed, bool with_witnesses,
                                   struct tarn_verdict *verdict)
{
    if (!check_hashes(plan, source, verdict) || !tarn_verify_form(plan, verdict)) return TARN_OK;
    const struct tarn_program *program;
    enum tarn_status status = compile(plan, &program, verdict);
    if (status != TARN_OK) return status == TARN_REJECTED ? TARN_OK : status;
    struct tarn_region region = {.chunks = NULL};
    struct tarn_verification verification = {plan, source, program, &region, verdict, allowed};
    status = tarn_verify_replay(&verification);
    if (status == TARN_OK) status = tarn_verify_arms(&verification);
    if (status == TARN_OK) status = tarn_verify_refinement(&verification);
    if (status == TARN_OK) status = tarn_verify_bound(&verification);
    if (status == TARN_OK && with_witnesses) status = tarn_verify_witnesses(&verification);
    tarn_region_finish(&region);
    return status;
}

static enum tarn_status conclude(const struct tarn_verdict *verdict, struct tarn_error *error)
{
    if (verdict->no_memory) return tarn_error_no_memory(error);
    if (verdict->count == 0) return TARN_OK;
    const struct tarn_violation *first = &verdict->violations[0];
    tarn_error_set(error, TARN_REJECTED, "%s: %s", tarn_violation_text(first->kind), first->text);
    if (error) {
        error->op = first->op;
        error->tensor = first->tensor;
    }
    return TARN_REJECTED;
}

enum tarn_status tarn_verify_options_take(struct tarn_verify_options *options,
                                          const struct tarn_verify_options *given,
                                          struct tarn_error *error)
{
    enum tarn_status status =
        tarn_options_take(options, sizeof *options, given, "verify options", error);
    if (status != TARN_OK) return status;
    return tarn_options_words(options->in_place_kinds, options->in_place_kinds_count,
                              "in_place_kinds", error);
}

enum tarn_status tarn_plan_verify(const struct tarn_plan *plan, const struct tarn_graph *source,
                                  const struct tarn_verify_options *given,
                                  struct tarn_verdict **verdict, struct tarn_error *error)
{
    struct tarn_verify_options options = {0};
    if (verdict) *verdict = NULL;
    if (!plan || !source) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    enum tarn_status status = tarn_verify_options_take(&options, given, error);
    if (status != TARN_OK) return status;
    struct tarn_verdict *found = tarn_take_zeros(1, sizeof *found);
    if (!found) return tarn_error_no_memory(error);
    status = run_checks(plan, source, &options, verdict != NULL, found);
    if (status == TARN_OK)
        status = conclude(found, error);
    else
        tarn_error_no_memory(error);
    if (verdict && status != TARN_SYSTEM)
        *verdict = found;
    else
        tarn_verdict_destroy(found);
    return status;
}
