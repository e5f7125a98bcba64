/* What the parts of the conformance suite share: one open device per test. */
#ifndef TARN_TESTS_SUPPORT_DEVICE_SUITE_PARTS_H
#define TARN_TESTS_SUPPORT_DEVICE_SUITE_PARTS_H

#include <stddef.h>

#include "device_suite.h"

/* Before and after every test; the test's initial state is the suite. */
int device_suite_open(void **state);
int device_suite_close(void **state); /* fails when objects of the device are left */

struct tarn_device device_suite_device(void **state);
const struct device_suite *device_suite_facts(void **state);

/* Skips the test where the device, or what the test needs of it, is not there. */
void device_suite_need(void **state, bool is_there);

/* The parts about whole sessions (device_suite_session.c), *count of them; static. */
struct CMUnitTest;
const struct CMUnitTest *device_suite_sessions(size_t *count);

#endif
