/* How a session ends: destroying it tells whether all is over and may be repeated, and nothing that
 * the caller keeps for it is touched once it is. Devices, memory and what kernels use are on the
 * heap and go right after the answer, so that the sanitizers see who comes too late. And no two
 * sessions use the same memory of the caller's at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/queue_device.h"
#include "support/session_calls.h"
#include "support/unshared_plan.h"
#include "tarn.h"

enum { BYTES = 64, SHORT_NS = 2000000 };

/* Where the work is that does not end. */
enum kind { ON_HOST, ON_QUEUES, IN_CLOSURES, IN_A_CAPTURE, IN_A_CHECK, IN_A_CHECKED_ORDER, KINDS };

/* What kernels use. */
struct held {
    struct queue_device *paper; /* on which kernels enqueue; NULL: they do the work */
    atomic_bool is_waiting, let_go;
    uint64_t runs[2]; /* by stream */
};

struct life {
    enum kind kind;
    struct tarn_graph *graph;
    struct tarn_plan *plan;
    struct queue_device *paper;
    struct tarn_device device;
    struct held *held;
    void *memory;
    uint64_t size;
    struct tarn_session *session;
};

static void nap(void) { nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL); }

/* first: make ─► use (an output)     second: make ─► use */
static struct tarn_graph *build_graph(void)
{
    struct tarn_builder *b = tarn_builder_create("life");
    struct tarn_graph *graph;
    struct tarn_error error;
    for (uint32_t s = 0; s < 2; s++) {
        tarn_stream stream = tarn_builder_stream(b, s ? "second" : "first");
        tarn_tensor x =
            tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = "x", .size = BYTES});
        tarn_tensor y = tarn_builder_tensor(
            b, &(struct tarn_tensor_info){.name = "y", .size = BYTES, .kind = TARN_OUTPUT});
        tarn_builder_op(b, &(struct tarn_op_info){
                               .name = "make", .stream = stream, .outputs = TARN_TENSORS(x)});
        tarn_builder_op(b, &(struct tarn_op_info){.name = "use",
                                                  .stream = stream,
                                                  .inputs = TARN_TENSORS(x),
                                                  .outputs = TARN_TENSORS(y)});
    }
    require(tarn_builder_finish(b, &graph, &error), &error);
    return graph;
}

static void do_work(void *user, const struct tarn_call *call)
{
    struct held *held = user;
    held->runs[call->stream]++;
    memset(call->outputs[0], 7, BYTES);
}

static int work_or_enqueue(void *user, const struct tarn_call *call)
{
    struct held *held = user;
    if (!call->queue || held->paper->closures) {
        do_work(user, call);
        return 0;
    }
    queue_device_enqueue(held->paper, do_work, held, call);
    return 0;
}

static int wait_and_work(void *user, const struct tarn_call *call)
{
    struct held *held = user;
    atomic_store(&held->is_waiting, true);
    while (!atomic_load(&held->let_go)) nap();
    return work_or_enqueue(user, call);
}

/* ---- Lives ---- */

static bool is_checked(const struct life *life)
{
    return life->kind == IN_A_CHECK || life->kind == IN_A_CHECKED_ORDER;
}

static void life_init(struct life *life, enum kind kind)
{
    *life = (struct life){.kind = kind};
    life->graph = build_graph();
    life->plan = unshared_plan(life->graph, 64);
    life->paper = calloc(1, sizeof *life->paper);
    life->paper->closures = kind == IN_CLOSURES;
    life->paper->off_host = is_checked(life);
    life->device = kind == ON_HOST ? tarn_device_host(NULL) : queue_device(life->paper);
    life->held = calloc(1, sizeof *life->held);
    life->held->paper = kind == ON_HOST ? NULL : life->paper;
}

static void take_memory(struct life *life)
{
    struct tarn_memory_needs needed;
    struct tarn_error error;
    require(tarn_session_needs(life->plan, life->device, NULL, 0, &needed, &error), &error);
    life->size = needed.size;
    if (life->kind == ON_HOST)
        life->memory = aligned_alloc(64, (size_t)(needed.size + 63) / 64 * 64);
    else
        life->device.table->memory_create(life->device.self, needed.size, &life->memory);
    assert_non_null(life->memory);
}

static void open_session(struct life *life)
{
    struct tarn_session_options options = {.struct_size = sizeof options,
                                           .memory = life->memory,
                                           .memory_size = life->size,
                                           .capture = life->kind == IN_A_CAPTURE,
                                           .flight = 4};
    struct tarn_error error;
    require(tarn_session_create(life->plan, life->device, &options, &life->session, &error),
            &error);
}

