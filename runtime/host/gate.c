/* Gates. A submit that must come after work outside of its session has a gate: its first iteration
 * looks at counters that others raise, before those steps that need it. Gates stand in a ring, in
 * the order of their iterations; every stream remembers how many it has passed.
 *
 *     ring       gate of iterations 4..4 │ 5..8 │ 9..9 │           streams pass them one by one
 *     counters   steps that a stream of another session has finished
 *
 * Who raises a counter looks whether any stream of the process waits at a gate, and only then takes
 * a lock and wakes the executors of a list. Who stops at a gate counts itself first, and looks at
 * the counter once more afterwards: no wake-up is lost. Cost: O(waits of the gate) for a step of a
 * first iteration; else O(1); no lock while nobody waits. */
#include "gate.h"

#include <limits.h>

#include "streams/base/error.h"

#define GATES 64u /* submits under way that have one, at most */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tarn_executor *listeners; /* those whose streams may stop at gates */
static _Atomic uint32_t waiting;        /* streams that have stopped at one */

static void lock_list(void) { pthread_mutex_lock(&lock); }
static void unlock_list(void) { pthread_mutex_unlock(&lock); }

/* A child has no sessions yet, and must not inherit the lock from a thread that it does not have.
 */
static void forget_all(void)
{
    listeners = NULL;
    atomic_store(&waiting, 0);
    unlock_list();
}

static void prepare_for_forks(void) { pthread_atfork(lock_list, unlock_list, forget_all); }

void tarn_gates_wake(void)
{
    if (atomic_load(&waiting) == 0) return;
    lock_list();
    for (struct tarn_executor *e = listeners; e; e = e->gates.next_listener)
        tarn_event_count_wake(&e->events, TARN_WORKER | TARN_BLOCKING, UINT32_MAX);
    unlock_list();
}

/* ---- Making gates ---- */

enum tarn_status tarn_gates_init(struct tarn_executor *executor, struct tarn_error *error)
{
    struct tarn_region *region = &executor->session->region;
    struct tarn_gates *gates = &executor->gates;
    if (!executor->session->shared) return TARN_OK;
    uint32_t plans = executor->session->settings.options.arena->plans_count;
    uint64_t *before = tarn_region_take(region, (size_t)GATES * plans, sizeof *before);
    gates->pending = tarn_region_take(region, plans, sizeof *gates->pending);
    struct tarn_gate *ring = tarn_region_take(region, GATES, sizeof *ring);
    if (!before || !gates->pending || !ring) return tarn_error_no_memory(error);
    gates->ring = ring;
    gates->room = GATES;
    for (uint32_t i = 0; i < GATES; i++) gates->ring[i].before = before + (size_t)i * plans;
    pthread_once(&once, prepare_for_forks);
    lock_list();
    gates->next_listener = listeners;
    listeners = executor;
    unlock_list();
    return TARN_OK;
}

void tarn_gates_finish(struct tarn_executor *executor)
{
    if (!executor->gates.ring) return;
    lock_list();
    struct tarn_executor **link = &listeners;
    while (*link && *link != executor) link = &(*link)->gates.next_listener;
    if (*link) *link = executor->gates.next_listener;
    unlock_list();
    for (uint32_t s = 0; executor->streams && s < executor->program->streams_count; s++) {
        if (executor->streams[s].is_at_gate) atomic_fetch_sub(&waiting, 1);
    }
}

static struct tarn_gate *gate_at(const struct tarn_gates *gates, uint64_t number)
{
    return &gates->ring[number & (gates->room - 1)];
}

uint64_t tarn_gates_full(const struct tarn_executor *executor)
{
    const struct tarn_gates *gates = &executor->gates;
    uint64_t made = atomic_load(&gates->made);
    if (!gates->is_open || made < gates->room) return 0;
    return gate_at(gates, made)->last + 1;
}

