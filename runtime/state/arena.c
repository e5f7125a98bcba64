/* Shares one arena among several sessions. The waits for every pair of plans are found
 * (streams/plan/switch) and proved (streams/verify) when the arena is made. A turn is a submit. It
 * waits for every session that had a turn since this session's last turn. Waits for earlier turns
 * were made then; they hold for all later iterations, which follow in the same streams. So the
 * order of each pair of plans implies the order of any sequence of turns.
 *
 *     turns    A1  B2  B3  C4  A5        A5 waits for B3 and C4, with the waits of (B, A), (C, A)
 *
 * Cost: creation linear in both plans for each pair; a turn O(sessions) plus its waits. */
#include "arena.h"

#include <string.h>
#include <unistd.h>

#include "state.h"
#include "streams/base/options.h"
#include "streams/graph/report.h"
#include "streams/verify/verify.h"

/* ---- Waits ---- */

static bool number_waits(struct tarn_turn *turn, struct tarn_region *region,
                         const struct tarn_program *from, const struct tarn_program *to)
{
    const struct tarn_waits *listed = &turn->listed;
    turn->begin = tarn_region_take(region, (size_t)to->steps_count + 1, sizeof *turn->begin);
    turn->waits = tarn_region_take(region, listed->count, sizeof *turn->waits);
    if (!turn->begin || !turn->waits) return false;
    for (size_t i = 0; i < listed->count; i++) turn->begin[to->step_of[listed->waits[i].op] + 1]++;
    for (uint32_t i = 0; i < to->steps_count; i++) turn->begin[i + 1] += turn->begin[i];
    for (size_t i = listed->count; i-- > 0;) { /* begin[i + 1] decreases to the start of step i */
        uint32_t step = to->step_of[listed->waits[i].op];
        uint32_t on = from->step_of[listed->waits[i].on], stream = from->steps[on].stream;
        turn->waits[--turn->begin[step + 1]] =
            (struct tarn_turn_wait){stream, on - from->begin[stream]};
    }
    for (uint32_t i = 0; i < to->steps_count; i++) turn->begin[i] = turn->begin[i + 1];
    turn->begin[to->steps_count] = (uint32_t)listed->count;
    return true;
}

static enum tarn_status make_turn(struct tarn_arena *arena, uint32_t from, uint32_t to,
                                  struct tarn_error *error)
{
    struct tarn_arena_member *before = &arena->members[from], *after = &arena->members[to];
    struct tarn_turn *turn = &after->turns[from];
    struct tarn_region region = {.chunks = NULL};
    uint32_t *same, count = 0;
    struct tarn_wait *waits = NULL;
    struct tarn_switch pair = {.from = before->plan, .to = after->plan};
    enum tarn_status status = tarn_switch_match(pair.from, pair.to, &region, &same, error);
    pair.same = same;
    if (status == TARN_OK && !arena->memory.is_bound)
        status = tarn_switch_check_layout(&pair, error);
    if (status == TARN_OK) status = tarn_switch_waits(&pair, &arena->region, &waits, &count, error);
    if (status == TARN_OK) status = tarn_switch_verify(&pair, waits, count, error);
    tarn_region_finish(&region);
    if (status != TARN_OK) return status;
    turn->listed = (struct tarn_waits){waits, count};
    for (uint32_t i = 0; i < count; i++)
        before->exits[before->program->step_of[waits[i].on]] = true;
    return number_waits(turn, &arena->region, before->program, after->program)
               ? TARN_OK
               : tarn_error_no_memory(error);
}

/* ---- Life ---- */

static enum tarn_status take_plan(struct tarn_arena *arena, uint32_t i, struct tarn_plan *plan,
                                  struct tarn_error *error)
{
    struct tarn_arena_member *taken = &arena->members[i];
    taken->plan = tarn_plan_retain(plan);
    enum tarn_status status = tarn_plan_check_form(plan, error);
    if (status == TARN_OK) status = tarn_plan_program(plan, &taken->program, error);
    if (status != TARN_OK) return status;
    struct tarn_region *region = &arena->region;
    taken->exits = tarn_region_take(region, taken->program->steps_count, sizeof *taken->exits);
    taken->turns = tarn_region_take(region, arena->members_count, sizeof *taken->turns);
    taken->reached =
        tarn_region_take(region, taken->program->streams_count, sizeof *taken->reached);
    return taken->exits && taken->turns && taken->reached ? TARN_OK : tarn_error_no_memory(error);
}

