/* Which of the memory that callers bring is in use by which session of this process, so that two
 * cannot run on the same bytes at once. */
#ifndef TARN_RUNTIME_STATE_MEMORY_USE_H
#define TARN_RUNTIME_STATE_MEMORY_USE_H

#include <sys/types.h>

#include "tarn/session.h"

/* A session's, in its arena. Zeros: it brings no memory, and nothing is refused. */
struct tarn_memory_use {
    struct tarn_memory_use *next;
    struct tarn_device device;
    uintptr_t begin;
    uint64_t size;
    pid_t process;
    uint32_t works; /* that are under way */
    bool on_host;   /* an address in the host's memory, the same for every device that has it */
    bool is_shared; /* sessions take turns on it */
};

/* Sets the memory down as used, and as at work: the session fills it. TARN_USAGE: another session
 * has some of it, and they do not take turns, or it is the other's turn. Any thread. */
enum tarn_status tarn_memory_use_enter(struct tarn_memory_use *use, struct tarn_error *error);
/* When nothing of the session can touch the memory any more. Any thread. */
void tarn_memory_use_leave(struct tarn_memory_use *use);

/* Around each work on memory that is shared. TARN_USAGE: another session is at work on some of it.
 * Any thread. */
enum tarn_status tarn_memory_use_begin(struct tarn_memory_use *use, struct tarn_error *error);
void tarn_memory_use_end(struct tarn_memory_use *use);

#endif
