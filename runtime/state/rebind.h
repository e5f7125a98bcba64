/* Binds memory while iterations are under way: which address ops get, starting with which
 * iteration. */
#ifndef TARN_RUNTIME_STATE_REBIND_H
#define TARN_RUNTIME_STATE_REBIND_H

#include "streams/base/region.h"
#include "streams/plan/plan.h"

struct tarn_session;

/* A storage has another address, starting with that iteration. */
struct tarn_rebinding {
    uint64_t iteration;
    void *address;
    uint32_t storage;
};

/* One address that an op's kernel gets. */
struct tarn_address_use {
    uint32_t slot; /* in the session's addresses */
    uint32_t stream;
};

struct tarn_rebinds {
    struct tarn_rebinding *ring;   /* NULL: nothing was bound while iterations were under way */
    _Atomic uint64_t made;         /* since the start */
    uint64_t *applied;             /* by stream: owned by the thread that runs the stream */
    uint32_t *begin;               /* by storage, plus one end entry */
    struct tarn_address_use *uses; /* of storage a: uses[begin[a]..begin[a + 1]) */
};

/* May the caller bind the storage to its own memory? */
bool tarn_storage_is_bindable(const struct tarn_storage *storage);

/* Records that the storage is at `address`, starting with the next iteration to be submitted.
 * *blocked: 0: it was recorded; else it was not, and this count of iterations must have finished
 * first. TARN_SYSTEM: no memory. */
enum tarn_status tarn_rebinds_add(struct tarn_session *session, uint32_t storage, void *address,
                                  uint64_t *blocked, struct tarn_error *error);
/* Applies all bindings. pre: nothing runs. */
void tarn_rebinds_settle(struct tarn_session *session);

/* Updates the addresses of a stream's ops to an iteration; called by the thread that runs the
 * stream. */
void tarn_rebinds_apply(struct tarn_session *session, uint32_t stream, uint64_t iteration);

#endif
