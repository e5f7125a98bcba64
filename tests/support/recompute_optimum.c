/* A state is a place in the list and a set of forward results that are there. Three things can be
 * done in it: drop a result, run a forward op from before the place again, or run the op at the
 * place. Only the second one costs extra, so place after place the least extra time of each set is
 * found by Dijkstra's algorithm (E. Dijkstra, 1959), its queue a plain scan of a heap. Whatever is
 * no forward result is there from its first to its last user. Cost: places x 2^results x (results
 * + ops) heap operations at most. */
#include "recompute_optimum.h"

#include <stdlib.h>
#include <string.h>

#include "plan_oracle.h"

enum { RESULTS_MAX = 16 };

struct op {
    uint32_t reads, writes; /* sets of forward results */
    uint64_t cost;
    uint64_t fixed; /* bytes of other storages that are there while it runs, workspace included */
    uint64_t workspace; /* bytes */
    uint32_t stale;     /* place from which on it may not run again; 0: from the beginning */
};

struct entry {
    uint64_t key;
    uint32_t set;
};

struct recompute_optimum {
    const struct tarn_graph *graph;
    uint64_t alignment;
    struct op *ops;             /* by place */
    uint8_t *is_forward;        /* by place */
    uint64_t size[RESULTS_MAX]; /* of results, in bytes */
    uint32_t results_count;
    uint32_t *result_of; /* storage -> result, or TARN_NONE */
    uint64_t work_ns;
    uint64_t *bytes; /* set -> bytes */
    bool by_bytes;   /* what counts are bytes at once, not time */
    uint64_t budget;
    uint64_t *key, *next; /* set -> least that it takes to have it, at this place and at the next */
    struct entry *heap;
    size_t heap_count, heap_capacity;
};

static void *take(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    if (!memory) abort();
    return memory;
}

/* ---- The net ---- */

/* The kinds of random training steps say it. */
static void find_forward(struct recompute_optimum *optimum, bool any_op)
{
    const struct tarn_graph *graph = optimum->graph;
    for (uint32_t place = 0; place < graph->ops_count; place++) {
        const char *kind = graph->ops[graph->order[place]].kind;
        optimum->is_forward[place] =
            any_op || (strcmp(kind, "backward") != 0 && strcmp(kind, "update") != 0);
    }
}

static uint32_t count_writers(const struct tarn_graph *graph, uint32_t storage)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->storages[storage].users_count; i++)
        count +=
            oracle_writes(graph, tarn_storage_users(graph, &graph->storages[storage])[i], storage);
    return count;
}

/* false: more than there is room for. */
static bool find_results(struct recompute_optimum *optimum)
{
    const struct tarn_graph *graph = optimum->graph;
    for (uint32_t a = 0; a < graph->storages_count; a++) optimum->result_of[a] = TARN_NONE;
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        if (storage->tensor == TARN_NONE || storage->pinned ||
            !optimum->is_forward[graph->rank[storage->producer]] || count_writers(graph, a) > 1)
            continue;
        if (optimum->results_count == RESULTS_MAX) return false;
        optimum->size[optimum->results_count] = oracle_reserved(graph, a, optimum->alignment);
        optimum->result_of[a] = optimum->results_count++;
    }
    return true;
}

/* The place behind which an op that reads the storage would read something newer. */
static uint32_t first_update(const struct tarn_graph *graph, uint32_t storage)
{
    uint32_t first = graph->ops_count;
    for (uint32_t i = 0; i < graph->storages[storage].users_count; i++) {
        uint32_t v = tarn_storage_users(graph, &graph->storages[storage])[i];
        if (oracle_writes(graph, v, storage) && graph->rank[v] < first) first = graph->rank[v];
    }
    return first + 1;
}

static bool may_repeat(const struct tarn_graph *graph, uint32_t v)
{
    return graph->ops[v].recomputable != TARN_NOT_RECOMPUTABLE &&
           strcmp(graph->ops[v].kind, "dropout") != 0;
}

