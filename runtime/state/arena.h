/* An arena that sessions share (tarn/arena.h): whose turn it is, and what a turn waits for. */
#ifndef TARN_RUNTIME_STATE_ARENA_H
#define TARN_RUNTIME_STATE_ARENA_H

#include <stdatomic.h>
#include <sys/types.h>

#include "plan_memory.h"
#include "streams/plan/program.h"
#include "tarn/arena.h"

/* A step of another plan, in its last iteration. */
struct tarn_turn_wait {
    uint32_t stream;
    uint32_t place; /* in that stream */
};

/* From one plan to another. */
struct tarn_turn {
    struct tarn_waits listed;     /* by op, for callers */
    uint32_t *begin;              /* by step of the plan that comes after, and behind the last */
    struct tarn_turn_wait *waits; /* of step i: waits[begin[i]..begin[i + 1]) */
};

/* A plan of the arena, and its session. */
struct tarn_arena_member {
    struct tarn_plan *plan; /* retained */
    const struct tarn_program *program;
    struct tarn_session *session; /* NULL: there is none */
    bool *exits;                  /* by step: some other plan waits for it */
    struct tarn_turn *turns;      /* by plan before this one */
    /* On the host: by stream, steps finished by all sessions of this plan, as far as published; and
     * the iterations that earlier sessions were given, which count as finished. */
    _Atomic int64_t *reached;
    uint64_t earlier;
    atomic_bool has_failed; /* its session has stopped, and what waits for it waits in vain */
};

struct tarn_arena {
    struct tarn_region region;
    pid_t process;
    struct tarn_plan_memory memory; /* of no plan: it has no addresses of storages */
    struct tarn_needs_by_space needs;
    struct tarn_arena_member *members; /* in the order of the plans that it was made for */
    uint32_t members_count;
    uint64_t turns;                      /* counts submits, copies and checks */
    _Atomic(struct tarn_session *) busy; /* a thread is at work with this one; NULL: with none */
    uint32_t busy_depth;                 /* calls of that thread inside each other */
};

/* The session goes onto the arena of its options, or on none. TARN_USAGE: it cannot. */
enum tarn_status tarn_arena_enter(struct tarn_session *session, struct tarn_error *error);
/* When nothing of the session is under way. */
void tarn_arena_leave(struct tarn_session *session);

/* Around each work of a session; nothing for a session on no arena. A submit (`is_submit`) has the
 * executor wait for the turns of others; other work is the host's, and begins when they have none.
 * The second call says that the thread's part is over: a submit's work goes on. TARN_USAGE: not
 * now. */
enum tarn_status tarn_arena_begin_turn(struct tarn_session *session, bool is_submit,
                                       struct tarn_error *error);
void tarn_arena_end_turn(struct tarn_session *session);

#endif
