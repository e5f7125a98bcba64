/* Making the instance for exact search. Neighbouring members of a group that are in conflict with
 * the same others become one piece. Conflicts of pieces become adjacency of blocks and, where
 * groups are concerned, bans. Sections are cliques of pieces: going through the storages in list
 * order, each with its earlier neighbours, which on a single stream are themselves a clique (the
 * classic enumeration of an interval graph's maximal cliques); with several streams they are
 * covered by cliques that grow greedily by size. Every conflict is in some section.
 *
 * Cost: O(n^2) bits for n storages, and O(n / 64) for each piece of each section. */
#include "exact_instance.h"

#include <stdlib.h>
#include <string.h>

#include "../../streams/graph/size.h"
#include "exact_set.h"

enum { STORAGES_MAX = 8192, SECTIONS_A_PIECE = 64 };
#define UNITS_MAX ((uint64_t)1 << 60)
#define SECTION_PIECES_MAX ((size_t)1 << 23)

/* A piece by its turn: the larger come first, so that the largest of a set is its lowest bit. */
struct turn {
    int64_t size;
    uint32_t piece;
};

/* While being made: pieces are numbered as in the instance, neighbours are bits over turns. */
struct making {
    struct tarn_exact_instance *instance;
    const struct tarn_problem *problem;
    const uint8_t *role;
    const uint64_t *offset;
    const struct tarn_until *until;
    bool over; /* it ended the making */
    uint32_t pieces_count;
    uint32_t words;       /* of a set of pieces */
    uint32_t *free_index; /* block of the problem -> of the instance, or TARN_NONE */
    uint32_t *storage;    /* piece -> storage */
    uint32_t *piece_of;   /* storage -> piece, or TARN_NONE */
    uint32_t *block_of;   /* storage -> block of the problem */
    uint64_t *present;    /* set of slots: whose blocks are not ignored */
    uint64_t *mask[2];    /* sets of slots to work in */
    struct turn *turns;
    uint32_t *turn_of;  /* piece -> turn */
    uint64_t *adjacent; /* [turn][words] */
    uint32_t *by_time;  /* turns of pieces in list order of their producers */
    size_t section_pieces_room;
    uint32_t sections_room;
    size_t bans_room, walls_room;
};

/* Looked at for every block and piece: hundreds of them can take a second. */
static bool is_over(struct making *making)
{
    making->over = making->over || tarn_until_is_over(making->until);
    return making->over;
}

static uint8_t role_of(const struct making *making, uint32_t block)
{
    return making->role ? making->role[block] : TARN_EXACT_FREE;
}

/* ---- Blocks and pieces ---- */

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Writes which slots of other blocks the storage is in conflict with. */
static void look_around(const struct making *making, struct tarn_block block, uint32_t a,
                        uint64_t *mask)
{
    const struct tarn_conflicts *conflicts = making->problem->conflicts;
    tarn_conflicts_mask(conflicts, a, mask);
    for (uint32_t k = 0; k < block.members_count; k++)
        tarn_set_drop(mask, conflicts->slot_of[block.members[k]]);
    for (uint32_t w = 0; w < conflicts->words_count; w++) mask[w] &= making->present[w];
}

/* Appends a member to the pieces of block i: to the last one, if the same are in conflict with
 * both. */
static void take_member(struct making *making, uint32_t i, struct tarn_block block, uint32_t k)
{
    struct tarn_exact_instance *instance = making->instance;
    const struct tarn_blocks *blocks = making->problem->blocks;
    size_t bytes = making->problem->conflicts->words_count * sizeof(uint64_t);
    uint32_t a = block.members[k];
    uint64_t *mask = making->mask[k % 2];
    if (block.members_count > 1) look_around(making, block, a, mask);
    if (k == 0 || memcmp(mask, making->mask[1 - k % 2], bytes) != 0) {
        uint32_t p = making->pieces_count++;
        making->storage[p] = a;
        instance->piece_block[p] = i;
        instance->piece_within[p] = (int64_t)blocks->within[a];
    }
    making->piece_of[a] = making->pieces_count - 1;
    instance->piece_size[making->piece_of[a]] += (int64_t)blocks->reserved[a];
}

