/* The flight recorder: per stream a ring of the last commands with their times, written by the
 * thread that runs or enqueues the stream, and readable from any thread at any time. It also
 * describes the positions of streams. Times of enqueued commands are times of enqueueing; with
 * stamps the device's times are kept, too. */
#ifndef TARN_RUNTIME_STATE_FLIGHT_H
#define TARN_RUNTIME_STATE_FLIGHT_H

#include "event_count.h"
#include "state.h"

/* One command: a kernel that was run on the host, or enqueued on a device. */
struct tarn_flight_entry {
    _Atomic uint32_t op;
    _Atomic uint64_t iteration;
    _Atomic uint64_t begin_ns; /* monotonic clock */
    _Atomic uint64_t end_ns;   /* 0: not yet */
};

/* The origin of the device's times: a stamp recorded before the first command. */
struct tarn_flight_base {
    struct tarn_device device;
    void *stamp; /* NULL: there are no stamps */
    bool recorded;
    uint64_t at_ns; /* when it was enqueued */
};

struct tarn_flight_ring {
    struct tarn_flight_entry *entries;
    _Atomic uint64_t count;        /* begun since the start */
    void **stamps;                 /* start and end of each entry on the device; NULL: none */
    struct tarn_flight_base *base; /* goes with stamps */
};

struct tarn_flight {
    uint32_t capacity; /* of each ring; a power of two */
    uint32_t streams_count;
    struct tarn_flight_ring *rings; /* by stream */
    struct tarn_flight_base base;
};

/* Makes a recorder for at least `commands` of each stream, with stamps if the session's options ask
 * for them. Its memory is the session's. TARN_SYSTEM, TARN_DEVICE. Destroy it after all work has
 * ended. */
enum tarn_status tarn_flight_create(struct tarn_session *session, uint32_t commands,
                                    struct tarn_flight **flight, struct tarn_error *error);
void tarn_flight_destroy(struct tarn_flight *flight);

/* Called around each command of a stream; does nothing if `flight` is NULL. One thread at a time
 * for each stream. */
static inline void tarn_flight_begin(struct tarn_flight *flight, uint32_t stream, uint32_t op,
                                     uint64_t iteration)
{
    if (!flight) return;
    struct tarn_flight_ring *ring = &flight->rings[stream];
    uint64_t count = atomic_load_explicit(&ring->count, memory_order_relaxed);
    struct tarn_flight_entry *entry = &ring->entries[count & (flight->capacity - 1)];
    atomic_store_explicit(&entry->op, op, memory_order_relaxed);
    atomic_store_explicit(&entry->iteration, iteration, memory_order_relaxed);
    atomic_store_explicit(&entry->end_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&entry->begin_ns, tarn_now_ns(), memory_order_relaxed);
    atomic_store_explicit(&ring->count, count + 1, memory_order_release);
}

static inline void tarn_flight_end(struct tarn_flight *flight, uint32_t stream)
{
    if (!flight) return;
    struct tarn_flight_ring *ring = &flight->rings[stream];
    uint64_t count = atomic_load_explicit(&ring->count, memory_order_relaxed);
    struct tarn_flight_entry *entry = &ring->entries[(count - 1) & (flight->capacity - 1)];
    atomic_store_explicit(&entry->end_ns, tarn_now_ns(), memory_order_relaxed);
}

/* After begin and before end of an enqueued command: enqueues a stamp, if there are stamps.
 * `is_end`: after the command, else before it. Returns the device's code. */
int tarn_flight_stamp(struct tarn_flight *flight, uint32_t stream, void *queue, bool is_end);

/* Start and end times of entry `index` of a ring: from its stamps, which have been reached, else
 * from the entry. *end_ns 0: it has not ended. Returns the device's code. */
int tarn_flight_times(const struct tarn_flight_ring *ring, uint32_t index, uint64_t *begin_ns,
                      uint64_t *end_ns);

/* Writes, line by line, why (NULL: no reason), the position of every stream, and its last
 * commands. */
void tarn_flight_dump(struct tarn_session *session, const char *reason, tarn_line line, void *user);

/* Writes the dump to a file, as tarn_text_save does. */
enum tarn_status tarn_flight_save(struct tarn_session *session, const char *reason,
                                  const char *path, struct tarn_error *error);

/* "not finished after 2.500 s; stream 0 ...": TARN_DEADLINE. */
enum tarn_status tarn_session_deadline(struct tarn_session *session, uint64_t timeout_ns,
                                       struct tarn_error *error);

#endif
