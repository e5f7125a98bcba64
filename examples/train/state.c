/* Idea: all persistent tensors lie in one allocation, those that are learnt first, so that one file
 * is a checkpoint; sessions are given their addresses (tarn_session_bind_memory), and whatever else
 * runs on them finds them here.
 * Cost: the bytes of the persistent tensors, each rounded up to the plan's alignment. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train.h"

enum { ALIGNMENT = 512 };

/* What a checkpoint begins with. */
struct header {
    char text[ALIGNMENT - 16];
    uint64_t next, digest; /* the step that comes next; of all that is learnt */
};

void state_create(struct state *s, const struct tarn_graph *graph)
{
    struct tarn_graph_summary summary;
    struct tarn_error error;
    TARN(tarn_graph_summarize(graph, &summary, &error));
    s->count = summary.tensors;
    s->at = zeros(s->count, sizeof *s->at);
    s->size = sizeof(struct header);
    size_t room = summary.persistent + (s->count + 1) * ALIGNMENT;
    s->memory = aligned_alloc(ALIGNMENT, room / ALIGNMENT * ALIGNMENT);
    if (!s->memory) fail(TARN_SYSTEM, "no memory");
    for (int inputs = 0; inputs < 2; s->learnt = inputs++ ? s->learnt : s->size)
        for (tarn_tensor t = 0; t < s->count; t++) {
            struct tarn_tensor_info info;
            tarn_graph_tensor(graph, t, &info);
            if (info.kind < TARN_PARAMETER || tarn_graph_root(graph, t) != t) continue;
            if ((info.kind == TARN_INPUT) != inputs) continue;
            s->at[t] = s->memory + s->size;
            s->size += (info.size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        }
}

/* ---- Initial values ---- */

static void fill(const struct parameter *p, float *w, uint64_t seed)
{
    for (size_t i = 0; i < value_bytes(p->w) / sizeof *w; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        w[i] = ((float)(seed >> 40) / 16777216.f - .5f) * p->spread + p->center;
    }
    if (strcmp(p->name, "mask")) return;
    for (int i = 0; i < LENGTH; i++) /* of attention: nobody looks ahead */
        for (int j = 0; j < LENGTH; j++) w[i * LENGTH + j] = j > i ? -1e9f : 0;
}

static void load_batches(const struct state *s, const struct tape *tape)
{
    for (uint32_t i = 0; i < tape->shards; i++)
        data_batch(first_step, tape->inputs[i].number, s->at[tape->inputs[i].input],
                   s->at[tape->inputs[i].wanted]);
}

void state_reset(const struct state *s, const struct tape *tape)
{
    uint64_t learnt = 0;
    memset(s->memory, 0, s->size);
    for (uint32_t i = 0; i < tape->parameters_count; i++) {
        const struct parameter *p = &tape->parameters[i];
        if (p->moments[0] != TARN_NONE) learnt++;
        fill(p, s->at[p->w.id], learnt);
    }
    load_batches(s, tape);
}

uint64_t digest(uint64_t so_far, const void *bytes, size_t size)
{
    uint64_t h = so_far ? so_far : UINT64_C(14695981039346656037);
    for (const unsigned char *c = bytes; size--; c++) h = (h ^ *c) * UINT64_C(1099511628211);
    return h;
}

uint64_t state_digest(const struct state *s)
{
    return digest(0, s->memory + sizeof(struct header), s->learnt - sizeof(struct header));
}

/* ---- Checkpoints ---- */

static struct header header_of(const struct state *s, uint64_t next)
{
    struct header h = {.next = next, .digest = digest(state_digest(s), &next, sizeof next)};
    snprintf(h.text, sizeof h.text, "tarn-train 1: %s %s width %d, %zu bytes", options.network,
             options.optimizer, options.width, s->learnt);
    return h;
}

void checkpoint_write(const struct state *s, uint64_t next)
{
    struct tarn_error error;
    *(struct header *)s->memory = header_of(s, next);
    TARN(tarn_file_save(options.checkpoint, s->memory, s->learnt, &error));
}

static void read_here(const struct state *s)
{
    const char *path = options.resume;
    size_t size;
    char *file = read_whole(path, &size);
    struct header *is = (struct header *)s->memory, wanted = header_of(s, 0);
    memcpy(s->memory, file, size < s->learnt ? size : s->learnt);
    is->text[sizeof is->text - 1] = 0;
    if (strncmp(is->text, "tarn-train", 10)) fail(TARN_BAD_INPUT, "%s: not a checkpoint", path);
    if (strcmp(is->text, wanted.text))
        fail(TARN_BAD_INPUT, "%s: it is of '%s', not of '%s'", path, is->text, wanted.text);
    if (size != s->learnt || header_of(s, is->next).digest != is->digest)
        fail(TARN_BAD_INPUT, "%s: the checkpoint is damaged", path);
    free(file);
}

void checkpoint_read(const struct state *s, const struct tape *tape)
{
    if (rank == 0) read_here(s);
    ranks_send(s->memory, s->learnt);
    first_step = ((struct header *)s->memory)->next;
    load_batches(s, tape);
}
