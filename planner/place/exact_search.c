/* Set-times search with postponement (after Le Pape et al. 1994), in the form of DESIGN.md,
 * section 3, "Exact search". A block's limit m is a proven lower limit of its position. The search
 * takes a block at which no conflicting unplaced one is lower, and first places it at m, then says
 * "not at m".
 *
 * What is proved. Among all solutions take one, S, with the least sum of positions: no block of it
 * can be moved to a lower place that is free. Every rule below keeps S:
 *
 *  (place)    the search branches on S(b) = m[b] and S(b) > m[b]; m[b] is free of placed blocks.
 *  (raise)    a block that would meet a placed one at its limit is above, at the next free place.
 *  (support)  let b be unplaced, p free of placed blocks, and S(b) > p. Then b could drop to p but
 *             for some unplaced c in conflict that S puts where b at p would meet it: S(c) - p is
 *             inside a ban of the pair, and S(b), which is above p, is beyond that ban's other end:
 *             S(b) >= S(c) + high >= m[c] + high, where m[c] < p - low. For lone blocks low is
 *             -size[b] and high size[c]. So m[b] >= the least of these; if there is none, S is not
 *             here. Each block remembers one such p: its hole.
 *  (section)  pieces of a section need disjoint bytes and none begins before its limit, so they
 *             end no earlier than when packed by increasing limits.
 *  (failed)   the rules below a state use nothing but, for each unplaced block of a component, its
 *             limit, its hole and what is free for it; a state in which these are as in a failed
 *             one fails. The latter is what limit and hole say for a plain block: as it is never
 *             lower than what is placed next to it, all that is placed lies below its limit. For
 *             other blocks the positions of the placed ones in conflict are part of the state.
 *  (parts)    components without conflicts between them are solved one after another.
 *
 * Cost: a node touches the conflicts of one block and the sections of those that it raised. */
#include "exact_search.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define POSITION_MAX INT64_MAX

enum { FAILED_BITS = 16, STOP_EVERY = 64 };

struct saved_block {
    int64_t limit, hole;
    uint32_t block, level;
};

struct saved_section {
    int64_t end;
    uint32_t section, level;
};

struct failed_state {
    uint64_t word[2];
};

struct tarn_exact_search {
    const struct tarn_exact_instance *instance;
    int64_t capacity;
    const struct tarn_exact_guide *guide;

    int64_t *limit;       /* m; of a placed block its position */
    int64_t *hole;        /* free of placed blocks and not where S has it, if below the limit */
    int64_t *piece_limit; /* limit of the block + within */
    uint64_t *unplaced;   /* set of blocks */
    uint64_t *everything;
    uint32_t unplaced_count;

    uint64_t *reasons;       /* [block][set_words]: the placed blocks that its limit follows from */
    uint64_t *blame;         /* after a failure: the placed blocks that it follows from */
    uint64_t *saved_reasons; /* [saved block][set_words] */

    uint32_t *order;           /* the sections' pieces, kept nearly sorted by limit */
    int64_t *section_end;      /* no packing of the section ends earlier */
    uint32_t *section_placed;  /* how many of its pieces are placed */
    double *section_weight;    /* grows with every failure */
    uint64_t *simple_sections; /* set of sections all of whose blocks are lone */

    uint64_t *unsupported; /* blocks whose support may have changed */
    uint64_t *unpacked;    /* sections whose end may have changed */

    uint32_t level; /* what was saved at this level is not saved again */
    uint32_t levels_count;
    uint32_t *block_level, *section_level;
    struct saved_block *saved_blocks;
    struct saved_section *saved_sections;
    size_t saved_blocks_count, saved_blocks_room, saved_sections_count, saved_sections_room;
    size_t saved_reasons_room;

    uint64_t *sets;   /* by depth, see struct depth */
    uint64_t *border; /* empty but while a component is split off */
    struct failed_state *failed;

    bool hopeless; /* proved before the first node */
    uint64_t nodes;
    uint32_t deepest; /* fewest unplaced blocks */
    int64_t *positions;
};

static bool has(const uint64_t *set, uint32_t i) { return set[i / 64] >> (i % 64) & 1; }
static void add(uint64_t *set, uint32_t i) { set[i / 64] |= (uint64_t)1 << (i % 64); }
static void drop(uint64_t *set, uint32_t i) { set[i / 64] &= ~((uint64_t)1 << (i % 64)); }

static uint32_t lowest_bit(uint64_t bits) { return (uint32_t)__builtin_ctzll(bits); }

static const uint64_t *adjacent_of(const struct tarn_exact_search *search, uint32_t b)
{
    return search->instance->adjacent + (size_t)b * search->instance->set_words;
}