static void set_stuck(struct life *life, bool stuck)
{
    pthread_mutex_lock(&life->paper->lock);
    life->paper->stuck = stuck;
    pthread_mutex_unlock(&life->paper->lock);
}

/* Work that does not end until it is let go. */
static void block(struct life *life)
{
    tarn_session_bind_default(life->session, work_or_enqueue, life->held);
    if (life->kind == ON_HOST)
        tarn_session_bind(life->session, 0, wait_and_work, life->held, NULL);
    else
        set_stuck(life, true);
}

static void let_go(struct life *life)
{
    atomic_store(&life->held->let_go, true);
    set_stuck(life, false);
}

/* Where another thread begins what does not end. */
static void wait_until_begun(struct life *life)
{
    while (life->kind == ON_HOST && !atomic_load(&life->held->is_waiting)) nap();
}

static void run_into_the_deadline(struct life *life)
{
    struct tarn_error error;
    tarn_ticket ticket;
    enum tarn_status status;
    if (is_checked(life)) {
        status =
            tarn_session_check(life->session,
                               TARN_CHECK_OPTIONS(.iterations = 2, .timeout_ns = SHORT_NS,
                                                  .random_order = life->kind == IN_A_CHECKED_ORDER),
                               NULL, &error);
    } else {
        require(tarn_session_submit(life->session, 2, &ticket, &error), &error);
        wait_until_begun(life);
        status = tarn_session_wait(life->session, ticket, SHORT_NS, &error);
    }
    assert_int_equal(status, TARN_DEADLINE);
}

static void life_start(struct life *life, enum kind kind)
{
    life_init(life, kind);
    take_memory(life);
    open_session(life);
    block(life);
    run_into_the_deadline(life);
}

/* After TARN_OK. */
static void life_finish(struct life *life)
{
    if (life->kind == ON_HOST)
        free(life->memory);
    else
        life->device.table->memory_destroy(life->device.self, life->memory, life->size);
    assert_int_equal(queue_device_alive(life->paper), 0);
    free(life->paper);
    free(life->held);
    tarn_plan_destroy(life->plan);
    tarn_graph_destroy(life->graph);
}

static uint64_t calls_of(struct life *life)
{
    pthread_mutex_lock(&life->paper->lock);
    uint64_t calls = life->paper->calls;
    pthread_mutex_unlock(&life->paper->lock);
    return calls;
}

/* ---- The answer ---- */

static void count_line(void *user, const char *line)
{
    (void)line;
    ++*(uint32_t *)user;
}

static void assert_refuses_all_else(struct life *life)
{
    struct tarn_error error;
    tarn_ticket ticket;
    unsigned char byte;
    uint32_t lines = 0;
    assert_int_equal(tarn_session_submit(life->session, 1, &ticket, &error), TARN_USAGE);
    assert_int_equal(tarn_session_read(life->session, 1, &byte, 1, &error), TARN_USAGE);
    assert_int_equal(tarn_session_bind_default(life->session, do_nothing, NULL), TARN_USAGE);
    tarn_session_dump(life->session, count_line, &lines);
    assert_true(lines > 2);
}

static void destroying_tells_whether_all_is_over_and_can_be_repeated(void **state)
{
    (void)state;
    for (enum kind kind = 0; kind < KINDS; kind++) {
        struct life life;
        struct tarn_error error;
        life_start(&life, kind);
        for (uint32_t n = 0; n < 3; n++) {
            assert_int_equal(tarn_session_destroy_within(life.session, SHORT_NS, &error),
                             TARN_DEADLINE);
            assert_says(&error, "not finished after 0.002 s; stream ");
            assert_refuses_all_else(&life);
        }
        assert_int_equal(tarn_session_destroy(life.session), TARN_DEADLINE);
        uint64_t calls = calls_of(&life);
        for (uint32_t n = 0; n < 20; n++) nap();
        assert_int_equal(calls_of(&life), calls); /* nobody asks the device meanwhile */
        let_go(&life);
        require(tarn_session_destroy_within(life.session, TARN_FOREVER, &error), &error);
        assert_int_equal(error.status, TARN_OK);
        life_finish(&life);
    }
}

static void asking_without_waiting_is_answered_in_the_end(void **state)
{
    (void)state;
    for (enum kind kind = 0; kind < KINDS; kind++) {
        struct life life;
        struct tarn_error error;
        life_start(&life, kind);
        for (uint32_t n = 0; n < 3; n++)
            assert_int_equal(tarn_session_destroy_within(life.session, 0, &error), TARN_DEADLINE);
        let_go(&life);
        enum tarn_status status = TARN_DEADLINE;
        while (status == TARN_DEADLINE) {
            nap();
            status = tarn_session_destroy_within(life.session, 0, &error);
        }
        require(status, &error);
        life_finish(&life);
    }
}

