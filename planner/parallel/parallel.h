/* Runs work on OpenMP's threads. Without OpenMP the calling thread does all the work.
 *
 * OpenMP keeps a pool of threads for each thread that calls, from one call to the next. It does not
 * survive two events, which this file handles:
 *
 *   fork      a child has the pool's records and none of its threads, and would wait for them: in a
 *             forked child the calling thread works alone
 *   refusal   OpenMP ends the process if the system refuses a thread: as many threads as a pool is
 *             about to get are created first, all alive at once, and joined. A refused one means
 *             a smaller pool
 *
 * Inside a parallel region of the caller's own the calling thread works alone, too. */
#ifndef TARN_PLANNER_PARALLEL_PARALLEL_H
#define TARN_PLANNER_PARALLEL_PARALLEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { TARN_TEAM_THREADS_MAX = 256 };

/* Does one item. thread: 0 for the calling thread, another number for each other one, below the
 * team's `threads` and below the number of items. */
typedef void tarn_team_work(void *user, uint32_t thread, uint32_t item);

/* How work is spread. It is used by the thread that initialised it. */
struct tarn_team {
    uint32_t threads; /* at most, the calling one included */
    bool eager;       /* else other threads take part only when the work has taken a while */
    double begin_ms;  /* when the first work began; 0: not yet */
    uint32_t granted; /* how many of `threads` the system grants; 0: not asked yet */
};

/* threads: 0 stands for OMP_NUM_THREADS, else for the processors that this thread may run on or
 * that its control group pays for. eager: a single item is worth the start of a thread, some 50 us.
 * Starts no thread. */
void tarn_team_init(struct tarn_team *team, uint32_t threads, bool eager);

/* Does items 0..count-1, each once and in no certain order, and returns when all items are done. If
 * the system refuses threads, fewer threads do the work. Afterwards the caller can read what the
 * items have written. */
void tarn_team_run(struct tarn_team *team, uint32_t count, tarn_team_work *work, void *user);

/* ---- The first to meet an aim ---- Items have numbers. Of the items that meet an aim the one with
 * the lowest number wins, even if another one is done first. So the result does not depend on the
 * number of threads, and items with larger numbers can stop. */

struct tarn_winner {
    atomic_uint_least64_t number; /* UINT64_MAX: no item has met the aim yet */
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
