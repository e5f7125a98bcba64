/* Implements Single Object and Many Objects, Algorithms 6 to 13 of the SOMAS paper, step by step
 * under the paper's names: avoid, merge, fit, set_offsets. Only the way in which the steps find
 * their data is Tarn's:
 *
 *   - avoid streams the conflicts out of `first` (conflict.h); there is no matrix of pairs.
 *   - Placed storages start at few distinct offsets, the edges. Marking edges in a bitmap puts the
 *     intervals in order, so that merge has nothing to sort for a lone storage.
 *   - Objects lie side by side and no block crosses their borders: one avoid list serves them all,
 *     and Single Object is Many Objects with one object that never ends. The paper's short cut (an
 *     object whose spanning tensor is unsafe with the new one) is an interval that covers it.
 *   - Intervals are of forbidden starts, for lone storages too: [offset - size + 1, end).
 *
 * Cost: the list of conflicts and T/64 words per storage, plus O(T) for every new edge. */
#include "somas.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "streams/base/bisect.h"
#include "streams/base/bitset.h"
#include "streams/base/checked.h"

struct interval {
    uint64_t left, right; /* [left, right) */
};

struct tarn_placer {
    struct tarn_region *region; /* in which the arrays live; the stack grows in it */
    const struct tarn_problem *problem;
    const struct tarn_method *method;
    uint64_t *offset;      /* the result, by storage */
    uint64_t *edge;        /* distinct offsets, increasing; edge 0 is offset 0 */
    uint64_t *edge_object; /* edge -> the start of its object */
    uint64_t *reach;       /* edge -> highest end of marked storages that start there; else 0 */
    uint64_t *marked;      /* bit per edge */
    uint32_t *edge_of;     /* slot -> edge at which it starts */
    uint64_t *end;         /* slot -> end of its reserved bytes */
    uint64_t *placed;      /* bit per slot */
    uint64_t *mask;        /* bit per slot: in conflict with the storage in question */
    struct interval *objects;
    struct interval *stack; /* the avoid list; merged: disjoint, increasing */
    size_t stack_count, stack_room;
    uint32_t edges_count, objects_count;
};

/* ---- Avoid ---- */

/* Marks the offsets of placed storages with which this storage must not share bytes. */
static void mark_conflicts(struct tarn_placer *placer, uint32_t storage)
{
    const struct tarn_conflicts *conflicts = &placer->problem->conflicts;
    tarn_conflicts_mask(conflicts, storage, placer->mask);
    TARN_SET_EACH(slot, w, conflicts->words_count, placer->mask[w] & placer->placed[w]) {
        uint32_t e = placer->edge_of[slot];
        uint64_t end = placer->end[slot];
        placer->reach[e] = end > placer->reach[e] ? end : placer->reach[e];
        tarn_set_add(placer->marked, e);
    }
}

/* Pushes the starts of a block that a taken run of bytes forbids to a member of it: the member has
 * `size` bytes, and `before` bytes of the block come before it. Limits of the object hold. */
static void push_forbidden(struct tarn_placer *placer, struct interval run, uint64_t object,
                           uint64_t size, uint64_t before)
{
    uint64_t left = run.left > size - 1 + before ? run.left - (size - 1 + before) : 0;
    uint64_t right = run.right > before ? run.right - before : 0;
    if (left < object) left = object;
    if (right > left) placer->stack[placer->stack_count++] = (struct interval){left, right};
}

/* Unmarks all edges and pushes the intervals that they forbid, touching intervals as one run. A run
 * over the border of two objects counts as the first object's, which forbids everything that it
 * must in both. */
static void push_marked(struct tarn_placer *placer, uint64_t size, uint64_t before)
{
    struct interval run = {0, 0};
    uint64_t object = 0;
    for (uint32_t word = 0; word <= placer->edges_count / 64; word++) {
        for (uint64_t bits = placer->marked[word]; bits != 0; bits &= bits - 1) {
            uint32_t e = tarn_set_next(word, bits);
            struct interval taken = {placer->edge[e], placer->reach[e]};
            placer->reach[e] = 0;
            if (taken.left > run.right) {
                push_forbidden(placer, run, object, size, before);
                run = taken;
                object = placer->edge_object[e];
            } else if (taken.right > run.right) {
                run.right = taken.right;
            }
        }
        placer->marked[word] = 0;
    }
    push_forbidden(placer, run, object, size, before);
}

static bool reserve_stack(struct tarn_placer *placer, size_t more)
{
    size_t count = placer->stack_count + more;
    struct interval *stack =
        tarn_region_grow(placer->region, placer->stack, &placer->stack_room, count, sizeof *stack);
    if (!stack) return false;
    placer->stack = stack;
    return true;
}

/* Algorithm 8: the intervals of offsets at which the block must not start. */
static bool avoid(struct tarn_placer *placer, struct tarn_block block)
{
    const struct tarn_blocks *blocks = &placer->problem->blocks;
    placer->stack_count = 0;
    for (uint32_t i = 0; i < block.members_count; i++) {
        uint32_t a = block.members[i];
        if (!reserve_stack(placer, (size_t)placer->edges_count + 1)) return false;
        mark_conflicts(placer, a);
        push_marked(placer, blocks->reserved[a], blocks->within[a]);
    }
    return true;
}

