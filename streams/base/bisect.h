/* Bisection: finds the first false answer in a sequence of answers that are first true and then
 * false.
 */
#ifndef TARN_STREAMS_BASE_BISECT_H
#define TARN_STREAMS_BASE_BISECT_H

#include <stdint.h>

/* `low` and `high` both become the first number of low..high - 1 for which `is_before`, an
 * expression of `middle`, does not hold, or `high` where there is none. pre: low <= high, and where
 * it holds for a number it holds for all below it. */
#define TARN_BISECT(low, high, middle, is_before)              \
    while ((low) < (high)) {                                   \
        __typeof__(low) middle = (low) + ((high) - (low)) / 2; \
        if (is_before)                                         \
            (low) = middle + 1;                                \
        else                                                   \
            (high) = middle;                                   \
    }

#endif
