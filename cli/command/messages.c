/* Messages, and a line of progress. A terminal's is cut at its width: what wraps could not be
 * replaced. */
#include "messages.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "tarn.h"

enum { LATE_MS = 500 };

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

/* Cuts a path to `room` bytes: the name of the file without its folders, then as much of its begin
 * as tells something, else nothing. */
static void shorten(char *path, int room)
{
    char *slash = strrchr(path, '/');
    if ((int)strlen(path) <= room) return;
    if (slash) memmove(path, slash + 1, strlen(slash));
    if ((int)strlen(path) <= room) return;
    size_t length = room >= 8 ? (size_t)room - 2 : 0;
    while (length > 0 && ((unsigned char)path[length] & 0xc0) == 0x80)
        length--; /* a whole letter */
    memcpy(path + length, "..", length > 0 ? 3 : 0);
    if (length == 0) path[0] = '\0';
}

bool tarn_progress_begin(void)
{
    progress.begin_ms = tarn_now_ms();
    progress.has_begun = true;
    return isatty(STDERR_FILENO);
}

bool tarn_progress_is_late(void) { return tarn_now_ms() - progress.begin_ms >= LATE_MS; }

void tarn_progress_tell(const char *of, const char *text, bool is_news)
{
    double now = tarn_now_ms();
    if (!progress.has_begun) progress.begin_ms = now;
    progress.has_begun = true;
    double seconds = (now - progress.begin_ms) / 1e3;
    if (!isatty(STDERR_FILENO)) {
        if (is_news) tarn_say("%.1f s: %s: %s", seconds, of, text);
        return;
    }
    char line[2200], shown[2048];
    int width = terminal_width() - 6;
    tarn_text_escape(TARN_PLAIN, of, shown, sizeof shown);
    shorten(shown, width - snprintf(line, sizeof line, "%.1f s: : %s", seconds, text));
    snprintf(line, sizeof line, "%.1f s: %s%s%s", seconds, shown, shown[0] ? ": " : "", text);
    fprintf(stderr, "\r\033[Ktarn: %.*s", width, line);
    fflush(stderr);
    progress.is_open = true;
}

void tarn_progress_clear(void)
{
    if (progress.is_open) fputc('\n', stderr);
    progress.is_open = false;
}
