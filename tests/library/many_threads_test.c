/* 64 threads at once on a few graphs and plans that they share: they plan, transform, verify, run
 * checked, run until somebody cancels, retain and release, and stop each other's searches. Every
 * answer is the one that a lone thread gets, or that of a stop; the thread sanitizer sees races. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "streams/graph/graph.h"
#include "streams/plan/plan.h"
#include "support/footprint.h"
#include "support/random_graph.h"
#include "support/session_calls.h"
#include "tarn.h"

enum {
    THREADS = 64,
    SUBJECTS = 3,
    ROUNDS = SANITIZED ? 2 : 20,
    ITERATIONS = SANITIZED ? 300 : 3000,
    EFFORT = 20
};

/* What all share. */
struct subject {
    struct tarn_graph *graph;
    struct tarn_plan *plan;
    uint64_t footprint, digest;
};

struct run;

struct member {
    struct run *run;
    pthread_t thread;
    struct random_source source;
    bool stop;                    /* of its search; set by others, atomically */
    pthread_mutex_t lock;         /* of its session */
    struct tarn_session *session; /* that others may cancel; NULL: none */
    struct tarn_error error;      /* what went wrong */
    bool is_wrong;
    uint64_t acts;
};

struct run {
    struct subject subjects[SUBJECTS];
    struct member members[THREADS];
    time_t end; /* of a campaign; 0: ROUNDS acts each */
};

/* ---- Acts: each tells whether its answer is the right one ---- */

static bool plan_alone(struct member *member, const struct subject *subject)
{
    struct tarn_plan *plan = NULL;
    bool is_right =
        tarn_plan_create(subject->graph, TARN_PLAN_OPTIONS(.threads = 2, .effort = EFFORT), &plan,
                         &member->error) == TARN_OK &&
        footprint_of(plan) == subject->footprint;
    tarn_plan_destroy(plan);
    return is_right;
}

/* Others may end it: what comes then is a plan all the same. */
static bool plan_until_stopped(struct member *member, const struct subject *subject)
{
    struct tarn_plan *plan = NULL;
    __atomic_store_n(&member->stop, false, __ATOMIC_RELAXED);
    bool is_right = tarn_plan_create(
                        subject->graph,
                        TARN_PLAN_OPTIONS(.threads = 2, .effort = 4 * EFFORT, .stop = &member->stop,
                                          .reorder = TARN_REORDER_OPTIONS(.effort = 2)),
                        &plan, &member->error) == TARN_OK &&
                    tarn_plan_verify(plan, subject->graph, NULL, NULL, &member->error) == TARN_OK;
    tarn_plan_destroy(plan);
    return is_right;
}

static bool transform(struct member *member, const struct subject *subject)
{
    struct tarn_graph *graph = subject->graph, *result = NULL;
    enum tarn_status status = TARN_OK;
    switch (random_below(&member->source, 5)) {
    case 0: status = tarn_graph_reorder(graph, NULL, &result, &member->error); break;
    case 1: status = tarn_graph_couple(graph, NULL, &result, &member->error); break;
    case 2: status = tarn_graph_assign(graph, NULL, &result, &member->error); break;
    case 3: status = tarn_graph_in_place(graph, NULL, &result, &member->error); break;
    default: status = tarn_graph_budget(graph, NULL, &result, &member->error); break;
    }
    tarn_graph_destroy(result);
    return status == TARN_OK;
}

static bool verify(struct member *member, const struct subject *subject)
{
    struct tarn_verdict *verdict = NULL;
    enum tarn_status status =
        tarn_plan_verify(subject->plan, subject->graph, NULL, &verdict, &member->error);
    tarn_verdict_destroy(verdict);
    return status == TARN_OK;
}

static bool keep_for_a_while(struct member *member, const struct subject *subject)
{
    struct tarn_graph *graph = tarn_graph_retain(subject->graph);
    struct tarn_plan *plan = tarn_plan_retain(subject->plan);
    bool is_right = verify(member, &(struct subject){.graph = graph, .plan = plan});
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
    return is_right;
}

static bool run_checked(struct member *member, const struct subject *subject)
{
    const struct tarn_host_options host = {.struct_size = sizeof host, .workers = 2};
    struct tarn_session *session = NULL;
    struct tarn_check_report report = {0};
    enum tarn_status status =
        tarn_session_create(subject->plan, tarn_device_host(&host), NULL, &session, &member->error);
    if (!status) status = tarn_session_check(session, NULL, &report, &member->error);
    tarn_session_destroy(session);
    return status == TARN_OK && report.digest == subject->digest;
}

static void show(struct member *member, struct tarn_session *session)
{
    pthread_mutex_lock(&member->lock);
    member->session = session;
    pthread_mutex_unlock(&member->lock);
}