void tarn_gates_follow(struct tarn_executor *executor, uint32_t plan)
{
    const struct tarn_arena *arena = executor->session->settings.options.arena;
    struct tarn_gates *gates = &executor->gates;
    for (uint32_t p = 0; p < arena->plans_count && !gates->is_open; p++)
        gates->pending[p] = UINT64_MAX;
    gates->is_open = true;
    gates->pending[plan] = arena->plans[plan].earlier + arena->plans[plan].session->submitted - 1;
}

void tarn_gates_submit(struct tarn_executor *executor, uint64_t first, uint64_t last)
{
    struct tarn_gates *gates = &executor->gates;
    if (!gates->is_open) return;
    uint64_t made = atomic_load(&gates->made);
    struct tarn_gate *gate = gate_at(gates, made);
    uint32_t plans = executor->session->settings.options.arena->plans_count;
    for (uint32_t p = 0; p < plans; p++) gate->before[p] = gates->pending[p];
    gate->first = first;
    gate->last = last;
    gates->is_open = false;
    atomic_store(&gates->made, made + 1);
}

/* ---- Passing gates ---- */

const struct tarn_gate *tarn_gate_find(struct tarn_executor *executor,
                                       struct tarn_host_stream *stream, uint64_t iteration)
{
    const struct tarn_gates *gates = &executor->gates;
    if (!gates->ring) return NULL;
    if (stream->is_at_gate) atomic_fetch_sub(&waiting, 1);
    stream->is_at_gate = false;
    uint64_t made = atomic_load(&gates->made);
    while (stream->gates_passed < made && gate_at(gates, stream->gates_passed)->last < iteration)
        stream->gates_passed++;
    if (stream->gates_passed == made) return NULL;
    const struct tarn_gate *gate = gate_at(gates, stream->gates_passed);
    return gate->first <= iteration ? gate : NULL;
}

static bool lets_turn(struct tarn_host_stream *stream, struct tarn_arena_plan *plan,
                      const struct tarn_turn_wait *wait, uint64_t before)
{
    uint32_t steps = plan->program->begin[wait->stream + 1] - plan->program->begin[wait->stream];
    int64_t count = (int64_t)(before * steps) + wait->place + 1;
    if (atomic_load(&plan->reached[wait->stream]) >= count) return true;
    atomic_store_explicit(&stream->awaited, &plan->reached[wait->stream], memory_order_relaxed);
    atomic_store_explicit(&stream->awaited_count, count, memory_order_relaxed);
    return false;
}

bool tarn_gate_lets(struct tarn_executor *executor, struct tarn_host_stream *stream,
                    const struct tarn_gate *gate, uint32_t step, bool *is_vain)
{
    struct tarn_arena *arena = executor->session->settings.options.arena;
    const struct tarn_arena_plan *own = executor->session->shared;
    for (uint32_t p = 0; p < arena->plans_count; p++) {
        const struct tarn_turn *turn = &own->turns[p];
        if (gate->before[p] == UINT64_MAX) continue;
        for (uint32_t k = turn->begin[step]; k < turn->begin[step + 1]; k++) {
            if (lets_turn(stream, &arena->plans[p], &turn->waits[k], gate->before[p])) continue;
            stream->is_at_gate = true;
            atomic_fetch_add(&waiting, 1);
            *is_vain = atomic_load(&arena->plans[p].has_failed);
            return false;
        }
    }
    return true;
}

/* ---- Telling others ---- */

void tarn_gates_reach(struct tarn_executor *executor, uint32_t stream, int64_t count)
{
    struct tarn_arena_plan *plan = executor->session->shared;
    if (!plan) return;
    int64_t earlier = (int64_t)(plan->earlier * tarn_steps_of(executor, stream));
    atomic_store(&plan->reached[stream], earlier + count);
    tarn_gates_wake();
}

void tarn_gates_abandon(struct tarn_executor *executor)
{
    struct tarn_arena_plan *plan = executor->session->shared;
    if (!plan) return;
    atomic_store(&plan->has_failed, true);
    tarn_gates_wake();
}
