/* The work runs on a thread of the call's own, so that no part of it, however long, has to remember
 * the caller: the calling thread sleeps, looks at the caller's stop twenty times a second, and
 * calls `beat` four times a second. What the work says to `progress` waits until the calling thread
 * has passed it on. Cost: a thread. */
#include "beat.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "streams/base/deadline.h"
#include "streams/base/log.h"
#include "streams/base/options.h"
#include "streams/base/thread.h"

#define LOOK_MS 50.0 /* at the caller's stop */
#define BEAT_MS 250.0

/* How far the work is, in its own terms. */
union news {
    struct tarn_plan_progress plan;
    struct tarn_transform_progress transform;
};

/* Of `plan` and `transform`, options and work, one is set: what the call is about. */
struct beating {
    const struct tarn_plan_options *plan;
    const struct tarn_transform_control *transform;
    union {
        tarn_beat_work *plan;
        tarn_transform_work *transform;
    } work;
    void *subject;
    const atomic_bool *given_stop;
    atomic_bool stop;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t woken; /* either thread, by the other one */
    union news best;
    bool has_news; /* `best` is to be passed on */
    bool is_done;
    enum tarn_status status;
};

/* ---- The thread that works ---- */

static void note(struct beating *beating, const union news *news)
{
    pthread_mutex_lock(&beating->lock);
    beating->best = *news;
    beating->has_news = true;
    pthread_cond_broadcast(&beating->woken);
    while (beating->has_news) pthread_cond_wait(&beating->woken, &beating->lock);
    pthread_mutex_unlock(&beating->lock);
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
static enum tarn_status call_work(struct beating *beating)
{
    const bool *stop = (const bool *)&beating->stop;
    if (beating->plan) {
        struct tarn_plan_options options = *beating->plan;
        options.beat = NULL;
        options.stop = stop;
        options.progress = note_plan;
        options.user = beating;
        return beating->work.plan(&options, beating->subject);
    }
    struct tarn_transform_control control = *beating->transform;
    control.beat = NULL;
    control.stop = stop;
    control.progress = note_transform;
    control.user = beating;
    return beating->work.transform(&control, beating->subject);
}

static void *work(void *user)
{
    struct beating *beating = user;
    enum tarn_status status = call_work(beating);
    pthread_mutex_lock(&beating->lock);
    beating->status = status;
    beating->is_done = true;
    pthread_cond_broadcast(&beating->woken);
    pthread_mutex_unlock(&beating->lock);
    return NULL;
}

/* ---- The calling thread ---- */

static void look_at_stop(struct beating *beating)
{
    const atomic_bool *stop = beating->given_stop;
    if (stop && atomic_load_explicit(stop, memory_order_relaxed))
        atomic_store(&beating->stop, true);
}

static void tell(const struct beating *beating, const union news *news)
{
    const struct tarn_plan_options *plan = beating->plan;
    const struct tarn_transform_control *transform = beating->transform;
    if (plan && plan->progress) plan->progress(plan->user, &news->plan);
    if (transform && transform->progress) transform->progress(transform->user, &news->transform);
}

static bool ask(const struct beating *beating, const union news *news)
{
    return beating->plan ? beating->plan->beat(beating->plan->user, &news->plan)
                         : beating->transform->beat(beating->transform->user, &news->transform);
}

/* With the lock held, which is open while the caller's function runs. */
static void pass_on(struct beating *beating)
{
    union news best = beating->best;
    pthread_mutex_unlock(&beating->lock);
    tell(beating, &best);
    look_at_stop(beating);
    pthread_mutex_lock(&beating->lock);
    beating->has_news = false;
    pthread_cond_broadcast(&beating->woken);
}

static void beat(struct beating *beating)
{
    union news best = beating->best;
    pthread_mutex_unlock(&beating->lock);
    if (ask(beating, &best)) atomic_store(&beating->stop, true);
    pthread_mutex_lock(&beating->lock);
}

static void sleep_a_while(struct beating *beating)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(LOOK_MS * 1e6);
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&beating->woken, &beating->lock, &until);
}

static void attend(struct beating *beating)
{
    pthread_mutex_lock(&beating->lock);
    if (beating->has_news) pass_on(beating);
    beat(beating); /* at once, also where the work is done by now */
    double next_ms = tarn_now_ms() + BEAT_MS;
    while (!beating->is_done) {
        if (beating->has_news) {
            pass_on(beating);
        } else if (tarn_now_ms() >= next_ms) {
            beat(beating);
            next_ms = tarn_now_ms() + BEAT_MS;
        } else {
            sleep_a_while(beating);
        }
        look_at_stop(beating);
    }
    pthread_mutex_unlock(&beating->lock);
}

/* ---- The call ---- */

static void beating_init(struct beating *beating)
{
    pthread_condattr_t attributes;
    atomic_init(&beating->stop, false);
    look_at_stop(beating);
    pthread_mutex_init(&beating->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&beating->woken, &attributes);
    pthread_condattr_destroy(&attributes);
}

static enum tarn_status run(struct beating *beating)
{
    pthread_t thread;
    beating_init(beating);
    bool started = tarn_thread_start(&thread, work, beating);
    if (!started) tarn_log(TARN_LOG_WARNING, "the system refuses a thread: there are no beats");
    if (started) {
        attend(beating);
        pthread_join(thread, NULL);
    }
    pthread_cond_destroy(&beating->woken);
    pthread_mutex_destroy(&beating->lock);
    if (started) return beating->status;
    return beating->plan ? beating->work.plan(beating->plan, beating->subject)
                         : beating->work.transform(beating->transform, beating->subject);
}

enum tarn_status tarn_beat_run(const struct tarn_plan_options *options, tarn_beat_work *function,
                               void *subject)
{
    struct beating beating = {.plan = options,
                              .work.plan = function,
                              .subject = subject,
                              .given_stop = (const atomic_bool *)options->stop,
                              .best.plan.struct_size = sizeof beating.best.plan};
    return options->beat ? run(&beating) : function(options, subject);
}

enum tarn_status tarn_transform_beat(const struct tarn_transform_control *control,
                                     const char *transform, tarn_transform_work *function,
                                     void *subject)
{
    if (!control || !control->beat) return function(control, subject);
    struct beating beating = {
        .transform = control,
        .work.transform = function,
        .subject = subject,
        .given_stop = (const atomic_bool *)control->stop,
        .best.transform = {.struct_size = sizeof beating.best.transform, .transform = transform}};
    return run(&beating);
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
    return status ? status : tarn_options_seconds(taken->seconds, error);
}