static void take_block(struct making *making, uint32_t b)
{
    struct tarn_exact_instance *instance = making->instance;
    const struct tarn_block block = tarn_block_at(making->problem->blocks, b);
    uint32_t i = instance->count++;
    making->free_index[b] = i;
    instance->block[i] = b;
    instance->size[i] = (int64_t)block.size;
    instance->alignment[i] = (int64_t)block.alignment;
    instance->piece_begin[i] = making->pieces_count;
    for (uint32_t k = 0; k < block.members_count; k++) take_member(making, i, block, k);
    instance->piece_begin[i + 1] = making->pieces_count;
}

static void note_present(struct making *making)
{
    const struct tarn_blocks *blocks = making->problem->blocks;
    for (uint32_t b = 0; b < blocks->count; b++) {
        const struct tarn_block block = tarn_block_at(blocks, b);
        for (uint32_t k = 0; k < block.members_count; k++) {
            making->block_of[block.members[k]] = b;
            if (role_of(making, b) != TARN_EXACT_IGNORED)
                tarn_set_add(making->present,
                             making->problem->conflicts->slot_of[block.members[k]]);
        }
    }
}

/* In bytes. */
static void take_blocks(struct making *making)
{
    const struct tarn_blocks *blocks = making->problem->blocks;
    note_present(making);
    for (uint32_t a = 0; a < blocks->storages_count; a++) making->piece_of[a] = TARN_NONE;
    for (uint32_t b = 0; b < blocks->count; b++) {
        making->free_index[b] = TARN_NONE;
        if (role_of(making, b) == TARN_EXACT_FREE) take_block(making, b);
    }
}

/* The unit: of everything that positions are sums of. An alignment of 1 asks for nothing. */
static void find_unit(const struct making *making)
{
    struct tarn_exact_instance *instance = making->instance;
    const struct tarn_blocks *blocks = making->problem->blocks;
    uint64_t unit = 0;
    for (uint32_t i = 0; i < instance->count; i++)
        if (instance->alignment[i] > 1) unit = gcd(unit, (uint64_t)instance->alignment[i]);
    for (uint32_t p = 0; p < making->pieces_count; p++)
        unit = gcd(unit, (uint64_t)instance->piece_size[p]);
    for (uint32_t a = 0; a < blocks->storages_count; a++)
        if (role_of(making, making->block_of[a]) == TARN_EXACT_FIXED)
            unit = gcd(gcd(unit, making->offset[a]), blocks->reserved[a]);
    instance->unit = unit == 0 ? 1 : unit;
}

static void count_units(struct tarn_exact_instance *instance, uint32_t pieces_count)
{
    int64_t unit = (int64_t)instance->unit;
    for (uint32_t i = 0; i < instance->count; i++) {
        instance->size[i] /= unit;
        if (instance->alignment[i] > 1) instance->alignment[i] /= unit;
    }
    for (uint32_t p = 0; p < pieces_count; p++) {
        instance->piece_within[p] /= unit;
        instance->piece_size[p] /= unit;
    }
}

static int compare_turns(const void *a, const void *b)
{
    const struct turn *x = a, *y = b;
    if (x->size != y->size) return x->size > y->size ? -1 : 1;
    return (x->piece > y->piece) - (x->piece < y->piece);
}

static void sort_by_size(struct making *making)
{
    for (uint32_t p = 0; p < making->pieces_count; p++)
        making->turns[p] = (struct turn){making->instance->piece_size[p], p};
    qsort(making->turns, making->pieces_count, sizeof *making->turns, compare_turns);
    for (uint32_t i = 0; i < making->pieces_count; i++) making->turn_of[making->turns[i].piece] = i;
}

/* ---- Bans ---- */

static bool grow(void **array, size_t *room, size_t count, size_t size)
{
    if (count < *room) return true;
    size_t more = *room ? *room * 2 : 256;
    void *larger = realloc(*array, more * size);
    if (!larger) return false;
    *array = larger;
    *room = more;
    return true;
}

static int compare_bans(const void *a, const void *b)
{
    const struct tarn_exact_ban *x = a, *y = b;
    if (x->other != y->other) return x->other < y->other ? -1 : 1;
    return (x->low > y->low) - (x->low < y->low);
}

/* Sorts and merges what overlaps; both ends of a ban are allowed, so that those that only meet stay
 * apart. Returns how many are left. */
static uint32_t merge_bans(struct tarn_exact_ban *bans, uint32_t count)
{
    uint32_t kept = 0;
    qsort(bans, count, sizeof *bans, compare_bans);
    for (uint32_t i = 0; i < count; i++) {
        struct tarn_exact_ban *last = kept > 0 ? &bans[kept - 1] : NULL;
        if (!last || last->other != bans[i].other || bans[i].low >= last->high)
            bans[kept++] = bans[i];
        else if (bans[i].high > last->high)
            last->high = bans[i].high;
    }
    return kept;
}

