/* What a session can be asked for: options of any age, memory of the caller's, urgent queues,
 * captures, bounded depth, patience, cancellation, the flight recorder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "streams/plan/plan.h"
#include "support/queue_device.h"
#include "support/session_calls.h"
#include "support/unshared_plan.h"
#include "tarn.h"

/* ---- One small graph: compute: make ─► use;  comm: reduce;  copy: load;  both: send, more ---- */

struct subject {
    struct tarn_graph *graph;
    struct tarn_plan *plan;
    struct queue_device device;
    tarn_tensor w, x, y;
};

static tarn_op add_op(struct tarn_builder *b, const char *name, const char *kind, tarn_stream s,
                      struct tarn_list inputs, struct tarn_list outputs)
{
    struct tarn_op_info info = {
        .name = name, .kind = kind, .stream = s, .inputs = inputs, .outputs = outputs};
    return tarn_builder_op(b, &info);
}

static int open_subject(void **state)
{
    struct subject *s = calloc(1, sizeof *s);
    struct tarn_error error;
    struct tarn_builder *b = tarn_builder_create("small");
    tarn_stream compute = tarn_builder_stream(b, "compute"), comm = tarn_builder_stream(b, "comm");
    tarn_stream copy = tarn_builder_stream(b, "copy"), both = tarn_builder_stream(b, "both");
    struct tarn_tensor_info info = {
        .name = "w", .size = 64, .kind = TARN_PARAMETER, .alignment = 64};
    s->w = tarn_builder_tensor(b, &info);
    s->x = tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = "x", .size = 64});
    info = (struct tarn_tensor_info){.name = "y", .size = 64, .kind = TARN_OUTPUT};
    s->y = tarn_builder_tensor(b, &info);
    struct tarn_list none = {0};
    add_op(b, "make", "matmul", compute, TARN_TENSORS(s->w), TARN_TENSORS(s->x));
    add_op(b, "use", "relu", compute, TARN_TENSORS(s->x), TARN_TENSORS(s->y));
    add_op(b, "reduce", "tarn.all_reduce", comm, TARN_TENSORS(s->x), none);
    add_op(b, "load", "tarn.h2d", copy, none, none);
    add_op(b, "send", "mpi.Send", both, none, none);
    add_op(b, "more", "matmul", both, none, none);
    require(tarn_builder_finish(b, &s->graph, &error), &error);
    s->plan = unshared_plan(s->graph, 64);
    *state = s;
    return 0;
}

static int close_subject(void **state)
{
    struct subject *s = *state;
    tarn_plan_destroy(s->plan);
    tarn_graph_destroy(s->graph);
    free(s);
    return 0;
}

static struct tarn_session *open_session(const struct subject *s, struct tarn_device device,
                                         const struct tarn_session_options *options,
                                         tarn_kernel kernel, void *user)
{
    struct tarn_session *session;
    struct tarn_error error;
    require(tarn_session_create(s->plan, device, options, &session, &error), &error);
    assert_int_equal(tarn_session_bind_default(session, kernel, user), TARN_OK);
    return session;
}

static void refuses(const struct subject *s, struct tarn_device device,
                    const struct tarn_session_options *options, enum tarn_status status,
                    const char *words)
{
    struct tarn_session *session;
    struct tarn_error error;
    assert_int_equal(tarn_session_create(s->plan, device, options, &session, &error), status);
    assert_says(&error, words);
    assert_null(session);
}

/* ---- Options of any age ---- */

static void shorter_options_are_complete_with_defaults(void **state)
{
    struct subject *s = *state;
    struct tarn_session_options options;
    memset(&options, 0xff, sizeof options); /* what an old caller's memory may hold */
    options.struct_size = offsetof(struct tarn_session_options, urgent);
    options.blocking = (struct tarn_list){0};
    struct tarn_session *session =
        open_session(s, tarn_device_host(NULL), &options, do_nothing, NULL);
    run_iterations(session, 2);
    tarn_session_destroy(session);
}

