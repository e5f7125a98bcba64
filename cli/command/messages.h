/* What is told on standard error: messages, and how far a search has come while it is under way. */
#ifndef TARN_CLI_COMMAND_MESSAGES_H
#define TARN_CLI_COMMAND_MESSAGES_H

#include <stdbool.h>

/* Prints "tarn: TEXT", one line, whatever the words in it hold. */
void tarn_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Seconds count from now on. */
void tarn_progress_begin(void);

/* On a terminal: has it taken longer since then than most calls do? Before that nothing need be
 * shown. Elsewhere: was no line printed for nine seconds? */
bool tarn_progress_is_late(void);

/* Tells how far a search `of` a file has come, with the seconds before it. On
 * a terminal there is one line, which each call replaces, with as much of the file's name as there
 * is room for; elsewhere what `is_news`, a better plan, gets a line, and the rest
 * one each ten seconds. */
void tarn_progress_tell(const char *of, const char *text, bool is_news);

/* Ends the terminal's line, before something else is printed there and at the end. */
void tarn_progress_clear(void);

/* From now on, where standard error is no terminal, "still at work" is printed when no line was for
 * ten seconds, until the end. verb, path: kept; path may be NULL. */
void tarn_watch_begin(const char *verb, const char *path);
void tarn_watch_end(void);

/* Milliseconds of a clock that only goes forward. */
double tarn_now_ms(void);

#endif