/* Each space has the size of the largest arena plus the largest persistent part, which starts at
 * one offset for all plans. */
static enum tarn_status measure(struct tarn_plan *const *plans, size_t count, bool is_bound,
                                struct tarn_needs_by_space *needs, struct tarn_error *error)
{
    enum tarn_status status = tarn_needs_measure(needs, plans[0], is_bound, error);
    for (size_t i = 1; i < count && status == TARN_OK; i++) {
        struct tarn_needs_by_space one;
        status = tarn_needs_measure(&one, plans[i], is_bound, error);
        if (status == TARN_OK) status = tarn_needs_join(needs, &one, error);
    }
    return status;
}

static enum tarn_status check_plans(struct tarn_plan *const *plans, size_t count,
                                    struct tarn_error *error)
{
    if (!plans || count == 0 || count >= UINT32_MAX)
        return tarn_error_set(error, TARN_USAGE, "an arena needs plans");
    for (size_t i = 0; i < count; i++) {
        if (!plans[i]) return tarn_error_set(error, TARN_USAGE, "plan %zu is NULL", i);
        for (size_t k = 0; k < i; k++) {
            if (plans[k] == plans[i])
                return tarn_error_set(error, TARN_USAGE, "plans %zu and %zu are the same one", k,
                                      i);
        }
    }
    return TARN_OK;
}

/* Checks the caller's arguments. */
static enum tarn_status take(struct tarn_plan *const *plans, size_t count,
                             struct tarn_device device, const struct tarn_arena_options *given,
                             struct tarn_arena_options *options, struct tarn_error *error)
{
    enum tarn_status status = check_plans(plans, count, error);
    if (status == TARN_OK)
        status = tarn_options_take(options, sizeof *options, given, "arena options", error);
    return status != TARN_OK ? status : tarn_settings_check_device(device, error);
}

enum tarn_status tarn_arena_needs_sized(struct tarn_plan *const *plans, size_t count,
                                        struct tarn_device device,
                                        const struct tarn_arena_options *given, tarn_space space,
                                        struct tarn_memory_needs *memory, size_t size,
                                        struct tarn_error *error)
{
    struct tarn_arena_options options;
    struct tarn_memory_needs known = {0};
    struct tarn_needs_by_space needs;
    tarn_error_clear(error);
    if (!memory) return tarn_error_null(error, __func__);
    enum tarn_status status = take(plans, count, device, given, &options, error);
    if (status == TARN_OK) status = measure(plans, count, options.binds_persistent, &needs, error);
    if (status == TARN_OK) status = tarn_needs_report(&needs, space, device, &known, error);
    tarn_struct_give(memory, size, &known, sizeof known);
    return status;
}

static enum tarn_status check_family(struct tarn_plan *const *plans, size_t count,
                                     struct tarn_error *error)
{
    struct tarn_error reason = {0};
    enum tarn_status status = tarn_family_verify(plans, count, &reason);
    if (status != TARN_REJECTED) return status == TARN_OK ? status : tarn_error_no_memory(error);
    return tarn_error_set(error, TARN_USAGE, "a window cannot be registered for them all: %.400s",
                          reason.text);
}

static enum tarn_status make(struct tarn_arena *arena, struct tarn_plan *const *plans, size_t count,
                             const struct tarn_arena_options *options, struct tarn_error *error)
{
    arena->members = tarn_region_take(&arena->region, count, sizeof *arena->members);
    if (!arena->members) return tarn_error_no_memory(error);
    arena->members_count = (uint32_t)count;
    arena->memory.is_bound = options->binds_persistent;
    arena->memory.plan = plans[0];
    enum tarn_status status = TARN_OK;
    for (uint32_t i = 0; i < count && status == TARN_OK; i++)
        status = take_plan(arena, i, plans[i], error);
    if (status == TARN_OK)
        status = measure(plans, count, options->binds_persistent, &arena->needs, error);
    for (uint32_t i = 0; i < count && status == TARN_OK; i++) {
        for (uint32_t k = 0; k < count && status == TARN_OK; k++)
            if (i != k) status = make_turn(arena, i, k, error);
    }
    if (status == TARN_OK && options->registrars_count > 0)
        status = check_family(plans, count, error);
    struct tarn_session_options asked = {.memory = options->memory,
                                         .memory_size = options->memory_size,
                                         .space_memory = options->space_memory,
                                         .space_memory_count = options->space_memory_count};
    if (status == TARN_OK)
        status =
            tarn_plan_memory_obtain(&arena->memory, &arena->region, &arena->needs, &asked, error);
    if (status == TARN_OK)
        status = tarn_windows_enter(&arena->memory, &arena->region, options->registrars,
                                    options->registrars_count, &plans[0]->window, error);
    return status;
}

