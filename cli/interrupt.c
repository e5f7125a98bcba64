/* Interrupts end the process at once, unless a verb has asked for a note (tarn_interrupt_note): the
 * system takes back memory and threads, whatever a kernel is doing. While a file is being written,
 * they wait. */
#include "interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "command/messages.h"

/* The one place where state cannot be passed in: data that a signal handler may read. */
static bool noted;
static bool is_only_noted;

static void end_now(int signal_number)
{
    static const char text[] = "tarn: interrupted\n";
    (void)signal_number;
    if (is_only_noted && !__atomic_exchange_n(&noted, true, __ATOMIC_RELAXED)) return;
    ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)written;
    _exit(TARN_INTERRUPTED);
}

void tarn_interrupt_install(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = end_now;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

const bool *tarn_interrupt_note(void)
{
    is_only_noted = true;
    return &noted;
}

enum tarn_status tarn_interrupt_tell(enum tarn_status status, const char *found)
{
    if (status != TARN_OK || !__atomic_load_n(&noted, __ATOMIC_RELAXED)) return status;
    tarn_say("interrupted: this is the best %s so far", found);
    return TARN_INTERRUPTED;
}

static void change_mask(int how)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(how, &signals, NULL);
}

void tarn_interrupt_hold(void) { change_mask(SIG_BLOCK); }

void tarn_interrupt_release(void) { change_mask(SIG_UNBLOCK); }