/* ---- Merge ---- */

static int compare_left(const void *left, const void *right)
{
    const struct interval *a = left, *b = right;
    return a->left < b->left ? -1 : a->left > b->left;
}

/* Algorithm 9: the same offsets in as few intervals as possible, in increasing order. */
static void merge(struct tarn_placer *placer, struct tarn_block block)
{
    struct interval *stack = placer->stack;
    size_t count = placer->stack_count, top = 0;
    if (count == 0) return;
    if (block.members_count > 1) qsort(stack, count, sizeof *stack, compare_left);
    for (size_t i = 1; i < count; i++) {
        if (stack[top].right < stack[i].left)
            stack[++top] = stack[i];
        else if (stack[top].right < stack[i].right)
            stack[top].right = stack[i].right;
    }
    placer->stack_count = top + 1;
}

/* ---- Fit ---- */

/* Every placed block ends below the sum of all blocks with their alignments, which was checked to
 * be addressable when the blocks were made. */
static uint64_t round_up(uint64_t offset, uint64_t alignment)
{
    uint64_t start = 0;
    bool is_addressable = tarn_size_round_up(offset, alignment, &start);
    assert(is_addressable);
    (void)is_addressable;
    return start;
}

struct candidate {
    uint64_t start;
    uint64_t gap; /* 0: none yet */
};

/* How much room there is for a block's start in the gap [start, upper) of an object; 0: it does not
 * fit. The paper compares the size of the block's head with the gap, and so rejects gaps of allowed
 * starts that are shorter than the head. */
static uint64_t gap_for(const struct tarn_placer *placer, struct tarn_block block,
                        struct interval object, uint64_t start, uint64_t upper)
{
    if (object.right - object.left < block.size) return 0;
    uint64_t last = object.right - block.size, end = upper <= last ? upper : last + 1;
    uint64_t gap = start < end ? end - start : 0;
    if (gap == 0 || !placer->method->paper || block.members_count == 1) return gap;
    uint64_t head = placer->problem->blocks.reserved[block.members[0]];
    return upper - start < head ? 0 : upper - start;
}

/* First-fit takes the first candidate, best-fit the one with the smallest gap, the lowest of equal
 * ones. True when no further one can be better. */
static bool consider(const struct tarn_placer *placer, struct tarn_block block,
                     struct interval object, uint64_t lower, uint64_t upper, struct candidate *best)
{
    uint64_t start = round_up(lower, block.alignment);
    uint64_t gap = gap_for(placer, block, object, start, upper);
    if (gap != 0 && (best->gap == 0 || gap < best->gap)) *best = (struct candidate){start, gap};
    return gap != 0 && !placer->method->best_fit;
}

/* Algorithm 10, with Algorithms 11 and 12: finds the offset at which the block may start in the
 * object. `from` is the first merged interval that reaches into it. */
static bool fit(const struct tarn_placer *placer, struct tarn_block block, struct interval object,
                size_t from, uint64_t *start)
{
    struct candidate best = {0, 0};
    uint64_t lower = object.left;
    bool done = false;
    for (size_t i = from; !done && i < placer->stack_count; i++) {
        struct interval avoided = placer->stack[i];
        if (avoided.left >= object.right) break;
        done = consider(placer, block, object, lower, avoided.left, &best);
        lower = avoided.right;
    }
    if (!done) consider(placer, block, object, lower, object.right, &best);
    *start = best.start;
    return best.gap != 0;
}

/* ---- Set offsets ---- */

static void renumber_edges(struct tarn_placer *placer, uint32_t from)
{
    uint32_t *edge_of = placer->edge_of, count = placer->problem->blocks.storages_count;
    for (uint32_t i = 0; i < count; i++) edge_of[i] += edge_of[i] >= from;
}

/* The edge at an offset; a new edge moves up the edges after it. */
static uint32_t edge_at(struct tarn_placer *placer, uint64_t offset, uint64_t object)
{
    uint32_t low = 0, high = placer->edges_count;
    TARN_BISECT(low, high, middle, placer->edge[middle] < offset);
    if (low < placer->edges_count && placer->edge[low] == offset) return low;
    uint32_t behind = placer->edges_count++ - low;
    memmove(placer->edge + low + 1, placer->edge + low, behind * sizeof *placer->edge);
    memmove(placer->edge_object + low + 1, placer->edge_object + low,
            behind * sizeof *placer->edge_object);
    placer->edge[low] = offset;
    placer->edge_object[low] = object;
    if (behind > 0) renumber_edges(placer, low);
    return low;
}

/* Algorithm 13: the members are stacked from the block's start. */
static void set_offsets(struct tarn_placer *placer, struct tarn_block block, uint64_t object,
                        uint64_t start)
{
    const struct tarn_blocks *blocks = &placer->problem->blocks;
    for (uint32_t i = 0; i < block.members_count; i++) {
        uint32_t a = block.members[i], slot = placer->problem->conflicts.slot_of[a];
        placer->offset[a] = start + blocks->within[a];
        tarn_set_add(placer->placed, slot);
        placer->end[slot] = placer->offset[a] + blocks->reserved[a];
        placer->edge_of[slot] = edge_at(placer, placer->offset[a], object);
    }
}

