/* The state of exact search: a partial placement within a capacity, everything proved about
 * unplaced blocks, and a trail that undoes the last changes. The rules and their proofs are in
 * exact/rules.c. */
#ifndef TARN_PLANNER_PLACE_EXACT_STATE_H
#define TARN_PLANNER_PLACE_EXACT_STATE_H

#include "instance.h"
#include "streams/base/bitset.h"

/* A fingerprint of the data that the rules use of a block; the fingerprint of several blocks is the
 * sum of their fingerprints. */
struct tarn_exact_fingerprint {
    uint64_t word[2];
};

struct tarn_exact_saved_block {
    int64_t limit, hole;
    struct tarn_exact_fingerprint fingerprint;
    uint32_t block, level;
};

struct tarn_exact_saved_section {
    int64_t end;
    uint32_t section, level;
};

struct tarn_exact_state {
    const struct tarn_exact_instance *instance;
    int64_t capacity;

    int64_t *limit; /* m; of a placed block its position */
    int64_t *hole;  /* if below the limit: a position that is free of placed blocks and at which S
                       does not have the block */
    int64_t *piece_limit; /* limit of the block + within */
    uint64_t *unplaced;   /* set of blocks */
    uint64_t *postponed;  /* set of blocks whose hole is below their limit */
    uint32_t unplaced_count;
    uint32_t *placed, placed_count; /* blocks, by increasing position */
    uint32_t *supporter;            /* of a postponed block: the last one found; may be outdated */
    struct tarn_exact_fingerprint *fingerprint; /* block -> of its limit and hole */

    uint64_t *explanations; /* [block][set_words]: the placed blocks from which its limit follows */
    uint64_t *failure;      /* after a failure: the placed blocks from which the failure follows */
    uint64_t *saved_explanations; /* [saved block][set_words] */

    uint32_t *order;           /* the sections' pieces, kept nearly sorted by limit */
    int64_t *section_end;      /* no packing of the section ends earlier */
    int64_t *section_open;     /* size of all pieces that are to be packed; huge: not known */
    uint32_t *section_placed;  /* how many of its pieces are placed */
    double *section_ease;      /* 1 / (1 + failures) */
    uint32_t *section_firsts;  /* how many could be the lowest open piece when last looked at */
    uint64_t *simple_sections; /* set of sections all of whose blocks are lone */
    uint64_t *lively; /* set of sections, without simple ones whose open pieces are all in another
                         section */
    /* Section -> its open pieces that the next one, or the one before, lacks. */
    uint32_t *not_in_next, *not_in_last;

    uint64_t *unsupported;   /* blocks whose support may have changed */
    uint64_t *unpacked;      /* sections whose end may have changed */
    uint64_t *not_first_due; /* packed sections in which late pieces may be raised */
    uint64_t *why;           /* set of blocks to work in */

    uint64_t packed; /* pieces, in all sections that were packed so far */
    uint64_t work;   /* of the rules, see work.h */

    uint32_t level; /* a block saved at this level is not saved again */
    uint32_t levels_count;
    uint32_t *block_level, *section_level;
    struct tarn_exact_saved_block *saved_blocks;
    struct tarn_exact_saved_section *saved_sections;
    size_t saved_blocks_count, saved_blocks_room, saved_sections_count, saved_sections_room;
    size_t saved_explanations_room;
};

/* Capacity in units. Nothing is placed, everything is at 0. The state lives in the region, except
 * saved blocks. False: no memory; the caller finishes the state then, too. */
bool tarn_exact_state_init(struct tarn_exact_state *state, struct tarn_region *region,
                           const struct tarn_exact_instance *instance, int64_t capacity);
/* Frees saved blocks. */
void tarn_exact_state_finish(struct tarn_exact_state *state);
/* Call it between two runs: frees the room for saved blocks if it is large, so that of many states
 * only running ones hold such room. */
void tarn_exact_state_rest(struct tarn_exact_state *state);

/* Do the sets and counts of placed blocks say the same, and do limits, holes, pieces, fingerprints
 * and sections fit together? For tests; cost: linear in blocks and pieces of sections. */
bool tarn_exact_state_is_valid(const struct tarn_exact_state *state);

/* ---- Going back ---- */

struct tarn_exact_mark {
    size_t blocks, sections;
    uint32_t level;
};

/* Opens a level; closing it undoes every change made in it. False: no memory. */
bool tarn_exact_state_open(struct tarn_exact_state *state, struct tarn_exact_mark *mark);
void tarn_exact_state_close(struct tarn_exact_state *state, const struct tarn_exact_mark *mark);

/* Before the first change to a block in a level: its limit, its hole, its explanation. */
void tarn_exact_state_save(struct tarn_exact_state *state, uint32_t b);
/* Sets a saved block's limit and hole, and the end of a section. */
void tarn_exact_state_set(struct tarn_exact_state *state, uint32_t b, int64_t limit, int64_t hole);
void tarn_exact_state_set_end(struct tarn_exact_state *state, uint32_t s, int64_t end);

/* Counts b as placed, at its limit, or not. The block placed last must be taken back first. */
void tarn_exact_state_count(struct tarn_exact_state *state, uint32_t b, bool placed);

/* ---- Looking ---- */

static inline const uint64_t *tarn_exact_adjacent(const struct tarn_exact_state *state, uint32_t b)
{
    return state->instance->adjacent + (size_t)b * state->instance->set_words;
}

static inline const uint64_t *tarn_exact_sections(const struct tarn_exact_state *state, uint32_t b)
{
    return state->instance->section_sets + (size_t)b * state->instance->section_words;
}

static inline uint64_t *tarn_exact_explanation(const struct tarn_exact_state *state, uint32_t b)
{
    return state->explanations + (size_t)b * state->instance->set_words;
}

/* Index of the first piece of a section that has to be packed. In a section of lone blocks, placed
 * blocks lie below unplaced ones, since a block is placed only if no unplaced neighbour is lower.
 * So placed blocks come first and need not be packed again. In other sections they stay in the
 * packing. */
static inline uint32_t tarn_exact_open_begin(const struct tarn_exact_state *state, uint32_t s)
{
    uint32_t begin = state->instance->section_begin[s];
    return tarn_set_has(state->simple_sections, s) ? begin + state->section_placed[s] : begin;
}

/* Has the section pieces that are not placed? */
static inline bool tarn_exact_is_open(const struct tarn_exact_state *state, uint32_t s)
{
    const uint32_t *begin = state->instance->section_begin + s;
    return state->section_placed[s] < begin[1] - begin[0];
}

/* ---- Sets of unplaced blocks that fall apart into components ---- */

/* Writes the set of sections that the blocks of a set have pieces in. */
void tarn_exact_sections_of_set(const struct tarn_exact_state *state, const uint64_t *set,
                                uint64_t *sections);
/* Moves the component that holds block b from `rest` to `part`. border: an empty set of blocks to
 * work in, which is empty again afterwards. */
void tarn_exact_split_off(const struct tarn_exact_state *state, uint32_t b, uint64_t *border,
                          uint64_t *rest, uint64_t *part);
/* Is it certain that `rest`, which was one component with b, still is one without b? */
bool tarn_exact_stays_whole(const struct tarn_exact_state *state, uint32_t b, const uint64_t *rest);

#endif
