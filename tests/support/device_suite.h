/* One conformance suite for every back end: what the device table promises, and whole sessions on
 * it. A part that the device lacks the means for is skipped and reported so. A test program for a
 * back end says how to open it and calls device_suite_run; nothing else is needed. */
#ifndef TARN_TESTS_SUPPORT_DEVICE_SUITE_H
#define TARN_TESTS_SUPPORT_DEVICE_SUITE_H

#include <stdbool.h>
#include <stdint.h>

#include "tarn/device.h"

struct device_suite {
    const char *name;
    void *user; /* of the functions */
    /* Opens the device anew for each test. False: it is not here, and everything is skipped. */
    bool (*open)(void *user, struct tarn_device *device);
    void (*close)(void *user, struct tarn_device device); /* optional */
    /* Optional: how many objects of the device are alive (memory, queues, events, ...): none may
     * be left over, and no more after a thousand iterations than after a few. */
    uint64_t (*alive)(void *user);
    /* Optional: lets `calls` more calls of the table that can fail succeed and the one after them
     * fail, once; true from the call on when it has happened. UINT64_MAX: none fails. */
    bool (*fail_after)(void *user, uint64_t calls);
    uint64_t large_bytes; /* of an arena that must work; 0: 256 MiB, sanitized 16 */
};

/* Runs it all as one cmocka group. Returns the number of failures. */
int device_suite_run(const struct device_suite *suite);

#endif
