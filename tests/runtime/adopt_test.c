/* A session between the steps of others, who own queues, events and threads: their step fills the
 * input, the session's iteration runs, their next step looks at an output; nobody waits on the host
 * in between. On the host with events of it and a pool of threads, on paper with queues and events
 * of the device, under all interleavings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/buckets.h"
#include "support/session_calls.h"

enum { BUCKET = 2, STEPS = 40, X_MAX = 1024, OUT = 16 };

struct world {
    struct buckets buckets;
    struct queue_device paper;
    struct tarn_session *session;
    tarn_tensor x, s;
    uint64_t x_size;
    unsigned char seen[STEPS][OUT]; /* what their second step found */
};

static void open_world(struct world *w, struct tarn_device device, struct queue_device *paper,
                       struct tarn_session_options *options)
{
    struct tarn_error error;
    struct tarn_tensor_info info;
    buckets_init(&w->buckets, paper);
    require(tarn_session_create(w->buckets.plans[BUCKET], device, options, &w->session, &error),
            &error);
    assert_int_equal(tarn_session_bind_default(w->session, bucket_kernel, &w->buckets), TARN_OK);
    w->x = tarn_graph_find_tensor(w->buckets.graphs[BUCKET], "x");
    w->s = tarn_graph_find_tensor(w->buckets.graphs[BUCKET], "s");
    tarn_graph_tensor(w->buckets.graphs[BUCKET], w->x, &info);
    w->x_size = info.size;
}

static void close_world(struct world *w)
{
    /* after a deadline tarn_session_destroy waits 0.1 s only, in which a busy machine's threads may
     * not run */
    assert_int_equal(tarn_session_destroy_within(w->session, TARN_FOREVER, NULL), TARN_OK);
    buckets_finish(&w->buckets);
}

static void fill_input(unsigned char *x, uint64_t size, uint64_t step)
{
    struct random_source source = {step};
    for (uint64_t i = 0; i < size; i++) x[i] = (unsigned char)random_next(&source);
}

/* Every step saw what the reference has at that time. */
static void expect_steps(struct world *w, uint64_t steps)
{
    for (uint64_t k = 0; k < steps; k++) {
        fill_input(buckets_bytes(&w->buckets, BUCKET, "x"), w->x_size, k);
        buckets_step(&w->buckets, BUCKET);
        assert_memory_equal(w->seen[k], buckets_bytes(&w->buckets, BUCKET, "s"), OUT);
    }
}

/* ---- On the host ---- */

struct host_steps {
    struct world *world;
    struct tarn_host_event *event; /* 2k + 1: the input of step k is there, 2k + 2: it has run */
};

static void *run_steps(void *argument)
{
    struct host_steps *steps = argument;
    struct world *w = steps->world;
    for (uint64_t k = 0; k < STEPS; k++) {
        fill_input(tarn_session_address(w->session, w->x), w->x_size, k);
        tarn_host_event_raise(steps->event, 2 * k + 1);
        tarn_host_event_wait(steps->event, 2 * k + 2, TARN_FOREVER, NULL);
        memcpy(w->seen[k], tarn_session_address(w->session, w->s), OUT);
    }
    return NULL;
}

static void stand_between_host_steps(const struct tarn_host_options *host)
{
    struct world w;
    struct tarn_error error;
    tarn_ticket ticket = 0;
    pthread_t thread;
    open_world(&w, tarn_device_host(host), NULL, NULL);
    struct host_steps steps = {.world = &w};
    require(tarn_host_event_create(&steps.event, &error), &error);
    pthread_create(&thread, NULL, run_steps, &steps);
    for (uint64_t k = 0; k < STEPS; k++) {
        const struct tarn_event wait = {steps.event, 2 * k + 1}, signal = {steps.event, 2 * k + 2};
        require(
            tarn_session_submit_with(w.session, 1,
                                     TARN_SUBMIT_OPTIONS(.waits = &wait, .waits_count = 1,
                                                         .signals = &signal, .signals_count = 1),
                                     &ticket, &error),
            &error);
    }
    pthread_join(thread, NULL);
    assert_int_equal(tarn_host_event_value(steps.event), 2 * STEPS);
    tarn_host_event_destroy(steps.event); /* the session has it still */
    require(tarn_session_wait(w.session, ticket, TARN_FOREVER, &error), &error);
    expect_steps(&w, STEPS);
    close_world(&w);
}

