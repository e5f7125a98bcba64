/* The host executor, as the session uses it. The host device itself is public (tarn/device.h). */
#ifndef TARN_RUNTIME_HOST_HOST_H
#define TARN_RUNTIME_HOST_HOST_H

#include "runtime/state/state.h"

/* Worker threads claim streams. */
extern const struct tarn_executor_table tarn_executor_host;

#endif