/* ---- Algorithms 6 and 7 ---- */

/* Places the block in the first object in which it fits, or in a new object that it spans. */
static bool place_block(struct tarn_placer *placer, struct tarn_block block)
{
    uint64_t start = 0;
    size_t from = 0;
    if (!avoid(placer, block)) return false;
    merge(placer, block);
    for (uint32_t o = 0; o < placer->objects_count; o++) {
        struct interval object = placer->objects[o];
        while (from < placer->stack_count && placer->stack[from].right <= object.left) from++;
        if (!fit(placer, block, object, from, &start)) continue;
        set_offsets(placer, block, object.left, start);
        return true;
    }
    uint64_t memory_end =
        placer->objects_count ? placer->objects[placer->objects_count - 1].right : 0;
    start = round_up(memory_end, block.alignment);
    placer->objects[placer->objects_count++] = (struct interval){start, start + block.size};
    set_offsets(placer, block, start, start);
    return true;
}

static bool placer_init(struct tarn_placer *placer, struct tarn_region *region,
                        const struct tarn_problem *problem, const struct tarn_method *method,
                        uint64_t *offset)
{
    size_t count = (size_t)problem->blocks.storages_count + 2, words = count / 64 + 1;
    *placer = (struct tarn_placer){
        .region = region, .problem = problem, .method = method, .offset = offset, .edges_count = 1};
    placer->edge = tarn_region_take(region, count, sizeof *placer->edge);
    placer->edge_object = tarn_region_take(region, count, sizeof *placer->edge_object);
    placer->reach = tarn_region_take(region, count, sizeof *placer->reach);
    placer->marked = tarn_region_take(region, words, sizeof *placer->marked);
    placer->edge_of = tarn_region_take(region, count, sizeof *placer->edge_of);
    placer->end = tarn_region_take(region, count, sizeof *placer->end);
    placer->placed = tarn_region_take(region, words, sizeof *placer->placed);
    placer->mask = tarn_region_take(region, words, sizeof *placer->mask);
    placer->objects = tarn_region_take(region, count, sizeof *placer->objects);
    if (region->is_exhausted) return false;
    if (!method->many_objects)
        placer->objects[placer->objects_count++] = (struct interval){0, UINT64_MAX};
    return true;
}

/* ---- Step by step ---- */

static const struct tarn_method step_by_step = {
    .name = "", .sort = TARN_SORT_SIZE, .best_fit = true};

struct tarn_placer *tarn_placer_create(struct tarn_region *region,
                                       const struct tarn_problem *problem, uint64_t *offset)
{
    struct tarn_placer *placer = tarn_region_take(region, 1, sizeof *placer);
    if (!placer) return NULL;
    return placer_init(placer, region, problem, &step_by_step, offset) ? placer : NULL;
}

void tarn_placer_clear(struct tarn_placer *placer)
{
    size_t words = (size_t)placer->problem->blocks.storages_count / 64 + 1;
    memset(placer->placed, 0, words * sizeof *placer->placed);
    placer->edges_count = 1;
}

void tarn_placer_put(struct tarn_placer *placer, struct tarn_block block, uint64_t start)
{
    set_offsets(placer, block, 0, start);
}

enum tarn_status tarn_placer_place(struct tarn_placer *placer, struct tarn_block block)
{
    return place_block(placer, block) ? TARN_OK : TARN_SYSTEM;
}

enum tarn_status tarn_placer_try(struct tarn_placer *placer, struct tarn_block block,
                                 uint64_t start, bool *fits)
{
    *fits = true;
    if (!avoid(placer, block)) return TARN_SYSTEM;
    for (size_t i = 0; i < placer->stack_count && *fits; i++)
        *fits = start < placer->stack[i].left || placer->stack[i].right <= start;
    if (*fits) set_offsets(placer, block, 0, start);
    return TARN_OK;
}

/* ---- All of it ---- */

enum tarn_status tarn_baseline_place(const struct tarn_problem *problem, struct tarn_region *region,
                                     const struct tarn_method *method,
                                     const struct tarn_deadline *deadline, uint64_t *offset,
                                     uint64_t *footprint)
{
    struct tarn_placer placer;
    struct tarn_region_mark mark = tarn_region_mark(region);
    uint32_t *order = tarn_region_take(region, problem->blocks.count, sizeof *order);
    bool ok = order && tarn_blocks_sort(problem, region, method->sort, order) == TARN_OK &&
              placer_init(&placer, region, problem, method, offset);
    bool over = false;
    for (uint32_t i = 0; ok && !over && i < problem->blocks.count; i++) {
        ok = place_block(&placer, tarn_block_at(&problem->blocks, order[i]));
        over = deadline && tarn_deadline_is_over(deadline);
    }
    if (ok) *footprint = over ? UINT64_MAX : tarn_blocks_footprint(&problem->blocks, offset);
    tarn_region_release(region, mark);
    return ok ? TARN_OK : TARN_SYSTEM;
}