static void a_session_stands_between_two_steps_of_a_thread(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers <= 3; workers++)
        stand_between_host_steps(TARN_HOST_OPTIONS(.workers = workers, .binding = TARN_BIND_NONE));
}

static void more_submits_with_events_than_there_is_room_for_wait_for_each_other(void **state)
{
    (void)state;
    enum { MANY = 300 };
    struct world w;
    struct tarn_error error;
    struct tarn_host_event *event;
    tarn_ticket ticket = 0;
    open_world(&w, tarn_device_host(NULL), NULL, NULL);
    require(tarn_host_event_create(&event, &error), &error);
    for (uint64_t k = 0; k < MANY; k++) {
        const struct tarn_event wait = {event, k}, signal = {event, k + 1};
        require(
            tarn_session_submit_with(w.session, 1 + k % 3,
                                     TARN_SUBMIT_OPTIONS(.waits = &wait, .waits_count = k % 2,
                                                         .signals = &signal, .signals_count = 1),
                                     &ticket, &error),
            &error);
    }
    require(tarn_host_event_wait(event, MANY, TARN_FOREVER, &error), &error);
    require(tarn_session_wait(w.session, ticket, TARN_FOREVER, &error), &error);
    tarn_host_event_destroy(event);
    close_world(&w);
}

/* ---- Threads of the caller's ---- */

enum { POOL = 2, QUEUE = 64 };

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct {
        void (*task)(void *argument);
        void *argument;
    } queue[QUEUE];
    uint32_t first, count, tasks;
    uint32_t refuse_every; /* so manieth task is refused; 0: none */
    bool ends;
    pthread_t threads[POOL];
};

