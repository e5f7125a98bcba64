/* An arena that sessions share (tarn/arena.h): the sessions' turns, and the waits of each turn. */
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
    uint32_t *begin;              /* by step of the later plan, plus one end entry */
    struct tarn_turn_wait *waits; /* of step i: waits[begin[i]..begin[i + 1]) */
};

/* A plan of the arena, and its session. */
struct tarn_arena_member {
    struct tarn_plan *plan; /* retained */
    const struct tarn_program *program;
    struct tarn_session *session; /* NULL: there is none */
    bool *exits;                  /* by step: another plan waits for it */
    struct tarn_turn *turns;      /* by plan before this one */
    /* On the host: by stream, published count of steps finished by all sessions of this plan; and
     * the number of iterations submitted to earlier sessions, which count as finished. */
    _Atomic int64_t *reached;
    uint64_t earlier;
    atomic_bool has_failed; /* its session has stopped; waits for it never end */
};

struct tarn_arena {
    struct tarn_region region;
    pid_t process;
    struct tarn_plan_memory memory; /* belongs to no plan, so it has no addresses of storages */
    struct tarn_needs_by_space needs;
    struct tarn_arena_member *members; /* in the order of the plans given at creation */
    uint32_t members_count;
    uint64_t turns;                      /* counts submits, copies and checks */
    _Atomic(struct tarn_session *) busy; /* the session that a thread is using; NULL: none */
    uint32_t busy_depth;                 /* nesting depth of that thread's calls */
};

/* Adds the session to the arena of its options, if any. TARN_USAGE: it cannot be added. */
enum tarn_status tarn_arena_enter(struct tarn_session *session, struct tarn_error *error);
/* Removes a session that has no work under way. */
void tarn_arena_leave(struct tarn_session *session);

/* Called before and after each action of a session; does nothing for a session without an arena. A
 * submit (`is_submit`) makes the executor wait for the turns of other sessions. Other actions run
 * on the host, and need that no other session has work under way. The second call ends the thread's
 * part; a submit's work continues. TARN_USAGE: another session is busy. */
enum tarn_status tarn_arena_begin_turn(struct tarn_session *session, bool is_submit,
                                       struct tarn_error *error);
void tarn_arena_end_turn(struct tarn_session *session);

#endif
