/* Idea: every persistent tensor has an allocation of its own, aligned for any kernel.
 * Cost: the bytes of the persistent tensors, each rounded up to a page. */
#include "state.h"

#include <stdlib.h>
#include <string.h>

#include "fail.h"

enum { PAGE = 4096 };

static void fill(const struct parameter *p, float *w, uint64_t seed)
{
    for (size_t i = 0; i < p->count; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        w[i] = ((float)(seed >> 40) / 16777216.f - .5f) * p->spread + p->center;
    }
}

void state_create(struct state *state, const struct tarn_graph *graph)
{
    state->count = tarn_graph_tensors_count(graph);
    state->at = calloc(state->count, sizeof *state->at);
    state->sizes = calloc(state->count, sizeof *state->sizes);
    if (!state->at || !state->sizes) fail(TARN_SYSTEM, "no memory");
    for (tarn_tensor t = 0; t < state->count; t++) {
        struct tarn_tensor_info info;
        tarn_graph_tensor(graph, t, &info);
        if (info.kind < TARN_PARAMETER || tarn_graph_root(graph, t) != t) continue;
        state->sizes[t] = info.size;
        state->at[t] = aligned_alloc(PAGE, (info.size + PAGE - 1) / PAGE * PAGE);
        if (!state->at[t]) fail(TARN_SYSTEM, "no memory for %s", info.name);
    }
}

void state_destroy(struct state *state)
{
    for (uint32_t i = 0; i < state->count; i++) free(state->at[i]);
    free(state->at);
    free(state->sizes);
}

void state_load(const struct state *state, const struct tape *tape, const struct step *step)
{
    for (uint32_t s = 0; s < tape->shards; s++)
        step_load(step, s, step->first, state->at[tape->inputs[s][0]],
                  state->at[tape->inputs[s][1]]);
}

void state_reset(const struct state *state, const struct tape *tape, const struct step *step)
{
    for (uint32_t i = 0; i < state->count; i++)
        if (state->at[i]) memset(state->at[i], 0, state->sizes[i]);
    for (uint32_t i = 0; i < tape->parameters_count; i++)
        fill(&tape->parameters[i], state->at[tape->parameters[i].w.id], i + 1);
    state_load(state, tape, step);
    if (tape->mask == TARN_NONE) return;
    float *mask = state->at[tape->mask];
    for (int i = 0; i < LENGTH; i++)
        for (int j = 0; j < LENGTH; j++) mask[i * LENGTH + j] = j > i ? -1e9f : 0;
}

uint64_t digest(uint64_t so_far, const void *data, size_t size)
{
    uint64_t h = so_far ? so_far : UINT64_C(14695981039346656037);
    for (const unsigned char *c = data; size--; c++) h = (h ^ *c) * UINT64_C(1099511628211);
    return h;
}

int state_pieces(const struct state *state, const struct tape *tape,
                 struct piece pieces[static PIECES_MAX])
{
    int n = 0;
    for (uint32_t i = 0; i < tape->parameters_count; i++) {
        const struct parameter *p = &tape->parameters[i];
        pieces[n++] = (struct piece){state->at[p->w.id], p->count * sizeof(float)};
        for (int k = 0; k < 2; k++)
            if (p->moments[k] != TARN_NONE)
                pieces[n++] = (struct piece){state->at[p->moments[k]], p->count * sizeof(float)};
    }
    for (uint32_t i = 0; i < tape->statistics_count; i++) {
        const struct statistics *s = &tape->statistics[i];
        pieces[n++] = (struct piece){state->at[s->mean], s->size};
        pieces[n++] = (struct piece){state->at[s->variance], s->size};
    }
    return n;
}

uint64_t state_digest(const struct state *state, const struct tape *tape)
{
    struct piece pieces[PIECES_MAX];
    uint64_t h = 0;
    for (int i = 0, n = state_pieces(state, tape, pieces); i < n; i++)
        h = digest(h, pieces[i].at, pieces[i].size);
    return h;
}
