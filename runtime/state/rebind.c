/* A ring of bindings, in the order of iterations. When a stream reaches an iteration, it applies
 * the iteration's bindings to the addresses of its own ops. So no op of an earlier iteration sees a
 * later address, and no thread waits.
 *
 *     ring      x at X1 from 4 on │ y at Y1 from 4 on │ x at X0 from 5 on │
 *     streams   compute has applied 1, copy 3
 *
 * The ring and the uses of every storage that may be bound are made by the first such binding.
 * Cost: O(references) then; O(uses in the stream) for each binding and stream; a launch looks at
 * one counter. */
#include "rebind.h"

#include "state.h"
#include "streams/base/error.h"

#define RING 1024u /* maximum number of bindings under way */

bool tarn_storage_is_bindable(const struct tarn_storage *storage)
{
    return storage->persistent || storage->pinned;
}

static void visit(struct tarn_session *session, bool fill)
{
    struct tarn_rebinds *rebinds = &session->rebinds;
    const struct tarn_graph *graph = session->graph;
    uint32_t slot = 0;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        for (uint32_t k = 0; k < op->inputs_count + op->outputs_count; k++, slot++) {
            uint32_t tensor =
                k < op->inputs_count ? op->inputs[k] : tarn_outputs(op)[k - op->inputs_count];
            uint32_t a = graph->tensors[tensor].storage;
            if (!tarn_storage_is_bindable(&graph->storages[a])) continue;
            if (fill)
                rebinds->uses[rebinds->begin[a + 1]++] =
                    (struct tarn_address_use){slot, op->stream};
            else
                rebinds->begin[a + 2]++;
        }
    }
}

/* Counts are stored two entries ahead and filled one entry ahead, so the array ends up with the
 * starts. */
static bool make_uses(struct tarn_session *session)
{
    struct tarn_rebinds *rebinds = &session->rebinds;
    uint32_t storages = session->graph->storages_count;
    rebinds->begin =
        tarn_region_take(&session->region, (size_t)storages + 2, sizeof *rebinds->begin);
    if (!rebinds->begin) return false;
    visit(session, false);
    for (uint32_t a = 0; a < storages; a++) rebinds->begin[a + 2] += rebinds->begin[a + 1];
    rebinds->uses =
        tarn_region_take(&session->region, rebinds->begin[storages + 1], sizeof *rebinds->uses);
    if (!rebinds->uses) return false;
    visit(session, true);
    return true;
}

static bool make_ring(struct tarn_session *session)
{
    struct tarn_rebinds *rebinds = &session->rebinds;
    if (rebinds->ring) return true;
    struct tarn_rebinding *ring = tarn_region_take(&session->region, RING, sizeof *ring);
    rebinds->applied =
        tarn_region_take(&session->region, session->graph->streams_count, sizeof *rebinds->applied);
    if (!ring || !rebinds->applied || !make_uses(session)) return false;
    rebinds->ring = ring;
    return true;
}

enum tarn_status tarn_rebinds_add(struct tarn_session *session, uint32_t storage, void *address,
                                  uint64_t *blocked, struct tarn_error *error)
{
    struct tarn_rebinds *rebinds = &session->rebinds;
    *blocked = 0;
    if (!make_ring(session)) return tarn_error_no_memory(error);
    uint64_t made = atomic_load(&rebinds->made);
    struct tarn_rebinding *next = &rebinds->ring[made % RING];
    if (made >= RING && next->iteration >= session->finished) {
        *blocked = next->iteration < session->submitted ? next->iteration + 1 : session->submitted;
        return TARN_OK;
    }
    *next = (struct tarn_rebinding){session->submitted, address, storage};
    atomic_store(&rebinds->made, made + 1);
    return TARN_OK;
}

void tarn_rebinds_settle(struct tarn_session *session)
{
    struct tarn_rebinds *rebinds = &session->rebinds;
    uint64_t made = atomic_load(&rebinds->made);
    for (uint32_t s = 0; rebinds->ring && s < session->graph->streams_count; s++)
        rebinds->applied[s] = made;
}

void tarn_rebinds_apply(struct tarn_session *session, uint32_t stream, uint64_t iteration)
{
    struct tarn_rebinds *rebinds = &session->rebinds;
    uint64_t made = atomic_load(&rebinds->made);
    for (; rebinds->applied[stream] < made; rebinds->applied[stream]++) {
        const struct tarn_rebinding *next = &rebinds->ring[rebinds->applied[stream] % RING];
        if (next->iteration > iteration) return;
        for (uint32_t i = rebinds->begin[next->storage]; i < rebinds->begin[next->storage + 1];
             i++) {
            if (rebinds->uses[i].stream == stream)
                session->addresses[rebinds->uses[i].slot] = next->address;
        }
    }
}
