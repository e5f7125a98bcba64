/* Stands between the OpenCL device and OpenCL (link with the --wrap options of meson.build): counts
 * the objects that are alive and lets a chosen call fail. */
#ifndef TARN_TESTS_SUPPORT_OPENCL_CALLS_H
#define TARN_TESTS_SUPPORT_OPENCL_CALLS_H

#include <stdbool.h>
#include <stdint.h>

/* Memory, queues and events that were created and not released. */
uint64_t opencl_calls_alive(void);

/* `calls` more calls succeed and the one after them fails, once; UINT64_MAX: none does. True when
 * the failure asked for before has happened. */
bool opencl_calls_fail_after(uint64_t calls);

#endif