static const uint64_t *sections_of(const struct tarn_exact_search *search, uint32_t b)
{
    return search->instance->section_sets + (size_t)b * search->instance->section_words;
}

static uint64_t *reasons_of(const struct tarn_exact_search *search, uint32_t b)
{
    return search->reasons + (size_t)b * search->instance->set_words;
}

double tarn_exact_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* ---- Going back ---- */

struct mark {
    size_t blocks, sections;
    uint32_t level;
};

static bool make_room(void **array, size_t *room, size_t count, size_t size)
{
    if (count <= *room) return true;
    size_t more = *room * 2 > count ? *room * 2 : count * 2;
    void *larger = realloc(*array, more * size);
    if (!larger) return false;
    *array = larger;
    *room = more;
    return true;
}

/* Opens a level; at most every block and every section once can be saved in it. False: no memory.
 */
static bool open_level(struct tarn_exact_search *search, struct mark *mark)
{
    *mark = (struct mark){search->saved_blocks_count, search->saved_sections_count, search->level};
    search->level = ++search->levels_count;
    return make_room((void **)&search->saved_blocks, &search->saved_blocks_room,
                     search->saved_blocks_count + search->instance->count,
                     sizeof *search->saved_blocks) &&
           make_room((void **)&search->saved_reasons, &search->saved_reasons_room,
                     (search->saved_blocks_count + search->instance->count) *
                         search->instance->set_words,
                     sizeof *search->saved_reasons) &&
           make_room((void **)&search->saved_sections, &search->saved_sections_room,
                     search->saved_sections_count + search->instance->sections_count,
                     sizeof *search->saved_sections);
}

static void set_limit(struct tarn_exact_search *search, uint32_t b, int64_t limit)
{
    const struct tarn_exact_instance *instance = search->instance;
    search->limit[b] = limit;
    for (uint32_t p = instance->piece_begin[b]; p < instance->piece_begin[b + 1]; p++)
        search->piece_limit[p] = limit + instance->piece_within[p];
}

static void close_level(struct tarn_exact_search *search, const struct mark *mark)
{
    while (search->saved_blocks_count > mark->blocks) {
        const struct saved_block *saved = &search->saved_blocks[--search->saved_blocks_count];
        set_limit(search, saved->block, saved->limit);
        memcpy(reasons_of(search, saved->block),
               search->saved_reasons + search->saved_blocks_count * search->instance->set_words,
               search->instance->set_words * sizeof(uint64_t));
        search->hole[saved->block] = saved->hole;
        search->block_level[saved->block] = saved->level;
    }
    while (search->saved_sections_count > mark->sections) {
        const struct saved_section *saved = &search->saved_sections[--search->saved_sections_count];
        search->section_end[saved->section] = saved->end;
        search->section_level[saved->section] = saved->level;
    }
    search->level = mark->level;
}

static void save_block(struct tarn_exact_search *search, uint32_t b)
{
    if (search->block_level[b] == search->level) return;
    memcpy(search->saved_reasons + search->saved_blocks_count * search->instance->set_words,
           reasons_of(search, b), search->instance->set_words * sizeof(uint64_t));
    search->saved_blocks[search->saved_blocks_count++] =
        (struct saved_block){search->limit[b], search->hole[b], b, search->block_level[b]};
    search->block_level[b] = search->level;
}

static void save_section(struct tarn_exact_search *search, uint32_t s)
{
    if (search->section_level[s] == search->level) return;
    search->saved_sections[search->saved_sections_count++] =
        (struct saved_section){search->section_end[s], s, search->section_level[s]};
    search->section_level[s] = search->level;
}

/* ---- Bans ---- */

static int64_t round_up(int64_t position, int64_t alignment)
{
    if (alignment == 1) return position;
    return (position + alignment - 1) / alignment * alignment;
}

/* The bans of the pair b, c as seen from b; b and c are not both lone. */
static uint32_t bans_of(const struct tarn_exact_instance *instance, uint32_t b, uint32_t c,
                        const struct tarn_exact_ban **bans)
{
    uint32_t low = instance->bans_begin[b], end = instance->bans_begin[b + 1], high = end;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (instance->bans[middle].other < c)
            low = middle + 1;
        else
            high = middle;
    }
    *bans = instance->bans + low;
    while (high < end && instance->bans[high].other == c) high++;
    return high - low;
}

/* The lowest position from `position` on at which c does not meet b, which is placed. */
static int64_t escape(const struct tarn_exact_search *search, uint32_t b, uint32_t c,
                      int64_t position)
{
    const struct tarn_exact_instance *instance = search->instance;
    const struct tarn_exact_ban *bans;
    int64_t from = search->limit[b];
    if (tarn_exact_is_simple(instance, b, c)) {
        bool meets = position < from + instance->size[b] && position + instance->size[c] > from;
        return meets ? from + instance->size[b] : position;
    }
    uint32_t count = bans_of(instance, b, c, &bans);
    for (uint32_t k = 0; k < count; k++) {
        if (position > from + bans[k].low && position < from + bans[k].high)
            position = from + bans[k].high;
    }
    return position;
}