static void read_op(struct recompute_optimum *optimum, uint32_t place)
{
    const struct tarn_graph *graph = optimum->graph;
    uint32_t v = graph->order[place];
    struct op *op = &optimum->ops[place];
    op->cost = graph->ops[v].cost;
    op->stale = optimum->is_forward[place] && may_repeat(graph, v) ? graph->ops_count + 1 : 0;
    optimum->work_ns += op->cost;
    for (uint32_t k = 0; k < graph->ops[v].inputs_count; k++) {
        uint32_t storage = graph->tensors[graph->ops[v].inputs[k]].storage;
        if (optimum->result_of[storage] != TARN_NONE)
            op->reads |= 1u << optimum->result_of[storage];
        else if (graph->storages[storage].persistent && first_update(graph, storage) < op->stale)
            op->stale = first_update(graph, storage);
    }
    for (uint32_t k = 0; k < graph->ops[v].outputs_count; k++) {
        uint32_t storage = graph->tensors[tarn_outputs(&graph->ops[v])[k]].storage;
        if (optimum->result_of[storage] != TARN_NONE)
            op->writes |= 1u << optimum->result_of[storage];
        else
            op->stale = 0; /* it makes something that stays */
    }
}

/* Bytes of what is no forward result, over the places from its first to its last user. */
static void sum_fixed(struct recompute_optimum *optimum)
{
    const struct tarn_graph *graph = optimum->graph;
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        uint64_t size = oracle_reserved(graph, a, optimum->alignment);
        if (optimum->result_of[a] != TARN_NONE) continue;
        uint32_t first = graph->rank[storage->producer], last = first;
        for (uint32_t i = 0; i < storage->users_count; i++) {
            if (graph->rank[tarn_storage_users(graph, storage)[i]] > last)
                last = graph->rank[tarn_storage_users(graph, storage)[i]];
        }
        if (storage->pinned) last = graph->ops_count - 1;
        for (uint32_t place = first; place <= last; place++) optimum->ops[place].fixed += size;
        if (storage->tensor == TARN_NONE) optimum->ops[first].workspace = size;
    }
}

/* Bytes that are there at a place before its op: what neither begins nor is used there alone. */
static uint64_t standing_at(const struct recompute_optimum *optimum, uint32_t place)
{
    const struct tarn_graph *graph = optimum->graph;
    uint64_t bytes = optimum->ops[place].fixed;
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        if (optimum->result_of[a] == TARN_NONE && graph->rank[graph->storages[a].producer] == place)
            bytes -= oracle_reserved(graph, a, optimum->alignment);
    }
    return bytes;
}

struct recompute_optimum *recompute_optimum_create(const struct tarn_graph *graph,
                                                   uint64_t alignment, bool any_op)
{
    struct recompute_optimum *optimum = take(1, sizeof *optimum);
    *optimum = (struct recompute_optimum){.graph = graph, .alignment = alignment};
    optimum->ops = take(graph->ops_count, sizeof *optimum->ops);
    optimum->result_of = take(graph->storages_count, sizeof *optimum->result_of);
    optimum->is_forward = take(graph->ops_count, sizeof *optimum->is_forward);
    find_forward(optimum, any_op);
    if (!find_results(optimum)) {
        recompute_optimum_destroy(optimum);
        return NULL;
    }
    for (uint32_t place = 0; place < graph->ops_count; place++) read_op(optimum, place);
    sum_fixed(optimum);
    size_t sets = (size_t)1 << optimum->results_count;
    optimum->bytes = take(sets, sizeof *optimum->bytes);
    optimum->key = take(sets, sizeof *optimum->key);
    optimum->next = take(sets, sizeof *optimum->next);
    for (uint32_t set = 0; set < sets; set++) {
        for (uint32_t i = 0; i < optimum->results_count; i++)
            optimum->bytes[set] += set >> i & 1 ? optimum->size[i] : 0;
    }
    return optimum;
}

void recompute_optimum_destroy(struct recompute_optimum *optimum)
{
    free(optimum->ops);
    free(optimum->result_of);
    free(optimum->is_forward);
    free(optimum->bytes);
    free(optimum->key);
    free(optimum->next);
    free(optimum->heap);
    free(optimum);
}

/* ---- The heap ---- */

static void swap(struct entry *a, struct entry *b)
{
    struct entry c = *a;
    *a = *b;
    *b = c;
}

