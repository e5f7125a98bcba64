/* The work runs on a thread of the call's own, so that no part of it has to poll: the calling
 * thread sleeps, reads the caller's stop twenty times a second, and calls `heartbeat` four times a
 * second. A report to `progress` waits until the calling thread has passed it on. Cost: a thread.
 */
#include "heartbeat.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "streams/base/deadline.h"
#include "streams/base/log.h"
#include "streams/base/options.h"
#include "streams/base/thread.h"

#define LOOK_MS 50.0 /* at the caller's stop */
#define HEARTBEAT_MS 250.0

/* How far the work is, in its own terms. */
union news {
    struct tarn_plan_progress plan;
    struct tarn_transform_progress transform;
};

/* Of `plan` and `transform`, options and work, exactly one is set: the kind of the call. */
struct monitored_work {
    const struct tarn_plan_options *plan;
    const struct tarn_transform_control *transform;
    union {
        tarn_heartbeat_work *plan;
        tarn_transform_work *transform;
    } work;
    void *subject;
    const atomic_bool *given_stop;
    atomic_bool stop;
    pthread_mutex_t lock; /* of the members below */
    pthread_cond_t woken; /* each thread is woken by the other */
    union news best;
    bool has_news; /* `best` is to be passed on */
    bool is_done;
    enum tarn_status status;
};

/* ---- The thread that works ---- */

static void note(struct monitored_work *monitored, const union news *news)
{
    pthread_mutex_lock(&monitored->lock);
    monitored->best = *news;
    monitored->has_news = true;
    pthread_cond_broadcast(&monitored->woken);
    while (monitored->has_news) pthread_cond_wait(&monitored->woken, &monitored->lock);
    pthread_mutex_unlock(&monitored->lock);
}

static void note_plan(void *user, const struct tarn_plan_progress *progress)
{
    note(user, &(union news){.plan = *progress});
}

static void note_transform(void *user, const struct tarn_transform_progress *progress)
{
    note(user, &(union news){.transform = *progress});
}

/* With a stop and a progress of its own. */
static enum tarn_status call_work(struct monitored_work *monitored)
{
    const bool *stop = (const bool *)&monitored->stop;
    if (monitored->plan) {
        struct tarn_plan_options options = *monitored->plan;
        options.heartbeat = NULL;
        options.stop = stop;
        options.progress = note_plan;
        options.user = monitored;
        return monitored->work.plan(&options, monitored->subject);
    }
    struct tarn_transform_control control = *monitored->transform;
    control.heartbeat = NULL;
    control.stop = stop;
    control.progress = note_transform;
    control.user = monitored;
    return monitored->work.transform(&control, monitored->subject);
}

static void *work(void *user)
{
    struct monitored_work *monitored = user;
    enum tarn_status status = call_work(monitored);
    pthread_mutex_lock(&monitored->lock);
    monitored->status = status;
    monitored->is_done = true;
    pthread_cond_broadcast(&monitored->woken);
    pthread_mutex_unlock(&monitored->lock);
    return NULL;
}

/* ---- The calling thread ---- */

static void look_at_stop(struct monitored_work *monitored)
{
    const atomic_bool *stop = monitored->given_stop;
    if (stop && atomic_load_explicit(stop, memory_order_relaxed))
        atomic_store(&monitored->stop, true);
}

static void tell(const struct monitored_work *monitored, const union news *news)
{
    const struct tarn_plan_options *plan = monitored->plan;
    const struct tarn_transform_control *transform = monitored->transform;
    if (plan && plan->progress) plan->progress(plan->user, &news->plan);
    if (transform && transform->progress) transform->progress(transform->user, &news->transform);
}

static bool ask(const struct monitored_work *monitored, const union news *news)
{
    return monitored->plan
               ? monitored->plan->heartbeat(monitored->plan->user, &news->plan)
               : monitored->transform->heartbeat(monitored->transform->user, &news->transform);
}

