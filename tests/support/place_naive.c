/* Algorithms 6 to 13 of the SOMAS paper as they are printed, with signed offsets. Of what the
 * paper leaves open: lower limits are aligned up; without ":paper" a block of several members may
 * start anywhere between two intervals. Cost: quadratic for every single block. */
#include "place_naive.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "planner/papers/pairs.h"

#define INFINITE (INT64_MAX / 2)

struct naive_block {
    uint32_t members[64];
    int64_t sizes[64]; /* reserved */
    int length;
    int64_t size, alignment, offset;
    uint64_t key; /* larger ones first */
    uint32_t index;
};

struct naive_object {
    int64_t offset, right;
    struct naive_block **blocks;
    uint32_t count;
};

struct naive {
    const struct tarn_graph *graph;
    struct tarn_pair_matrix unsafe;
    struct naive_block *blocks;
    uint32_t blocks_count;
    bool paper, best_fit;
};

struct naive_interval {
    int64_t left, right;
};

struct naive_candidate {
    int64_t lower, gap;
};

/* ---- Blocks ---- */

static int64_t round_up(int64_t n, int64_t alignment)
{
    return (n + alignment - 1) / alignment * alignment;
}

static void add_member(const struct naive *naive, struct naive_block *block, uint32_t a)
{
    assert(block->length < 64);
    block->members[block->length] = a;
    block->sizes[block->length++] = (int64_t)naive->graph->storages[a].size;
    block->size += (int64_t)naive->graph->storages[a].size;
}

static void make_blocks(struct naive *naive, int64_t alignment)
{
    const struct tarn_graph *graph = naive->graph;
    bool *grouped = calloc(graph->groups_count + 1, sizeof *grouped);
    naive->blocks = calloc(graph->planned_count + 1, sizeof *naive->blocks);
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        uint32_t g = graph->storages[a].group;
        if (g != TARN_NONE && grouped[g]) continue;
        struct naive_block *block = &naive->blocks[naive->blocks_count];
        block->index = naive->blocks_count++;
        if (g == TARN_NONE) {
            add_member(naive, block, a);
        } else {
            grouped[g] = true;
            for (uint32_t i = 0; i < graph->groups[g].storages_count; i++)
                add_member(naive, block, graph->groups[g].storages[i]);
        }
        int64_t own = (int64_t)tarn_own_alignment(graph, &graph->storages[block->members[0]]);
        int64_t padding = round_up(block->size, alignment) - block->size;
        block->alignment = own > alignment ? own : alignment;
        block->sizes[block->length - 1] += padding;
        block->size += padding;
    }
    free(grouped);
}

/* ---- Sort ---- */

/* Is the storage alive when the op at this place of list order runs? */
static bool is_alive(const struct tarn_graph *graph, uint32_t a, uint32_t rank)
{
    const struct tarn_storage *storage = &graph->storages[a];
    bool begun = graph->rank[storage->producer] <= rank, ended = !storage->pinned;
    for (uint32_t i = 0; i < storage->users_count; i++)
        if (graph->rank[tarn_storage_users(graph, storage)[i]] >= rank) ended = false;
    return begun && !ended;
}

static uint64_t key_of_storage(const struct naive *naive, const char *sort, uint32_t a)
{
    const struct tarn_graph *graph = naive->graph;
    uint32_t rank = graph->rank[graph->storages[a].producer];
    uint64_t sum = 0;
    if (strcmp(sort, "source") == 0) return UINT32_MAX - rank;
    if (strcmp(sort, "unsafe") == 0)
        for (uint32_t b = 0; b < graph->planned_count; b++)
            sum += a != b && tarn_pair_matrix_get(&naive->unsafe, a, b);
    if (strcmp(sort, "lifetime") == 0)
        for (uint32_t r = 0; r < graph->ops_count; r++) sum += is_alive(graph, a, r);
    if (strcmp(sort, "breadth") == 0)
        for (uint32_t b = 0; b < graph->planned_count; b++)
            if (is_alive(graph, b, rank)) sum += graph->storages[b].size;
    return sum;
}

static int compare_blocks(const void *left, const void *right)
{
    const struct naive_block *a = left, *b = right;
    if (a->key != b->key) return a->key > b->key ? -1 : 1;
    return a->index < b->index ? -1 : 1;
}

static void sort(struct naive *naive, const char *word)
{
    for (uint32_t b = 0; b < naive->blocks_count; b++) {
        struct naive_block *block = &naive->blocks[b];
        if (strcmp(word, "size") == 0) block->key = (uint64_t)block->size;
        for (int i = 0; strcmp(word, "size") != 0 && i < block->length; i++) {
            uint64_t key = key_of_storage(naive, word, block->members[i]);
            if (key > block->key) block->key = key;
        }
    }
    qsort(naive->blocks, naive->blocks_count, sizeof *naive->blocks, compare_blocks);
}