static bool run_until_cancelled(struct member *member, const struct subject *subject)
{
    const struct tarn_host_options host = {.struct_size = sizeof host, .workers = 2};
    struct tarn_session *session = NULL;
    tarn_ticket ticket;
    enum tarn_status status =
        tarn_session_create(subject->plan, tarn_device_host(&host), NULL, &session, &member->error);
    if (status) return false;
    tarn_session_bind_default(session, do_nothing, NULL);
    show(member, session);
    status = tarn_session_submit(session, ITERATIONS, &ticket, &member->error);
    if (!status) status = tarn_session_wait(session, ticket, TARN_FOREVER, &member->error);
    show(member, NULL);
    tarn_session_destroy(session);
    return status == TARN_OK || status == TARN_INTERRUPTED;
}

static bool disturb_others(struct member *member, const struct subject *subject)
{
    (void)subject;
    struct member *other = &member->run->members[random_below(&member->source, THREADS)];
    __atomic_store_n(&other->stop, true, __ATOMIC_RELAXED);
    pthread_mutex_lock(&other->lock);
    if (other->session) tarn_session_cancel(other->session);
    pthread_mutex_unlock(&other->lock);
    return true;
}

static bool (*const acts[])(struct member *member, const struct subject *subject) = {
    plan_alone,       plan_until_stopped, transform,           verify,
    keep_for_a_while, run_checked,        run_until_cancelled, disturb_others};
enum { ACTS = sizeof acts / sizeof *acts };

/* ---- The threads ---- */

static bool goes_on(const struct member *member)
{
    if (member->is_wrong) return false;
    return member->run->end ? time(NULL) < member->run->end : member->acts < ROUNDS;
}

static void *live(void *argument)
{
    struct member *member = argument;
    for (; goes_on(member); member->acts++) {
        const struct subject *subject =
            &member->run->subjects[random_below(&member->source, SUBJECTS)];
        uint32_t act = random_below(&member->source, ACTS);
        member->is_wrong = !acts[act](member, subject);
        if (member->is_wrong) printf("# act %u: %s\n", act, member->error.text);
    }
    return NULL;
}

static struct subject make_subject(uint64_t seed)
{
    struct subject subject;
    struct tarn_session *session;
    struct tarn_check_report report;
    struct tarn_error error;
    subject.graph = random_graph(&(struct random_graph_options){.seed = seed,
                                                                .ops = 30,
                                                                .streams = 3,
                                                                .parameters = 2,
                                                                .reach = 10,
                                                                .inplace_share = 20,
                                                                .output_share = 10,
                                                                .group_share = 10});
    require(tarn_plan_create(subject.graph, TARN_PLAN_OPTIONS(.threads = 1, .effort = EFFORT),
                             &subject.plan, &error),
            &error);
    subject.footprint = footprint_of(subject.plan);
    require(tarn_session_create(subject.plan, tarn_device_host(NULL), NULL, &session, &error),
            &error);
    require(tarn_session_check(session, NULL, &report, &error), &error);
    subject.digest = report.digest;
    tarn_session_destroy(session);
    return subject;
}

static void many_threads_on_shared_graphs_and_plans_gets_the_answers_of_one(void **state)
{
    (void)state;
    static struct run run;
    const char *minutes = getenv("TARN_CAMPAIGN");
    time_t begin = time(NULL);
    uint64_t done = 0;
    run.end = minutes ? begin + (time_t)(atof(minutes) * 60) : 0;
    for (uint32_t i = 0; i < SUBJECTS; i++) run.subjects[i] = make_subject(i);
    for (uint32_t i = 0; i < THREADS; i++) {
        struct member *member = &run.members[i];
        member->run = &run;
        member->source.state = i;
        pthread_mutex_init(&member->lock, NULL);
    }
    for (uint32_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&run.members[i].thread, NULL, live, &run.members[i]), 0);
    for (uint32_t i = 0; i < THREADS; i++) pthread_join(run.members[i].thread, NULL);
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_false(run.members[i].is_wrong);
        pthread_mutex_destroy(&run.members[i].lock);
        done += run.members[i].acts;
    }
    for (uint32_t i = 0; i < SUBJECTS; i++) {
        tarn_plan_destroy(run.subjects[i].plan);
        tarn_graph_destroy(run.subjects[i].graph);
    }
    if (minutes)
        printf("# campaign | 64 threads on shared graphs and plans%s | %llu | %lld | 0\n",
               SANITIZED ? ", sanitized" : "", (unsigned long long)done,
               (long long)(time(NULL) - begin));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_threads_on_shared_graphs_and_plans_gets_the_answers_of_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
