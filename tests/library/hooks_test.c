/* An allocator and a log of the caller's: everything that the library takes comes from it and goes
 * back to it, memory that it refuses is an error and no more, and the log gets lines. The allocator
 * is set once for the whole program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/failing_calls.h"
#include "support/random_graph.h"
#include "tarn.h"

/* ---- The caller's allocator ---- */

static struct {
    atomic_ullong taken; /* calls of take and resize */
    atomic_llong alive;  /* blocks */
    atomic_llong bytes;  /* of these, as large as they were made */
    atomic_ullong first; /* that call fails; UINT64_MAX: none */
    atomic_uint strange; /* calls with what cannot be */
} pool = {.first = UINT64_MAX};

static _Thread_local uint64_t taken_here; /* bytes that this thread has asked for */

static bool is_refused(void) { return atomic_fetch_add(&pool.taken, 1) == pool.first; }

static void *take(void *user, size_t size)
{
    if (user != &pool || size == 0) pool.strange++;
    taken_here += size;
    if (is_refused()) return NULL;
    pool.alive++;
    void *memory = malloc(size);
    pool.bytes += (long long)malloc_usable_size(memory);
    return memory ? memset(memory, 0xa5, size) : NULL;
}

static void *resize(void *user, void *memory, size_t size)
{
    if (user != &pool || size == 0) pool.strange++;
    taken_here += size;
    if (is_refused()) return NULL;
    if (!memory) pool.alive++;
    pool.bytes -= (long long)malloc_usable_size(memory);
    memory = realloc(memory, size);
    pool.bytes += (long long)malloc_usable_size(memory);
    return memory;
}

static void release(void *user, void *memory)
{
    if (user != &pool || !memory) pool.strange++;
    pool.alive--;
    pool.bytes -= (long long)malloc_usable_size(memory);
    free(memory);
}

static const struct tarn_allocator *allocator(void)
{
    static struct tarn_allocator allocator = {.struct_size = sizeof allocator,
                                              .user = &pool,
                                              .take = take,
                                              .resize = resize,
                                              .release = release};
    return &allocator;
}

/* ---- What a program does ---- */

struct text {
    char *bytes; /* of the C library: they are the caller's */
    size_t size;
};

static int append(void *user, const void *bytes, size_t size)
{
    struct text *text = user;
    char *longer = realloc(text->bytes, text->size + size);
    if (!longer) return 1;
    memcpy(longer + text->size, bytes, size);
    *text = (struct text){longer, text->size + size};
    return 0;
}

static int do_nothing(void *user, const struct tarn_call *call)
{
    (void)user, (void)call;
    return 0;
}

static enum tarn_status run(struct tarn_plan *plan)
{
    struct tarn_session *session;
    struct tarn_host_event *event;
    void *memory;
    enum tarn_status status =
        tarn_session_create(plan, tarn_device_host(NULL), NULL, &session, NULL);
    if (status) return status;
    status = tarn_session_bind_default(session, do_nothing, NULL);
    if (!status) status = tarn_session_host_memory_create(session, 5000, &memory, NULL);
    if (!status) {
        assert_int_equal((uintptr_t)memory % 4096, 0);
        memset(memory, 1, 5000);
        tarn_session_host_memory_destroy(session, memory, 5000);
        status = tarn_host_event_create(&event, NULL);
    }
    if (!status) tarn_host_event_destroy(event);
    if (!status) status = tarn_session_submit(session, 2, NULL, NULL);
    if (!status) status = tarn_session_wait(session, 2, TARN_FOREVER, NULL);
    assert_int_equal(tarn_session_destroy_within(session, TARN_FOREVER, NULL), TARN_OK);
    return status;
}