static void *run_pool(void *argument)
{
    struct pool *pool = argument;
    pthread_mutex_lock(&pool->lock);
    while (!pool->ends || pool->count > 0) {
        if (pool->count == 0) {
            pthread_cond_wait(&pool->changed, &pool->lock);
            continue;
        }
        uint32_t i = pool->first++ % QUEUE;
        pool->count--;
        void (*task)(void *) = pool->queue[i].task;
        void *task_argument = pool->queue[i].argument;
        pthread_mutex_unlock(&pool->lock);
        task(task_argument);
        pthread_mutex_lock(&pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static int execute(void *user, void (*task)(void *argument), void *argument)
{
    struct pool *pool = user;
    pthread_mutex_lock(&pool->lock);
    pool->tasks++;
    bool refuses = pool->refuse_every > 0 && pool->tasks % pool->refuse_every == 1;
    if (!refuses) {
        uint32_t i = (pool->first + pool->count++) % QUEUE;
        assert_true(pool->count <= QUEUE);
        pool->queue[i].task = task;
        pool->queue[i].argument = argument;
        pthread_cond_broadcast(&pool->changed);
    }
    pthread_mutex_unlock(&pool->lock);
    return refuses;
}

static void open_pool(struct pool *pool, uint32_t refuse_every)
{
    memset(pool, 0, sizeof *pool);
    pool->refuse_every = refuse_every;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->changed, NULL);
    for (uint32_t i = 0; i < POOL; i++) pthread_create(&pool->threads[i], NULL, run_pool, pool);
}

static void close_pool(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->ends = true;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
    for (uint32_t i = 0; i < POOL; i++) pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->lock);
}

static void streams_run_on_threads_of_the_callers_pool(void **state)
{
    (void)state;
    struct pool pool;
    open_pool(&pool, 0);
    stand_between_host_steps(TARN_HOST_OPTIONS(.execute = execute, .execute_user = &pool));
    assert_true(pool.tasks > 0);
    close_pool(&pool);
}

static void tasks_that_the_pool_refuses_are_tried_again(void **state)
{
    (void)state;
    struct pool pool;
    struct world w;
    struct tarn_error error;
    tarn_ticket ticket;
    open_pool(&pool, 2);
    open_world(&w, tarn_device_host(TARN_HOST_OPTIONS(.execute = execute, .execute_user = &pool)),
               NULL, NULL);
    for (uint32_t i = 0; i < 20; i++) {
        require(tarn_session_submit(w.session, 3, &ticket, &error), &error);
        require(tarn_session_wait(w.session, ticket, TARN_FOREVER, &error), &error);
    }
    close_world(&w);
    close_pool(&pool);
}

struct refuser {
    _Atomic uint32_t calls;
    uint32_t before; /* so many tasks are taken first, and run at once by a thread of their own */
};

static void *run_task(void *argument)
{
    void **task = argument;
    ((void (*)(void *))(uintptr_t)task[0])(task[1]);
    free(task);
    return NULL;
}

static int execute_or_refuse(void *user, void (*task)(void *argument), void *argument)
{
    struct refuser *refuser = user;
    pthread_t thread;
    if (atomic_fetch_add(&refuser->calls, 1) >= refuser->before) return 11;
    void **copy = malloc(2 * sizeof *copy);
    copy[0] = (void *)(uintptr_t)task;
    copy[1] = argument;
    if (pthread_create(&thread, NULL, run_task, copy)) return 12;
    pthread_detach(thread);
    return 0;
}

/* At once, or after some iterations; its caller waits for ever, for a time, or only asks. */
static void a_pool_that_refuses_every_task_is_told(void **state)
{
    (void)state;
    for (uint32_t way = 0; way < 4; way++) {
        struct refuser refuser = {.before = way == 3 ? 3 : 0};
        struct world w;
        struct tarn_error error;
        tarn_ticket ticket;
        open_world(&w,
                   tarn_device_host(
                       TARN_HOST_OPTIONS(.execute = execute_or_refuse, .execute_user = &refuser)),
                   NULL, NULL);
        enum tarn_status status = TARN_OK;
        uint32_t iterations = 0;
        for (; iterations < 100000 && !status; iterations++) {
            require(tarn_session_submit(w.session, 1, &ticket, &error), &error);
            if (way == 1) status = tarn_session_wait(w.session, ticket, 50000000, &error);
            if (way == 2)
                while ((status = tarn_session_wait(w.session, ticket, 0, &error)) == TARN_DEADLINE)
                    usleep(100);
            if (way == 0 || way == 3)
                status = tarn_session_wait(w.session, ticket, TARN_FOREVER, &error);
        }
        assert_int_equal(status, way == 1 ? TARN_DEADLINE : TARN_SYSTEM);
        assert_says(&error, "refused tasks");
        assert_says(&error, "with code 11");
        /* not thousands, beside those of iterations that the tasks taken first have run */
        assert_true(refuser.calls < refuser.before + 64 * iterations + 1500);
        close_world(&w);
    }
}

struct owner {
    struct pool *pool;
    atomic_uint strangers; /* kernels on other threads than the pool's */
};

static int look_at_thread(void *user, const struct tarn_call *call)
{
    struct owner *owner = user;
    (void)call;
    bool is_own = false;
    for (uint32_t i = 0; i < POOL; i++)
        is_own |= pthread_equal(pthread_self(), owner->pool->threads[i]) != 0;
    if (!is_own) atomic_fetch_add(&owner->strangers, 1);
    return 0;
}

static void kernels_run_on_no_thread_of_tarns_own(void **state)
{
    (void)state;
    struct pool pool;
    struct world w;
    open_pool(&pool, 0);
    struct owner owner = {.pool = &pool};
    open_world(&w, tarn_device_host(TARN_HOST_OPTIONS(.execute = execute, .execute_user = &pool)),
               NULL, NULL);
    assert_int_equal(tarn_session_bind_default(w.session, look_at_thread, &owner), TARN_OK);
    run_iterations(w.session, 100);
    assert_int_equal(owner.strangers, 0);
    close_world(&w);
    close_pool(&pool);
}

struct noise {
    struct tarn_host_event *event;
    atomic_bool ends;
};

static void *raise_on_and_on(void *argument)
{
    struct noise *noise = argument;
    for (uint64_t value = 1; !atomic_load(&noise->ends); value++)
        tarn_host_event_raise(noise->event, value);
    return NULL;
}

static void submit_with(struct world *w, struct tarn_event wait, struct tarn_event signal)
{
    struct tarn_error error;
    require(tarn_session_submit_with(w->session, 1,
                                     TARN_SUBMIT_OPTIONS(.waits = &wait, .waits_count = 1,
                                                         .signals = &signal, .signals_count = 1),
                                     NULL, &error),
            &error);
}

/* While a stream of one session has stopped, every raise schedules workers of all sessions. */
static void a_session_may_be_destroyed_while_events_are_raised(void **state)
{
    (void)state;
    struct pool pool;
    struct world stopped;
    struct noise noise = {NULL};
    struct tarn_host_event *gate;
    struct tarn_error error;
    pthread_t thread;
    open_pool(&pool, 0);
    struct tarn_device device =
        tarn_device_host(TARN_HOST_OPTIONS(.execute = execute, .execute_user = &pool));
    require(tarn_host_event_create(&noise.event, &error), &error);
    require(tarn_host_event_create(&gate, &error), &error);
    open_world(&stopped, device, NULL, NULL);
    submit_with(&stopped, (struct tarn_event){gate, 1}, (struct tarn_event){gate, 2});
    pthread_create(&thread, NULL, raise_on_and_on, &noise);
    for (uint32_t i = 0; i < DRAWS(300); i++) {
        struct world w;
        open_world(&w, device, NULL, NULL);
        submit_with(&w, (struct tarn_event){gate, 0}, (struct tarn_event){noise.event, 1});
        require(tarn_session_wait(w.session, 1, TARN_FOREVER, &error), &error);
        close_world(&w);
    }
    atomic_store(&noise.ends, true);
    pthread_join(thread, NULL);
    tarn_host_event_raise(gate, 1);
    require(tarn_host_event_wait(gate, 2, TARN_FOREVER, &error), &error);
    require(tarn_session_wait(stopped.session, 1, TARN_FOREVER, &error), &error);
    close_world(&stopped);
    close_pool(&pool);
    tarn_host_event_destroy(gate);
    tarn_host_event_destroy(noise.event);
}

/* ---- On queues ---- */

struct paper_steps {
    struct world *world;
    struct queue_device *paper;
    void *queue; /* theirs */
    uint64_t filled, looked;
};

static void fill_work(void *user, const struct tarn_call *call)
{
    struct paper_steps *steps = user;
    struct world *w = steps->world;
    (void)call;
    fill_input(tarn_session_address(w->session, w->x), w->x_size, steps->filled++);
}

static void look_work(void *user, const struct tarn_call *call)
{
    struct paper_steps *steps = user;
    struct world *w = steps->world;
    (void)call;
    memcpy(w->seen[steps->looked++], tarn_session_address(w->session, w->s), OUT);
}

enum tie { BY_QUEUE, BY_EVENTS };

static void submit_between(struct paper_steps *steps, enum tie tie, void *ready, void *done)
{
    struct tarn_device device = {&steps->paper->table, steps->paper};
    const struct tarn_call call = {.queue = steps->queue};
    const struct tarn_event wait = {.event = ready}, signal = {.event = done};
    struct tarn_submit_options *by_queue = TARN_SUBMIT_OPTIONS(.queue = steps->queue);
    struct tarn_submit_options *by_events =
        TARN_SUBMIT_OPTIONS(.waits = &wait, .waits_count = 1, .signals = &signal,
                            .signals_count = 1);
    struct tarn_error error;
    queue_device_enqueue(steps->paper, fill_work, steps, &call);
    if (tie == BY_EVENTS) device.table->event_record(device.self, ready, steps->queue);
    require(tarn_session_submit_with(steps->world->session, 1,
                                     tie == BY_EVENTS ? by_events : by_queue, NULL, &error),
            &error);
    if (tie == BY_EVENTS) device.table->event_wait(device.self, done, steps->queue);
    queue_device_enqueue(steps->paper, look_work, steps, &call);
}

/* adopts: the streams' queues are theirs, too. */
static void stand_between_queue_steps(uint64_t seed, enum tie tie, bool captures, bool adopts)
{
    enum { FEW = 8 };
    struct world w = {.paper = {.source = {seed}}};
    struct tarn_device device = queue_device(&w.paper);
    const struct tarn_queue_info info = {.name = "theirs"};
    void *queues[3] = {NULL}, *ready, *done, *own;
    for (uint32_t s = 0; s < 2 && adopts; s++)
        device.table->queue_create(device.self, &info, &queues[s]);
    device.table->queue_create(device.self, &info, &own);
    device.table->event_create(device.self, &ready);
    device.table->event_create(device.self, &done);
    uint32_t theirs = queue_device_alive(&w.paper);
    open_world(&w, device, &w.paper,
               TARN_SESSION_OPTIONS(.queues = queues, .capture = captures, .unroll = 2 * captures));
    struct paper_steps steps = {.world = &w, .paper = &w.paper, .queue = own};
    for (uint32_t k = 0; k < FEW; k++) submit_between(&steps, tie, ready, done);
    queue_device_run(&w.paper);
    expect_steps(&w, FEW);
    assert_int_equal(w.paper.strange, 0);
    close_world(&w);
    assert_int_equal(queue_device_alive(&w.paper), theirs);
    device.table->event_destroy(device.self, ready);
    device.table->event_destroy(device.self, done);
    device.table->queue_destroy(device.self, own);
    for (uint32_t s = 0; s < 2 && adopts; s++) device.table->queue_destroy(device.self, queues[s]);
}

static void a_session_stands_between_two_pieces_of_a_queue(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(200); seed++) {
        for (uint32_t form = 0; form < 8; form++)
            stand_between_queue_steps(seed, form & 1 ? BY_EVENTS : BY_QUEUE, form & 2, form & 4);
    }
}