static void longer_options_are_accepted_while_their_newer_part_is_zero(void **state)
{
    struct subject *s = *state;
    struct {
        struct tarn_session_options known;
        uint64_t newer;
    } options = {.known.struct_size = sizeof options};
    struct tarn_session *session =
        open_session(s, tarn_device_host(NULL), &options.known, do_nothing, NULL);
    tarn_session_destroy(session);
    options.newer = 1;
    refuses(s, tarn_device_host(NULL), &options.known, TARN_USAGE, "leave the newer fields zero");
    struct {
        struct tarn_plan_options known;
        uint64_t newer;
    } planning = {.known.struct_size = sizeof planning, .newer = 1};
    struct tarn_plan *plan;
    struct tarn_error error;
    assert_int_equal(tarn_plan_create(s->graph, &planning.known, &plan, &error), TARN_USAGE);
    assert_says(&error, "plan options of");
}

/* ---- Queues ---- */

static uint32_t urgent_queues(struct subject *s, const struct tarn_list *urgent)
{
    s->device = (struct queue_device){0};
    struct tarn_session *session = open_session(
        s, queue_device(&s->device), TARN_SESSION_OPTIONS(.urgent = urgent), do_nothing, NULL);
    run_iterations(session, 1);
    assert_int_equal(s->device.named, s->graph->storages_count);
    assert_int_equal(s->device.ranges_open, 0);
    tarn_session_destroy(session);
    return s->device.urgent_queues;
}

static void queues_of_communication_alone_are_urgent_unless_told_otherwise(void **state)
{
    struct subject *s = *state;
    assert_int_equal(urgent_queues(s, NULL), 2); /* comm and copy */
    assert_int_equal(urgent_queues(s, &TARN_LIST(0)), 1);
    assert_int_equal(urgent_queues(s, &(struct tarn_list){0}), 0);
}

/* ---- Memory ---- */

static void what_a_device_cannot_allocate_is_told_with_what_to_do(void **state)
{
    struct subject *s = *state;
    struct tarn_memory_needs needed;
    struct tarn_error error;
    s->device.allocation_max = 100;
    struct tarn_device device = queue_device(&s->device);
    refuses(s, device, NULL, TARN_SYSTEM, "allocates 100 bytes at once at most; the session needs");
    refuses(s, device, NULL, TARN_SYSTEM, "bind persistent tensors to memory of their own");
    assert_int_equal(tarn_session_needs(s->plan, device, NULL, 0, &needed, &error), TARN_SYSTEM);
    s->device = (struct queue_device){.memory_size = 100};
    refuses(s, queue_device(&s->device), NULL, TARN_SYSTEM, "; 100 are available");
    s->device = (struct queue_device){0};
    s->plan->alignment = 8192;
    refuses(s, queue_device(&s->device), NULL, TARN_USAGE, "plan with a smaller one");
}

static void memory_that_is_brought_must_be_large_and_aligned(void **state)
{
    struct subject *s = *state;
    struct tarn_memory_needs needed;
    struct tarn_error error;
    struct tarn_device host = tarn_device_host(NULL);
    require(tarn_session_needs(s->plan, host, NULL, 0, &needed, &error), &error);
    assert_int_equal(needed.arena, 128);
    assert_int_equal(needed.persistent, 64);
    assert_int_equal(needed.size, 192);
    assert_int_equal(needed.alignment, 64);
    unsigned char *memory = aligned_alloc(64, 256);
    struct tarn_session_options *options =
        TARN_SESSION_OPTIONS(.memory = memory, .memory_size = 192);
    memset(memory, 0xee, 256);
    struct tarn_session *session = open_session(s, host, options, do_nothing, NULL);
    for (uint32_t i = 0; i < 256; i++) assert_int_equal(memory[i], i < 192 ? 0 : 0xee);
    assert_ptr_equal(tarn_session_address(session, s->x), memory);
    tarn_session_destroy(session);
    options->memory_size = 191;
    refuses(s, host, options, TARN_USAGE, "is of 191 bytes; the session needs 192");
    options->memory = memory + 8;
    options->memory_size = 192;
    refuses(s, host, options, TARN_USAGE, "must be aligned to 64 bytes");
    free(memory);
}

static int add_input(void *user, const struct tarn_call *call)
{
    if (call->op == 0) *(uint32_t *)user += *(unsigned char *)call->inputs[0];
    return 0;
}