/* Nothing was late: it ends what was begun, and the rest is left out. */
static void a_sound_session_is_destroyed_in_the_midst_of_its_work(void **state)
{
    (void)state;
    for (enum kind kind = 0; kind < IN_A_CHECK; kind++) {
        struct life life;
        struct tarn_error error;
        tarn_ticket ticket;
        life_init(&life, kind);
        take_memory(&life);
        open_session(&life);
        tarn_session_bind_default(life.session, work_or_enqueue, life.held);
        require(tarn_session_submit(life.session, 5, &ticket, &error), &error);
        assert_int_equal(tarn_session_destroy(life.session), TARN_OK);
        life_finish(&life);
    }
    assert_int_equal(tarn_session_destroy(NULL), TARN_OK);
    assert_int_equal(tarn_session_destroy_within(NULL, 0, NULL), TARN_OK);
}

/* ---- Devices that do not answer ---- */

static void fail_from_now_on(struct life *life, enum tarn_error_class class)
{
    pthread_mutex_lock(&life->paper->lock);
    life->paper->fail_class = class;
    life->paper->fail_after = 1;
    pthread_mutex_unlock(&life->paper->lock);
}

/* A life whose device refuses every call with work on its queues. */
static void life_start_failing(struct life *life, enum kind kind, enum tarn_error_class class)
{
    struct tarn_error error;
    tarn_ticket ticket;
    life_init(life, kind);
    take_memory(life);
    open_session(life);
    block(life);
    require(tarn_session_submit(life->session, 1, &ticket, &error), &error);
    wait_until_begun(life);
    fail_from_now_on(life, class);
    assert_int_equal(tarn_session_wait(life->session, ticket, TARN_FOREVER, &error), TARN_DEVICE);
}

static void a_device_that_refuses_for_a_while_is_asked_again(void **state)
{
    (void)state;
    static const enum kind kinds[] = {ON_QUEUES, IN_CLOSURES, IN_A_CAPTURE};
    for (uint32_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct life life;
        struct tarn_error error;
        life_start_failing(&life, kinds[i], TARN_ERROR_RETRYABLE);
        for (uint32_t n = 0; n < 3; n++) {
            assert_int_equal(tarn_session_destroy_within(life.session, TARN_FOREVER, &error),
                             TARN_DEVICE);
            assert_says(&error, "device 'paper' does not tell whether its work has ended");
        }
        pthread_mutex_lock(&life.paper->lock);
        life.paper->fail_after = 0;
        pthread_mutex_unlock(&life.paper->lock);
        assert_int_equal(tarn_session_destroy_within(life.session, SHORT_NS, &error),
                         TARN_DEADLINE);
        let_go(&life);
        require(tarn_session_destroy_within(life.session, TARN_FOREVER, &error), &error);
        life_finish(&life);
    }
}

/* Its memory is nobody's for ever; what is kept for it stays reachable here. */
static void a_poisoned_device_never_tells(void **state)
{
    (void)state;
    static struct life life;
    struct tarn_error error;
    struct tarn_session *other;
    life_start_failing(&life, ON_QUEUES, TARN_ERROR_POISONED);
    for (uint32_t n = 0; n < 2; n++) {
        assert_int_equal(tarn_session_destroy(life.session), TARN_DEVICE);
        assert_int_equal(tarn_session_destroy_within(life.session, 0, &error), TARN_DEVICE);
    }
    life.paper->fail_after = 0;
    assert_int_equal(
        tarn_session_create(life.plan, life.device,
                            TARN_SESSION_OPTIONS(.memory = life.memory, .memory_size = life.size),
                            &other, &error),
        TARN_USAGE);
    assert_says(&error, "in use by another session");
}

/* ---- One memory ---- */

static enum tarn_status create_on(const struct life *life, void *memory,
                                  struct tarn_session **session, struct tarn_error *error)
{
    return tarn_session_create(life->plan, life->device,
                               TARN_SESSION_OPTIONS(.memory = memory, .memory_size = life->size),
                               session, error);
}

