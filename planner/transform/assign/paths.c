/* Assigns streams without losing concurrency: the fewest paths that cover the transitive reduction.
 * An arc of the reduction that lies on a path needs no event, and a maximum matching of nodes with
 * the nodes before them gives the maximum of such arcs: arcs between streams = arcs of the
 * reduction - matched. Source: Nimble (Kwon, Yu, Jeong, Chun, NeurIPS 2020), section 4.2; Hopcroft
 * and Karp, 1973.
 *
 * The reduction is found a block of columns at a time: which nodes of the block happen before v, as
 * a row of bits; an arc u -> v is implied if u is in the row of another node that v waits for.
 * Cost: O(V E / 64) time and a row of 128 bytes a node; the matching O(E sqrt V). */
#include <assert.h>
#include <string.h>

#include "assign.h"
#include "streams/base/bitset.h"

enum { WORDS = 16, COLUMNS = 64 * WORDS };

/* ---- The reduction ---- */

struct row {
    uint64_t words[WORDS];
};

static bool has(const struct row *row, uint32_t column) { return tarn_set_has(row->words, column); }

/* The nodes of the block that happen before v. */
static void fill_row(struct row *rows, const struct tarn_arcs *before, uint32_t v, uint32_t block)
{
    struct row *row = &rows[v];
    memset(row, 0, sizeof *row);
    for (uint32_t i = before->begin[v]; i < before->begin[v + 1]; i++) {
        uint32_t u = before->ops[i];
        if (u < block) continue;
        for (uint32_t w = 0; w < WORDS; w++) row->words[w] |= rows[u].words[w];
        if (u - block < COLUMNS) tarn_set_add(row->words, u - block);
    }
}

static bool is_implied(const struct row *rows, const struct tarn_arcs *before, uint32_t v,
                       uint32_t column, uint32_t block)
{
    for (uint32_t i = before->begin[v]; i < before->begin[v + 1]; i++)
        if (before->ops[i] > block + column && has(&rows[before->ops[i]], column)) return true;
    return false;
}

/* implied: by arc, as in `before`. */
static enum tarn_status find_implied(struct tarn_region *region, const struct tarn_arcs *before,
                                     uint32_t count, bool *implied)
{
    struct tarn_region_mark mark = tarn_region_mark(region);
    struct row *rows = tarn_region_take(region, count, sizeof *rows);
    if (!rows) return TARN_SYSTEM;
    for (uint32_t block = 0; block < count; block += COLUMNS) {
        for (uint32_t v = block; v < count; v++) {
            fill_row(rows, before, v, block);
            for (uint32_t i = before->begin[v]; i < before->begin[v + 1]; i++) {
                uint32_t u = before->ops[i];
                if (u >= block && u - block < COLUMNS)
                    implied[i] = is_implied(rows, before, v, u - block, block);
            }
        }
        if (count - block <= COLUMNS) break;
    }
    tarn_region_release(region, mark);
    return TARN_OK;
}

/* ---- The matching ---- */

struct matching {
    const struct tarn_arcs *before;
    const bool *implied;
    uint32_t count;
    uint32_t *ahead;  /* node -> the node that its path comes from; TARN_NONE: a path begins */
    uint32_t *behind; /* node -> the node that its path goes to */
    uint32_t *level;  /* of the search; TARN_NONE: not reached */
    uint32_t *next;   /* node -> its arc to be tried next */
    uint32_t *queue;  /* also the stack of the descent */
};

static void match(struct matching *matching, uint32_t v, uint32_t u)
{
    assert(u < v);
    matching->ahead[v] = u;
    matching->behind[u] = v;
}