static void persistent_tensors_are_bound_and_bound_again(void **state)
{
    struct subject *s = *state;
    _Alignas(64) unsigned char first[64] = {3}, second[64] = {40};
    uint32_t sum = 0;
    struct tarn_error error;
    tarn_ticket ticket;
    struct tarn_session *session = open_session(
        s, tarn_device_host(NULL), TARN_SESSION_OPTIONS(.binds_persistent = true), add_input, &sum);
    assert_null(tarn_session_address(session, s->w));
    assert_int_equal(tarn_session_submit(session, 1, &ticket, &error), TARN_USAGE);
    assert_says(&error, "tensor 0 \"w\" has no memory");
    assert_int_equal(error.tensor, s->w);
    assert_int_equal(tarn_session_write(session, s->w, first, 1, &error), TARN_USAGE);
    require(tarn_session_bind_memory(session, s->w, first, &error), &error);
    run_iterations(session, 1);
    require(tarn_session_bind_memory(session, s->w, second, &error), &error);
    assert_ptr_equal(tarn_session_address(session, s->w), second);
    run_iterations(session, 2);
    assert_int_equal(sum, 3 + 40 + 40);
    assert_int_equal(tarn_session_bind_memory(session, s->w, second + 1, &error), TARN_USAGE);
    assert_says(&error, "must be aligned to 64 bytes");
    assert_int_equal(tarn_session_bind_memory(session, s->x, second, &error), TARN_USAGE);
    assert_says(&error, "is planned");
    assert_int_equal(tarn_session_bind_memory(session, 99, second, &error), TARN_USAGE);
    assert_int_equal(tarn_session_bind_memory(session, s->w, NULL, &error), TARN_USAGE);
    assert_null(tarn_session_address(session, 99));
    tarn_session_destroy(session);
}

/* A tensor without an alignment of its own keeps to its elements: 16 bytes at most, or the largest
 * power of two that divides its size. */
static void bound_memory_is_aligned_to_elements(void **state)
{
    (void)state;
    static const struct {
        uint64_t size, alignment, plan, needed;
    } cases[] = {{64, 0, 64, 16}, {40, 0, 64, 8},   {12, 0, 64, 4}, {6, 0, 64, 2},  {7, 0, 64, 1},
                 {64, 1, 64, 1},  {64, 32, 64, 32}, {64, 0, 4, 4},  {4096, 0, 1, 1}};
    _Alignas(64) static unsigned char bytes[8192];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tarn_graph *graph;
        struct tarn_plan *plan;
        struct tarn_session *session;
        struct tarn_error error;
        const struct tarn_tensor_info info = {.name = "w",
                                              .size = cases[i].size,
                                              .kind = TARN_PARAMETER,
                                              .alignment = cases[i].alignment};
        struct tarn_builder *b = tarn_builder_create("bound");
        tarn_stream stream = tarn_builder_stream(b, "s");
        tarn_tensor w = tarn_builder_tensor(b, &info);
        tarn_builder_op(b, &(struct tarn_op_info){.stream = stream, .inputs = {&w, 1}});
        require(tarn_builder_finish(b, &graph, &error), &error);
        require(
            tarn_plan_create(graph, TARN_PLAN_OPTIONS(.alignment = cases[i].plan), &plan, &error),
            &error);
        require(tarn_session_create(plan, tarn_device_host(NULL), NULL, &session, &error), &error);
        for (uint64_t shift = 0; shift < 64; shift++) {
            bool fits = shift % cases[i].needed == 0;
            assert_int_equal(tarn_session_bind_memory(session, w, bytes + shift, &error),
                             fits ? TARN_OK : TARN_USAGE);
            if (!fits) assert_says(&error, "tensor 0 \"w\" must be aligned to");
        }
        tarn_session_destroy(session);
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
}

static void a_binding_that_is_refused_says_why(void **state)
{
    struct subject *s = *state;
    struct tarn_error error;
    tarn_ticket ticket;
    struct tarn_session *session = open_session(s, tarn_device_host(NULL), NULL, do_nothing, NULL);
    require(tarn_session_bind(session, 0, do_nothing, NULL, &error), &error);
    assert_int_equal(tarn_session_bind(session, 99, do_nothing, NULL, &error), TARN_USAGE);
    assert_says(&error, "op 99 of the source graph is none that the plan runs");
    assert_int_equal(error.op, 99);
    assert_int_equal(tarn_session_bind(session, 0, NULL, NULL, &error), TARN_USAGE);
    assert_says(&error, "no kernel");
    require(tarn_session_submit(session, 1, &ticket, &error), &error);
    assert_int_equal(tarn_session_bind(session, 0, do_nothing, NULL, &error), TARN_USAGE);
    assert_says(&error, "wait for ticket 1 first");
    require(tarn_session_wait(session, ticket, TARN_FOREVER, &error), &error);
    tarn_session_cancel(session);
    assert_int_equal(tarn_session_submit(session, 1, &ticket, &error), TARN_INTERRUPTED);
    assert_int_equal(tarn_session_bind(session, 0, do_nothing, NULL, &error), TARN_USAGE);
    assert_says(&error, "it can only be destroyed");
    tarn_session_destroy(session);
}

