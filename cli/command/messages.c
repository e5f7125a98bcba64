/* Messages, and a line of progress. A terminal's is cut at its width: what wraps could not be
 * replaced. */
#include "messages.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "tarn.h"

static struct {
    bool has_begun, is_open; /* is_open: the terminal's line waits to be replaced */
    double begin_ms;
} progress;

double tarn_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

void tarn_say(const char *format, ...)
{
    char text[2048], shown[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    tarn_text_escape(TARN_PLAIN, text, shown, sizeof shown);
    tarn_progress_clear();
    fprintf(stderr, "tarn: %s\n", shown);
}

static int terminal_width(void)
{
    struct winsize size;
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
    return known ? size.ws_col - 1 : 79;
}

void tarn_progress_tell(const char *text, bool is_news)
{
    double now = tarn_now_ms();
    if (!progress.has_begun) progress.begin_ms = now;
    progress.has_begun = true;
    char line[1024], shown[1024];
    snprintf(line, sizeof line, "%.1f s: %s", (now - progress.begin_ms) / 1e3, text);
    if (!isatty(STDERR_FILENO)) {
        if (is_news) tarn_say("%s", line);
        return;
    }
    tarn_text_escape(TARN_PLAIN, line, shown, sizeof shown);
    fprintf(stderr, "\r\033[Ktarn: %.*s", terminal_width() - 6, shown);
    fflush(stderr);
    progress.is_open = true;
}

void tarn_progress_clear(void)
{
    if (progress.is_open) fputc('\n', stderr);
    progress.is_open = false;
}
