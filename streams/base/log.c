/* The log of the process: a pointer to what the caller has set. Cost: the cost of the caller's
 * function. */
#include "log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "escape.h"
#include "options.h"

enum { LINE_MAX_BYTES = 512 };

static _Atomic(const struct tarn_log *) listener;

/* Copies the caller's log, whose header may be of another version; *log is all zeros if there is no
 * log. */
static bool take(struct tarn_log *log)
{
    const struct tarn_log *given = atomic_load_explicit(&listener, memory_order_acquire);
    memset(log, 0, sizeof *log);
    return given && tarn_options_take(log, sizeof *log, given, "log", NULL) == TARN_OK;
}

void tarn_log(enum tarn_log_level level, const char *format, ...)
{
    struct tarn_log log;
    char line[LINE_MAX_BYTES];
    if (!take(&log) || level > log.level) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    tarn_escape_message(line);
    log.line(log.user, level, line);
}

enum tarn_status tarn_set_log(const struct tarn_log *log, struct tarn_error *error)
{
    struct tarn_log taken;
    tarn_error_clear(error);
    if (log) {
        enum tarn_status status = tarn_options_take(&taken, sizeof taken, log, "log", error);
        if (status != TARN_OK) return status;
        if (!taken.line) return tarn_error_set(error, TARN_USAGE, "a log needs its function, line");
    }
    atomic_store_explicit(&listener, log, memory_order_release);
    return TARN_OK;
}