/* Piece p, at `within` of its block, must not meet `size` units that begin at `start` (of the other
 * block, or of the arena): where p's block must not begin, counted in the same way. */
static struct tarn_exact_ban ban_of(const struct tarn_exact_instance *instance, uint32_t p,
                                    int64_t start, int64_t size, uint32_t other)
{
    int64_t within = instance->piece_within[p];
    return (struct tarn_exact_ban){other, start - within - instance->piece_size[p],
                                   start + size - within};
}

/* What piece p in conflict with storage a means. Every pair is met from both sides. */
static bool take_conflict(struct making *making, uint32_t p, uint32_t a, uint32_t *bans,
                          uint32_t *walls)
{
    struct tarn_exact_instance *instance = making->instance;
    const struct tarn_blocks *blocks = making->problem->blocks;
    uint32_t b = instance->piece_block[p], q = making->piece_of[a];
    uint8_t role = role_of(making, making->block_of[a]);
    if (making->block_of[a] == instance->block[b] || role == TARN_EXACT_IGNORED) return true;
    if (q != TARN_NONE && making->storage[q] != a) return true; /* another one stands for it */
    if (role == TARN_EXACT_FIXED) {
        if (!grow((void **)&instance->walls, &making->walls_room, *walls, sizeof *instance->walls))
            return false;
        int64_t start = (int64_t)(making->offset[a] / instance->unit);
        int64_t size = (int64_t)(blocks->reserved[a] / instance->unit);
        instance->walls[(*walls)++] = ban_of(instance, p, start, size, TARN_NONE);
        return true;
    }
    uint32_t c = instance->piece_block[q];
    tarn_set_add(making->adjacent + (size_t)making->turn_of[p] * making->words, making->turn_of[q]);
    tarn_set_add(instance->adjacent + (size_t)b * instance->set_words, c);
    if (tarn_exact_is_simple(instance, b, c)) return true;
    if (!grow((void **)&instance->bans, &making->bans_room, *bans, sizeof *instance->bans))
        return false;
    /* Of b against c: c's position less b's is in the negative of where b must not be from c. */
    struct tarn_exact_ban ban =
        ban_of(instance, p, instance->piece_within[q], instance->piece_size[q], c);
    instance->bans[(*bans)++] = (struct tarn_exact_ban){c, -ban.high, -ban.low};
    return true;
}

static bool take_conflicts_of(struct making *making, uint32_t b, const uint32_t *storage_at,
                              uint64_t *mask)
{
    const struct tarn_conflicts *conflicts = making->problem->conflicts;
    struct tarn_exact_instance *instance = making->instance;
    uint32_t bans = instance->bans_begin[b], walls = instance->walls_begin[b];
    for (uint32_t p = instance->piece_begin[b]; p < instance->piece_begin[b + 1]; p++) {
        tarn_conflicts_mask(conflicts, making->storage[p], mask);
        for (uint32_t w = 0; w < conflicts->words_count; w++) {
            for (uint64_t rest = mask[w]; rest != 0; rest &= rest - 1) {
                uint32_t slot = tarn_set_next(w, rest);
                if (!take_conflict(making, p, storage_at[slot], &bans, &walls)) return false;
            }
        }
    }
    instance->bans_begin[b + 1] = instance->bans_begin[b];
    instance->walls_begin[b + 1] = instance->walls_begin[b];
    if (bans > instance->bans_begin[b])
        instance->bans_begin[b + 1] +=
            merge_bans(instance->bans + instance->bans_begin[b], bans - instance->bans_begin[b]);
    if (walls > instance->walls_begin[b])
        instance->walls_begin[b + 1] += merge_bans(instance->walls + instance->walls_begin[b],
                                                   walls - instance->walls_begin[b]);
    instance->plain[b] = bans == instance->bans_begin[b] && walls == instance->walls_begin[b] &&
                         instance->piece_begin[b + 1] - instance->piece_begin[b] == 1;
    return true;
}

