/* Gates. A submit that must come after work outside of its session has a gate: its first iteration
 * checks counters that other sessions and threads raise, before the steps that need it. Gates are
 * in a ring, in the order of their iterations; every stream stores how many it has passed.
 *
 *     ring       gate of iterations 4..4 │ 5..8 │ 9..9 │           streams pass them one by one
 *     counters   events, and steps that streams of other sessions on the arena have finished
 *
 * A stream that stops at a gate is checked again when any such counter of the process has been
 * raised (listeners.h). The executor keeps events that gates have used, as workers may still read a
 * counter that a stream waited for before. Cost: O(waits of the gate) for a step of a first
 * iteration; else O(1). A submit allocates, a few times, if it names more than eight events before
 * or after it. */
#include "gate.h"

#include <sched.h>

#include "listeners.h"
#include "streams/base/error.h"

#define GATES 64u /* maximum number of submits under way with a gate */
#define LEVELS 8u /* initial room for events before or after a submit */
#define SWAP(type, a, b)   \
    do {                   \
        type before = (a); \
        (a) = (b);         \
        (b) = before;      \
    } while (0)

/* ---- Life ---- */

static uint32_t count_plans(const struct tarn_executor *executor)
{
    const struct tarn_session *session = executor->session;
    return session->member ? session->settings.options.arena->members_count : 0;
}

static void forget_plans(const struct tarn_executor *executor)
{
    for (uint32_t p = 0; p < count_plans(executor); p++)
        executor->gates.next.before[p] = UINT64_MAX;
}

/* Called by the first submit that needs gates, or earlier if an arena is shared. */
static bool make_ring(struct tarn_executor *executor)
{
    struct tarn_gates *gates = &executor->gates;
    struct tarn_region *region = &executor->session->region;
    uint32_t plans = count_plans(executor);
    if (gates->ring) return true;
    struct tarn_gate *ring = tarn_region_take(region, GATES, sizeof *ring);
    uint64_t *before = tarn_region_take(region, (size_t)(GATES + 1) * plans, sizeof *before);
    struct tarn_level *levels =
        tarn_region_take(region, (size_t)(GATES + 1) * 2 * LEVELS, sizeof *levels);
    if (!ring || !before || !levels) return false;
    for (uint32_t i = 0; i <= GATES; i++) {
        struct tarn_gate *gate = i < GATES ? &ring[i] : &gates->next;
        gate->before = before + (size_t)i * plans;
        gate->waits = (struct tarn_levels){&levels[(size_t)i * 2 * LEVELS], 0, LEVELS};
        gate->signals = (struct tarn_levels){&levels[((size_t)i * 2 + 1) * LEVELS], 0, LEVELS};
    }
    forget_plans(executor);
    gates->room = GATES;
    gates->ring = ring;
    tarn_listeners_enter(executor);
    return true;
}

enum tarn_status tarn_gates_init(struct tarn_executor *executor, struct tarn_error *error)
{
    bool has_ring = !executor->session->member || make_ring(executor);
    return has_ring ? TARN_OK : tarn_error_no_memory(error);
}

void tarn_gates_finish(struct tarn_executor *executor)
{
    struct tarn_gates *gates = &executor->gates;
    if (!gates->ring) return;
    for (uint32_t s = 0; executor->streams && s < executor->program->streams_count; s++) {
        if (executor->streams[s].is_at_gate) tarn_listeners_go_on();
    }
    for (size_t i = 0; i < gates->held_count; i++) tarn_host_event_destroy(gates->held[i]);
    gates->ring = NULL;
}

/* ---- Making gates ---- */

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
    gates->is_open = true;
    gates->next.before[plan] =
        arena->members[plan].earlier + arena->members[plan].session->submitted - 1;
}

static bool hold(struct tarn_executor *executor, struct tarn_host_event *event)
{
    struct tarn_gates *gates = &executor->gates;
    for (size_t i = 0; i < gates->held_count; i++)
        if (gates->held[i] == event) return true;
    struct tarn_host_event **held =
        tarn_region_grow(&executor->session->region, gates->held, &gates->held_room,
                         gates->held_count + 1, sizeof *held);
    if (!held) return false;
    gates->held = held;
    held[gates->held_count++] = tarn_host_event_retain(event);
    return true;
}

static enum tarn_status take_levels(struct tarn_executor *executor, struct tarn_levels *levels,
                                    const struct tarn_event *events, size_t count,
                                    struct tarn_error *error)
{
    levels->count = 0;
    if (count == 0) return TARN_OK;
    struct tarn_level *items = tarn_region_grow(&executor->session->region, levels->items,
                                                &levels->room, count, sizeof *items);
    if (!items) return tarn_error_no_memory(error);
    levels->items = items;
    for (size_t i = 0; i < count; i++) {
        struct tarn_host_event *event = events[i].event;
        if (events[i].value > INT64_MAX)
            return tarn_error_set(error, TARN_USAGE, "an event cannot reach %llu",
                                  (unsigned long long)events[i].value);
        if (!hold(executor, event)) return tarn_error_no_memory(error);
        items[levels->count++] = (struct tarn_level){event, (int64_t)events[i].value};
    }
    return TARN_OK;
}

enum tarn_status tarn_gates_surround(struct tarn_executor *executor,
                                     const struct tarn_submit_options *around,
                                     struct tarn_error *error)
{
    struct tarn_gate *next = &executor->gates.next;
    if (!make_ring(executor)) return tarn_error_no_memory(error);
    executor->gates.is_open = true;
    enum tarn_status status =
        take_levels(executor, &next->waits, around->waits, around->waits_count, error);
    if (status == TARN_OK)
        status =
            take_levels(executor, &next->signals, around->signals, around->signals_count, error);
    return status;
}

