/* A session's memory: one allocation for arena and persistent part, and what kernels get for every
 * storage. */
#ifndef TARN_RUNTIME_STATE_ARENA_H
#define TARN_RUNTIME_STATE_ARENA_H

#include "memory_use.h"
#include "streams/base/region.h"
#include "streams/plan/plan.h"
#include "tarn/session.h"

struct tarn_session_arena {
    const struct tarn_plan *plan;
    struct tarn_device device;
    void *memory; /* one allocation: the arena, then the persistent part; NULL: empty */
    uint64_t size;
    uint64_t persistent_begin;  /* in it */
    bool is_borrowed;           /* the caller's */
    struct tarn_memory_use use; /* of what is borrowed */
    bool is_bound;              /* the caller binds persistent tensors to memory of its own */
    bool on_host;               /* host code may follow addresses */
    void **addresses;           /* by storage, workspaces included; NULL: not bound yet */
    void **regions; /* by storage, where the device has regions: to be given back to it; or NULL */
};

/* Allocates on the device (or takes what the options bring), fills with zeros, and finds all
 * addresses. The caller finishes it, whatever the status, before the region. */
enum tarn_status tarn_session_arena_init(struct tarn_session_arena *arena,
                                         struct tarn_region *region, const struct tarn_plan *plan,
                                         struct tarn_device device,
                                         const struct tarn_session_options *options,
                                         struct tarn_error *error);
/* Parts of it: what one plan needs, whether the device can give it, and the memory without
 * addresses. arena: plan, device and is_bound are set. */
enum tarn_status tarn_session_arena_measure(const struct tarn_plan *plan, bool is_bound,
                                            struct tarn_session_memory *memory,
                                            struct tarn_error *error);
enum tarn_status tarn_session_arena_check(const struct tarn_session_arena *arena,
                                          const struct tarn_session_memory *memory,
                                          struct tarn_error *error);
enum tarn_status tarn_session_arena_obtain(struct tarn_session_arena *arena,
                                           const struct tarn_session_memory *memory,
                                           const struct tarn_session_options *options,
                                           struct tarn_error *error);
void tarn_session_arena_finish(struct tarn_session_arena *arena);

/* Does each storage lie inside its part of the allocation, but for persistent ones that the caller
 * binds, and is each planned one where the plan says? pre: tarn_session_arena_init has succeeded.
 * For assertions; cost: linear in storages. */
bool tarn_session_arena_is_valid(const struct tarn_session_arena *arena);

/* A persistent tensor that has no memory yet, or TARN_NONE. */
tarn_tensor tarn_session_arena_unbound(const struct tarn_session_arena *arena);

/* May a tensor be bound to that address? TARN_USAGE: no. */
enum tarn_status tarn_session_arena_check_bind(const struct tarn_session_arena *arena,
                                               tarn_tensor tensor, const void *address,
                                               struct tarn_error *error);

/* Is the storage where an address can be computed with? */
static inline bool tarn_session_arena_is_address(const struct tarn_session_arena *arena, uint32_t a)
{
    return !arena->regions || arena->regions[a] != arena->addresses[a];
}

static inline void *tarn_session_arena_address(const struct tarn_session_arena *arena,
                                               tarn_tensor tensor)
{
    return arena->addresses[arena->plan->graph->tensors[tensor].storage];
}

#endif