/* The lowest aligned position from `position` on at which c meets nothing placed. */
static int64_t settle(const struct tarn_exact_search *search, uint32_t c, int64_t position)
{
    const struct tarn_exact_instance *instance = search->instance;
    int64_t before;
    if (instance->plain[c]) return round_up(position, instance->alignment[c]);
    do {
        position = before = round_up(position, instance->alignment[c]);
        for (uint32_t k = instance->walls_begin[c]; k < instance->walls_begin[c + 1]; k++) {
            const struct tarn_exact_ban *wall = &instance->walls[k];
            if (position > wall->low && position < wall->high) position = wall->high;
        }
        for (uint32_t w = 0; w < instance->set_words; w++) {
            uint64_t rest = adjacent_of(search, c)[w] & ~search->unplaced[w];
            for (; rest != 0; rest &= rest - 1)
                position = escape(search, w * 64 + lowest_bit(rest), c, position);
        }
    } while (position != before);
    return position;
}

/* If b is above p because c is in its way at p: no lower than this; POSITION_MAX: c cannot be. */
static int64_t support(const struct tarn_exact_search *search, uint32_t b, int64_t p, uint32_t c)
{
    const struct tarn_exact_instance *instance = search->instance;
    const struct tarn_exact_ban *bans;
    int64_t limit = search->limit[c], least = POSITION_MAX;
    if (tarn_exact_is_simple(instance, b, c))
        return limit < p + instance->size[b] ? limit + instance->size[c] : POSITION_MAX;
    uint32_t count = bans_of(instance, c, b, &bans);
    for (uint32_t k = 0; k < count; k++) {
        if (limit < p - bans[k].low && limit + bans[k].high < least) least = limit + bans[k].high;
    }
    return least > p ? least : p + 1;
}

/* The least of all supports that b may have when it is above p. */
static int64_t least_support(const struct tarn_exact_search *search, uint32_t b, int64_t p)
{
    const uint64_t *adjacent = adjacent_of(search, b);
    int64_t least = POSITION_MAX;
    for (uint32_t w = 0; w < search->instance->set_words; w++) {
        for (uint64_t rest = adjacent[w] & search->unplaced[w]; rest != 0; rest &= rest - 1) {
            int64_t position = support(search, b, p, w * 64 + lowest_bit(rest));
            if (position < least) least = position;
        }
    }
    return least;
}

/* ---- Reasons ---- */

static void join(const struct tarn_exact_search *search, uint64_t *set, const uint64_t *other)
{
    for (uint32_t w = 0; w < search->instance->set_words; w++) set[w] |= other[w];
}

/* Why block b is not lower than its limit. */
static void join_reasons(const struct tarn_exact_search *search, uint64_t *set, uint32_t b)
{
    if (has(search->unplaced, b))
        join(search, set, reasons_of(search, b));
    else
        add(set, b);
}

/* Why no neighbour of b is lower. */
static void join_support(const struct tarn_exact_search *search, uint64_t *set, uint32_t b)
{
    const uint64_t *adjacent = adjacent_of(search, b);
    for (uint32_t w = 0; w < search->instance->set_words; w++) {
        set[w] |= adjacent[w] & ~search->unplaced[w];
        for (uint64_t rest = adjacent[w] & search->unplaced[w]; rest != 0; rest &= rest - 1)
            join(search, set, reasons_of(search, w * 64 + lowest_bit(rest)));
    }
}

static void clear_blame(struct tarn_exact_search *search)
{
    memset(search->blame, 0, search->instance->set_words * sizeof *search->blame);
}

/* ---- Raising limits ---- */

static void raise_limit(struct tarn_exact_search *search, uint32_t b, int64_t limit)
{
    const struct tarn_exact_instance *instance = search->instance;
    const uint64_t *adjacent = adjacent_of(search, b), *sections = sections_of(search, b);
    save_block(search, b);
    if (!instance->plain[b]) {
        for (uint32_t w = 0; w < instance->set_words; w++)
            reasons_of(search, b)[w] |= adjacent[w] & ~search->unplaced[w];
    }
    set_limit(search, b, settle(search, b, limit));
    for (uint32_t w = 0; w < instance->set_words; w++) search->unsupported[w] |= adjacent[w];
    add(search->unsupported, b);
    for (uint32_t w = 0; w < instance->section_words; w++) search->unpacked[w] |= sections[w];
}

/* Sorts what is not placed and packs it from above: the end is the greatest sum of one limit and
 * all sizes from there on. */