/* ---- Other memory for every iteration ---- */

struct buffers {
    unsigned char x[STEPS][X_MAX];
    unsigned char out[STEPS][OUT];
};

/* times: how often each is bound before a submit. */
static void bind_every_step(struct world *w, struct buffers *buffers, uint32_t times)
{
    struct tarn_error error;
    tarn_ticket ticket = 0;
    for (uint64_t k = 0; k < STEPS; k++) {
        fill_input(buffers->x[k], w->x_size, k);
        for (uint32_t i = 0; i < times; i++) {
            require(tarn_session_bind_memory(w->session, w->x, buffers->x[k], &error), &error);
            require(tarn_session_bind_memory(w->session, w->s, buffers->out[k], &error), &error);
        }
        assert_ptr_equal(tarn_session_address(w->session, w->x), buffers->x[k]);
        require(tarn_session_submit(w->session, 1, &ticket, &error), &error);
        if (k % 17 == 16)
            require(tarn_session_wait(w->session, ticket, TARN_FOREVER, &error), &error);
    }
    require(tarn_session_wait(w->session, ticket, TARN_FOREVER, &error), &error);
    memcpy(w->seen, buffers->out, sizeof w->seen);
    expect_steps(w, STEPS);
    unsigned char last[OUT];
    require(tarn_session_read(w->session, w->s, last, OUT, &error), &error);
    assert_memory_equal(last, buffers->out[STEPS - 1], OUT);
}

