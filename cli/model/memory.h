/* Memory that dies together: whatever a picture or an answer is made of. The library's regions are
 * its own; the command has no more than this. */
#ifndef TARN_CLI_MODEL_MEMORY_H
#define TARN_CLI_MODEL_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* All zero: nothing was taken yet. */
struct tarn_memory {
    void *newest;
    bool is_exhausted; /* some call has returned NULL */
};

/* `count` items of `size` bytes, zero-filled; count 0 gives a valid pointer. NULL: no memory, which
 * is_exhausted remembers. */
void *tarn_memory_take(struct tarn_memory *memory, size_t count, size_t size);
void tarn_memory_finish(struct tarn_memory *memory);

#endif
