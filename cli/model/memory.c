/* Allocates memory as a list of calloc's blocks, each after a pointer to the block before. Cost:
 * one calloc a block. */
#include "model.h"

#include <stdint.h>
#include <stdlib.h>

struct block {
    struct block *before;
    max_align_t items[];
};

void *tarn_memory_take(struct tarn_memory *memory, size_t count, size_t size)
{
    bool fits = size == 0 || count <= (SIZE_MAX - sizeof(struct block)) / size;
    struct block *block = fits ? calloc(1, sizeof *block + count * size) : NULL;
    if (!block) {
        memory->is_exhausted = true;
        return NULL;
    }
    block->before = memory->newest;
    memory->newest = block;
    return block->items;
}

void tarn_memory_finish(struct tarn_memory *memory)
{
    struct block *block = memory->newest;
    while (block) {
        struct block *before = block->before;
        free(block);
        block = before;
    }
    *memory = (struct tarn_memory){0};
}