static int64_t pack(struct tarn_exact_search *search, uint32_t s)
{
    const struct tarn_exact_instance *instance = search->instance;
    const int64_t *limit = search->piece_limit;
    uint32_t begin = instance->section_begin[s] + search->section_placed[s];
    uint32_t end = instance->section_begin[s + 1];
    uint32_t *order = search->order;
    int64_t sum = 0, top = 0;
    for (uint32_t i = begin + 1; i < end; i++) {
        uint32_t piece = order[i], k = i;
        for (; k > begin && limit[order[k - 1]] > limit[piece]; k--) order[k] = order[k - 1];
        order[k] = piece;
    }
    for (uint32_t i = end; i-- > begin;) {
        sum += instance->piece_size[order[i]];
        if (limit[order[i]] + sum > top) top = limit[order[i]] + sum;
    }
    return top;
}

static bool support_all(struct tarn_exact_search *search)
{
    for (uint32_t w = 0; w < search->instance->set_words;) {
        uint64_t rest = search->unsupported[w] & search->unplaced[w];
        if (rest == 0) {
            search->unsupported[w++] = 0;
            continue;
        }
        uint32_t b = w * 64 + lowest_bit(rest);
        drop(search->unsupported, b);
        if (search->hole[b] >= search->limit[b]) continue;
        int64_t least = least_support(search, b, search->hole[b]);
        if (least > search->capacity) {
            clear_blame(search);
            join_reasons(search, search->blame, b);
            join_support(search, search->blame, b);
            return false;
        }
        if (least > search->limit[b]) {
            save_block(search, b);
            join_support(search, reasons_of(search, b), b);
            raise_limit(search, b, least);
            w = 0;
        }
    }
    return true;
}

/* The section is sorted: what counts is the group from which on it does not fit. */
static void blame_section(struct tarn_exact_search *search, uint32_t s)
{
    const struct tarn_exact_instance *instance = search->instance;
    uint32_t begin = instance->section_begin[s] + search->section_placed[s];
    int64_t sum = 0;
    clear_blame(search);
    for (uint32_t i = instance->section_begin[s + 1]; i-- > begin;) {
        uint32_t p = search->order[i];
        sum += instance->piece_size[p];
        join_reasons(search, search->blame, instance->piece_block[p]);
        if (search->piece_limit[p] + sum > search->capacity) return;
    }
}

static bool pack_all(struct tarn_exact_search *search)
{
    for (uint32_t w = 0; w < search->instance->section_words; w++) {
        for (uint64_t rest = search->unpacked[w]; rest != 0; rest &= rest - 1) {
            uint32_t s = w * 64 + lowest_bit(rest);
            int64_t end = pack(search, s);
            if (end > search->capacity) {
                search->section_weight[s] += 1;
                blame_section(search, s);
                return false;
            }
            save_section(search, s);
            search->section_end[s] = end;
        }
        search->unpacked[w] = 0;
    }
    return true;
}

/* Follows up all that was raised or placed. False: S is not below this state. */
static bool follow_up(struct tarn_exact_search *search)
{
    if (support_all(search) && pack_all(search)) return true;
    memset(search->unsupported, 0, search->instance->set_words * sizeof(uint64_t));
    memset(search->unpacked, 0, search->instance->section_words * sizeof(uint64_t));
    return false;
}

/* ---- Placing ---- */

/* In a section of lone blocks what is placed lies below what is not, for blocks are placed where no
 * unplaced neighbour is lower: after sorting, b comes first of what was unplaced. Then it need not
 * be packed again. Other sections keep what is placed in the packing. */
static void count_placed(struct tarn_exact_search *search, uint32_t b, bool placed)
{
    const uint64_t *sections = sections_of(search, b);
    for (uint32_t w = 0; w < search->instance->section_words; w++) {
        for (uint64_t rest = sections[w] & search->simple_sections[w]; rest != 0;
             rest &= rest - 1) {
            uint32_t *count = &search->section_placed[w * 64 + lowest_bit(rest)];
            *count = placed ? *count + 1 : *count - 1;
        }
    }
}

/* What c, in conflict, has to give way to now that b is placed. */
static void give_way(struct tarn_exact_search *search, uint32_t b, uint32_t c)
{
    const struct tarn_exact_instance *instance = search->instance;
    int64_t limit = escape(search, b, c, search->limit[c]);
    int64_t hole = escape(search, b, c, search->hole[c]);
    int64_t top = search->limit[b] + instance->size[b];
    if (instance->plain[c] && hole < top) hole = top;
    if (hole > search->hole[c]) {
        save_block(search, c);
        search->hole[c] = settle(search, c, hole);
    }
    if (limit > search->limit[c]) {
        save_block(search, c);
        add(reasons_of(search, c), b);
        raise_limit(search, c, limit);
    }
}