void tarn_gates_drop(struct tarn_executor *executor)
{
    struct tarn_gates *gates = &executor->gates;
    if (!gates->is_open) return;
    gates->is_open = false;
    gates->next.waits.count = gates->next.signals.count = 0;
    forget_plans(executor);
}

static uint32_t count_streams(const struct tarn_executor *executor)
{
    uint32_t count = 0;
    for (uint32_t s = 0; s < executor->program->streams_count; s++)
        count += tarn_steps_of(executor, s) > 0;
    return count;
}

void tarn_gates_submit(struct tarn_executor *executor, uint64_t first, uint64_t last)
{
    struct tarn_gates *gates = &executor->gates;
    if (!gates->is_open) return;
    uint64_t made = atomic_load(&gates->made);
    struct tarn_gate *gate = gate_at(gates, made);
    while (made >= gates->room && !atomic_load(&gate->is_over)) sched_yield();
    SWAP(struct tarn_levels, gate->waits, gates->next.waits);
    SWAP(struct tarn_levels, gate->signals, gates->next.signals);
    SWAP(uint64_t *, gate->before, gates->next.before);
    atomic_store(&gate->left, count_streams(executor));
    atomic_store(&gate->is_over, false);
    gate->first = first;
    gate->last = last;
    tarn_gates_drop(executor);
    atomic_store(&gates->made, made + 1);
}

/* ---- Passing gates ---- */

struct tarn_gate *tarn_gate_find(struct tarn_executor *executor, struct tarn_host_stream *stream,
                                 uint64_t iteration)
{
    const struct tarn_gates *gates = &executor->gates;
    uint64_t made = atomic_load(&gates->made);
    if (stream->is_at_gate) tarn_listeners_go_on();
    stream->is_at_gate = false;
    if (stream->gates_passed == made) return NULL;
    struct tarn_gate *gate = gate_at(gates, stream->gates_passed);
    assert(iteration <= gate->last);
    return gate->first <= iteration ? gate : NULL;
}

static bool stop(struct tarn_host_stream *stream)
{
    stream->is_at_gate = true;
    tarn_listeners_stop();
    return false;
}

/* If not, records that the stream waits for it. */
static bool has_reached(struct tarn_host_stream *stream, const _Atomic int64_t *counter,
                        int64_t count)
{
    if (atomic_load(counter) >= count) return true;
    atomic_store_explicit(&stream->awaited, counter, memory_order_relaxed);
    atomic_store_explicit(&stream->awaited_count, count, memory_order_relaxed);
    return false;
}

static bool lets_begin(struct tarn_host_stream *stream, const struct tarn_levels *waits)
{
    size_t i = 0;
    while (i < waits->count &&
           has_reached(stream, &waits->items[i].event->value, waits->items[i].value))
        i++;
    return i == waits->count;
}

static bool lets_turn(struct tarn_host_stream *stream, struct tarn_arena_member *plan,
                      const struct tarn_turn_wait *wait, uint64_t before)
{
    uint32_t steps = plan->program->begin[wait->stream + 1] - plan->program->begin[wait->stream];
    int64_t count = (int64_t)(before * steps) + wait->place + 1;
    return has_reached(stream, &plan->reached[wait->stream], count);
}

bool tarn_gate_lets(struct tarn_executor *executor, struct tarn_host_stream *stream,
                    const struct tarn_gate *gate, uint32_t step, bool *is_vain)
{
    struct tarn_arena *arena = executor->session->settings.options.arena;
    const struct tarn_arena_member *own = executor->session->member;
    uint32_t plans = own ? arena->members_count : 0;
    if (step == executor->program->begin[stream - executor->streams] &&
        !lets_begin(stream, &gate->waits))
        return stop(stream);
    for (uint32_t p = 0; p < plans; p++) {
        const struct tarn_turn *turn = &own->turns[p];
        if (gate->before[p] == UINT64_MAX) continue;
        *is_vain |= atomic_load(&arena->members[p].has_failed);
        for (uint32_t k = turn->begin[step]; k < turn->begin[step + 1]; k++) {
            if (lets_turn(stream, &arena->members[p], &turn->waits[k], gate->before[p])) continue;
            return stop(stream);
        }
    }
    return !*is_vain;
}

/* ---- Telling others ---- */

void tarn_gate_leave(struct tarn_gate *gate, struct tarn_host_stream *stream, uint64_t iteration)
{
    if (iteration != gate->last) return;
    stream->gates_passed++;
    if (atomic_fetch_sub(&gate->left, 1) != 1) return;
    for (size_t i = 0; i < gate->signals.count; i++)
        tarn_host_event_raise(gate->signals.items[i].event, (uint64_t)gate->signals.items[i].value);
    atomic_store(&gate->is_over, true);
}

void tarn_gates_reach(struct tarn_executor *executor, uint32_t stream, int64_t count)
{
    struct tarn_arena_member *plan = executor->session->member;
    if (!plan) return;
    int64_t reached = (int64_t)(plan->earlier * tarn_steps_of(executor, stream)) + count;
    int64_t before = atomic_load(&plan->reached[stream]);
    while (before < reached &&
           !atomic_compare_exchange_weak(&plan->reached[stream], &before, reached)) {
    }
    tarn_listeners_call();
}

void tarn_gates_abandon(struct tarn_executor *executor)
{
    struct tarn_arena_member *plan = executor->session->member;
    if (!plan) return;
    atomic_store(&plan->has_failed, true);
    for (uint32_t s = 0; s < plan->program->streams_count; s++)
        atomic_store(&plan->reached[s], INT64_MAX); /* waiting sessions check again */
    tarn_listeners_call();
}
