/* Lines for the log of the process (tarn/hooks.h). Cost: one atomic load if there is no log. */
#ifndef TARN_STREAMS_BASE_LOG_H
#define TARN_STREAMS_BASE_LOG_H

#include "tarn/hooks.h"

/* One line of a screen or two; from any thread. */
void tarn_log(enum tarn_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