/* Levels by alternating paths from the nodes without one ahead. Can any of them get one? */
static bool find_levels(struct matching *matching)
{
    uint32_t queued = 0;
    bool found = false;
    for (uint32_t v = 0; v < matching->count; v++) {
        bool is_first = matching->ahead[v] == TARN_NONE;
        matching->level[v] = is_first ? 0 : TARN_NONE;
        matching->next[v] = matching->before->begin[v];
        if (is_first) matching->queue[queued++] = v;
    }
    for (uint32_t n = 0; n < queued; n++) {
        uint32_t v = matching->queue[n];
        for (uint32_t i = matching->before->begin[v]; i < matching->before->begin[v + 1]; i++) {
            if (matching->implied[i]) continue;
            uint32_t other = matching->behind[matching->before->ops[i]];
            if (other == TARN_NONE) {
                found = true;
            } else if (matching->level[other] == TARN_NONE) {
                matching->level[other] = matching->level[v] + 1;
                matching->queue[queued++] = other;
            }
        }
    }
    return found;
}

/* Gives every node on the stack the node of the arc that it was about to try, the last one first:
 * its previous node goes to the next one. */
static void turn_over(struct matching *matching, uint32_t depth)
{
    for (uint32_t k = depth; k-- > 0;) {
        uint32_t v = matching->queue[k];
        match(matching, v, matching->before->ops[matching->next[v]++]);
    }
}

/* Descends from `first` through the levels to a node without a successor in a path. */
static void descend(struct matching *matching, uint32_t first)
{
    uint32_t depth = 0;
    matching->queue[depth++] = first;
    while (depth > 0) {
        uint32_t v = matching->queue[depth - 1], *i = &matching->next[v];
        if (*i ==
            matching->before->begin[v + 1]) { /* no arc is left: another one for the node above */
            depth--;
            if (depth > 0) matching->next[matching->queue[depth - 1]]++;
            continue;
        }
        uint32_t other = matching->implied[*i] ? v : matching->behind[matching->before->ops[*i]];
        if (other == TARN_NONE) {
            turn_over(matching, depth);
            return;
        }
        if (other != v && matching->level[other] == matching->level[v] + 1)
            matching->queue[depth++] = other;
        else
            ++*i;
    }
}

static void match_nodes(struct matching *matching)
{
    for (uint32_t v = 0; v < matching->count; v++)
        matching->ahead[v] = matching->behind[v] = TARN_NONE;
    while (find_levels(matching)) {
        for (uint32_t v = 0; v < matching->count; v++)
            if (matching->ahead[v] == TARN_NONE) descend(matching, v);
    }
}

/* ---- Paths ---- */

static void number_paths(struct tarn_assignment *assignment, const struct matching *matching)
{
    for (uint32_t v = 0; v < matching->count; v++) {
        uint32_t u = matching->ahead[v];
        assignment->order[v] = v;
        assignment->stream[v] =
            u == TARN_NONE ? assignment->streams_count++ : assignment->stream[u];
    }
    assert(assignment->streams_count <= matching->count);
    if (assignment->streams_count == 0) assignment->streams_count = 1; /* for lone views */
}

static enum tarn_status cover(struct tarn_assignment *assignment, struct tarn_region *region,
                              const struct tarn_reorder_model *model)
{
    size_t count = model->nodes_count;
    bool *implied = tarn_region_take(region, model->predecessors.begin[count], sizeof *implied);
    struct matching matching = {
        .before = &model->predecessors,
        .implied = implied,
        .count = model->nodes_count,
        .ahead = tarn_region_take(region, count, sizeof *matching.ahead),
        .behind = tarn_region_take(region, count, sizeof *matching.behind),
        .level = tarn_region_take(region, count, sizeof *matching.level),
        .next = tarn_region_take(region, count, sizeof *matching.next),
        .queue = tarn_region_take(region, count, sizeof *matching.queue),
    };
    if (region->is_exhausted) return TARN_SYSTEM;
    if (find_implied(region, &model->predecessors, model->nodes_count, implied) != TARN_OK)
        return TARN_SYSTEM;
    match_nodes(&matching);
    number_paths(assignment, &matching);
    return TARN_OK;
}

enum tarn_status tarn_assign_paths(struct tarn_assignment *assignment, struct tarn_region *region,
                                   const struct tarn_reorder_model *model)
{
    if (tarn_assignment_init(assignment, region, model) != TARN_OK) return TARN_SYSTEM;
    struct tarn_region_mark mark = tarn_region_mark(region);
    enum tarn_status status = cover(assignment, region, model);
    tarn_region_release(region, mark);
    return status;
}