static bool take_conflicts(struct making *making)
{
    uint32_t count = making->problem->blocks->storages_count;
    uint32_t *storage_at = malloc(((size_t)count + 1) * sizeof *storage_at);
    uint64_t *mask = calloc((size_t)making->problem->conflicts->words_count + 1, sizeof *mask);
    bool ok = storage_at && mask;
    for (uint32_t a = 0; ok && a < count; a++)
        storage_at[making->problem->conflicts->slot_of[a]] = a;
    for (uint32_t b = 0; ok && b < making->instance->count; b++)
        ok = !is_over(making) && take_conflicts_of(making, b, storage_at, mask);
    free(storage_at);
    free(mask);
    return ok;
}

/* ---- Sections ---- */

/* Pieces in list order of their producers: a counting sort by rank. */
static bool sort_by_time(struct making *making)
{
    const struct tarn_graph *graph = making->problem->graph;
    uint32_t *begin = calloc((size_t)graph->ops_count + 2, sizeof *begin);
    if (!begin) return false;
    for (uint32_t p = 0; p < making->pieces_count; p++)
        begin[graph->rank[graph->storages[making->storage[p]].producer] + 1]++;
    for (uint32_t v = 0; v < graph->ops_count; v++) begin[v + 1] += begin[v];
    for (uint32_t p = 0; p < making->pieces_count; p++)
        making->by_time[begin[graph->rank[graph->storages[making->storage[p]].producer]]++] =
            making->turn_of[p];
    free(begin);
    return true;
}

/* The largest piece of a set; TARN_NONE when the set is empty. */
static uint32_t largest_of(const struct making *making, const uint64_t *set)
{
    for (uint32_t w = 0; w < making->words; w++) {
        if (set[w] != 0) return tarn_set_next(w, set[w]);
    }
    return TARN_NONE;
}

/* Moves piece p into the clique: only its neighbours stay candidates. */
static void join(const struct making *making, uint64_t *clique, uint64_t *candidates, uint32_t p)
{
    const uint64_t *adjacent = making->adjacent + (size_t)p * making->words;
    tarn_set_add(clique, p);
    for (uint32_t w = 0; w < making->words; w++) candidates[w] &= adjacent[w];
}

/* Writes the clique as a section unless the last ones hold it. */
static bool keep_section(struct making *making, const uint64_t *clique)
{
    struct tarn_exact_instance *instance = making->instance;
    uint32_t s = instance->sections_count, begin = instance->section_begin[s], at = begin;
    if (s + 2 > making->sections_room) {
        size_t room = making->sections_room;
        if (!grow((void **)&instance->section_begin, &room, room, sizeof *instance->section_begin))
            return false;
        making->sections_room = (uint32_t)room;
    }
    for (uint32_t w = 0; w < making->words; w++) {
        for (uint64_t rest = clique[w]; rest != 0; rest &= rest - 1) {
            if (!grow((void **)&instance->section_pieces, &making->section_pieces_room, at,
                      sizeof *instance->section_pieces))
                return false;
            instance->section_pieces[at++] = making->turns[tarn_set_next(w, rest)].piece;
        }
    }
    for (uint32_t before = s; before > 0 && s - before < 16; before--) {
        uint32_t k = instance->section_begin[before - 1], missing = 0;
        if (instance->section_begin[before] - k != at - begin) continue;
        for (; k < instance->section_begin[before]; k++)
            missing += !tarn_set_has(clique, making->turn_of[instance->section_pieces[k]]);
        if (missing == 0) return true;
    }
    instance->section_begin[s + 1] = at;
    instance->sections_count++;
    return true;
}

/* The same for all candidates among `wanted` at once, if they are a clique. */
static bool join_all(const struct making *making, uint64_t *clique, uint64_t *candidates,
                     const uint64_t *wanted, uint64_t *common)
{
    size_t words = making->words;
    memcpy(common, candidates, words * sizeof *common);
    for (uint32_t w = 0; w < words; w++) {
        for (uint64_t rest = candidates[w] & wanted[w]; rest != 0; rest &= rest - 1) {
            uint32_t p = tarn_set_next(w, rest);
            const uint64_t *adjacent = making->adjacent + (size_t)p * words;
            bool in = tarn_set_has(common, p);
            for (size_t v = 0; v < words; v++) common[v] &= adjacent[v];
            tarn_set_put(common, p, in);
        }
    }
    for (size_t w = 0; w < words; w++) {
        if (candidates[w] & wanted[w] & ~common[w]) return false;
    }
    for (size_t w = 0; w < words; w++) {
        clique[w] |= candidates[w] & wanted[w];
        candidates[w] = common[w] & ~wanted[w];
    }
    return true;
}