/* Places b at its limit. False: S does not have it there. */
static bool place(struct tarn_exact_search *search, uint32_t b)
{
    const struct tarn_exact_instance *instance = search->instance;
    const uint64_t *adjacent = adjacent_of(search, b), *sections = sections_of(search, b);
    drop(search->unplaced, b);
    search->unplaced_count--;
    for (uint32_t w = 0; w < instance->set_words; w++) {
        uint64_t rest = adjacent[w] & search->unplaced[w];
        search->unsupported[w] |= rest;
        for (; rest != 0; rest &= rest - 1) give_way(search, b, w * 64 + lowest_bit(rest));
    }
    for (uint32_t w = 0; w < instance->section_words; w++) search->unpacked[w] |= sections[w];
    return follow_up(search);
}

static void take_back(struct tarn_exact_search *search, uint32_t b, const struct mark *mark)
{
    add(search->unplaced, b);
    search->unplaced_count++;
    close_level(search, mark);
}

static void unplace(struct tarn_exact_search *search, const uint64_t *set, uint32_t but)
{
    for (uint32_t w = 0; w < search->instance->set_words; w++) {
        for (uint64_t rest = set[w] & ~search->unplaced[w]; rest != 0; rest &= rest - 1) {
            uint32_t b = w * 64 + lowest_bit(rest);
            if (b == but) continue;
            count_placed(search, b, false);
            add(search->unplaced, b);
            search->unplaced_count++;
        }
    }
}

/* Says that b is not at its limit. False: then it is nowhere. */
static bool postpone(struct tarn_exact_search *search, uint32_t b)
{
    int64_t least = least_support(search, b, search->limit[b]);
    if (least > search->capacity) {
        join_reasons(search, search->blame, b);
        join_support(search, search->blame, b);
        return false;
    }
    save_block(search, b);
    join(search, reasons_of(search, b), search->blame);
    join_support(search, reasons_of(search, b), b);
    search->hole[b] = search->limit[b];
    raise_limit(search, b, least);
    return follow_up(search);
}

/* ---- Failed states ---- */

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static void mix_in(struct failed_state *state, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t z = mix(a * UINT64_C(0x9e3779b97f4a7c15) ^ mix(b + UINT64_C(0x632be59bd9b4e019)) ^
                     mix(c + UINT64_C(0xd1342543de82ef95)) * 5);
    state->word[0] += z;
    state->word[1] += mix(z ^ UINT64_C(0x2545f4914f6cdd1d));
}

/* 128 bits that stand for all that the rules use of a component. */
static struct failed_state describe(const struct tarn_exact_search *search, const uint64_t *set)
{
    const struct tarn_exact_instance *instance = search->instance;
    struct failed_state state = {{0, 0}};
    for (uint32_t w = 0; w < instance->set_words; w++) {
        for (uint64_t rest = set[w]; rest != 0; rest &= rest - 1) {
            uint32_t b = w * 64 + lowest_bit(rest);
            int64_t limit = search->limit[b], hole = search->hole[b];
            mix_in(&state, b, (uint64_t)limit, (uint64_t)(hole < limit ? hole : limit));
            for (uint32_t v = 0; v < instance->set_words && !instance->plain[b]; v++) {
                uint64_t placed = adjacent_of(search, b)[v] & ~search->unplaced[v];
                for (; placed != 0; placed &= placed - 1) {
                    uint32_t c = v * 64 + lowest_bit(placed);
                    mix_in(&state, b, (uint64_t)search->limit[c], c + (UINT64_C(1) << 32));
                }
            }
        }
    }
    return state;
}

static struct failed_state *failed_slot(const struct tarn_exact_search *search,
                                        const struct failed_state *state)
{
    return &search->failed[state->word[0] & ((1u << FAILED_BITS) - 1)];
}

static bool is_failed(const struct tarn_exact_search *search, const struct failed_state *state)
{
    const struct failed_state *slot = failed_slot(search, state);
    return slot->word[0] == state->word[0] && slot->word[1] == state->word[1];
}

/* Why a component is in the state that it is in. */
static void blame_state(struct tarn_exact_search *search, const uint64_t *set)
{
    clear_blame(search);
    for (uint32_t w = 0; w < search->instance->set_words; w++) {
        for (uint64_t rest = set[w]; rest != 0; rest &= rest - 1) {
            uint32_t b = w * 64 + lowest_bit(rest);
            join(search, search->blame, reasons_of(search, b));
            for (uint32_t v = 0; v < search->instance->set_words; v++)
                search->blame[v] |= adjacent_of(search, b)[v] & ~search->unplaced[v];
        }
    }
}