static void release(struct tarn_arena *arena)
{
    tarn_plan_memory_finish(&arena->memory);
    for (uint32_t i = 0; i < arena->members_count; i++) tarn_plan_destroy(arena->members[i].plan);
    struct tarn_region region = arena->region; /* has the arena */
    tarn_region_finish(&region);
}

enum tarn_status tarn_arena_create(struct tarn_plan *const *plans, size_t count,
                                   struct tarn_device device,
                                   const struct tarn_arena_options *given,
                                   struct tarn_arena **arena, struct tarn_error *error)
{
    struct tarn_arena_options options;
    struct tarn_region region = {.chunks = NULL};
    if (arena) *arena = NULL;
    if (!arena) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    enum tarn_status status = take(plans, count, device, given, &options, error);
    if (status != TARN_OK) return status;
    struct tarn_arena *made = tarn_region_take(&region, 1, sizeof *made);
    if (!made) return tarn_error_no_memory(error);
    made->region = region;
    made->process = getpid();
    made->memory.device = device;
    status = make(made, plans, count, &options, error);
    if (status != TARN_OK)
        release(made);
    else
        *arena = made;
    return status;
}

enum tarn_status tarn_arena_destroy(struct tarn_arena *arena)
{
    if (!arena) return TARN_OK;
    if (arena->process != getpid()) return TARN_USAGE;
    for (uint32_t i = 0; i < arena->members_count; i++)
        if (arena->members[i].session) return TARN_USAGE;
    release(arena);
    return TARN_OK;
}

void *tarn_arena_memory_sized(const struct tarn_arena *arena, tarn_space space,
                              struct tarn_memory_needs *needs, size_t size)
{
    static const struct tarn_memory_needs none;
    bool is_there = arena && space < arena->needs.count;
    if (needs)
        tarn_struct_give(needs, size, is_there ? &arena->needs.of[space] : &none, sizeof none);
    return is_there ? arena->memory.parts[space].memory : NULL;
}

struct tarn_waits tarn_arena_waits(const struct tarn_arena *arena, size_t from, size_t to)
{
    if (!arena || from >= arena->members_count || to >= arena->members_count)
        return (struct tarn_waits){NULL, 0};
    return arena->members[to].turns[from].listed;
}

/* ---- Sessions come and go ---- */

static bool is_at_work(const struct tarn_arena_member *plan)
{
    return plan->session && !tarn_session_is_idle(plan->session);
}

static enum tarn_status find_plan(const struct tarn_session *session,
                                  const struct tarn_arena *arena, uint32_t *index,
                                  struct tarn_error *error)
{
    *index = TARN_NONE;
    for (uint32_t i = 0; i < arena->members_count; i++) {
        if (arena->members[i].plan == session->plan) *index = i;
        if (arena->members[i].has_failed && arena->members[i].session)
            return tarn_error_set(error, TARN_USAGE,
                                  "a session on the arena has stopped with an error: destroy it "
                                  "first");
    }
    bool may_mislead = *index != TARN_NONE && atomic_load(&arena->members[*index].has_failed);
    for (uint32_t i = 0; i < arena->members_count && may_mislead; i++) {
        if (is_at_work(&arena->members[i]))
            return tarn_error_set(error, TARN_USAGE,
                                  "the plan's last session has stopped before its end, and another "
                                  "one on the arena may wait for it: wait for that one first");
    }
    if (*index == TARN_NONE)
        return tarn_error_set(error, TARN_USAGE, "the arena was not made for this plan");
    if (arena->members[*index].session)
        return tarn_error_set(
            error, TARN_USAGE,
            "the plan has a session on the arena already: destroy that one first, "
            "or use it");
    return TARN_OK;
}