/* ---- Captures ---- */

struct captured {
    struct queue_device *device;
    uint32_t calls, works;
    uint64_t highest_iteration;
};

static void count_work(void *user, const struct tarn_call *call)
{
    (void)call;
    ((struct captured *)user)->works++;
}

static int count_call(void *user, const struct tarn_call *call)
{
    struct captured *captured = user;
    captured->calls++;
    if (call->iteration > captured->highest_iteration)
        captured->highest_iteration = call->iteration;
    queue_device_enqueue(captured->device, count_work, captured, call);
    return 0;
}

static void kernels_are_captured_once_until_something_is_bound(void **state)
{
    struct subject *s = *state;
    struct captured captured = {&s->device, 0, 0, 0};
    struct tarn_error error;
    _Alignas(64) unsigned char bytes[64];
    struct tarn_session *session =
        open_session(s, queue_device(&s->device),
                     TARN_SESSION_OPTIONS(.capture = true, .unroll = 3), count_call, &captured);
    run_iterations(session, 7); /* two blocks, and one iteration more */
    assert_int_equal(captured.calls, 6 * (3 + 1));
    assert_int_equal(captured.works, 6 * 7);
    assert_int_equal(captured.highest_iteration, 2); /* counted inside the block */
    run_iterations(session, 4);
    assert_int_equal(captured.calls, 6 * 4);
    require(tarn_session_bind_memory(session, s->w, bytes, &error), &error);
    run_iterations(session, 3);
    assert_int_equal(captured.calls, 6 * (4 + 3));
    assert_int_equal(tarn_session_bind(session, 0, count_call, &captured, NULL), TARN_OK);
    run_iterations(session, 1);
    assert_int_equal(captured.calls, 6 * (4 + 3 + 1));
    assert_int_equal(captured.works, 6 * (7 + 4 + 3 + 1));
    tarn_session_destroy(session);
    assert_int_equal(queue_device_alive(&s->device), 0);
}

static void what_cannot_be_captured_is_refused(void **state)
{
    struct subject *s = *state;
    struct tarn_device paper = queue_device(&s->device);
    refuses(s, tarn_device_host(NULL), TARN_SESSION_OPTIONS(.capture = true), TARN_USAGE,
            "device 'host' cannot capture and replay");
    refuses(s, paper, TARN_SESSION_OPTIONS(.unroll = 2), TARN_USAGE, "for captured execution");
}

/* ---- Depth, patience, cancellation ---- */

static int take_a_while(void *user, const struct tarn_call *call)
{
    (void)user, (void)call;
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    return 0;
}

static void submit_keeps_to_the_depth(void **state)
{
    struct subject *s = *state;
    struct tarn_session *session = open_session(
        s, tarn_device_host(NULL), TARN_SESSION_OPTIONS(.depth = 2), take_a_while, NULL);
    struct tarn_error error;
    tarn_ticket ticket;
    uint64_t finished;
    require(tarn_session_submit(session, 9, &ticket, &error), &error);
    require(tarn_session_query(session, &finished, &error), &error);
    assert_in_range(finished, 7, 9);
    require(tarn_session_wait(session, ticket, TARN_FOREVER, &error), &error);
    tarn_session_destroy(session);
}

