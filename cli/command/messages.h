/* Prints messages and the progress of searches on standard error. */
#ifndef TARN_CLI_COMMAND_MESSAGES_H
#define TARN_CLI_COMMAND_MESSAGES_H

#include <stdbool.h>

/* Prints "tarn: TEXT" as one line; control characters in TEXT are escaped. */
void tarn_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Starts the clock whose seconds progress lines show. */
void tarn_progress_begin(void);

/* On a terminal: has more time passed since tarn_progress_begin than most calls take? Until then no
 * progress need be shown. Elsewhere: was no line printed for nine seconds? */
bool tarn_progress_is_late(void);

/* Reports the progress of a search `of` a file, after the seconds so far. On a terminal each call
 * replaces the one progress line, which shows as much of the file's name as fits. Elsewhere every
 * better plan (`is_news`) gets a line, and other progress gets one line every ten seconds. */
void tarn_progress_tell(const char *of, const char *text, bool is_news);

/* Ends the terminal's progress line. Call it before anything else is printed there, and at the
 * end. */
void tarn_progress_clear(void);

/* If standard error is no terminal, prints "still at work" whenever ten seconds passed without a
 * line, until the process ends. verb, path: kept; path may be NULL. */
void tarn_watch_begin(const char *verb, const char *path);
void tarn_watch_end(void);

/* Milliseconds of a clock that only goes forward. */
double tarn_now_ms(void);

#endif