enum tarn_status tarn_arena_enter(struct tarn_session *session, struct tarn_error *error)
{
    const struct tarn_session_options *options = &session->settings.options;
    struct tarn_arena *arena = options->arena;
    uint32_t index;
    if (!arena) return TARN_OK;
    if (arena->process != getpid())
        return tarn_error_set(error, TARN_USAGE, "the arena belongs to another process");
    if (options->memory || options->space_memory_count > 0 || options->binds_persistent ||
        options->registrars_count > 0)
        return tarn_error_set(error, TARN_USAGE,
                              "the arena has the memory: give memory, binds_persistent and "
                              "registrars to the arena, or none");
    const struct tarn_device *device = &arena->memory.device;
    if (device->table != session->device.table || device->self != session->device.self)
        return tarn_error_set(error, TARN_USAGE, "the arena is on another device than the session");
    enum tarn_status status = find_plan(session, arena, &index, error);
    if (status != TARN_OK) return status;
    struct tarn_arena_member *plan = &arena->members[index];
    plan->session = session;
    atomic_store(&plan->has_failed, false);
    session->member = plan;
    session->exits = plan->exits;
    return TARN_OK;
}

void tarn_arena_leave(struct tarn_session *session)
{
    struct tarn_arena_member *plan = session->member;
    if (!plan) return;
    plan->earlier += session->submitted;
    for (uint32_t s = 0; s < plan->program->streams_count; s++) {
        uint32_t steps = plan->program->begin[s + 1] - plan->program->begin[s];
        atomic_store(&plan->reached[s], (int64_t)(plan->earlier * steps));
    }
    plan->session = NULL;
    session->member = NULL;
}

/* ---- Turns ---- */

static enum tarn_status refuse(const struct tarn_session *other, struct tarn_error *error)
{
    if (other->refused)
        return tarn_error_set(
            error, TARN_USAGE,
            "the session of graph %s on the same arena has stopped with an error: "
            "destroy it first",
            tarn_quote(other->graph->name).text);
    return tarn_error_set(error, TARN_USAGE,
                          "the session of graph %s is at work on the same arena: wait for its "
                          "ticket %llu first",
                          tarn_quote(other->graph->name).text,
                          (unsigned long long)other->submitted);
}

/* Can one session wait for the other on the device? */
static bool may_follow(const struct tarn_session *session, const struct tarn_session *other)
{
    return session->executor_table == other->executor_table && !other->refused;
}

static enum tarn_status begin_turn(struct tarn_session *session, bool is_submit,
                                   struct tarn_error *error)
{
    struct tarn_arena *arena = session->settings.options.arena;
    for (uint32_t i = 0; i < arena->members_count; i++) {
        struct tarn_session *other = arena->members[i].session;
        if (other == session || !is_at_work(&arena->members[i])) continue;
        if (!is_submit || !may_follow(session, other)) return refuse(other, error);
    }
    for (uint32_t i = 0; i < arena->members_count && is_submit; i++) {
        struct tarn_session *other = arena->members[i].session;
        if (other == session || !is_at_work(&arena->members[i])) continue;
        if (other->turn > session->turn) session->executor_table->follow(session->executor, i);
    }
    session->turn = ++arena->turns;
    return TARN_OK;
}

/* A check calls submit, so calls nest. */
static void leave(struct tarn_arena *arena)
{
    if (--arena->busy_depth == 0) atomic_store(&arena->busy, NULL);
}

enum tarn_status tarn_arena_begin_turn(struct tarn_session *session, bool is_submit,
                                       struct tarn_error *error)
{
    struct tarn_arena *arena = session->settings.options.arena;
    if (!session->member) return TARN_OK;
    struct tarn_session *owner = NULL;
    if (!atomic_compare_exchange_strong(&arena->busy, &owner, session) && owner != session)
        return tarn_error_set(
            error, TARN_USAGE,
            "another thread is at work with a session on the same arena: sessions "
            "that share one are used from one thread at a time");
    arena->busy_depth++;
    enum tarn_status status = begin_turn(session, is_submit, error);
    if (status != TARN_OK) leave(arena);
    return status;
}

void tarn_arena_end_turn(struct tarn_session *session)
{
    if (session->member) leave(session->settings.options.arena);
}