static void submit_and_destroy_give_up_when_their_patience_ends(void **state)
{
    struct subject *s = *state;
    s->device.stuck = true;
    struct tarn_session *session =
        open_session(s, queue_device(&s->device),
                     TARN_SESSION_OPTIONS(.depth = 2, .patience_ns = 3000000), do_nothing, NULL);
    struct tarn_error error;
    tarn_ticket ticket;
    require(tarn_session_submit(session, 2, &ticket, &error), &error);
    assert_int_equal(tarn_session_submit(session, 1, &ticket, &error), TARN_DEADLINE);
    assert_says(&error, "not finished after 0.003 s; stream 0 \"compute\" has not passed");
    assert_int_equal(tarn_session_submit(session, 1, &ticket, &error), TARN_USAGE);
    assert_int_equal(tarn_session_destroy(session), TARN_DEADLINE);
    assert_int_equal(s->device.memories_alive, 1);
    s->device.stuck = false;
    assert_int_equal(tarn_session_destroy_within(session, TARN_FOREVER, &error), TARN_OK);
    assert_int_equal(queue_device_alive(&s->device), 0);
}

struct held {
    atomic_bool is_held, let_go;
    atomic_uint begun;
};

static int hold(void *user, const struct tarn_call *call)
{
    struct held *held = user;
    (void)call;
    atomic_fetch_add(&held->begun, 1);
    atomic_store(&held->is_held, true);
    while (!atomic_load(&held->let_go)) nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    return 0;
}

struct canceller {
    struct tarn_session *session;
    struct held *held;
};

static void *cancel(void *argument)
{
    struct canceller *canceller = argument;
    while (!atomic_load(&canceller->held->is_held))
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    tarn_session_cancel(canceller->session);
    atomic_store(&canceller->held->let_go, true);
    return NULL;
}

/* One worker: nothing is begun behind the kernel that runs when it is cancelled. */
static void cancellation_lets_what_runs_end_and_begins_nothing(void **state)
{
    struct subject *s = *state;
    struct held held = {0};
    struct tarn_error error;
    tarn_ticket ticket;
    pthread_t thread;
    struct tarn_session *session =
        open_session(s, tarn_device_host(TARN_HOST_OPTIONS(.workers = 1)), NULL, hold, &held);
    struct canceller canceller = {session, &held};
    assert_int_equal(pthread_create(&thread, NULL, cancel, &canceller), 0);
    require(tarn_session_submit(session, 1000, &ticket, &error), &error);
    assert_int_equal(tarn_session_wait(session, ticket, TARN_FOREVER, &error), TARN_INTERRUPTED);
    pthread_join(thread, NULL);
    assert_int_equal(held.begun, 1);
    assert_int_equal(tarn_session_wait(session, ticket, TARN_FOREVER, &error), TARN_USAGE);
    tarn_session_destroy(session);
}

static void a_session_cancelled_while_idle_says_so_once(void **state)
{
    struct subject *s = *state;
    struct tarn_error error;
    tarn_ticket ticket;
    for (uint32_t paper = 0; paper < 2; paper++) {
        struct tarn_session *session = open_session(
            s, paper ? queue_device(&s->device) : tarn_device_host(NULL), NULL, do_nothing, NULL);
        run_iterations(session, 1);
        tarn_session_cancel(session);
        assert_int_equal(tarn_session_submit(session, 1, &ticket, &error), TARN_INTERRUPTED);
        assert_int_equal(tarn_session_submit(session, 1, &ticket, &error), TARN_USAGE);
        tarn_session_destroy(session);
    }
    tarn_session_cancel(NULL);
}

static void a_device_that_is_lost_ends_the_session_at_a_copy(void **state)
{
    struct subject *s = *state;
    struct tarn_error error;
    unsigned char byte;
    struct tarn_session *session =
        open_session(s, queue_device(&s->device), NULL, do_nothing, NULL);
    s->device.fail_after = 1;
    s->device.fail_class = TARN_ERROR_POISONED;
    assert_int_equal(tarn_session_read(session, s->w, &byte, 1, &error), TARN_DEVICE);
    assert_says(&error, "illegal address");
    s->device.fail_after = 0;
    assert_int_equal(tarn_session_read(session, s->w, &byte, 1, &error), TARN_USAGE);
    tarn_session_destroy(session); /* nothing was enqueued, so nothing uses its memory */
    assert_int_equal(queue_device_alive(&s->device), 0);
}

/* ---- The flight recorder ---- */

struct lines {
    char text[8000];
    uint32_t count;
};

static void keep_line(void *user, const char *line)
{
    struct lines *lines = user;
    strncat(lines->text, line, sizeof lines->text - strlen(lines->text) - 2);
    strcat(lines->text, "\n");
    lines->count++;
}

