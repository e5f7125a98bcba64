/* Memory that is bound while iterations are under way: from which iteration on ops get which
 * address. */
#ifndef TARN_RUNTIME_STATE_REBIND_H
#define TARN_RUNTIME_STATE_REBIND_H

#include "streams/base/region.h"
#include "streams/plan/plan.h"

struct tarn_session;

/* A storage is somewhere else from that iteration on. */
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
    uint64_t *applied;             /* by stream: belongs to whoever runs it */
    uint32_t *begin;               /* by storage, and behind the last */
    struct tarn_address_use *uses; /* of storage a: uses[begin[a]..begin[a + 1]) */
};

/* May the caller bind it to memory of its own? */
bool tarn_storage_is_bindable(const struct tarn_storage *storage);

/* Notes that the storage is at `address` from the next iteration to be submitted on.
 * *blocked: the count of iterations that must have finished before it can be noted (then it was
 * not); 0: it was. TARN_SYSTEM: no memory. */
enum tarn_status tarn_rebinds_add(struct tarn_session *session, uint32_t storage, void *address,
                                  uint64_t *blocked, struct tarn_error *error);
/* All addresses are up to date: nothing runs. */
void tarn_rebinds_settle(struct tarn_session *session);

/* Brings the addresses of a stream's ops up to an iteration; by whoever runs the stream. */
void tarn_rebinds_apply(struct tarn_session *session, uint32_t stream, uint64_t iteration);

#endif
