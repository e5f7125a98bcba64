/* Parts that tests/run.sh was asked for with --with: what needs one and does not find it fails
 * instead of being skipped. */
#ifndef TARN_TESTS_SUPPORT_REQUIRED_H
#define TARN_TESTS_SUPPORT_REQUIRED_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* part: opencl, gpu or starpu. */
static inline bool is_required(const char *part)
{
    const char *next = getenv("TARN_REQUIRE");
    size_t length = strlen(part);
    while (next) {
        size_t found = strcspn(next, ",");
        if (found == length && strncmp(next, part, length) == 0) return true;
        next = next[found] ? next + found + 1 : NULL;
    }
    return false;
}

#endif