static enum tarn_status travel(struct tarn_graph *graph, struct tarn_plan *plan)
{
    struct text file = {NULL, 0};
    struct tarn_plan *read = NULL;
    struct tarn_change *changes = NULL;
    size_t count;
    enum tarn_status status = tarn_plan_write(
        plan, TARN_WRITER(.name = "plan.json.gz", .write = append, .user = &file), NULL);
    if (!status)
        status = tarn_plan_read(
            TARN_READER(.name = "plan.json.gz", .bytes = file.bytes, .size = file.size), graph,
            TARN_VERIFY, NULL, &read, NULL);
    if (!status) status = tarn_graph_changes(graph, tarn_plan_graph(read), &changes, &count, NULL);
    if (!status) status = run(read);
    tarn_free(changes);
    tarn_plan_destroy(read);
    free(file.bytes);
    return status;
}

/* From a graph's text to a session, and all is given back. */
static enum tarn_status live(const struct text *source)
{
    struct tarn_graph *graph = NULL;
    struct tarn_plan *plan = NULL;
    enum tarn_status status = tarn_graph_read(
        TARN_READER(.name = "graph.json.gz", .bytes = source->bytes, .size = source->size), NULL,
        &graph, NULL);
    if (!status)
        status = tarn_plan_create(graph,
                                  TARN_PLAN_OPTIONS(.threads = 1, .effort = 4,
                                                    .reorder = TARN_REORDER_OPTIONS(.effort = 2),
                                                    .couple = TARN_COUPLE_OPTIONS(0)),
                                  &plan, NULL);
    if (!status) status = travel(graph, plan);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
    return status;
}

static struct text make_source(void)
{
    struct text source = {NULL, 0};
    struct tarn_graph *graph =
        random_graph(&(struct random_graph_options){.seed = 8, .ops = 24, .streams = 3});
    assert_int_equal(
        tarn_graph_write(
            graph, TARN_WRITER(.name = "graph.json.gz", .write = append, .user = &source), NULL),
        TARN_OK);
    tarn_graph_destroy(graph);
    return source;
}

/* ---- Rules ---- */

static int set_it(void **state)
{
    (void)state;
    struct tarn_error error;
    assert_int_equal(tarn_set_allocator(TARN_ALLOCATOR(.take = take, .release = release), &error),
                     TARN_USAGE);
    assert_non_null(strstr(error.text, "resize"));
    return tarn_set_allocator(allocator(), NULL) == TARN_OK ? 0 : -1;
}

static void nothing_is_taken_beside_the_allocator_and_all_is_given_back(void **state)
{
    (void)state;
    struct text source = make_source();
    allow_calls(FAILING_MEMORY);
    uint64_t before = pool.taken;
    assert_int_equal(live(&source), TARN_OK);
    uint64_t taken = pool.taken - before, made = calls_made(FAILING_MEMORY);
    assert_true(taken > 100);
    /* Those of the allocator, and what `append` asked for. */
    assert_true(made >= taken && made - taken <= 4);
    assert_int_equal(pool.alive, 0);
    assert_int_equal(pool.strange, 0);
    free(source.bytes);
}

static void memory_that_is_refused_is_an_error_and_no_more(void **state)
{
    (void)state;
    struct text source = make_source();
    uint64_t before = pool.taken;
    assert_int_equal(live(&source), TARN_OK);
    uint64_t calls = pool.taken - before, failures = 0, step = calls / 400 + 1;
    for (uint64_t n = 0; n < calls; n += step) {
        pool.first = pool.taken + n;
        enum tarn_status status = live(&source);
        if (status != TARN_OK) assert_int_equal(status, TARN_SYSTEM);
        failures += status != TARN_OK;
        pool.first = UINT64_MAX;
        assert_int_equal(pool.alive, 0);
    }
    assert_true(failures > 50);
    free(source.bytes);
}

static void an_allocator_is_set_once_and_before_any_memory_is_taken(void **state)
{
    (void)state;
    struct tarn_error error;
    assert_int_equal(tarn_set_allocator(allocator(), &error), TARN_USAGE);
    assert_non_null(strstr(error.text, "already"));
}

/* ---- The log ---- */

struct heard {
    atomic_uint lines[2];
    char last[512];
};

