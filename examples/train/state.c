/* Idea: what lasts lies in memory of the trainer's own, by name, so that every graph finds it
 * there. What is learnt is one piece of it, behind a header: a checkpoint is one write. Cost: the
 * bytes of the persistent tensors, each rounded up to the plan's alignment. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train.h"

enum { ALIGNMENT = 512, ROOM = 1 << 26 };

/* What a checkpoint begins with. */
struct header {
    char text[ALIGNMENT - 16];
    uint64_t next, digest; /* the step that comes next; of all that is learnt */
};

uint64_t first_step;
static char *learnt; /* NULL: nothing was asked for yet */

void *lasting(struct tape *t, size_t size, enum tarn_tensor_kind kind)
{
    const size_t room = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (!learnt) learnt = aligned_alloc(ALIGNMENT, ROOM);
    if (!t->learnt_bytes) t->learnt_bytes = sizeof(struct header);
    char *memory = kind == TARN_INPUT ? aligned_alloc(ALIGNMENT, room) : learnt + t->learnt_bytes;
    if (kind != TARN_INPUT) t->learnt_bytes += room;
    if (!learnt || !memory || t->learnt_bytes > ROOM) fail(TARN_SYSTEM, "no memory");
    return memory;
}

/* ---- Initial values ---- */

static void load_batches(const struct tape *t)
{
    for (const struct shard *s = t->inputs; s < t->inputs + t->shards; s++)
        data_batch(first_step, s->number, t->memory[s->input], t->memory[s->wanted]);
}

void state_reset(const struct tape *t)
{
    memset(learnt, 0, t->learnt_bytes);
    for (uint64_t i = 0; i < LAYERS_MAX; i++) {
        const struct parameter *p = &t->parameters[i];
        float *w = t->memory[p->w.id];
        uint64_t seed = i;
        for (size_t k = 0; p->name && k < md_bytes(&p->w.md) / sizeof *w; k++) {
            seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            w[k] = ((float)(seed >> 40) / 16777216.f - .5f) * p->spread;
        }
    }
    load_batches(t);
}

uint64_t digest(const void *bytes, size_t size)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (const unsigned char *c = bytes; size--; c++) h = (h ^ *c) * UINT64_C(1099511628211);
    return h;
}

uint64_t state_digest(const struct tape *t)
{
    return digest(learnt + sizeof(struct header), t->learnt_bytes - sizeof(struct header));
}

/* ---- Checkpoints ---- */

static struct header header_of(const struct tape *t, uint64_t next)
{
    struct header h = {.next = next, .digest = state_digest(t) ^ next};
    snprintf(h.text, sizeof h.text, "tarn-train 2: %s width %d, %zu bytes", options.network,
             options.width, t->learnt_bytes);
    return h;
}

void checkpoint_write(const struct tape *t, uint64_t next)
{
    *(struct header *)learnt = header_of(t, next);
    TARN(tarn_file_save(options.checkpoint, learnt, t->learnt_bytes, &error));
}

static void read_here(const struct tape *t)
{
    const char *path = options.resume;
    size_t size;
    char *file = read_whole(path, &size);
    struct header *is = (struct header *)learnt, wanted = header_of(t, 0);
    memcpy(learnt, file, size < t->learnt_bytes ? size : t->learnt_bytes);
    is->text[sizeof is->text - 1] = 0;
    if (strncmp(is->text, "tarn-train", 10)) fail(TARN_BAD_INPUT, "%s: not a checkpoint", path);
    if (strcmp(is->text, wanted.text))
        fail(TARN_BAD_INPUT, "%s: it is of '%s', not of '%s'", path, is->text, wanted.text);
    if (size != t->learnt_bytes || header_of(t, is->next).digest != is->digest)
        fail(TARN_BAD_INPUT, "%s: the checkpoint is damaged", path);
    free(file);
}

void checkpoint_read(const struct tape *t)
{
    if (rank == 0) read_here(t);
    ranks_send(learnt, t->learnt_bytes);
    first_step = ((struct header *)learnt)->next;
    load_batches(t);
}