static void memory_is_one_sessions_until_that_is_destroyed(void **state)
{
    (void)state;
    struct life life;
    struct tarn_error error;
    struct tarn_session *session, *other;
    life_init(&life, ON_HOST);
    struct tarn_memory_needs needed;
    require(tarn_session_needs(life.plan, life.device, NULL, 0, &needed, &error), &error);
    life.size = needed.size;
    unsigned char *memory = aligned_alloc(64, 4 * life.size);
    require(create_on(&life, memory + life.size, &session, &error), &error);
    memset(tarn_session_address(session, 1), 5, BYTES);
    for (uint64_t begin = 64; begin < 2 * life.size; begin += 64) {
        assert_int_equal(create_on(&life, memory + begin, &other, &error), TARN_USAGE);
        assert_says(&error, "in use by another session or arena: destroy that one first");
        assert_says(&error, "give the memory to one tarn_arena");
    }
    assert_int_equal(*(unsigned char *)tarn_session_address(session, 1), 5);
    for (uint32_t apart = 0; apart < 3; apart += 2) {
        require(create_on(&life, memory + apart * life.size, &other, &error), &error);
        assert_int_equal(tarn_session_destroy(other), TARN_OK);
    }
    assert_int_equal(tarn_session_destroy(session), TARN_OK);
    require(create_on(&life, memory, &other, &error), &error);
    assert_int_equal(tarn_session_destroy(other), TARN_OK);
    free(memory);
    life_finish(&life);
}

/* Not before destroying has said that all is over. */
static void memory_that_may_still_be_written_is_not_another_sessions(void **state)
{
    (void)state;
    for (enum kind kind = 0; kind < IN_A_CHECK; kind++) {
        struct life life;
        struct tarn_error error;
        struct tarn_session *other;
        life_start(&life, kind);
        assert_int_equal(tarn_session_destroy_within(life.session, 0, &error), TARN_DEADLINE);
        assert_int_equal(create_on(&life, life.memory, &other, &error), TARN_USAGE);
        let_go(&life);
        require(tarn_session_destroy_within(life.session, TARN_FOREVER, &error), &error);
        require(create_on(&life, life.memory, &other, &error), &error);
        assert_int_equal(tarn_session_destroy(other), TARN_OK);
        life_finish(&life);
    }
}

/* Host addresses mean the same to every device; others only to their own. */
static void equal_addresses_of_two_devices_are_one_memory_in_the_hosts_only(void **state)
{
    (void)state;
    for (uint32_t on_host = 0; on_host < 2; on_host++) {
        struct life first, second;
        struct tarn_session *sessions[2];
        struct tarn_error error;
        life_init(&first, on_host ? ON_QUEUES : IN_A_CHECK);
        life_init(&second, on_host ? ON_QUEUES : IN_A_CHECK);
        take_memory(&first);
        take_memory(&second);
        require(create_on(&first, first.memory, &sessions[0], &error), &error);
        enum tarn_status status = create_on(&second, first.memory, &sessions[1], &error);
        assert_int_equal(status, on_host ? TARN_USAGE : TARN_OK);
        assert_int_equal(tarn_session_destroy(sessions[1]), TARN_OK);
        assert_int_equal(tarn_session_destroy(sessions[0]), TARN_OK);
        life_finish(&first);
        life_finish(&second);
    }
}

static void handles_are_one_memory_when_they_are_equal(void **state)
{
    (void)state;
    enum { HANDLES = 20 };
    struct life life;
    struct tarn_error error;
    struct tarn_session *session, *other;
    void *handles[HANDLES];
    life_init(&life, IN_A_CHECK);
    life.paper->regions = true;
    life.device = queue_device(life.paper);
    take_memory(&life);
    require(create_on(&life, life.memory, &session, &error), &error);
    assert_int_equal(create_on(&life, life.memory, &other, &error), TARN_USAGE);
    for (uint32_t i = 0; i < HANDLES; i++)
        life.device.table->memory_create(life.device.self, life.size, &handles[i]);
    for (uint32_t i = 0; i < HANDLES; i++) { /* near each other, as what malloc gives */
        require(create_on(&life, handles[i], &other, &error), &error);
        assert_int_equal(tarn_session_destroy(other), TARN_OK);
    }
    for (uint32_t i = 0; i < HANDLES; i++)
        life.device.table->memory_destroy(life.device.self, handles[i], life.size);
    assert_int_equal(tarn_session_destroy(session), TARN_OK);
    life_finish(&life);
}

/* An arena has its memory as a session has, until it is destroyed; the sessions on it bring none.
 */
