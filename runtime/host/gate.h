/* Gates: events outside of a session that its iterations on the host wait for, and events that the
 * iterations' end raises. */
#ifndef TARN_RUNTIME_HOST_GATE_H
#define TARN_RUNTIME_HOST_GATE_H

#include <stdatomic.h>

#include "executor.h"
#include "runtime/state/event_count.h"
#include "tarn/device.h"

/* Before the first submit. TARN_SYSTEM: no memory. */
enum tarn_status tarn_gates_init(struct tarn_executor *executor, struct tarn_error *error);
/* Called after all threads of the executor have ended. */
void tarn_gates_finish(struct tarn_executor *executor);

/* The next submit waits for the last iteration of the session of that plan. */
void tarn_gates_follow(struct tarn_executor *executor, uint32_t plan);
/* The next submit waits for these events, and raises those. TARN_SYSTEM: no memory; TARN_USAGE: a
 * value that no counter reaches. */
enum tarn_status tarn_gates_surround(struct tarn_executor *executor,
                                     const struct tarn_submit_options *around,
                                     struct tarn_error *error);
/* Withdraws the preparations for the next submit. */
void tarn_gates_drop(struct tarn_executor *executor);
/* The iterations [first, last] are submitted: the preparations apply to them. */
void tarn_gates_submit(struct tarn_executor *executor, uint64_t first, uint64_t last);
/* If the next submit needs a gate and the ring is full, the count of iterations that must have
 * finished first; else 0. */
uint64_t tarn_gates_full(const struct tarn_executor *executor);

/* The gate of a stream's iteration, or NULL. Called by the worker that has claimed the stream. */
struct tarn_gate *tarn_gate_find(struct tarn_executor *executor, struct tarn_host_stream *stream,
                                 uint64_t iteration);

/* May this step begin, as far as the gate says? If not, records what it waits for; *is_vain: that
 * will never happen, since another session has stopped. */
bool tarn_gate_lets(struct tarn_executor *executor, struct tarn_host_stream *stream,
                    const struct tarn_gate *gate, uint32_t step, bool *is_vain);

/* A stream that is still claimed has finished an iteration of the gate. After the last iteration of
 * the last stream the signals are raised. */
void tarn_gate_leave(struct tarn_gate *gate, struct tarn_host_stream *stream, uint64_t iteration);

/* A stream has finished `count` steps since the session's start; other sessions may wait for that.
 */
void tarn_gates_reach(struct tarn_executor *executor, uint32_t stream, int64_t count);
/* The executor has stopped early. Sessions that wait for its remaining steps are notified. */
void tarn_gates_abandon(struct tarn_executor *executor);

/* ---- Events of the host (tarn/device.h), internals ---- */

struct tarn_host_event {
    struct tarn_event_count events; /* on which callers sleep */
    _Atomic int64_t value;
    atomic_uint references;
};

struct tarn_host_event *tarn_host_event_retain(struct tarn_host_event *event);

#endif