static int fail_at(void *user, const struct tarn_call *call)
{
    return call->op == 1 && call->iteration == *(uint64_t *)user ? 7 : 0;
}

static void the_flight_recorder_tells_the_last_commands(void **state)
{
    struct subject *s = *state;
    for (uint32_t paper = 0; paper < 2; paper++) {
        struct lines lines = {0};
        struct tarn_session *session =
            open_session(s, paper ? queue_device(&s->device) : tarn_device_host(NULL),
                         TARN_SESSION_OPTIONS(.flight = 4), do_nothing, NULL);
        tarn_session_dump(session, keep_line, &lines);
        assert_int_equal(lines.count, 1 + 4); /* nothing has run */
        run_iterations(session, 10);
        tarn_session_dump(session, keep_line, &lines);
        assert_int_equal(lines.count, 5 + 1 + 4 + 4 * 4);
        assert_non_null(strstr(lines.text, "stream 0 \"compute\" on device '"));
        assert_non_null(strstr(lines.text, "' has finished\n  iteration 8, op 0 \"make\": "));
        assert_null(strstr(lines.text, "iteration 7, op 0 \"make\""));
        assert_null(strstr(lines.text, "has not ended"));
        tarn_session_destroy(session);
    }
}

static void a_dump_after_an_error_tells_what_led_to_it(void **state)
{
    struct subject *s = *state;
    struct lines lines = {0};
    struct tarn_error error;
    tarn_ticket ticket;
    uint64_t iteration = 3;
    struct tarn_session *session = open_session(
        s, tarn_device_host(NULL), TARN_SESSION_OPTIONS(.flight = 64), fail_at, &iteration);
    require(tarn_session_submit(session, 9, &ticket, &error), &error);
    assert_int_equal(tarn_session_wait(session, ticket, TARN_FOREVER, &error), TARN_DEVICE);
    assert_says(&error, "op 1 \"use\", iteration 3: the kernel returned 7");
    tarn_session_dump(session, keep_line, &lines);
    assert_non_null(strstr(lines.text, "  iteration 3, op 1 \"use\": began "));
    assert_null(strstr(lines.text, "iteration 4, op 0"));
    tarn_session_destroy(session);
}

/* ---- Where memory comes from ---- */

struct source {
    uint64_t taken, given; /* bytes */
    uint64_t shift;        /* of what it gives, from its alignment */
    int code;              /* with which it refuses */
};

static int create_memory(void *user, uint64_t size, void **memory)
{
    struct source *source = user;
    if (source->code) return source->code;
    unsigned char *bytes = aligned_alloc(512, (size_t)(size + 1023) / 512 * 512);
    memset(bytes, 0xff, (size_t)size);
    source->taken += size;
    *memory = bytes + source->shift;
    return 0;
}

static void destroy_memory(void *user, void *memory, uint64_t size)
{
    struct source *source = user;
    source->given += size;
    free((unsigned char *)memory - source->shift);
}

static struct tarn_plan *plan_aligned(struct tarn_graph *graph, uint64_t alignment)
{
    struct tarn_plan *plan;
    struct tarn_error error;
    require(tarn_plan_create(graph, TARN_PLAN_OPTIONS(.alignment = alignment), &plan, &error),
            &error);
    return plan;
}

static void memory_comes_from_the_callers_source_and_goes_back_there(void **state)
{
    (void)state;
    struct tarn_graph *graph = random_graph(
        &(struct random_graph_options){.seed = 3, .ops = 20, .streams = 2, .parameters = 3});
    struct source source = {0};
    struct tarn_memory_source memory = {sizeof memory, create_memory, destroy_memory, &source, 0};
    struct tarn_device device = tarn_device_host(TARN_HOST_OPTIONS(.memory = &memory));
    struct tarn_plan *plan = plan_aligned(graph, 512), *wide = plan_aligned(graph, 4096);
    struct tarn_session *session;
    struct tarn_error error;
    require(tarn_session_create(plan, device, NULL, &session, &error), &error);
    require(tarn_session_check(session, NULL, NULL, &error), &error);
    assert_int_equal(tarn_session_destroy(session), TARN_OK);
    assert_true(source.taken > 0 && source.taken == source.given);
    assert_int_equal(tarn_session_create(wide, device, NULL, &session, &error), TARN_USAGE);
    assert_says(&error, "needs an alignment of 4096 bytes but device 'host' gives 512");
    source.shift = 8;
    assert_int_equal(tarn_session_create(plan, device, NULL, &session, &error), TARN_DEVICE);
    assert_says(&error, "gives no such alignment");
    assert_int_equal(source.taken, source.given);
    source.code = 12; /* ENOMEM */
    assert_int_equal(tarn_session_create(plan, device, NULL, &session, &error), TARN_SYSTEM);
    tarn_plan_destroy(plan);
    tarn_plan_destroy(wide);
    tarn_graph_destroy(graph);
}

