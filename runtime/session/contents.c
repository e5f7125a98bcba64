/* Reads and writes a session's tensors from the host, by blocking copies while nothing runs;
 * allocates host memory for fast copies. Cost: one call of the device each. */

#include "runtime/state/failure.h"
#include "runtime/state/state.h"
#include "streams/base/checked.h"
#include "streams/base/memory.h"
#include "streams/graph/report.h"

#define PAGE 4096 /* alignment of host memory if the device does not allocate it */

/* ---- Copies ---- */

/* A poisoned device ends the session at once. */
static enum tarn_status copy_status(struct tarn_session *session, const char *what, int code,
                                    struct tarn_error *error)
{
    enum tarn_status status = tarn_session_status(session, session->device, what, code, error);
    if (status != TARN_OK && atomic_load(&session->poisoned)) session->refused = true;
    return status;
}

static enum tarn_status check_access(const struct tarn_session *session, tarn_tensor tensor,
                                     const void *data, uint64_t size, struct tarn_error *error)
{
    tarn_error_clear(error);
    if (!session || (!data && size > 0)) return tarn_error_set(error, TARN_USAGE, "null argument");
    const struct tarn_graph *graph = session->graph;
    if (tensor >= graph->tensors_count)
        return tarn_error_set(error, TARN_USAGE, "tensor %u does not exist; the graph has %u",
                              tensor, graph->tensors_count);
    if (error) error->tensor = tensor;
    if (size > graph->tensors[tensor].size)
        return tarn_error_set(error, TARN_USAGE, "%s for %s of %s", tarn_bytes_phrase(size).text,
                              tarn_tensor_label(graph, tensor).text,
                              tarn_bytes_phrase(graph->tensors[tensor].size).text);
    enum tarn_status status = tarn_session_check_life(session, error);
    if (status != TARN_OK) return status;
    if (!tarn_session_is_idle(session))
        return tarn_error_set(error, TARN_USAGE, "%s is in use: wait for ticket %llu first",
                              tarn_tensor_label(graph, tensor).text,
                              (unsigned long long)session->submitted);
    if (!tarn_plan_memory_address(&session->memory, tensor))
        return tarn_error_set(error, TARN_USAGE, "%s has no memory: bind it first",
                              tarn_tensor_label(graph, tensor).text);
    return TARN_OK;
}

enum tarn_status tarn_session_write(struct tarn_session *session, tarn_tensor tensor,
                                    const void *data, uint64_t size, struct tarn_error *error)
{
    enum tarn_status status = check_access(session, tensor, data, size, error);
    if (status == TARN_OK && size > 0) status = tarn_arena_begin_turn(session, false, error);
    if (status != TARN_OK || size == 0) return status;
    int code = session->device.table->copy_in(session->device.self,
                                              tarn_session_address(session, tensor), data, size);
    tarn_arena_end_turn(session);
    return copy_status(session, "copy to the device", code, error);
}

enum tarn_status tarn_session_read(struct tarn_session *session, tarn_tensor tensor, void *data,
                                   uint64_t size, struct tarn_error *error)
{
    enum tarn_status status = check_access(session, tensor, data, size, error);
    if (status == TARN_OK && size > 0) status = tarn_arena_begin_turn(session, false, error);
    if (status != TARN_OK || size == 0) return status;
    int code = session->device.table->copy_out(session->device.self, data,
                                               tarn_session_address(session, tensor), size);
    tarn_arena_end_turn(session);
    return copy_status(session, "copy from the device", code, error);
}

/* ---- Host memory ---- */

enum tarn_status tarn_session_host_memory_create(struct tarn_session *session, uint64_t size,
                                                 void **memory, struct tarn_error *error)
{
    uint64_t rounded;
    tarn_error_clear(error);
    if (!session || !memory || size == 0)
        return tarn_error_set(error, TARN_USAGE, "no session, no place for the memory, or no size");
    *memory = NULL;
    const struct tarn_device *device = &session->device;
    if (device->table->host_memory_create) {
        int code = device->table->host_memory_create(device->self, size, memory);
        return copy_status(session, "allocation of host memory", code, error);
    }
    if (tarn_size_round_up(size, PAGE, &rounded) && rounded <= SIZE_MAX / 2)
        *memory = tarn_take_aligned(PAGE, (size_t)rounded);
    return *memory ? TARN_OK : tarn_error_no_memory(error);
}

void tarn_session_host_memory_destroy(struct tarn_session *session, void *memory, uint64_t size)
{
    if (!session || !memory) return;
    const struct tarn_device *device = &session->device;
    if (device->table->host_memory_destroy)
        device->table->host_memory_destroy(device->self, memory, size);
    else
        tarn_free_aligned(memory);
}