/* ---- Algorithm 8: Avoid ---- */

static void avoid_tensor(const struct naive *naive, const struct naive_block *new_block,
                         const struct naive_object *object, uint32_t tensor, int64_t offset,
                         int64_t size, struct naive_interval *avoid, uint32_t *count)
{
    int64_t acc = 0;
    for (int i = 0; i < new_block->length; acc += new_block->sizes[i++]) {
        if (!tarn_pair_matrix_get(&naive->unsafe, new_block->members[i], tensor)) continue;
        if (new_block->length == 1) {
            avoid[(*count)++] = (struct naive_interval){offset, offset + size};
            continue;
        }
        int64_t start = offset - new_block->sizes[i] + 1 - acc;
        int64_t end = offset + size - acc;
        if (start >= object->offset)
            avoid[(*count)++] = (struct naive_interval){start, end};
        else if (end > object->offset)
            avoid[(*count)++] = (struct naive_interval){object->offset, end};
    }
}

static struct naive_interval *avoid(const struct naive *naive, const struct naive_block *new_block,
                                    const struct naive_object *object, uint32_t *count)
{
    size_t most = (size_t)naive->graph->planned_count * (size_t)new_block->length + 1;
    struct naive_interval *intervals = calloc(most, sizeof *intervals);
    *count = 0;
    for (uint32_t b = 0; b < object->count; b++) {
        const struct naive_block *block = object->blocks[b];
        int64_t offset = block->offset;
        for (int i = 0; i < block->length; offset += block->sizes[i++])
            avoid_tensor(naive, new_block, object, block->members[i], offset, block->sizes[i],
                         intervals, count);
    }
    return intervals;
}

/* ---- Algorithm 9: Merge ---- */

static int compare_intervals(const void *left, const void *right)
{
    const struct naive_interval *a = left, *b = right;
    return (a->left > b->left) - (a->left < b->left);
}

/* In place; the top of the stack comes last. Returns how many are left. */
static uint32_t merge(struct naive_interval *intervals, uint32_t count)
{
    uint32_t top = 0;
    if (count == 0) return 0;
    qsort(intervals, count, sizeof *intervals, compare_intervals);
    for (uint32_t i = 1; i < count; i++) {
        if (intervals[top].right < intervals[i].left)
            intervals[++top] = intervals[i];
        else if (intervals[top].right < intervals[i].right)
            intervals[top].right = intervals[i].right;
    }
    return top + 1;
}

/* ---- Algorithms 10 to 12: Fit ---- */

/* A gap of the pseudocode, or of starts that are allowed. */
static void consider(const struct naive *naive, const struct naive_block *block,
                     const struct naive_object *object, int64_t lower, int64_t upper,
                     struct naive_candidate *candidates, uint32_t *count)
{
    bool head_test = block->length == 1 || naive->paper;
    lower = round_up(lower, block->alignment);
    if (!head_test && upper > object->right - block->size + 1)
        upper = object->right - block->size + 1;
    if (lower + (head_test ? block->sizes[0] : 1) > upper) return;
    if (lower + block->size > object->right) return;
    candidates[(*count)++] = (struct naive_candidate){lower, upper - lower};
}

static int compare_first_fit(const void *left, const void *right)
{
    const struct naive_candidate *a = left, *b = right;
    if (a->lower != b->lower) return a->lower < b->lower ? -1 : 1;
    return (a->gap > b->gap) - (a->gap < b->gap);
}

static int compare_best_fit(const void *left, const void *right)
{
    const struct naive_candidate *a = left, *b = right;
    if (a->gap != b->gap) return a->gap < b->gap ? -1 : 1;
    return (a->lower > b->lower) - (a->lower < b->lower);
}

/* -1: none. */
static int64_t fit(const struct naive *naive, const struct naive_block *block,
                   const struct naive_interval *stack, uint32_t stack_count,
                   const struct naive_object *object)
{
    struct naive_candidate *candidates = calloc(stack_count + 1, sizeof *candidates);
    uint32_t count = 0;
    int64_t upper = object->right;
    for (uint32_t i = stack_count; i-- > 0;) {
        consider(naive, block, object, stack[i].right, upper, candidates, &count);
        upper = stack[i].left;
    }
    consider(naive, block, object, object->offset, upper, candidates, &count);
    qsort(candidates, count, sizeof *candidates,
          naive->best_fit ? compare_best_fit : compare_first_fit);
    int64_t offset = count ? candidates[0].lower : -1;
    free(candidates);
    return offset;
}