/* ---- Picking ---- */

static bool comes_first(const struct tarn_exact_search *search, uint32_t b, uint32_t than)
{
    const uint32_t *rank = search->guide->rank;
    if (than == TARN_NONE) return true;
    if (search->limit[b] != search->limit[than]) return search->limit[b] < search->limit[than];
    return rank[b] < rank[than];
}

static double tightness(const struct tarn_exact_search *search, uint32_t s)
{
    double slack = (double)(search->capacity - search->section_end[s]) + search->guide->slack;
    return slack / search->section_weight[s];
}

static uint32_t first_in_section(const struct tarn_exact_search *search, uint32_t s,
                                 const uint64_t *set)
{
    const struct tarn_exact_instance *instance = search->instance;
    uint32_t first = TARN_NONE;
    for (uint32_t k = instance->section_begin[s] + search->section_placed[s];
         k < instance->section_begin[s + 1]; k++) {
        uint32_t b = instance->piece_block[search->order[k]];
        if (has(set, b) && comes_first(search, b, first)) first = b;
    }
    return first;
}

static uint32_t first_of_set(const struct tarn_exact_search *search, const uint64_t *set)
{
    uint32_t first = TARN_NONE;
    for (uint32_t w = 0; w < search->instance->set_words; w++) {
        for (uint64_t rest = set[w]; rest != 0; rest &= rest - 1) {
            uint32_t b = w * 64 + lowest_bit(rest);
            if (comes_first(search, b, first)) first = b;
        }
    }
    return first;
}

/* The sections that a component has pieces in. */
static void sections_of_set(const struct tarn_exact_search *search, const uint64_t *set,
                            uint64_t *sections)
{
    uint32_t words = search->instance->section_words;
    memset(sections, 0, words * sizeof *sections);
    for (uint32_t w = 0; w < search->instance->set_words; w++) {
        for (uint64_t rest = set[w]; rest != 0; rest &= rest - 1) {
            const uint64_t *of = sections_of(search, w * 64 + lowest_bit(rest));
            for (uint32_t v = 0; v < words; v++) sections[v] |= of[v];
        }
    }
}

static uint32_t tightest_section(const struct tarn_exact_search *search, const uint64_t *sections)
{
    uint32_t best = TARN_NONE;
    double least = 0;
    for (uint32_t w = 0; w < search->instance->section_words; w++) {
        for (uint64_t rest = sections[w]; rest != 0; rest &= rest - 1) {
            uint32_t s = w * 64 + lowest_bit(rest);
            double value = tightness(search, s);
            if (best != TARN_NONE && value >= least) continue;
            least = value;
            best = s;
        }
    }
    return best;
}

/* A block with no lower neighbour: the lowest of all, or what one comes to by going down from the
 * lowest of the tightest section. */
static uint32_t pick(const struct tarn_exact_search *search, const uint64_t *set,
                     const uint64_t *sections)
{
    uint32_t words = search->instance->set_words;
    if (!search->guide->by_section) return first_of_set(search, set);
    uint32_t b = first_in_section(search, tightest_section(search, sections), set);
    for (uint32_t lower = b;;) {
        const uint64_t *adjacent = adjacent_of(search, b);
        for (uint32_t w = 0; w < words; w++) {
            for (uint64_t rest = adjacent[w] & set[w]; rest != 0; rest &= rest - 1) {
                uint32_t c = w * 64 + lowest_bit(rest);
                if (search->limit[c] < search->limit[lower] ||
                    (lower != b && comes_first(search, c, lower)))
                    lower = c;
            }
        }
        if (lower == b) return b;
        b = lower;
    }
}

/* ---- The search ---- */

/* Called where the search turns back: keeps what is placed if it never got further in this run. */
static void note_deepest(struct tarn_exact_search *search)
{
    if (search->unplaced_count >= search->deepest) return;
    search->deepest = search->unplaced_count;
    for (uint32_t b = 0; b < search->instance->count; b++)
        search->positions[b] = has(search->unplaced, b) ? -1 : search->limit[b];
}

static bool should_stop(const struct tarn_exact_search *search)
{
    const struct tarn_exact_guide *guide = search->guide;
    if (search->nodes > guide->nodes_max) return true;
    if (search->nodes % STOP_EVERY != 0) return false;
    if (guide->stop && atomic_load_explicit(guide->stop, memory_order_relaxed)) return true;
    if (guide->done && atomic_load_explicit(guide->done, memory_order_relaxed) < guide->turn)
        return true;
    return guide->deadline_ms > 0 && tarn_exact_now_ms() > guide->deadline_ms;
}

/* What one depth of the search needs: its component with the sections that it has pieces in, and
 * what is left of the blocks that fall apart when one of them is placed. */