/* With the lock held, which is open while the caller's function runs. */
static void pass_on(struct monitored_work *monitored)
{
    union news best = monitored->best;
    pthread_mutex_unlock(&monitored->lock);
    tell(monitored, &best);
    look_at_stop(monitored);
    pthread_mutex_lock(&monitored->lock);
    monitored->has_news = false;
    pthread_cond_broadcast(&monitored->woken);
}

static void heartbeat(struct monitored_work *monitored)
{
    union news best = monitored->best;
    pthread_mutex_unlock(&monitored->lock);
    if (ask(monitored, &best)) atomic_store(&monitored->stop, true);
    pthread_mutex_lock(&monitored->lock);
}

static void sleep_a_while(struct monitored_work *monitored)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(LOOK_MS * 1e6);
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&monitored->woken, &monitored->lock, &until);
}

static void watch(struct monitored_work *monitored)
{
    pthread_mutex_lock(&monitored->lock);
    if (monitored->has_news) pass_on(monitored);
    heartbeat(monitored); /* at once, even if the work is done by now */
    double next_ms = tarn_now_ms() + HEARTBEAT_MS;
    while (!monitored->is_done) {
        if (monitored->has_news) {
            pass_on(monitored);
        } else if (tarn_now_ms() >= next_ms) {
            heartbeat(monitored);
            next_ms = tarn_now_ms() + HEARTBEAT_MS;
        } else {
            sleep_a_while(monitored);
        }
        look_at_stop(monitored);
    }
    pthread_mutex_unlock(&monitored->lock);
}

/* ---- The call ---- */

static void monitored_init(struct monitored_work *monitored)
{
    pthread_condattr_t attributes;
    atomic_init(&monitored->stop, false);
    look_at_stop(monitored);
    pthread_mutex_init(&monitored->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&monitored->woken, &attributes);
    pthread_condattr_destroy(&attributes);
}

static enum tarn_status run(struct monitored_work *monitored)
{
    pthread_t thread;
    monitored_init(monitored);
    bool started = tarn_thread_start(&thread, work, monitored);
    if (!started)
        tarn_log(TARN_LOG_WARNING, "the system refuses a thread: there are no heartbeats");
    if (started) {
        watch(monitored);
        pthread_join(thread, NULL);
    }
    pthread_cond_destroy(&monitored->woken);
    pthread_mutex_destroy(&monitored->lock);
    if (started) return monitored->status;
    return monitored->plan ? monitored->work.plan(monitored->plan, monitored->subject)
                           : monitored->work.transform(monitored->transform, monitored->subject);
}

enum tarn_status tarn_run_with_heartbeat(const struct tarn_plan_options *options,
                                         tarn_heartbeat_work *function, void *subject)
{
    struct monitored_work monitored = {.plan = options,
                                       .work.plan = function,
                                       .subject = subject,
                                       .given_stop = (const atomic_bool *)options->stop,
                                       .best.plan.struct_size = sizeof monitored.best.plan};
    return options->heartbeat ? run(&monitored) : function(options, subject);
}

enum tarn_status tarn_transform_with_heartbeat(const struct tarn_transform_control *control,
                                               const char *transform, tarn_transform_work *function,
                                               void *subject)
{
    if (!control || !control->heartbeat) return function(control, subject);
    struct monitored_work monitored = {
        .transform = control,
        .work.transform = function,
        .subject = subject,
        .given_stop = (const atomic_bool *)control->stop,
        .best.transform = {.struct_size = sizeof monitored.best.transform, .transform = transform}};
    return run(&monitored);
}

enum tarn_status tarn_control_take(struct tarn_transform_control *taken,
                                   const struct tarn_transform_control **control,
                                   struct tarn_error *error)
{
    if (!*control) return TARN_OK;
    const struct tarn_transform_control *given = *control;
    *control = taken;
    enum tarn_status status =
        tarn_options_take(taken, sizeof *taken, given, "the control of a transform", error);
    return status != TARN_OK ? status : tarn_options_seconds(taken->seconds, error);
}
