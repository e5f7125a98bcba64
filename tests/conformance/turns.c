/* Sessions among others: on a queue that is lent to them, between events of a framework's, and two
 * of them in turn on one arena. Every op notes a value and expects the one that only the right
 * order leaves. Cost: some hundred short iterations. */
#include "kit.h"

enum { GIVEN, BETWEEN, MADE, WEIGHTS }; /* slots */

/* Of a session: `step` of an iteration counts over all sessions of the test. */
struct player {
    struct tarn_kit *kit;
    uint32_t index, sessions;
};

static uint32_t value_of(uint64_t step) { return (uint32_t)(step % TARN_KIT_VALUES); }

/* load (one stream): x ─► h; work (another one): h, w ─► w */
static struct tarn_graph *make_graph(struct tarn_kit *kit, uint64_t batch)
{
    struct tarn_graph *graph;
    struct tarn_error error;
    struct tarn_builder *b = tarn_builder_create("turns");
    tarn_stream copy = tarn_builder_stream(b, "copy"), compute = tarn_builder_stream(b, "compute");
    tarn_tensor x = tarn_builder_tensor(
        b, &(struct tarn_tensor_info){.name = "x", .size = 64 * batch, .kind = TARN_INPUT});
    tarn_tensor w = tarn_builder_tensor(
        b, &(struct tarn_tensor_info){.name = "w", .size = 64, .kind = TARN_PARAMETER});
    tarn_tensor h =
        tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = "h", .size = 64 * batch});
    tarn_tensor updated = tarn_builder_alias(b, w, "updated");
    tarn_builder_op(b, &(struct tarn_op_info){
                           .stream = copy, .inputs = TARN_TENSORS(x), .outputs = TARN_TENSORS(h)});
    tarn_builder_op(b, &(struct tarn_op_info){.stream = compute,
                                              .inputs = TARN_TENSORS(h, w),
                                              .outputs = TARN_TENSORS(updated)});
    MUST(tarn_builder_finish(b, &graph, &error));
    return graph;
}

/* ---- Between two steps of others ---- */

/* load passes on what the framework has given, work makes of it what the framework looks at. */
static int pass_on(void *user, const struct tarn_call *call)
{
    struct player *player = user;
    uint32_t value = value_of(call->iteration), from = call->op == 0 ? GIVEN : BETWEEN;
    int code = tarn_kit_in_kernel(player->kit, call->queue, from, value, true);
    return code ? code : tarn_kit_in_kernel(player->kit, call->queue, from + 1, value, false);
}