/* ---- Algorithms 6 and 7 ---- */

static bool place_in(const struct naive *naive, struct naive_block *block,
                     struct naive_object *object)
{
    uint32_t count;
    struct naive_interval *intervals = avoid(naive, block, object, &count);
    count = merge(intervals, count);
    int64_t offset = fit(naive, block, intervals, count, object);
    free(intervals);
    if (offset < 0) return false;
    block->offset = offset;
    object->blocks[object->count++] = block;
    return true;
}

static void open_object(const struct naive *naive, struct naive_object *object, int64_t offset,
                        int64_t right)
{
    object->offset = offset;
    object->right = right;
    object->blocks = calloc(naive->blocks_count + 1, sizeof(struct naive_block *));
}

/* The block that opens an object is where the object begins. */
static void place_all(const struct naive *naive, bool many_objects)
{
    struct naive_object *objects = calloc(naive->blocks_count + 1, sizeof *objects);
    uint32_t count = 0;
    if (!many_objects) open_object(naive, &objects[count++], 0, INFINITE);
    for (uint32_t b = 0; b < naive->blocks_count; b++) {
        struct naive_block *block = &naive->blocks[b];
        bool placed = false;
        for (uint32_t o = 0; o < count && !placed; o++)
            placed = place_in(naive, block, &objects[o]);
        if (placed) continue;
        int64_t end = count ? objects[count - 1].right : 0;
        int64_t start = round_up(end, block->alignment);
        open_object(naive, &objects[count], start, start + block->size);
        place_in(naive, block, &objects[count++]);
    }
    for (uint32_t o = 0; o < count; o++) free(objects[o].blocks);
    free(objects);
}

uint64_t naive_place(const struct tarn_graph *graph, uint64_t alignment, const char *method,
                     uint64_t *offset)
{
    struct naive naive = {.graph = graph};
    char word[16] = "";
    uint64_t footprint = 0;
    naive.paper = strstr(method, ":paper") != NULL;
    naive.best_fit = strstr(method, ":best-fit") != NULL;
    const char *colon = strchr(method, ':');
    memcpy(word, colon + 1, strcspn(colon + 1, ":"));
    if (tarn_pairs_stream_graph(graph, &naive.unsafe) != TARN_OK) abort();
    make_blocks(&naive, (int64_t)alignment);
    sort(&naive, word);
    place_all(&naive, strncmp(method, "many", 4) == 0);
    for (uint32_t b = 0; b < naive.blocks_count; b++) {
        const struct naive_block *block = &naive.blocks[b];
        int64_t at = block->offset;
        for (int i = 0; i < block->length; at += block->sizes[i++])
            offset[block->members[i]] = (uint64_t)at;
        if ((uint64_t)at > footprint) footprint = (uint64_t)at;
    }
    free(naive.blocks);
    tarn_pair_matrix_finish(&naive.unsafe);
    return footprint;
}

/* ---- The best of all placements ---- */

struct naive_search {
    const struct tarn_graph *graph;
    const struct tarn_pair_matrix *unsafe;
    uint64_t offset[8];
    uint64_t best;
};

/* Tries every offset of storage a that stays below the best, whatever the ones before it have. */
static void try_offsets(struct naive_search *search, uint32_t a, uint64_t highest)
{
    if (a == search->graph->planned_count) {
        search->best = highest; /* below the best so far, see below */
        return;
    }
    uint64_t size = search->graph->storages[a].size;
    for (uint64_t at = 0; at + size < search->best; at++) {
        bool is_free = true;
        for (uint32_t b = 0; b < a && is_free; b++)
            is_free = !tarn_pair_matrix_get(search->unsafe, a, b) ||
                      at + size <= search->offset[b] ||
                      search->offset[b] + search->graph->storages[b].size <= at;
        search->offset[a] = at;
        if (is_free && highest < search->best)
            try_offsets(search, a + 1, highest > at + size ? highest : at + size);
    }
}

uint64_t naive_best(const struct tarn_graph *graph)
{
    struct tarn_pair_matrix unsafe;
    if (graph->planned_count > 8 || tarn_pairs_ancestors(graph, &unsafe) != TARN_OK) abort();
    struct naive_search search = {.graph = graph, .unsafe = &unsafe, .best = 1};
    for (uint32_t a = 0; a < graph->planned_count; a++) search.best += graph->storages[a].size;
    try_offsets(&search, 0, 0);
    tarn_pair_matrix_finish(&unsafe);
    return search.best;
}