/* Makes the clique maximal: earlier ones first, which on one stream are a clique already. */
static void fill_clique(const struct making *making, uint64_t *clique, uint64_t *candidates,
                        const uint64_t *earlier, uint64_t *old)
{
    uint32_t next;
    if (!join_all(making, clique, candidates, earlier, old)) {
        for (;;) {
            for (size_t w = 0; w < making->words; w++) old[w] = candidates[w] & earlier[w];
            if ((next = largest_of(making, old)) == TARN_NONE) break;
            join(making, clique, candidates, next);
        }
    }
    while ((next = largest_of(making, candidates)) != TARN_NONE)
        join(making, clique, candidates, next);
}

/* Cliques with piece p until every earlier neighbour is in one with it. Later pieces join in as
 * well, so that cliques are maximal. sets: four sets of pieces to work in. */
static bool cover(struct making *making, uint32_t p, const uint64_t *earlier, uint64_t *sets)
{
    size_t words = making->words;
    uint64_t *open = sets, *clique = sets + words, *candidates = sets + 2 * words;
    const uint64_t *adjacent = making->adjacent + (size_t)p * words;
    uint32_t next;
    for (size_t w = 0; w < words; w++) open[w] = adjacent[w] & earlier[w];
    do {
        memset(clique, 0, words * sizeof *clique);
        memcpy(candidates, adjacent, words * sizeof *candidates);
        tarn_set_add(clique, p);
        if ((next = largest_of(making, open)) != TARN_NONE) join(making, clique, candidates, next);
        fill_clique(making, clique, candidates, earlier, sets + 3 * words);
        for (size_t w = 0; w < words; w++) open[w] &= ~clique[w];
        if (!keep_section(making, clique)) return false;
    } while (!tarn_set_is_empty(open, making->words) &&
             making->section_pieces_room < SECTION_PIECES_MAX);
    return true;
}

static bool make_sections(struct making *making)
{
    uint64_t *sets = calloc((size_t)making->words * 5 + 1, sizeof *sets);
    struct tarn_exact_instance *instance = making->instance;
    making->sections_room = 256;
    instance->section_begin = calloc(making->sections_room, sizeof *instance->section_begin);
    bool ok = sets && instance->section_begin && sort_by_time(making);
    for (uint32_t i = 0; ok && i < making->pieces_count; i++) {
        uint32_t p = making->by_time[i];
        ok = !is_over(making) && cover(making, p, sets + (size_t)making->words * 4, sets);
        tarn_set_add(sets + (size_t)making->words * 4, p);
    }
    free(sets);
    return ok;
}

static int64_t load_of(const struct tarn_exact_instance *instance, uint32_t s)
{
    int64_t load = 0;
    for (uint32_t k = instance->section_begin[s]; k < instance->section_begin[s + 1]; k++)
        load += instance->piece_size[instance->section_pieces[k]];
    return load;
}

/* Notes the load of the blocks in a section, and its pieces as seen; true if one was not before. */
static bool note_load(struct tarn_exact_instance *instance, uint32_t s, int64_t load,
                      uint64_t *seen)
{
    bool first = false;
    for (uint32_t k = instance->section_begin[s]; k < instance->section_begin[s + 1]; k++) {
        uint32_t p = instance->section_pieces[k], b = instance->piece_block[p];
        if (!tarn_set_has(seen, p)) first = true;
        tarn_set_add(seen, p);
        if (load > instance->load[b]) instance->load[b] = load;
    }
    return first;
}

struct load {
    int64_t sum; /* of sizes */
    uint32_t pieces;
};

static int compare_loads(const void *a, const void *b)
{
    int64_t x = ((const struct load *)a)->sum, y = ((const struct load *)b)->sum;
    return (x < y) - (x > y);
}

/* The load from which on sections are kept: half of the greatest, or what so many pieces make. */
static int64_t least_load(const struct tarn_exact_instance *instance, struct load *loads)
{
    uint64_t room = SECTIONS_A_PIECE * (uint64_t)instance->piece_begin[instance->count];
    const uint32_t *begin = instance->section_begin;
    for (uint32_t s = 0; s < instance->sections_count; s++)
        loads[s] = (struct load){load_of(instance, s), begin[s + 1] - begin[s]};
    qsort(loads, instance->sections_count, sizeof *loads, compare_loads);
    int64_t half = instance->sections_count > 0 ? loads[0].sum / 2 : 0;
    for (uint32_t s = 0; s < instance->sections_count && loads[s].sum > half; s++) {
        if (loads[s].pieces > room) return loads[s].sum;
        room -= loads[s].pieces;
    }
    return half;
}