/* By events, and by the queue itself; queue 1 is lent to the session for its first stream. */
static void run_between(struct tarn_kit *kit)
{
    struct tarn_error error;
    struct player player = {.kit = kit, .sessions = 1};
    struct tarn_graph *graph = make_graph(kit, 3);
    struct tarn_plan *plan;
    void *lent[] = {kit->queues[1], NULL};
    const struct tarn_event given = {.event = tarn_kit_event(kit)},
                            made = {.event = tarn_kit_event(kit)};
    MUST(tarn_plan_create(graph, TARN_PLAN_OPTIONS(.alignment = 64), &plan, &error));
    struct tarn_session *session =
        tarn_kit_session(kit, plan, TARN_SESSION_OPTIONS(.queues = lent));
    EQUAL(tarn_session_bind_default(session, pass_on, &player), TARN_OK);
    for (uint32_t i = 0; i < 50; i++) {
        tarn_kit_note(kit, 0, GIVEN, i);
        if (i % 2 == 0) {
            tarn_kit_record(kit, given.event, 0);
            MUST(tarn_session_submit_with(session, 1,
                                          TARN_SUBMIT_OPTIONS(.waits = &given, .waits_count = 1,
                                                              .signals = &made, .signals_count = 1),
                                          NULL, &error));
            tarn_kit_wait(kit, made.event, 0);
        } else {
            MUST(tarn_session_submit_with(session, 1, TARN_SUBMIT_OPTIONS(.queue = kit->queues[0]),
                                          NULL, &error));
        }
        tarn_kit_expect(kit, 0, MADE, i);
    }
    tarn_kit_finish(kit);
    tarn_kit_end(kit);
    for (uint32_t i = 0; i < 2; i++) tarn_kit_note(kit, i, GIVEN + i, 1); /* both are still there */
    tarn_kit_finish(kit);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

static void a_step_stands_between_two_steps_of_others(struct tarn_kit *kit)
{
    tarn_kit_create_queues(kit, 2);
    if (tarn_kit_kernels_work(kit) && !tarn_kit_choose(kit, TARN_KIT_BY_CLOSURES))
        tarn_kit_skip(kit, "the device has no launch");
    if (!tarn_kit_kernels_work(kit)) {
        tarn_kit_by_all_means(kit, run_between);
        return;
    }
    run_between(kit);
    tarn_kit_held(kit, 1);
}

/* ---- Turns on one arena ---- */

/* load writes what work reads and the other session's load writes over; work counts in w. */
static int take_turn(void *user, const struct tarn_call *call)
{
    struct player *player = user;
    struct tarn_kit *kit = player->kit;
    uint64_t step = call->iteration * player->sessions + player->index;
    if (call->op == 0) return tarn_kit_in_kernel(kit, call->queue, BETWEEN, value_of(step), false);
    int code = tarn_kit_in_kernel(kit, call->queue, BETWEEN, value_of(step), true);
    if (!code && step > 0)
        code = tarn_kit_in_kernel(kit, call->queue, WEIGHTS, value_of(step - 1), true);
    return code ? code : tarn_kit_in_kernel(kit, call->queue, WEIGHTS, value_of(step), false);
}

static void run_in_turn(struct tarn_kit *kit)
{
    struct tarn_error error;
    struct tarn_graph *graphs[2] = {make_graph(kit, 3), make_graph(kit, 50)};
    struct tarn_plan *plans[2];
    struct player players[2] = {{kit, 0, 2}, {kit, 1, 2}};
    tarn_ticket tickets[2];
    MUST(tarn_family_plan(graphs, 2, TARN_PLAN_OPTIONS(.alignment = 64), plans, &error));
    MUST(tarn_arena_create(plans, 2, kit->device, NULL, &kit->arena, &error));
    for (uint32_t i = 0; i < 2; i++) {
        EQUAL(tarn_plan_offset(plans[i], tarn_graph_find_tensor(graphs[i], "h")), 0);
        MUST(tarn_session_create(plans[i], kit->device, TARN_SESSION_OPTIONS(.arena = kit->arena),
                                 &kit->turns[i], &error));
        EQUAL(tarn_session_bind_default(kit->turns[i], take_turn, &players[i]), TARN_OK);
    }
    for (uint32_t step = 0; step < 120; step++)
        MUST(tarn_session_submit(kit->turns[step % 2], 1, &tickets[step % 2], &error));
    for (uint32_t i = 0; i < 2; i++)
        MUST(tarn_session_wait(kit->turns[i], tickets[i], kit->patience_ns, &error));
    tarn_kit_end(kit);
    for (uint32_t i = 0; i < 2; i++) {
        tarn_plan_destroy(plans[i]);
        tarn_graph_destroy(graphs[i]);
    }
}

static void two_sessions_take_turns_on_one_arena(struct tarn_kit *kit)
{
    if (!tarn_kit_kernels_work(kit)) {
        tarn_kit_by_all_means(kit, run_in_turn);
        return;
    }
    run_in_turn(kit);
}

#define RULE "events and queues of others (docs/devices.md, \"Queues and events of others\")"

const struct tarn_kit_test tarn_kit_turns[] = {
    {"a_step_stands_between_two_steps_of_others", a_step_stands_between_two_steps_of_others, RULE},
    {"two_sessions_take_turns_on_one_arena", two_sessions_take_turns_on_one_arena, RULE},
    {0},
};