struct depth {
    uint64_t *set, *sections, *rest, *rest_sections;
};

static struct depth depth_at(const struct tarn_exact_search *search, uint32_t depth)
{
    size_t set = search->instance->set_words, sections = search->instance->section_words;
    uint64_t *at = search->sets + depth * 2 * (set + sections);
    return (struct depth){at, at + set, at + set + sections, at + 2 * set + sections};
}

/* Takes the component that holds block b out of `rest`. */
static void split_off(struct tarn_exact_search *search, uint32_t b, uint64_t *rest, uint64_t *part)
{
    uint32_t words = search->instance->set_words;
    uint64_t *border = search->border;
    memset(part, 0, words * sizeof *part);
    add(border, b);
    drop(rest, b);
    for (uint32_t w = 0; w < words;) {
        if (border[w] == 0) {
            w++;
            continue;
        }
        uint32_t c = w * 64 + lowest_bit(border[w]);
        const uint64_t *adjacent = adjacent_of(search, c);
        drop(border, c);
        add(part, c);
        for (uint32_t v = 0; v < words; v++) {
            uint64_t next = adjacent[v] & rest[v];
            border[v] |= next;
            rest[v] &= ~next;
            if (next != 0 && v < w) w = v;
        }
    }
}

static bool is_empty(const uint64_t *set, uint32_t words)
{
    for (uint32_t w = 0; w < words; w++) {
        if (set[w] != 0) return false;
    }
    return true;
}

static enum tarn_exact_result solve_parts(struct tarn_exact_search *search, uint32_t depth);

/* Solves the component at this depth. What it placed stays placed when that was all. */
static enum tarn_exact_result solve(struct tarn_exact_search *search, uint32_t depth)
{
    struct depth at = depth_at(search, depth);
    enum tarn_exact_result result = TARN_EXACT_STOPPED;
    struct mark entry, mark;
    struct failed_state state = describe(search, at.set);
    if (is_failed(search, &state)) {
        blame_state(search, at.set);
        return TARN_EXACT_INFEASIBLE;
    }
    if (!open_level(search, &entry)) return result;
    for (;;) {
        search->nodes++;
        result = TARN_EXACT_STOPPED;
        if (should_stop(search)) break;
        uint32_t b = pick(search, at.set, at.sections);
        if (!open_level(search, &mark)) break;
        result = TARN_EXACT_INFEASIBLE;
        if (place(search, b)) {
            count_placed(search, b, true);
            memcpy(at.rest, at.set, search->instance->set_words * sizeof *at.rest);
            drop(at.rest, b);
            result = solve_parts(search, depth);
            if (result == TARN_EXACT_FOUND) return result;
            unplace(search, at.set, b); /* parts that were solved before one failed */
            count_placed(search, b, false);
        }
        note_deepest(search);
        take_back(search, b, &mark);
        if (result == TARN_EXACT_STOPPED) break;
        bool concerned = has(search->blame, b);
        drop(search->blame, b);
        if (!concerned || !postpone(search, b)) {
            *failed_slot(search, &state) = state;
            break;
        }
    }
    close_level(search, &entry);
    return result;
}

/* Solves what is in the rest of this depth, component by component, the one with the tightest
 * section first. */
static enum tarn_exact_result solve_parts(struct tarn_exact_search *search, uint32_t depth)
{
    struct depth at = depth_at(search, depth), below = depth_at(search, depth + 1);
    uint32_t words = search->instance->set_words;
    while (!is_empty(at.rest, words)) {
        sections_of_set(search, at.rest, at.rest_sections);
        uint32_t b = first_in_section(search, tightest_section(search, at.rest_sections), at.rest);
        split_off(search, b, at.rest, below.set);
        sections_of_set(search, below.set, below.sections);
        enum tarn_exact_result result = solve(search, depth + 1);
        if (result != TARN_EXACT_FOUND) return result;
    }
    return TARN_EXACT_FOUND;
}

/* ---- Runs ---- */

/* At the start nothing is placed, and everything is as low as walls allow. */
static bool begin(struct tarn_exact_search *search)
{
    const struct tarn_exact_instance *instance = search->instance;
    for (uint32_t b = 0; b < instance->count; b++) add(search->unplaced, b);
    for (uint32_t b = 0; b < instance->count; b++) {
        set_limit(search, b, settle(search, b, 0));
        search->hole[b] = search->limit[b];
    }
    search->unplaced_count = instance->count;
    for (uint32_t s = 0; s < instance->sections_count; s++) {
        search->section_weight[s] = 1;
        add(search->unpacked, s);
        add(search->simple_sections, s);
        for (uint32_t k = instance->section_begin[s]; k < instance->section_begin[s + 1]; k++) {
            uint32_t b = instance->piece_block[instance->section_pieces[k]];
            search->order[k] = instance->section_pieces[k];
            if (!tarn_exact_is_simple(instance, b, b)) drop(search->simple_sections, s);
        }
    }
    return follow_up(search);
}

