/* The work runs on a thread of the call's own, so that no part of it, however long, has to remember
 * the caller: the calling thread sleeps, looks at the caller's stop twenty times a second, and
 * calls `beat` four times a second. What the work says to `progress` waits until the calling thread
 * has passed it on. Cost: a thread. */
#include "beat.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "streams/base/deadline.h"
#include "streams/base/parallel.h"

#define LOOK_MS 50.0 /* at the caller's stop */
#define BEAT_MS 250.0

struct beating {
    const struct tarn_plan_options *given;
    struct tarn_plan_options options; /* of the work */
    tarn_beat_work *work;
    void *subject;
    atomic_bool stop;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t woken; /* either thread, by the other one */
    struct tarn_plan_progress best;
    bool has_news; /* `best` is to be passed on */
    bool is_done;
    enum tarn_status status;
};

/* ---- The thread that works ---- */

static void note_progress(void *user, const struct tarn_plan_progress *progress)
{
    struct beating *beating = user;
    pthread_mutex_lock(&beating->lock);
    beating->best = *progress;
    beating->has_news = true;
    pthread_cond_broadcast(&beating->woken);
    while (beating->has_news) pthread_cond_wait(&beating->woken, &beating->lock);
    pthread_mutex_unlock(&beating->lock);
}

static void *work(void *user)
{
    struct beating *beating = user;
    enum tarn_status status = beating->work(&beating->options, beating->subject);
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
    const atomic_bool *stop = (const atomic_bool *)beating->given->stop;
    if (stop && atomic_load_explicit(stop, memory_order_relaxed))
        atomic_store(&beating->stop, true);
}

/* With the lock held, which is open while the caller's function runs. */
static void pass_on(struct beating *beating)
{
    const struct tarn_plan_options *given = beating->given;
    struct tarn_plan_progress best = beating->best;
    pthread_mutex_unlock(&beating->lock);
    if (given->progress) given->progress(given->user, &best);
    look_at_stop(beating);
    pthread_mutex_lock(&beating->lock);
    beating->has_news = false;
    pthread_cond_broadcast(&beating->woken);
}

static void beat(struct beating *beating)
{
    struct tarn_plan_progress best = beating->best;
    pthread_mutex_unlock(&beating->lock);
    if (beating->given->beat(beating->given->user, &best)) atomic_store(&beating->stop, true);
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
    double next_ms = tarn_now_ms();
    pthread_mutex_lock(&beating->lock);
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
    beating->options = *beating->given;
    beating->options.beat = NULL;
    beating->options.stop = (const bool *)&beating->stop;
    beating->options.progress = note_progress;
    beating->options.user = beating;
    atomic_init(&beating->stop, false);
    look_at_stop(beating);
    pthread_mutex_init(&beating->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&beating->woken, &attributes);
    pthread_condattr_destroy(&attributes);
}

enum tarn_status tarn_beat_run(const struct tarn_plan_options *options, tarn_beat_work *function,
                               void *subject)
{
    struct beating beating = {.given = options, .work = function, .subject = subject};
    pthread_t thread;
    if (!options->beat) return function(options, subject);
    beating_init(&beating);
    bool started = tarn_thread_start(&thread, work, &beating);
    if (started) {
        attend(&beating);
        pthread_join(thread, NULL);
    }
    pthread_cond_destroy(&beating.woken);
    pthread_mutex_destroy(&beating.lock);
    return started ? beating.status : function(options, subject);
}
