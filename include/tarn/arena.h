/* An arena that several sessions share, each with a plan of its own: one model for several batch
 * sizes, a training step and its evaluation.
 *
 *     [ planned storages: as large as the largest footprint ][ persistent part, the same for all ]
 *
 * Sessions on one arena take turns from submit to submit. None waits on the host for the others:
 * the first iteration of a turn waits, on the device, for those ops of the others' last iterations
 * that touch bytes which it touches, and for no others. These waits are found for every pair of
 * plans and proved when the arena is made. What a session leaves in planned storages, outputs too,
 * lasts until another one's turn; persistent tensors are the same for all.
 *
 * A session that stops with an error ends the turns: who waits for it on the host device stops,
 * too, with TARN_DEVICE; on queues what was submitted behind it runs, on bytes that nobody vouches
 * for. Every further submit is refused until that session is destroyed.
 */
#ifndef TARN_ARENA_H
#define TARN_ARENA_H

#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tarn_arena;

/* What the inline functions of their names call, see graph.h. */
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
     * tarn_arena_needs says; NULL: the arena allocates. It is filled with zeros, and is the
     * arena's until tarn_arena_destroy answers TARN_OK: no session and no other arena of the
     * process may have any of it. */
    void *memory;
    uint64_t memory_size;
    /* No persistent part: every session binds every persistent tensor to memory of the caller's.
     * Tensors of one name are taken for the same bytes. */
    bool binds_persistent;
    /* By memory space of the plans' graphs, as in tarn_session_options. */
    const struct tarn_space_memory *space_memory;
    size_t space_memory_count;
};
#ifndef __cplusplus
#define TARN_ARENA_OPTIONS(...) \
    (&(struct tarn_arena_options){.struct_size = sizeof(struct tarn_arena_options), __VA_ARGS__})
#endif

/* What an arena for these plans needs in one memory space. Errors as tarn_session_needs; all graphs
 * must have the same memory spaces (names and kinds), each as large as the largest plan needs it.
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

/* Allocates, fills with zeros, and finds and proves the waits of all pairs of plans: linear in the
 * plans for each pair. The arena keeps the plans alive; tarn_family_plan (plan.h) makes such that
 * go together. A session goes onto it by its option `arena`, at most one for each plan at a time;
 * those sessions are used from one thread at a time, together. TARN_USAGE: a bad option, or the
 * persistent parts do not agree; TARN_REJECTED: a pair of plans cannot be proved; TARN_SYSTEM,
 * TARN_DEVICE. */
TARN_API enum tarn_status tarn_arena_create(struct tarn_plan *const *plans, size_t count,
                                            struct tarn_device device,
                                            const struct tarn_arena_options *options,
                                            struct tarn_arena **arena, struct tarn_error *error);
/* TARN_USAGE: there is a session on it, or another process has created it; nothing was freed. */
TARN_API enum tarn_status tarn_arena_destroy(struct tarn_arena *arena);

/* The first byte of a memory space's allocation; its persistent part begins
 * `needs.size - needs.persistent` bytes later. Where devices give regions, the allocation's handle.
 * NULL: no arena, no such space, or it holds nothing. *needs: what tarn_arena_needs says; may be
 * NULL. */
static inline void *tarn_arena_memory(const struct tarn_arena *arena, tarn_space space,
                                      struct tarn_memory_needs *needs)
{
    return tarn_arena_memory_sized(arena, space, needs, sizeof *needs);
}

/* The waits of the first iteration of plan `to` (`op`) for the last one of plan `from` (`on`), as
 * numbered when the arena was made; they live as long as it. Empty when there are no such plans. */
TARN_API struct tarn_waits tarn_arena_waits(const struct tarn_arena *arena, size_t from, size_t to);

#ifdef __cplusplus
}
#endif

#endif
