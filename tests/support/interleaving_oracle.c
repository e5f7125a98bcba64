/* A state says how far every stream is: 2 n of its launches have finished after n of them, one more
 * while the next one runs. Which states there are is found by walking from the first one; nothing
 * is known of clocks or of reachability.
 *
 * A state does harm when
 *     two storages on shared bytes are both alive: the first writer has started, and not all have
 *     finished that touch the storage in the same iteration (an output of the last iteration lives
 *     to the end, a persistent storage always); or
 *     an op has started, and one that touches the same storage earlier, as the graph has it,
 *     has not finished, and one of the two writes. */
#include "interleaving_oracle.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "plan_oracle.h"

enum { NODES = 64, STREAMS = 64 };

/* A storage in one iteration. */
struct life {
    uint32_t storage;
    uint64_t begin, users; /* as sets of nodes; begin: one, or none if alive from the start */
    bool for_ever;
    uint64_t enemies; /* lives on shared bytes, as a set */
};

/* A node is a launch: iteration * launches + index in plan->list. */
struct play {
    const struct tarn_plan *plan;
    uint32_t iterations, launches;
    uint32_t index[NODES];  /* op -> index in plan->list; TARN_NONE: a view */
    uint64_t waits[NODES];  /* nodes that must have finished before a node starts */
    uint64_t before[NODES]; /* nodes that the graph wants finished before it starts */
    struct life lives[NODES];
    uint32_t lives_count;
    size_t step[STREAMS + 1]; /* by how much a stream's progress counts in a state's number */
};

/* ---- What the graph wants ---- */

static uint32_t node_of(const struct play *play, uint32_t op, uint32_t iteration)
{
    return iteration * play->launches + play->index[op];
}

static uint64_t bit_of(const struct play *play, uint32_t op, uint32_t iteration)
{
    return UINT64_C(1) << node_of(play, op, iteration);
}

static void add_life(struct play *play, uint32_t storage, uint32_t iteration)
{
    const struct tarn_graph *graph = play->plan->graph;
    const struct tarn_storage *record = &graph->storages[storage];
    assert(play->lives_count < NODES);
    struct life *life = &play->lives[play->lives_count++];
    *life = (struct life){.storage = storage, .for_ever = record->persistent};
    if (record->pinned && iteration + 1 == play->iterations) life->for_ever = true;
    if (!record->persistent) life->begin = bit_of(play, record->producer, iteration);
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        if (oracle_touches(graph, v, storage)) life->users |= bit_of(play, v, iteration);
    }
}

static void add_lives(struct play *play)
{
    const struct tarn_graph *graph = play->plan->graph;
    for (uint32_t a = 0; a < graph->storages_count; a++) {
        uint32_t count = graph->storages[a].persistent ? 1 : play->iterations;
        for (uint32_t k = 0; k < count; k++) add_life(play, a, k);
    }
    for (uint32_t i = 0; i < play->lives_count; i++) {
        for (uint32_t j = 0; j < play->lives_count; j++) {
            uint32_t a = play->lives[i].storage, b = play->lives[j].storage;
            bool take_turns = play->lives[i].begin == play->lives[j].begin &&
                              (oracle_is_workspace_before(play->plan->graph, a, b) ||
                               oracle_is_workspace_before(play->plan->graph, b, a));
            if (i != j && !take_turns &&
                oracle_share_bytes(play->plan, play->lives[i].storage, play->lives[j].storage))
                play->lives[i].enemies |= UINT64_C(1) << j;
        }
    }
}

/* v after u, in every iteration, and in all iterations after u's if the storage lives on. */
static void add_hazard(struct play *play, uint32_t storage, uint32_t u, uint32_t v)
{
    const struct tarn_graph *graph = play->plan->graph;
    if (!oracle_writes(graph, u, storage) && !oracle_writes(graph, v, storage)) return;
    for (uint32_t i = 0; i < play->iterations; i++) {
        for (uint32_t j = i; j < play->iterations; j++) {
            bool is_same = i == j && graph->rank[u] < graph->rank[v];
            if (is_same || (i < j && graph->storages[storage].persistent))
                play->before[node_of(play, v, j)] |= bit_of(play, u, i);
        }
    }
}

static void add_hazards(struct play *play)
{
    const struct tarn_graph *graph = play->plan->graph;
    for (uint32_t a = 0; a < graph->storages_count; a++) {
        for (uint32_t u = 0; u < graph->ops_count; u++) {
            for (uint32_t v = 0; v < graph->ops_count; v++) {
                if (oracle_touches(graph, u, a) && oracle_touches(graph, v, a))
                    add_hazard(play, a, u, v);
            }
        }
    }
}

