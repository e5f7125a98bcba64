/* A session: a plan at work on a device, over one arena allocated once.
 *
 * Bind a kernel to every op (or one default kernel), write the persistent tensors, submit
 * iterations, wait. Nothing is allocated and no lock is taken per op in steady state.
 */
#ifndef TARN_SESSION_H
#define TARN_SESSION_H

#include "device.h"
#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tarn_session;
typedef uint64_t tarn_ticket;

#define TARN_FOREVER UINT64_MAX

/* What a kernel gets; valid during the call only. Addresses are in the order of the op's inputs and
 * outputs, and stay the same from call to call. */
struct tarn_call {
    tarn_op op;     /* in the plan's graph */
    tarn_op origin; /* the source graph's op that it comes from; `op` unless a transform ran */
    uint32_t implementation;
    uint32_t stream;
    uint64_t iteration; /* counts from 0 over the life of the session */
    void *queue;        /* native queue handle; NULL on the host device */
    void *const *inputs;
    void *const *outputs;
    void *workspace; /* NULL when the op has none */
};

/* On the host device: do the op's work. On an accelerator: enqueue it on call->queue and return
 * without blocking. Non-zero stops the session with TARN_DEVICE; the first one is kept. */
typedef int (*tarn_kernel)(void *user, const struct tarn_call *call);

struct tarn_session_options {
    size_t struct_size;
    /* Ids of streams whose kernels may block (MPI, files): the host device gives each its own
     * thread. */
    struct tarn_list blocking;
};
#ifndef __cplusplus
#define TARN_SESSION_OPTIONS(...)                                                       \
    (&(struct tarn_session_options){.struct_size = sizeof(struct tarn_session_options), \
                                    __VA_ARGS__})
#endif

/* Compiles the plan and allocates the arena and the persistent part, zero-filled. The session keeps
 * the plan alive. TARN_SYSTEM: no memory for the arena (the text says how much is there);
 * TARN_DEVICE; TARN_USAGE: a table of another ABI, or an alignment the device cannot give. */
TARN_API enum tarn_status tarn_session_create(struct tarn_plan *plan, struct tarn_device device,
                                              const struct tarn_session_options *options,
                                              struct tarn_session **session,
                                              struct tarn_error *error);
/* Stops what runs and waits for kernels in progress. After TARN_DEADLINE it does not wait for a
 * kernel that never returns: such a session's memory is given up, never reused. */
TARN_API void tarn_session_destroy(struct tarn_session *session);

/* Bindings go by the source graph's op (`origin`). Only while nothing is submitted. */
TARN_API enum tarn_status tarn_session_bind(struct tarn_session *session, tarn_op origin,
                                            tarn_kernel kernel, void *user);
/* For every op without a binding of its own. */
TARN_API enum tarn_status tarn_session_bind_default(struct tarn_session *session,
                                                    tarn_kernel kernel, void *user);

/* Copies whole or part of a tensor, from its first byte. Only while nothing is running; planned
 * tensors other than outputs hold what the last writer of those bytes left.
 * TARN_USAGE: unknown tensor, size above the tensor's, or work in progress. */
TARN_API enum tarn_status tarn_session_write(struct tarn_session *session, tarn_tensor tensor,
                                             const void *data, uint64_t size,
                                             struct tarn_error *error);
TARN_API enum tarn_status tarn_session_read(struct tarn_session *session, tarn_tensor tensor,
                                            void *data, uint64_t size, struct tarn_error *error);

/* Lets `iterations` more iterations run and returns at once. Tickets are ordered: waiting for one
 * waits for all before it. TARN_USAGE: an op has no kernel. */
TARN_API enum tarn_status tarn_session_submit(struct tarn_session *session, uint64_t iterations,
                                              tarn_ticket *ticket, struct tarn_error *error);
/* Waits until the ticket's iterations have finished; then outputs are valid until the next submit.
 * TARN_DEVICE: a kernel failed; the text names stream, op, iteration and code, all streams have
 * stopped, and the session refuses further work. TARN_DEADLINE: not finished after timeout_ns; the
 * text gives every stream's position, the session refuses further work. */
TARN_API enum tarn_status tarn_session_wait(struct tarn_session *session, tarn_ticket ticket,
                                            uint64_t timeout_ns, struct tarn_error *error);

/* ---- Checked execution ----
 * Replaces the bound kernels by checking ones: every output byte comes from a generator seeded by
 * the op's origin, the iteration and the digests of what the op read, and every byte read is
 * compared with what its version must hold. The expected digests follow from the graph alone. */
struct tarn_check_options {
    size_t struct_size;
    uint32_t iterations; /* 0: 1 */
    uint64_t seed;       /* of random delays and of a random order */
    uint32_t delay_ns;   /* random delay before an op, at most; 0: none */
    bool random_order;   /* one legal linear order drawn with `seed`, on the calling thread */
    const struct tarn_step *order; /* one given legal linear order, on the calling thread: any
                                      prefix of the iterations' work */
    size_t order_count;
    uint64_t timeout_ns; /* 0: for ever */
};
#ifndef __cplusplus
#define TARN_CHECK_OPTIONS(...) \
    (&(struct tarn_check_options){.struct_size = sizeof(struct tarn_check_options), __VA_ARGS__})
#endif

struct tarn_check_report {
    uint64_t ops_run;
    uint64_t bytes_read; /* and compared */
    uint64_t bytes_written;
    uint64_t digest; /* over the final contents of all persistent and output storages, as checked;
                        equal for every correct run of the graph */
};

/* Host device only; a fresh session, whose bindings are gone afterwards. TARN_CHECK_FAILED: a wrong
 * byte; `error` names op, tensor, iteration and byte, and who wrote it where that can be told.
 * TARN_BAD_INPUT: the given order is not legal for the plan; nothing was run. TARN_DEADLINE. */
TARN_API enum tarn_status tarn_session_check(struct tarn_session *session,
                                             const struct tarn_check_options *options,
                                             struct tarn_check_report *report,
                                             struct tarn_error *error);

#ifdef __cplusplus
}
#endif

#endif
