/* Which of the memory that callers bring is in use by which session or arena of this
 * process, so that two cannot have the same bytes. */
#ifndef TARN_RUNTIME_STATE_MEMORY_USE_H
#define TARN_RUNTIME_STATE_MEMORY_USE_H

#include <sys/types.h>

#include "tarn/session.h"

/* Of a session or an arena. Zeros: no memory was brought, and nothing is refused. */
struct tarn_memory_use {
    struct tarn_memory_use *next;
    struct tarn_device device;
    uintptr_t begin;
    uint64_t size;
    pid_t process;
    bool on_host; /* an address in the host's memory, the same for every device that has it */
};

/* Enters the memory as used. TARN_USAGE: another session or arena has some of it. Any thread. */
enum tarn_status tarn_memory_use_enter(struct tarn_memory_use *use, struct tarn_error *error);
/* When nothing can touch the memory any more. Any thread. */
void tarn_memory_use_leave(struct tarn_memory_use *use);

#endif