/* ---- What the plan allows ---- */

static uint32_t length_of(const struct play *play, uint32_t s)
{
    return play->plan->list_begin[s + 1] - play->plan->list_begin[s];
}

static void add_waits(struct play *play)
{
    const struct tarn_plan *plan = play->plan;
    for (uint32_t k = 0; k < play->iterations; k++) {
        for (uint32_t i = 0; i < plan->waits_count; i++)
            play->waits[node_of(play, plan->waits[i].op, k)] |= bit_of(play, plan->waits[i].on, k);
        for (uint32_t i = 0; i < plan->boundary_waits_count && k > 0; i++)
            play->waits[node_of(play, plan->boundary_waits[i].op, k)] |=
                bit_of(play, plan->boundary_waits[i].on, k - 1);
    }
}

static void play_init(struct play *play, const struct tarn_plan *plan, uint32_t iterations)
{
    memset(play, 0, sizeof *play);
    play->plan = plan;
    play->iterations = iterations;
    play->launches = plan->list_begin[plan->streams_count];
    assert(play->launches * iterations <= NODES && plan->streams_count <= STREAMS);
    for (uint32_t i = 0; i < play->launches; i++) play->index[plan->list[i]] = i;
    play->step[0] = 1;
    for (uint32_t s = 0; s < plan->streams_count; s++)
        play->step[s + 1] = play->step[s] * (2 * (size_t)length_of(play, s) * iterations + 1);
    add_waits(play);
    add_lives(play);
    add_hazards(play);
}

/* ---- States ---- */

struct state {
    size_t number;
    uint64_t started, finished; /* sets of nodes */
};

static uint32_t progress_of(const struct play *play, size_t number, uint32_t s)
{
    return (uint32_t)(number % play->step[s + 1] / play->step[s]);
}

/* The launch of a stream that runs, or comes next. */
static uint32_t node_at(const struct play *play, uint32_t s, uint32_t progress)
{
    uint32_t length = length_of(play, s), launch = progress / 2;
    return launch / length * play->launches + play->plan->list_begin[s] + launch % length;
}

static bool does_harm(const struct play *play, const struct state *state)
{
    uint64_t alive = 0;
    for (uint64_t left = state->started; left != 0; left &= left - 1) {
        if (play->before[__builtin_ctzll(left)] & ~state->finished) return true;
    }
    for (uint32_t i = 0; i < play->lives_count; i++) {
        const struct life *life = &play->lives[i];
        bool has_begun = (life->begin & ~state->started) == 0;
        bool is_needed = life->for_ever || (life->users & ~state->finished) != 0;
        alive |= (uint64_t)(has_begun && is_needed) << i;
    }
    for (uint64_t left = alive; left != 0; left &= left - 1) {
        if (play->lives[__builtin_ctzll(left)].enemies & alive) return true;
    }
    return false;
}

/* Starts or finishes the launch of a stream; false: it cannot. */
static bool advance(const struct play *play, struct state *state, uint32_t s)
{
    uint32_t progress = progress_of(play, state->number, s);
    if (progress == 2 * length_of(play, s) * play->iterations) return false;
    uint32_t node = node_at(play, s, progress);
    if (progress % 2 == 0 && (play->waits[node] & ~state->finished) != 0) return false;
    *(progress % 2 == 0 ? &state->started : &state->finished) |= UINT64_C(1) << node;
    state->number += play->step[s];
    return true;
}

bool interleaving_oracle_finds_harm(const struct tarn_plan *plan, uint32_t iterations,
                                    uint64_t *states)
{
    struct play play;
    play_init(&play, plan, iterations);
    size_t numbers = play.step[plan->streams_count], depth = 1;
    unsigned char *seen = calloc(numbers, 1);
    struct state *stack = malloc(numbers * sizeof *stack);
    assert(seen && stack);
    stack[0] = (struct state){0};
    bool harm = false;
    while (depth > 0 && !harm) {
        struct state state = stack[--depth];
        ++*states;
        harm = does_harm(&play, &state);
        for (uint32_t s = 0; s < plan->streams_count; s++) {
            struct state next = state;
            if (!advance(&play, &next, s) || seen[next.number]) continue;
            seen[next.number] = 1;
            stack[depth++] = next;
        }
    }
    free(seen);
    free(stack);
    return harm;
}