static void hear(void *user, enum tarn_log_level level, const char *line)
{
    struct heard *heard = user;
    heard->lines[level]++;
    snprintf(heard->last, sizeof heard->last, "%s", line);
}

static void the_log_tells_plans_sessions_and_refused_threads(void **state)
{
    (void)state;
    struct heard heard = {.last = ""};
    struct tarn_graph *graph =
        random_graph(&(struct random_graph_options){.seed = 2, .ops = 9, .streams = 1});
    struct tarn_plan *plan;
    assert_int_equal(tarn_set_log(TARN_LOG(.user = &heard), NULL), TARN_USAGE);
    const struct tarn_log *everything =
                              TARN_LOG(.user = &heard, .line = hear, .level = TARN_LOG_INFO),
                          *warnings = TARN_LOG(.user = &heard, .line = hear);
    assert_int_equal(tarn_set_log(everything, NULL), TARN_OK);
    assert_int_equal(tarn_plan_create(graph, NULL, &plan, NULL), TARN_OK);
    assert_int_equal(heard.lines[TARN_LOG_INFO], 1);
    assert_non_null(strstr(heard.last, "footprint"));
    assert_int_equal(run(plan), TARN_OK);
    assert_true(heard.lines[TARN_LOG_INFO] == 2);
    assert_int_equal(tarn_set_log(warnings, NULL), TARN_OK);
    assert_int_equal(run(plan), TARN_OK);
    assert_true(heard.lines[TARN_LOG_INFO] == 2);
    assert_int_equal(tarn_set_log(NULL, NULL), TARN_OK);
    unsigned before = heard.lines[TARN_LOG_INFO] + heard.lines[TARN_LOG_WARNING];
    assert_int_equal(run(plan), TARN_OK);
    assert_int_equal(heard.lines[TARN_LOG_INFO] + heard.lines[TARN_LOG_WARNING], before);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

static bool go_on(void *user, const struct tarn_plan_progress *progress)
{
    (void)user, (void)progress;
    return false;
}

static void a_refused_thread_is_a_warning(void **state)
{
    (void)state;
    struct heard heard = {.last = ""};
    struct tarn_graph *graph =
        random_graph(&(struct random_graph_options){.seed = 2, .ops = 9, .streams = 1});
    struct tarn_plan *plan;
    assert_int_equal(tarn_set_log(TARN_LOG(.user = &heard, .line = hear), NULL), TARN_OK);
    fail_calls(FAILING_THREADS, 0, UINT64_MAX);
    enum tarn_status status =
        tarn_plan_create(graph, TARN_PLAN_OPTIONS(.heartbeat = go_on), &plan, NULL);
    allow_calls(FAILING_THREADS);
    assert_int_equal(status, TARN_OK);
    assert_true(heard.lines[TARN_LOG_WARNING] > 0);
    assert_int_equal(tarn_set_log(NULL, NULL), TARN_OK);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

/* ---- Size ---- */

/* Forward ops with an input and an output, then backward ops with three and, every second time,
 * two, on six streams; nothing else that an op can have. */
static struct tarn_graph *make_training(uint32_t depth)
{
    struct tarn_builder *b = tarn_builder_create("training");
    struct tarn_graph *graph;
    char name[16];
    for (uint32_t s = 0; s < 6; s++) tarn_builder_stream(b, "s");
    for (uint32_t v = 0, tensors = 0; v < 2 * depth; v++) {
        bool forward = v < depth, two = !forward && v % 2 == 0;
        uint32_t ids[3] = {tensors - 1, 2 * depth - 1 - v, 2 * depth - 2 - v};
        uint32_t inputs = v == 0 ? 0 : forward || v + 1 == 2 * depth ? 1 : 3;
        snprintf(name, sizeof name, "t%u", tensors);
        for (int k = 0; k <= two; k++)
            tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = name, .size = 4096});
        snprintf(name, sizeof name, "op%u", v);
        tarn_builder_op(
            b, &(struct tarn_op_info){.name = name,
                                      .kind = "op",
                                      .stream = v % 6,
                                      .inputs = {ids, inputs},
                                      .outputs = {(uint32_t[]){tensors, tensors + 1}, 1u + two},
                                      .cost = v});
        tensors += 1 + two;
    }
    assert_int_equal(tarn_builder_finish(b, &graph, NULL), TARN_OK);
    return graph;
}

