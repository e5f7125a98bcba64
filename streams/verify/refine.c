/* Checks refinement: the program does what the source graph says. Every op of the final graph runs
 * an op of the source graph, its origin, as written or as one of its implementations, and
 *     every tensor of the source graph is made once, by a primary run of its producer: the op, or
 *         partial implementations that make up the op
 *     other runs make copies: tensors that name the tensor that they hold again; only repeatable
 *         ops have such runs
 *     every input is the version that the source graph's list order gives there, or a copy of it
 *     an op writes into unused bytes, over a version that it reads, or where it wrote in the source
 *     persistent and pinned storages end with the same content
 *     control arcs hold between primary runs
 *     every other field of every record is the source graph's, or follows from the transforms
 * Cost: linear in both graphs, and clocks for the control arcs. */
#include "refine.h"

enum tarn_status tarn_verify_refinement(const struct tarn_verification *verification)
{
    const struct tarn_plan *plan = verification->plan;
    struct tarn_region *region = verification->region;
    struct tarn_region_mark mark = tarn_region_mark(region);
    struct tarn_comparison comparison = {
        .plan = plan,
        .source = verification->source,
        .final = plan->graph,
        .program = verification->program,
        .region = region,
        .verdict = verification->verdict,
        .allowed = verification->allowed,
        .first_primary = tarn_region_take(region, verification->source->ops_count,
                                          sizeof *comparison.first_primary),
        .next_primary =
            tarn_region_take(region, plan->graph->ops_count, sizeof *comparison.next_primary),
    };
    enum tarn_status status = TARN_SYSTEM;
    if (comparison.first_primary && comparison.next_primary) {
        bool comparable = tarn_refine_shape(&comparison);
        status = comparison.verdict->no_memory ? TARN_SYSTEM : TARN_OK;
        if (comparable) status = tarn_refine_versions(&comparison);
        if (comparable && status == TARN_OK) status = tarn_refine_control(&comparison);
    }
    tarn_region_release(region, mark);
    return status;
}