static void memory_is_one_arenas_until_that_is_destroyed(void **state)
{
    (void)state;
    struct life life;
    struct tarn_error error;
    struct tarn_session *session, *other;
    struct tarn_arena *arena, *second;
    life_init(&life, ON_HOST);
    take_memory(&life);
    const struct tarn_arena_options options = {
        .struct_size = sizeof options, .memory = life.memory, .memory_size = life.size};
    require(create_on(&life, life.memory, &session, &error), &error);
    assert_int_equal(tarn_arena_create(&life.plan, 1, life.device, &options, &arena, &error),
                     TARN_USAGE);
    assert_says(&error, "in use by another session or arena");
    assert_int_equal(tarn_session_destroy(session), TARN_OK);
    require(tarn_arena_create(&life.plan, 1, life.device, &options, &arena, &error), &error);
    assert_int_equal(create_on(&life, life.memory, &other, &error), TARN_USAGE);
    assert_int_equal(tarn_arena_create(&life.plan, 1, life.device, &options, &second, &error),
                     TARN_USAGE);
    require(tarn_session_create(life.plan, life.device, TARN_SESSION_OPTIONS(.arena = arena),
                                &session, &error),
            &error);
    assert_ptr_equal(tarn_session_memory(session, 0, NULL), life.memory);
    assert_int_equal(tarn_session_destroy(session), TARN_OK);
    assert_int_equal(tarn_arena_destroy(arena), TARN_OK);
    require(create_on(&life, life.memory, &other, &error), &error);
    assert_int_equal(tarn_session_destroy(other), TARN_OK);
    life_finish(&life);
}

struct bringer {
    const struct life *life;
    atomic_uint *owners; /* sessions on the memory */
    uint32_t wrong;
};

static void *bring(void *argument)
{
    struct bringer *bringer = argument;
    for (uint32_t done = 0; done < 20;) {
        struct tarn_session *session;
        enum tarn_status status = create_on(bringer->life, bringer->life->memory, &session, NULL);
        bringer->wrong += status && status != TARN_USAGE;
        sched_yield();
        if (status) continue;
        bringer->wrong += atomic_fetch_add(bringer->owners, 1) > 0;
        sched_yield();
        atomic_fetch_sub(bringer->owners, 1);
        tarn_session_destroy(session);
        done++;
    }
    return NULL;
}

/* Of many threads that bring the same memory one gets it at a time. */
static void memory_is_one_sessions_also_between_threads(void **state)
{
    (void)state;
    enum { THREADS = 3 };
    struct life life;
    pthread_t threads[THREADS];
    struct bringer bringers[THREADS];
    atomic_uint owners = 0;
    life_init(&life, ON_HOST);
    take_memory(&life);
    for (uint32_t i = 0; i < THREADS; i++) {
        bringers[i] = (struct bringer){.life = &life, .owners = &owners};
        assert_int_equal(pthread_create(&threads[i], NULL, bring, &bringers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(bringers[i].wrong, 0);
    }
    life_finish(&life);
}

/* ---- Forks ---- */

static int in_child(struct life *life)
{
    struct tarn_error error;
    struct tarn_session *own;
    if (tarn_session_destroy(life->session) != TARN_USAGE) return 1;
    if (tarn_session_destroy_within(life->session, TARN_FOREVER, &error) != TARN_USAGE) return 2;
    if (!strstr(error.text, "belongs to the process that created it")) return 3;
    /* The child has its own copy of that memory; paper devices start no threads. */
    if (create_on(life, life->memory, &own, &error)) return 4;
    return tarn_session_destroy(own) ? 5 : 0;
}

static void a_forked_child_has_no_part_in_its_parents_sessions(void **state)
{
    (void)state;
    struct life life;
    int result;
    life_init(&life, ON_QUEUES);
    take_memory(&life);
    open_session(&life);
    pid_t child = fork();
    if (child == 0) _exit(in_child(&life));
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result));
    assert_int_equal(WEXITSTATUS(result), 0);
    assert_int_equal(tarn_session_destroy(life.session), TARN_OK);
    life_finish(&life);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(destroying_tells_whether_all_is_over_and_can_be_repeated),
        cmocka_unit_test(asking_without_waiting_is_answered_in_the_end),
        cmocka_unit_test(a_sound_session_is_destroyed_in_the_midst_of_its_work),
        cmocka_unit_test(a_device_that_refuses_for_a_while_is_asked_again),
        cmocka_unit_test(a_poisoned_device_never_tells),
        cmocka_unit_test(memory_is_one_sessions_until_that_is_destroyed),
        cmocka_unit_test(memory_that_may_still_be_written_is_not_another_sessions),
        cmocka_unit_test(equal_addresses_of_two_devices_are_one_memory_in_the_hosts_only),
        cmocka_unit_test(handles_are_one_memory_when_they_are_equal),
        cmocka_unit_test(memory_is_one_arenas_until_that_is_destroyed),
        cmocka_unit_test(memory_is_one_sessions_also_between_threads),
        cmocka_unit_test(a_forked_child_has_no_part_in_its_parents_sessions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