static void every_iteration_may_have_inputs_and_outputs_of_its_own(void **state)
{
    (void)state;
    static struct buffers buffers;
    for (uint32_t times = 1; times <= 100; times += 99) { /* the second fills the ring */
        struct world w;
        open_world(&w, tarn_device_host(TARN_HOST_OPTIONS(.binding = TARN_BIND_NONE)), NULL, NULL);
        bind_every_step(&w, &buffers, times);
        close_world(&w);
    }
    for (uint64_t seed = 0; seed < DRAWS(100); seed++) {
        struct world w = {.paper = {.source = {seed}, .closures = seed % 2 > 0}};
        open_world(&w, queue_device(&w.paper), &w.paper, NULL);
        bind_every_step(&w, &buffers, 1);
        close_world(&w);
        assert_int_equal(queue_device_alive(&w.paper), 0);
    }
}

static void a_device_with_regions_keeps_those_that_ops_under_way_have(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(100); seed++) {
        struct world w = {.paper = {.source = {seed}, .regions = true}};
        struct tarn_device device = queue_device(&w.paper);
        struct tarn_error error;
        tarn_ticket ticket;
        void *memory, *region;
        device.table->memory_create(device.self, OUT, &memory);
        device.table->region_create(device.self, memory, 0, OUT, &region);
        open_world(&w, device, &w.paper, NULL);
        require(tarn_session_submit(w.session, 1, NULL, &error), &error);
        require(tarn_session_bind_memory(w.session, w.s, region, &error), &error);
        require(tarn_session_submit(w.session, 1, &ticket, &error), &error);
        require(tarn_session_wait(w.session, ticket, TARN_FOREVER, &error), &error);
        for (uint32_t i = 0; i < 2; i++) buckets_step(&w.buckets, BUCKET);
        assert_memory_equal(queue_device_bytes(&w.paper, region),
                            buckets_bytes(&w.buckets, BUCKET, "s"), OUT);
        close_world(&w);
        device.table->region_destroy(device.self, region);
        device.table->memory_destroy(device.self, memory, OUT);
        assert_int_equal(queue_device_alive(&w.paper), 0);
    }
}

/* ---- What cannot work ---- */

