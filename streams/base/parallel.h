/* Work spread over threads. The caller takes part; the other threads of a team, its helpers, are
 * started when there is work for them and joined when the team is finished. So no thread outlives
 * the call that planned: a process may plan, fork, and plan again in the child. */
#ifndef TARN_STREAMS_BASE_PARALLEL_H
#define TARN_STREAMS_BASE_PARALLEL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { TARN_TEAM_THREADS_MAX = 256 };

/* Does one item. thread: 0 for the calling thread, another number for each helper, below the team's
 * `threads` and below the most items that the team was ever given at once. */
typedef void tarn_team_work(void *user, uint32_t thread, uint32_t item);

/* Neither copied nor moved once made. */
struct tarn_team {
    uint32_t threads; /* at most, the calling one included */
    bool eager;       /* else helpers are started only when the work has taken a while */
    bool alone;       /* the system has refused a thread: no more are asked for */
    double begin_ms;  /* when the first work began; 0: not yet */
    pthread_t helpers[TARN_TEAM_THREADS_MAX];
    uint32_t helpers_count;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t begun, done;
    tarn_team_work *work;
    void *user;
    uint32_t next, count; /* items: the first that nobody has taken, and all */
    uint32_t left;        /* items that are not done */
    uint32_t arrived;     /* helpers that have taken a number */
    bool closing;
};

/* Starts a thread that blocks all signals but those of its own faults, so that the host's handlers
 * run on its own threads. The caller joins or detaches it. False: the system refuses. */
bool tarn_thread_start(pthread_t *thread, void *(*run)(void *user), void *user);

/* threads: 0 stands for the processors that this thread may run on. eager: a single item is worth
 * the start of a thread, some 50 µs. Starts no thread yet. */
void tarn_team_init(struct tarn_team *team, uint32_t threads, bool eager);
void tarn_team_finish(struct tarn_team *team);

/* Does items 0..count-1, each once and in no certain order, and returns when all are done. Where
 * threads cannot be started, fewer do the work, at worst the calling one alone. What the items have
 * written can be read afterwards. */
void tarn_team_run(struct tarn_team *team, uint32_t count, tarn_team_work *work, void *user);

/* ---- The first to meet an aim ----
 * Items have numbers. Of those that meet an aim the one with the least number wins, whichever is
 * done first: so the result does not depend on the number of threads, and items with larger numbers
 * need not go on. */

struct tarn_winner {
    atomic_uint_least64_t number; /* UINT64_MAX: nobody has met the aim yet */
};

static inline void tarn_winner_clear(struct tarn_winner *winner)
{
    atomic_store(&winner->number, UINT64_MAX);
}

/* Item `number` has met the aim. */
static inline void tarn_winner_note(struct tarn_winner *winner, uint64_t number)
{
    uint64_t least = atomic_load(&winner->number);
    while (number < least && !atomic_compare_exchange_weak(&winner->number, &least, number)) {
    }
}

/* Has an item with a lesser number met it? */
static inline bool tarn_winner_is_before(const struct tarn_winner *winner, uint64_t number)
{
    return atomic_load_explicit(&winner->number, memory_order_relaxed) < number;
}

#endif
