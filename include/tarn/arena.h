/* An arena that several sessions share, each with its own plan: one model for several batch sizes,
 * a training step and its evaluation.
 *
 *     [ planned storages: as large as the largest footprint ][ persistent part, the same for all ]
 *
 * Sessions on one arena take turns from submit to submit. No session waits on the host for another
 * session. The first iteration of a turn waits, on the device, for ops of the last iterations of
 * the other sessions that touch the same bytes, and for no other ops. These waits are found for
 * every pair of plans and proved when the arena is made. The contents of planned storages, outputs
 * too, last until another session's turn; all sessions share the persistent tensors.
 *
 * A session that stops with an error ends the turns. On the host device, sessions that wait for it
 * stop, too, with TARN_DEVICE. On queues, work submitted after it still runs, on bytes of unknown
 * content. Every further submit is refused until that session is destroyed.
 */
#ifndef TARN_ARENA_H
#define TARN_ARENA_H

#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tarn_arena;

/* Called by the inline functions of the same names, see graph.h. */
struct tarn_memory_needs;
struct tarn_arena_options;
TARN_API enum tarn_status tarn_arena_needs_sized(struct tarn_plan *const *plans, size_t count,
                                                 struct tarn_device device,
                                                 const struct tarn_arena_options *options,
                                                 tarn_space space, struct tarn_memory_needs *needs,
                                                 size_t size, struct tarn_error *error);
TARN_API void *tarn_arena_memory_sized(const struct tarn_arena *arena, tarn_space space,
                                       struct tarn_memory_needs *needs, size_t size);

struct tarn_arena_options {
    size_t struct_size;
    /* An allocation of the device that the caller keeps, as large and as aligned as
     * tarn_arena_needs says; NULL: the arena allocates. The arena fills it with zeros, and uses it
     * until tarn_arena_destroy returns TARN_OK: no session and no other arena of the process may
     * use any part of it. */
    void *memory;
    uint64_t memory_size;
    /* No persistent part: every session binds every persistent tensor to memory of the caller.
     * Tensors of one name are taken to be the same bytes. */
    bool binds_persistent;
    /* By memory space of the plans' graphs, as in tarn_session_options. */
    const struct tarn_space_memory *space_memory;
    size_t space_memory_count;
    /* With which the window of the plans is registered, as in tarn_session_options. TARN_USAGE from
     * tarn_arena_create: the plans are not of one family (tarn_family_verify). */
    const struct tarn_registrar *registrars;
    size_t registrars_count;
};
#ifndef __cplusplus
#define TARN_ARENA_OPTIONS(...) \
    (&(struct tarn_arena_options){.struct_size = sizeof(struct tarn_arena_options), __VA_ARGS__})
#endif

/* The memory that an arena for these plans needs in one memory space. Errors as tarn_session_needs;
 * all graphs must have the same memory spaces (names and kinds), and each space is as large as the
 * largest plan needs.
 */
static inline enum tarn_status tarn_arena_needs(struct tarn_plan *const *plans, size_t count,
                                                struct tarn_device device,
                                                const struct tarn_arena_options *options,
                                                tarn_space space, struct tarn_memory_needs *needs,
                                                struct tarn_error *error)
{
    return tarn_arena_needs_sized(plans, count, device, options, space, needs, sizeof *needs,
                                  error);
}

/* Makes an arena: allocates, fills with zeros, and finds and proves the waits of all pairs of
 * plans, in time linear in the plans for each pair. The arena keeps the plans alive;
 * tarn_family_plan (plan.h) makes plans that fit together. A session uses the arena by its option
 * `arena`, at most one session for each plan at a time. Only one thread at a time may use any
 * session of the arena. TARN_USAGE: a bad option, or the persistent parts do not match;
 * TARN_REJECTED: a pair of plans cannot be proved; TARN_SYSTEM, TARN_DEVICE. */
TARN_API enum tarn_status tarn_arena_create(struct tarn_plan *const *plans, size_t count,
                                            struct tarn_device device,
                                            const struct tarn_arena_options *options,
                                            struct tarn_arena **arena, struct tarn_error *error);
/* TARN_USAGE: a session still uses it, or another process has created it; nothing was freed. */
TARN_API enum tarn_status tarn_arena_destroy(struct tarn_arena *arena);

/* The first byte of a memory space's allocation; its persistent part begins `needs.size -
 * needs.persistent` bytes later. If the device gives regions, the allocation's handle. NULL: no
 * arena, no such space, or it is empty. *needs: as from tarn_arena_needs; may be NULL. */
static inline void *tarn_arena_memory(const struct tarn_arena *arena, tarn_space space,
                                      struct tarn_memory_needs *needs)
{
    return tarn_arena_memory_sized(arena, space, needs, sizeof *needs);
}

/* The waits of the first iteration of plan `to` (`op`) for the last iteration of plan `from`
 * (`on`). Plans are numbered as when the arena was made; the waits live as long as the arena. Empty
 * if there are no such plans. */
TARN_API struct tarn_waits tarn_arena_waits(const struct tarn_arena *arena, size_t from, size_t to);

#ifdef __cplusplus
}
#endif

#endif