static void a_graph_takes_at_most_220_bytes_a_storage(void **state)
{
    (void)state;
    long long before = pool.bytes;
    struct tarn_graph *graph = make_training(20000);
    long long bytes = pool.bytes - before, storages = tarn_graph_tensors_count(graph);
    tarn_graph_destroy(graph);
    assert_int_equal(pool.bytes, before);
#if SANITIZED || defined(ITEMS_APART)
    skip(); /* every list and string is an allocation of its own */
#endif
    if (bytes > 220 * storages) fail_msg("%.1f B a storage", (double)bytes / (double)storages);
}

/* ---- Heartbeats ---- */

static bool hear_transform(void *user, const struct tarn_transform_progress *progress)
{
    (void)user, (void)progress;
    return false;
}

static enum tarn_status run_verb(int verb, struct tarn_graph *graph)
{
    const struct tarn_transform_control *control =
        TARN_TRANSFORM_CONTROL(.steps = 2, .heartbeat = hear_transform);
    const struct tarn_reorder_options *reorder = TARN_REORDER_OPTIONS(.control = control);
    const struct tarn_couple_options *couple = TARN_COUPLE_OPTIONS(.control = control);
    const struct tarn_budget_options *budget = TARN_BUDGET_OPTIONS(.control = control);
    const struct tarn_plan_options *options =
        TARN_PLAN_OPTIONS(.effort = TARN_NO_EFFORT, .heartbeat = go_on, .couple = couple);
    struct tarn_graph *graphs[] = {graph, graph}, *result = NULL;
    struct tarn_plan *plans[2] = {NULL, NULL};
    struct tarn_budget_report rows[2];
    enum tarn_status status = TARN_USAGE;
    if (verb == 0) status = tarn_plan_create(graph, options, plans, NULL);
    if (verb == 1) status = tarn_family_plan(graphs, 2, options, plans, NULL);
    if (verb == 2) status = tarn_graph_transform(graph, options, &result, NULL);
    if (verb == 3) status = tarn_graph_reorder(graph, reorder, &result, NULL);
    if (verb == 4) status = tarn_graph_couple(graph, couple, &result, NULL);
    if (verb == 5) status = tarn_graph_budget(graph, budget, &result, NULL);
    if (verb == 6) status = tarn_graph_budget_curve(graph, budget, rows, 2, NULL);
    tarn_graph_destroy(result);
    for (int i = 0; i < 2; i++) tarn_plan_destroy(plans[i]);
    return status;
}

/* What takes long takes memory: that is left to the thread that works, so that heartbeats are in
 * time.
 */
static void with_a_heartbeat_the_calling_thread_takes_no_memory_of_the_graphs_size(void **state)
{
    (void)state;
    struct tarn_graph *graph = make_training(300);
    for (int verb = 0; verb < 7; verb++) {
        taken_here = 0;
        assert_int_equal(run_verb(verb, graph), TARN_OK);
        assert_in_range(taken_here, 0, 2000);
    }
    tarn_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_a_heartbeat_the_calling_thread_takes_no_memory_of_the_graphs_size),
        cmocka_unit_test(a_graph_takes_at_most_220_bytes_a_storage),
        cmocka_unit_test(nothing_is_taken_beside_the_allocator_and_all_is_given_back),
        cmocka_unit_test(memory_that_is_refused_is_an_error_and_no_more),
        cmocka_unit_test(an_allocator_is_set_once_and_before_any_memory_is_taken),
        cmocka_unit_test(the_log_tells_plans_sessions_and_refused_threads),
        cmocka_unit_test(a_refused_thread_is_a_warning),
    };
    return cmocka_run_group_tests(tests, set_it, NULL);
}