enum tarn_exact_result tarn_exact_search_run(struct tarn_exact_search *search,
                                             const struct tarn_exact_guide *guide)
{
    const struct tarn_exact_instance *instance = search->instance;
    struct depth top = depth_at(search, 0);
    struct mark mark;
    search->guide = guide;
    search->nodes = 0;
    search->deepest = instance->count + 1;
    if (search->hopeless) return TARN_EXACT_INFEASIBLE;
    memcpy(top.rest, search->unplaced, instance->set_words * sizeof *top.rest);
    if (!open_level(search, &mark)) return TARN_EXACT_STOPPED;
    enum tarn_exact_result result = solve_parts(search, 0);
    note_deepest(search);
    unplace(search, search->everything, TARN_NONE);
    close_level(search, &mark);
    return result;
}

const int64_t *tarn_exact_search_positions(const struct tarn_exact_search *search)
{
    return search->positions;
}

uint64_t tarn_exact_search_nodes(const struct tarn_exact_search *search) { return search->nodes; }

uint32_t tarn_exact_search_depth(const struct tarn_exact_search *search)
{
    return search->instance->count - search->deepest;
}

static bool allocate(struct tarn_exact_search *search)
{
    const struct tarn_exact_instance *instance = search->instance;
    size_t count = (size_t)instance->count + 1, sections = (size_t)instance->sections_count + 1;
    size_t set = instance->set_words, section_set = instance->section_words;
    search->limit = calloc(count, sizeof *search->limit);
    search->hole = calloc(count, sizeof *search->hole);
    search->positions = calloc(count, sizeof *search->positions);
    search->reasons = calloc(count * set, sizeof *search->reasons);
    search->blame = calloc(set, sizeof *search->blame);
    search->piece_limit =
        calloc((size_t)instance->piece_begin[instance->count] + 1, sizeof *search->piece_limit);
    search->unplaced = calloc(set, sizeof *search->unplaced);
    search->everything = calloc(set, sizeof *search->everything);
    search->unsupported = calloc(set, sizeof *search->unsupported);
    search->border = calloc(set, sizeof *search->border);
    search->unpacked = calloc(section_set, sizeof *search->unpacked);
    search->simple_sections = calloc(section_set, sizeof *search->simple_sections);
    search->order = calloc((size_t)instance->section_begin[instance->sections_count] + 1,
                           sizeof *search->order);
    search->section_end = calloc(sections, sizeof *search->section_end);
    search->section_placed = calloc(sections, sizeof *search->section_placed);
    search->section_weight = calloc(sections, sizeof *search->section_weight);
    search->block_level = calloc(count, sizeof *search->block_level);
    search->section_level = calloc(sections, sizeof *search->section_level);
    search->sets = calloc((count + 1) * 2 * (set + section_set), sizeof *search->sets);
    search->failed = calloc((size_t)1 << FAILED_BITS, sizeof *search->failed);
    return search->limit && search->hole && search->reasons && search->blame && search->positions &&
           search->piece_limit && search->unplaced && search->everything && search->unsupported &&
           search->border && search->unpacked && search->simple_sections && search->order &&
           search->section_end && search->section_placed && search->section_weight &&
           search->block_level && search->section_level && search->sets && search->failed;
}

struct tarn_exact_search *tarn_exact_search_create(const struct tarn_exact_instance *instance,
                                                   int64_t capacity)
{
    struct tarn_exact_search *search = calloc(1, sizeof *search);
    struct mark mark;
    if (!search) return NULL;
    search->instance = instance;
    search->capacity = capacity;
    if (!allocate(search) || !open_level(search, &mark)) {
        tarn_exact_search_destroy(search);
        return NULL;
    }
    search->hopeless = !begin(search);
    memcpy(search->everything, search->unplaced, instance->set_words * sizeof(uint64_t));
    return search;
}

void tarn_exact_search_destroy(struct tarn_exact_search *search)
{
    if (!search) return;
    free(search->limit);
    free(search->hole);
    free(search->positions);
    free(search->reasons);
    free(search->blame);
    free(search->saved_reasons);
    free(search->piece_limit);
    free(search->unplaced);
    free(search->everything);
    free(search->unsupported);
    free(search->border);
    free(search->unpacked);
    free(search->simple_sections);
    free(search->order);
    free(search->section_end);
    free(search->section_placed);
    free(search->section_weight);
    free(search->block_level);
    free(search->section_level);
    free(search->saved_blocks);
    free(search->saved_sections);
    free(search->sets);
    free(search->failed);
    free(search);
}