static void offer(struct recompute_optimum *optimum, uint32_t set, uint64_t key)
{
    if (key >= optimum->key[set]) return;
    optimum->key[set] = key;
    if (optimum->heap_count == optimum->heap_capacity) {
        optimum->heap_capacity = 2 * optimum->heap_capacity + 64;
        optimum->heap = realloc(optimum->heap, optimum->heap_capacity * sizeof *optimum->heap);
        if (!optimum->heap) abort();
    }
    size_t i = optimum->heap_count++;
    optimum->heap[i] = (struct entry){key, set};
    for (; i > 0 && optimum->heap[(i - 1) / 2].key > key; i = (i - 1) / 2)
        swap(&optimum->heap[i], &optimum->heap[(i - 1) / 2]);
}

static struct entry take_least(struct recompute_optimum *optimum)
{
    struct entry *heap = optimum->heap, least = heap[0];
    size_t count = --optimum->heap_count, i = 0;
    heap[0] = heap[count];
    for (;;) {
        size_t child = 2 * i + 1;
        if (child + 1 < count && heap[child + 1].key < heap[child].key) child++;
        if (child >= count || heap[child].key >= heap[i].key) return least;
        swap(&heap[i], &heap[child]);
        i = child;
    }
}

/* ---- The search ---- */

/* What it takes when something that takes `time_ns` and so many bytes comes behind; UINT64_MAX: it
 * does not fit. */
static uint64_t behind(const struct recompute_optimum *optimum, uint64_t key, uint64_t time_ns,
                       uint64_t bytes)
{
    if (optimum->by_bytes) return bytes > key ? bytes : key;
    return bytes > optimum->budget ? UINT64_MAX : key + time_ns;
}

/* Everything that can be done at a place before its op. */
static void spread(struct recompute_optimum *optimum, uint32_t place)
{
    uint64_t standing = standing_at(optimum, place);
    while (optimum->heap_count > 0) {
        struct entry state = take_least(optimum);
        if (state.key > optimum->key[state.set]) continue;
        for (uint32_t i = 0; i < optimum->results_count; i++)
            offer(optimum, state.set & ~(1u << i), state.key);
        for (uint32_t j = 0; j < place; j++) {
            const struct op *op = &optimum->ops[j];
            if (op->stale <= place || op->reads & ~state.set) continue;
            uint64_t again = optimum->bytes[state.set & op->writes]; /* copies beside the first */
            uint64_t bytes = standing + again + optimum->bytes[state.set | op->writes];
            offer(optimum, state.set | op->writes,
                  behind(optimum, state.key, op->cost, bytes + op->workspace));
        }
    }
}

static void step(struct recompute_optimum *optimum, uint32_t place)
{
    const struct op *op = &optimum->ops[place];
    uint32_t sets = 1u << optimum->results_count;
    for (uint32_t set = 0; set < sets; set++) optimum->next[set] = UINT64_MAX;
    for (uint32_t set = 0; set < sets; set++) {
        uint32_t after = set | op->writes;
        if (optimum->key[set] == UINT64_MAX || op->reads & ~set) continue;
        uint64_t key = behind(optimum, optimum->key[set], 0, op->fixed + optimum->bytes[after]);
        if (key < optimum->next[after]) optimum->next[after] = key;
    }
    for (uint32_t set = 0; set < sets; set++) optimum->key[set] = UINT64_MAX;
    for (uint32_t set = 0; set < sets; set++) {
        if (optimum->next[set] < UINT64_MAX) offer(optimum, set, optimum->next[set]);
    }
}

static uint64_t solve(struct recompute_optimum *optimum)
{
    uint32_t sets = 1u << optimum->results_count;
    uint64_t least = UINT64_MAX;
    optimum->heap_count = 0;
    for (uint32_t set = 0; set < sets; set++) optimum->key[set] = UINT64_MAX;
    offer(optimum, 0, 0);
    for (uint32_t place = 0; place < optimum->graph->ops_count; place++) {
        spread(optimum, place);
        step(optimum, place);
    }
    for (uint32_t set = 0; set < sets; set++)
        if (optimum->key[set] < least) least = optimum->key[set];
    return least;
}

uint64_t recompute_optimum_within(struct recompute_optimum *optimum, uint64_t budget)
{
    optimum->by_bytes = false;
    optimum->budget = budget;
    uint64_t least = solve(optimum);
    return least == UINT64_MAX ? UINT64_MAX : optimum->work_ns + least;
}

uint64_t recompute_optimum_least(struct recompute_optimum *optimum)
{
    optimum->by_bytes = true;
    return solve(optimum);
}
