/* Prints messages and progress lines. A terminal has one line, cut at its width, since a wrapped
 * line could not be replaced. Elsewhere a thread prints a line when nothing was printed for a
 * while, so that a reader of the log sees that the command is still at work. All output passes one
 * lock. */
#include "messages.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "tarn.h"

enum { LATE_MS = 500, SILENT_MS = 9000, WATCH_MS = 10000 };

static struct {
    bool has_begun, is_open; /* is_open: the terminal's line waits to be replaced */
    double begin_ms;
    double last_ms; /* when a line was last printed */
} progress;

/* The thread that breaks silences. */
static struct {
    pthread_mutex_t lock; /* of `progress` and of standard error, recursive */
    pthread_cond_t ends;
    pthread_t thread;
    bool is_running, is_over;
    const char *verb, *path;
} watch;

double tarn_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Before the watch has begun there is one thread, and no lock. */
static void take_lock(void)
{
    if (watch.is_running) pthread_mutex_lock(&watch.lock);
}

static void give_lock(void)
{
    if (watch.is_running) pthread_mutex_unlock(&watch.lock);
}

void tarn_say(const char *format, ...)
{
    char text[2048], shown[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    tarn_text_escape(TARN_PLAIN, text, shown, sizeof shown);
    take_lock();
    tarn_progress_clear();
    fprintf(stderr, "tarn: %s\n", shown);
    progress.last_ms = tarn_now_ms();
    give_lock();
}

static int terminal_width(void)
{
    struct winsize size;
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
    return known ? size.ws_col - 1 : 79;
}

/* Cuts a path to `room` bytes: the name of the file without its folders, then a useful part of its
 * start, else nothing. */
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

void tarn_progress_begin(void)
{
    take_lock();
    progress.begin_ms = progress.last_ms = tarn_now_ms();
    progress.has_begun = true;
    give_lock();
}

bool tarn_progress_is_late(void)
{
    take_lock();
    double now = tarn_now_ms();
    bool is_late = isatty(STDERR_FILENO) ? now - progress.begin_ms >= LATE_MS
                                         : now - progress.last_ms >= SILENT_MS;
    give_lock();
    return is_late;
}

/* Replaces the terminal's line. */
static void print_line(double seconds, const char *of, const char *text)
{
    char line[2200], shown[2048];
    int width = terminal_width() - 6;
    tarn_text_escape(TARN_PLAIN, of, shown, sizeof shown);
    shorten(shown, width - snprintf(line, sizeof line, "%.1f s: : %s", seconds, text));
    snprintf(line, sizeof line, "%.1f s: %s%s%s", seconds, shown, shown[0] ? ": " : "", text);
    fprintf(stderr, "\r\033[Ktarn: %.*s", width, line);
    fflush(stderr);
    progress.is_open = true;
    progress.last_ms = tarn_now_ms();
}

void tarn_progress_tell(const char *of, const char *text, bool is_news)
{
    bool is_due = is_news || tarn_progress_is_late();
    take_lock();
    double now = tarn_now_ms();
    if (!progress.has_begun) progress.begin_ms = now;
    progress.has_begun = true;
    double seconds = (now - progress.begin_ms) / 1e3;
    if (isatty(STDERR_FILENO))
        print_line(seconds, of, text);
    else if (is_due)
        tarn_say("%.1f s: %s: %s", seconds, of, text);
    give_lock();
}
void tarn_progress_clear(void)
{
    take_lock();
    if (progress.is_open) fputc('\n', stderr);
    progress.is_open = false;
    give_lock();
}

/* ---- Breaking silences ---- */

static struct timespec time_at(double ms)
{
    return (struct timespec){.tv_sec = (time_t)(ms / 1e3),
                             .tv_nsec = (long)((ms - 1e3 * (double)(time_t)(ms / 1e3)) * 1e6)};
}

static void *break_silences(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&watch.lock);
    while (!watch.is_over) {
        struct timespec due = time_at(progress.last_ms + WATCH_MS);
        if (pthread_cond_timedwait(&watch.ends, &watch.lock, &due) != ETIMEDOUT) continue;
        double now = tarn_now_ms();
        if (now - progress.last_ms < WATCH_MS - 1) continue; /* something was printed meanwhile */
        tarn_say("%.0f s: %s%s%s: still at work", (now - progress.begin_ms) / 1e3, watch.verb,
                 watch.path ? " " : "", watch.path ? watch.path : "");
    }
    pthread_mutex_unlock(&watch.lock);
    return NULL;
}

static bool init_lock(void)
{
    pthread_mutexattr_t recursive;
    pthread_condattr_t monotonic;
    if (pthread_mutexattr_init(&recursive) != 0) return false;
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    bool is_made = pthread_mutex_init(&watch.lock, &recursive) == 0;
    pthread_mutexattr_destroy(&recursive);
    if (!is_made || pthread_condattr_init(&monotonic) != 0) return false;
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    is_made = pthread_cond_init(&watch.ends, &monotonic) == 0;
    pthread_condattr_destroy(&monotonic);
    return is_made;
}

void tarn_watch_begin(const char *verb, const char *path)
{
    sigset_t all, before;
    if (isatty(STDERR_FILENO) || !init_lock()) return;
    watch.verb = verb;
    watch.path = path;
    progress.begin_ms = progress.last_ms = tarn_now_ms();
    watch.is_running = true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the main thread's */
    watch.is_running = pthread_create(&watch.thread, NULL, break_silences, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void tarn_watch_end(void)
{
    if (!watch.is_running) return;
    pthread_mutex_lock(&watch.lock);
    watch.is_over = true;
    pthread_cond_signal(&watch.ends);
    pthread_mutex_unlock(&watch.lock);
    pthread_join(watch.thread, NULL);
    watch.is_running = false;
}