/* Leaves out light sections in which no piece is for the first time: they hardly ever overflow, and
 * with several streams there can be thousands of them. */
static void drop_light_sections(struct tarn_exact_instance *instance, struct load *loads,
                                uint64_t *seen)
{
    int64_t least = least_load(instance, loads);
    uint32_t kept = 0;
    for (uint32_t s = 0; s < instance->sections_count; s++) {
        uint32_t begin = instance->section_begin[s], to = instance->section_begin[kept];
        uint32_t count = instance->section_begin[s + 1] - begin;
        int64_t load = load_of(instance, s);
        if (!note_load(instance, s, load, seen) && load < least) continue;
        memmove(instance->section_pieces + to, instance->section_pieces + begin,
                count * sizeof *instance->section_pieces);
        instance->section_begin[++kept] = to + count;
    }
    instance->sections_count = kept;
}

static bool choose_sections(struct tarn_exact_instance *instance)
{
    size_t pieces = instance->piece_begin[instance->count];
    struct load *loads = calloc((size_t)instance->sections_count + 1, sizeof *loads);
    uint64_t *seen = calloc(pieces / 64 + 1, sizeof *seen);
    bool ok = loads && seen;
    if (ok) drop_light_sections(instance, loads, seen);
    free(loads);
    free(seen);
    return ok;
}

static bool note_sections(struct tarn_exact_instance *instance)
{
    if (!choose_sections(instance)) return false;
    instance->section_words = instance->sections_count / 64 + 1;
    instance->section_sets =
        calloc((size_t)instance->count * instance->section_words + 1, sizeof(uint64_t));
    if (!instance->section_sets) return false;
    for (uint32_t s = 0; s < instance->sections_count; s++) {
        for (uint32_t k = instance->section_begin[s]; k < instance->section_begin[s + 1]; k++) {
            uint32_t b = instance->piece_block[instance->section_pieces[k]];
            tarn_set_add(instance->section_sets + (size_t)b * instance->section_words, s);
        }
    }
    return true;
}

/* ---- Guides ---- */

static void measure_lives(const struct making *making)
{
    struct tarn_exact_instance *instance = making->instance;
    const struct tarn_graph *graph = making->problem->graph;
    for (uint32_t p = 0; p < making->pieces_count; p++) {
        const struct tarn_storage *storage = &graph->storages[making->storage[p]];
        uint32_t b = instance->piece_block[p];
        uint32_t last = storage->touchers[storage->touchers_count - 1];
        int64_t end = storage->pinned ? graph->ops_count : graph->rank[last] + (int64_t)1;
        int64_t life = end - graph->rank[storage->producer];
        if (life > instance->life[b]) instance->life[b] = life;
        instance->area[b] += life * (instance->piece_size[p] >> 10 | 1);
    }
}

/* ---- The whole ---- */

static bool allocate_instance(struct tarn_exact_instance *instance, size_t blocks, size_t pieces)
{
    instance->set_words = (uint32_t)(blocks / 64 + 1);
    instance->block = calloc(blocks + 1, sizeof *instance->block);
    instance->size = calloc(blocks + 1, sizeof *instance->size);
    instance->alignment = calloc(blocks + 1, sizeof *instance->alignment);
    instance->plain = calloc(blocks + 1, sizeof *instance->plain);
    instance->adjacent = calloc(blocks * instance->set_words + 1, sizeof *instance->adjacent);
    instance->bans_begin = calloc(blocks + 1, sizeof *instance->bans_begin);
    instance->walls_begin = calloc(blocks + 1, sizeof *instance->walls_begin);
    instance->piece_begin = calloc(blocks + 1, sizeof *instance->piece_begin);
    instance->piece_block = calloc(pieces + 1, sizeof *instance->piece_block);
    instance->piece_within = calloc(pieces + 1, sizeof *instance->piece_within);
    instance->piece_size = calloc(pieces + 1, sizeof *instance->piece_size);
    instance->life = calloc(blocks + 1, sizeof *instance->life);
    instance->area = calloc(blocks + 1, sizeof *instance->area);
    instance->load = calloc(blocks + 1, sizeof *instance->load);
    return instance->block && instance->size && instance->alignment && instance->plain &&
           instance->adjacent && instance->bans_begin && instance->walls_begin &&
           instance->piece_begin && instance->piece_block && instance->piece_within &&
           instance->piece_size && instance->life && instance->area && instance->load;
}