/* Whatever asks for the host device's memory refuses the device alike, and asks nothing of it. */
static void refuse_host(struct tarn_plan *plan, const struct tarn_host_options *options,
                        const char *words)
{
    struct tarn_device device = tarn_device_host(options);
    struct tarn_session *session;
    struct tarn_arena *arena;
    struct tarn_memory_needs needs;
    struct tarn_error error;
    assert_int_equal(tarn_session_create(plan, device, NULL, &session, &error), TARN_USAGE);
    assert_says(&error, words);
    assert_int_equal(tarn_session_needs(plan, device, NULL, 0, &needs, &error), TARN_USAGE);
    assert_says(&error, words);
    assert_int_equal(tarn_arena_create(&plan, 1, device, NULL, &arena, &error), TARN_USAGE);
    assert_says(&error, words);
}

static void a_host_device_that_lacks_what_it_must_say_is_refused_before_it_is_asked(void **state)
{
    (void)state;
    struct tarn_graph *graph =
        random_graph(&(struct random_graph_options){.seed = 3, .ops = 20, .streams = 2});
    struct source source = {0};
    struct tarn_memory_source memory = {sizeof memory, create_memory, NULL, &source, 0};
    struct tarn_host_options options = *TARN_HOST_OPTIONS(.memory = &memory);
    struct tarn_plan *plan = plan_aligned(graph, 512);
    refuse_host(plan, &options, "source of memory needs both functions");
    memory.create = NULL;
    memory.destroy = destroy_memory;
    refuse_host(plan, &options, "source of memory needs both functions");
    memory.create = create_memory;
    memory.destroy = destroy_memory;
    memory.alignment = 768;
    refuse_host(plan, &options, "source of memory is 768, no power of two");
    memory.struct_size = 0;
    refuse_host(plan, &options, "memory source without their struct_size");
    memory.struct_size = sizeof memory;
    options.struct_size = 0;
    refuse_host(plan, &options, "host options without their struct_size");
    assert_int_equal(source.taken, 0);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

int main(void)
{
#define WITH_SUBJECT(test) cmocka_unit_test_setup_teardown(test, open_subject, close_subject)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_comes_from_the_callers_source_and_goes_back_there),
        cmocka_unit_test(a_host_device_that_lacks_what_it_must_say_is_refused_before_it_is_asked),
        WITH_SUBJECT(shorter_options_are_complete_with_defaults),
        WITH_SUBJECT(longer_options_are_accepted_while_their_newer_part_is_zero),
        WITH_SUBJECT(queues_of_communication_alone_are_urgent_unless_told_otherwise),
        WITH_SUBJECT(what_a_device_cannot_allocate_is_told_with_what_to_do),
        WITH_SUBJECT(memory_that_is_brought_must_be_large_and_aligned),
        WITH_SUBJECT(persistent_tensors_are_bound_and_bound_again),
        cmocka_unit_test(bound_memory_is_aligned_to_elements),
        WITH_SUBJECT(a_binding_that_is_refused_says_why),
        WITH_SUBJECT(kernels_are_captured_once_until_something_is_bound),
        WITH_SUBJECT(what_cannot_be_captured_is_refused),
        WITH_SUBJECT(submit_keeps_to_the_depth),
        WITH_SUBJECT(submit_and_destroy_give_up_when_their_patience_ends),
        WITH_SUBJECT(cancellation_lets_what_runs_end_and_begins_nothing),
        WITH_SUBJECT(a_session_cancelled_while_idle_says_so_once),
        WITH_SUBJECT(a_device_that_is_lost_ends_the_session_at_a_copy),
        WITH_SUBJECT(the_flight_recorder_tells_the_last_commands),
        WITH_SUBJECT(a_dump_after_an_error_tells_what_led_to_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
