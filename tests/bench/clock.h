/* Time for benches: of the wall, or of the processor where the machine is shared. */
#ifndef TARN_TESTS_BENCH_CLOCK_H
#define TARN_TESTS_BENCH_CLOCK_H

#include <time.h>

static inline double clock_ms(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

#endif
