/* Records which memory of callers is in use by which session or arena of this process, so that two
 * cannot use the same bytes. */
#ifndef TARN_RUNTIME_STATE_MEMORY_USE_H
#define TARN_RUNTIME_STATE_MEMORY_USE_H

#include <sys/types.h>

#include "tarn/session.h"

/* Memory of the caller that a session or an arena uses. Zeros: none. */
struct tarn_memory_use {
    struct tarn_memory_use *next;
    struct tarn_device device;
    uintptr_t begin;
    uint64_t size;
    pid_t process;
    bool on_host; /* an address in the host's memory, comparable across devices */
};

/* Records the memory as used. TARN_USAGE: another session or arena uses some of it. Any thread. */
enum tarn_status tarn_memory_use_enter(struct tarn_memory_use *use, struct tarn_error *error);
/* Removes the record, after the last access to the memory. Any thread. */
void tarn_memory_use_leave(struct tarn_memory_use *use);

#endif