static void what_cannot_be_bound_is_refused(void **state)
{
    (void)state;
    struct world w = {.paper = {.stuck = false}};
    struct tarn_error error;
    unsigned char bytes[X_MAX];
    open_world(&w, queue_device(&w.paper), &w.paper, TARN_SESSION_OPTIONS(.capture = true));
    tarn_tensor h = tarn_graph_find_tensor(w.buckets.graphs[BUCKET], "h");
    assert_int_equal(tarn_session_bind_memory(w.session, h, bytes, &error), TARN_USAGE);
    assert_says(&error, "only persistent tensors and outputs");
    require(tarn_session_bind_memory(w.session, w.x, bytes, &error), &error);
    require(tarn_session_submit(w.session, 1, NULL, &error), &error);
    assert_int_equal(tarn_session_bind_memory(w.session, w.x, bytes, &error), TARN_USAGE);
    assert_says(&error, "in use in a captured block: wait for ticket 1 first");
    require(tarn_session_wait(w.session, 1, TARN_FOREVER, &error), &error);
    require(tarn_session_bind_memory(w.session, w.x, bytes, &error), &error);
    close_world(&w);
}

static enum tarn_status submit(struct tarn_session *session, struct tarn_submit_options *options,
                               struct tarn_error *error)
{
    return tarn_session_submit_with(session, 1, options, NULL, error);
}

static void what_cannot_work_is_refused_and_the_next_submit_is_as_if_it_had_not_been(void **state)
{
    (void)state;
    struct world w;
    struct tarn_error error;
    struct tarn_host_event *event;
    void *queues[3] = {&w};
    struct tarn_session *session;
    open_world(&w, tarn_device_host(NULL), NULL, NULL);
    require(tarn_host_event_create(&event, &error), &error);
    const struct tarn_event none = {NULL, 1}, high = {event, UINT64_MAX}, never = {event, 1};
    const struct tarn_event then_none[] = {never, none};
    struct tarn_session *s = w.session;
    assert_int_equal(submit(s, TARN_SUBMIT_OPTIONS(.queue = &w), &error), TARN_USAGE);
    assert_says(&error, "the host has no queues");
    assert_int_equal(submit(s, TARN_SUBMIT_OPTIONS(.waits_count = 1), &error), TARN_USAGE);
    assert_int_equal(submit(s, TARN_SUBMIT_OPTIONS(.waits = then_none, .waits_count = 2), &error),
                     TARN_USAGE);
    assert_says(&error, "an event is NULL");
    assert_int_equal(submit(s, TARN_SUBMIT_OPTIONS(.signals = &none, .signals_count = 1), &error),
                     TARN_USAGE);
    assert_int_equal(submit(s, TARN_SUBMIT_OPTIONS(.waits = &high, .waits_count = 1), &error),
                     TARN_USAGE);
    assert_says(&error, "cannot reach");
    run_iterations(s, 3);
    assert_int_equal(tarn_host_event_value(event), 0);
    assert_int_equal(tarn_host_event_wait(event, 1, 1000, &error), TARN_DEADLINE);
    assert_int_equal(tarn_session_create(w.buckets.plans[BUCKET], tarn_device_host(NULL),
                                         TARN_SESSION_OPTIONS(.queues = queues), &session, &error),
                     TARN_USAGE);
    assert_says(&error, "has a queue, but device 'host' has none");
    /* what is never raised ends as a deadline */
    require(submit(s, TARN_SUBMIT_OPTIONS(.waits = &never, .waits_count = 1), &error), &error);
    assert_int_equal(tarn_session_wait(s, 4, 2000000, &error), TARN_DEADLINE);
    tarn_host_event_destroy(event);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_stands_between_two_steps_of_a_thread),
        cmocka_unit_test(more_submits_with_events_than_there_is_room_for_wait_for_each_other),
        cmocka_unit_test(streams_run_on_threads_of_the_callers_pool),
        cmocka_unit_test(tasks_that_the_pool_refuses_are_tried_again),
        cmocka_unit_test(a_pool_that_refuses_every_task_is_told),
        cmocka_unit_test(kernels_run_on_no_thread_of_tarns_own),
        cmocka_unit_test(a_session_may_be_destroyed_while_events_are_raised),
        cmocka_unit_test(a_session_stands_between_two_pieces_of_a_queue),
        cmocka_unit_test(every_iteration_may_have_inputs_and_outputs_of_its_own),
        cmocka_unit_test(a_device_with_regions_keeps_those_that_ops_under_way_have),
        cmocka_unit_test(what_cannot_be_bound_is_refused),
        cmocka_unit_test(what_cannot_work_is_refused_and_the_next_submit_is_as_if_it_had_not_been),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