static bool allocate_making(struct making *making, size_t pieces)
{
    size_t blocks = making->problem->blocks->count,
           storages = making->problem->blocks->storages_count,
           slots = making->problem->conflicts->words_count;
    making->words = (uint32_t)(pieces / 64 + 1);
    making->free_index = calloc(blocks + 1, sizeof *making->free_index);
    making->storage = calloc(pieces + 1, sizeof *making->storage);
    making->piece_of = calloc(storages + 1, sizeof *making->piece_of);
    making->block_of = calloc(storages + 1, sizeof *making->block_of);
    making->present = calloc(slots + 1, sizeof *making->present);
    making->mask[0] = calloc(slots + 1, sizeof *making->mask[0]);
    making->mask[1] = calloc(slots + 1, sizeof *making->mask[1]);
    making->adjacent = calloc(pieces * making->words + 1, sizeof *making->adjacent);
    making->by_time = calloc(pieces + 1, sizeof *making->by_time);
    making->turns = calloc(pieces + 1, sizeof *making->turns);
    making->turn_of = calloc(pieces + 1, sizeof *making->turn_of);
    return making->free_index && making->storage && making->piece_of && making->block_of &&
           making->present && making->mask[0] && making->mask[1] && making->adjacent &&
           making->by_time && making->turns && making->turn_of;
}

static void free_making(struct making *making)
{
    free(making->free_index);
    free(making->storage);
    free(making->piece_of);
    free(making->block_of);
    free(making->present);
    free(making->mask[0]);
    free(making->mask[1]);
    free(making->adjacent);
    free(making->by_time);
    free(making->turns);
    free(making->turn_of);
}

/* Counts what is free; false when there is too much of it. */
static bool count_free(const struct making *making, size_t *blocks, size_t *pieces)
{
    const struct tarn_blocks *all = making->problem->blocks;
    uint64_t sum = 0;
    *blocks = *pieces = 0;
    for (uint32_t b = 0; b < all->count; b++) {
        if (role_of(making, b) != TARN_EXACT_FREE) continue;
        ++*blocks;
        *pieces += tarn_block_at(all, b).members_count;
        if (!tarn_size_add(sum, tarn_block_at(all, b).size, &sum) ||
            !tarn_size_add(sum, tarn_block_at(all, b).alignment, &sum))
            return false;
    }
    return *pieces <= STORAGES_MAX && sum < UNITS_MAX;
}

enum tarn_status tarn_exact_instance_init(struct tarn_exact_instance *instance,
                                          const struct tarn_problem *problem, const uint8_t *role,
                                          const uint64_t *offset, const struct tarn_until *until)
{
    struct making making = {
        .instance = instance, .problem = problem, .role = role, .offset = offset, .until = until};
    size_t blocks, pieces;
    memset(instance, 0, sizeof *instance);
    if (!count_free(&making, &blocks, &pieces)) return TARN_USAGE;
    bool ok = allocate_instance(instance, blocks, pieces) && allocate_making(&making, pieces);
    if (ok) {
        take_blocks(&making);
        find_unit(&making);
        count_units(instance, making.pieces_count);
        sort_by_size(&making);
        measure_lives(&making);
    }
    ok = ok && take_conflicts(&making) && make_sections(&making) && note_sections(instance);
    free_making(&making);
    if (ok) return TARN_OK;
    tarn_exact_instance_finish(instance);
    return making.over ? TARN_USAGE : TARN_SYSTEM;
}

void tarn_exact_instance_finish(struct tarn_exact_instance *instance)
{
    free(instance->block);
    free(instance->size);
    free(instance->alignment);
    free(instance->plain);
    free(instance->adjacent);
    free(instance->bans_begin);
    free(instance->bans);
    free(instance->walls_begin);
    free(instance->walls);
    free(instance->piece_begin);
    free(instance->piece_block);
    free(instance->piece_within);
    free(instance->piece_size);
    free(instance->section_begin);
    free(instance->section_pieces);
    free(instance->section_sets);
    free(instance->life);
    free(instance->area);
    free(instance->load);
    memset(instance, 0, sizeof *instance);
}
