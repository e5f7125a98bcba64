/* Makes the texts of failures, in one place, since executors, checked execution and the session's
 * public functions report the same failures. Each names the device, or the stream, the op and the
 * iteration. Cost: one text. */
#include "failure.h"

#include <unistd.h>

#include "state.h"
#include "streams/base/error.h"
#include "streams/graph/report.h"

static const char *text_of(struct tarn_device device, int code)
{
    const char *text = device.table->error_text(device.self, code);
    return text ? text : "no text";
}

enum tarn_status tarn_device_status(struct tarn_device device, const char *what, int code,
                                    struct tarn_error *error)
{
    if (code == 0) return TARN_OK;
    if (error && error->status == TARN_OK) error->device_code = code;
    return tarn_error_set(error, TARN_DEVICE, "device '%s': %s failed with code %d (%s)",
                          tarn_device_name(device.table), what, code, text_of(device, code));
}

static void note_poison(struct tarn_session *session, struct tarn_device device, int code)
{
    if (device.table->error_class(device.self, code) == TARN_ERROR_POISONED)
        atomic_store(&session->poisoned, true);
}

enum tarn_status tarn_session_status(struct tarn_session *session, struct tarn_device device,
                                     const char *what, int code, struct tarn_error *error)
{
    if (code) note_poison(session, device, code);
    return tarn_device_status(device, what, code, error);
}

enum tarn_status tarn_session_op_status(struct tarn_session *session, struct tarn_device device,
                                        const char *what, tarn_op op, uint64_t iteration, int code,
                                        struct tarn_error *error)
{
    const struct tarn_graph *graph = session->graph;
    if (code == 0) return TARN_OK;
    note_poison(session, device, code);
    if (error && error->status == TARN_OK) {
        error->device_code = code;
        error->op = op;
    }
    return tarn_error_set(error, TARN_DEVICE, "%s, %s, iteration %llu: %s failed with code %d (%s)",
                          tarn_stream_label(graph, graph->ops[op].stream).text,
                          tarn_op_label(graph, op).text, (unsigned long long)iteration, what, code,
                          text_of(device, code));
}

enum tarn_status tarn_session_kernel_failed(const struct tarn_session *session, tarn_op op,
                                            uint64_t iteration, int code, struct tarn_error *error)
{
    const struct tarn_graph *graph = session->graph;
    if (error && error->status == TARN_OK) {
        error->device_code = code;
        error->op = op;
    }
    return tarn_error_set(error, TARN_DEVICE, "%s, %s, iteration %llu: the kernel returned %d",
                          tarn_stream_label(graph, graph->ops[op].stream).text,
                          tarn_op_label(graph, op).text, (unsigned long long)iteration, code);
}

enum tarn_status tarn_session_lost(struct tarn_device device, struct tarn_error *error)
{
    return tarn_error_set(error, TARN_DEVICE,
                          "device '%s' does not tell whether its work has ended: it may still use "
                          "the session's memory",
                          tarn_device_name(device.table));
}

enum tarn_status tarn_session_check_process(const struct tarn_session *session,
                                            struct tarn_error *error)
{
    if (session->process == getpid()) return TARN_OK;
    return tarn_error_set(error, TARN_USAGE,
                          "the session belongs to the process that created it; this one was forked "
                          "from it");
}

enum tarn_status tarn_session_check_life(const struct tarn_session *session,
                                         struct tarn_error *error)
{
    if (!session->refused) return tarn_session_check_process(session, error);
    return tarn_error_set(error, TARN_USAGE,
                          "the session has stopped after an error: it can only be destroyed");
}

enum tarn_status tarn_session_was_cancelled(struct tarn_error *error)
{
    return tarn_error_set(error, TARN_INTERRUPTED, "the session was cancelled");
}

enum tarn_status tarn_session_forsaken(const struct tarn_session *session, struct tarn_error *error)
{
    return tarn_error_set(
        error, TARN_DEVICE,
        "graph %s waits for an earlier session of the same arena, which has stopped "
        "before it finished that work",
        tarn_quote(session->graph->name).text);
}
