/* An instance of exact search while it is being made, for the files that make it: exact/instance.c
 * its blocks and pieces, exact/bans.c its conflicts, exact/cliques.c its sections. */
#ifndef TARN_PLANNER_PLACE_EXACT_MAKING_H
#define TARN_PLANNER_PLACE_EXACT_MAKING_H

#include <stdlib.h>

#include "instance.h"
#include "streams/base/bitset.h"
#include "streams/base/deadline.h"

/* A piece by its turn: the larger come first, so that the largest of a set is its lowest bit. */
struct tarn_exact_turn {
    int64_t size;
    uint32_t piece;
};

/* While being made: pieces are numbered as in the instance, neighbours are bits over turns. */
struct tarn_exact_making {
    struct tarn_exact_instance *instance;
    const struct tarn_problem *problem;
    const bool *is_left_out; /* block of the problem -> ..., or NULL */
    const struct tarn_deadline *deadline;
    uint64_t work, work_max; /* so far, and at most; 0: no limit */
    bool over;               /* one of these ended the making */
    uint32_t pieces_count;
    uint32_t words;       /* of a set of pieces */
    uint32_t *free_index; /* block of the problem -> of the instance, or TARN_NONE */
    uint32_t *storage;    /* piece -> storage */
    uint32_t *piece_of;   /* storage -> piece, or TARN_NONE */
    uint32_t *block_of;   /* storage -> block of the problem */
    uint64_t *present;    /* set of slots: whose blocks are not left out */
    uint64_t *mask[2];    /* sets of slots to work in */
    struct tarn_exact_turn *turns;
    uint32_t *turn_of;  /* piece -> turn */
    uint64_t *adjacent; /* [turn][words] */
    uint32_t *by_time;  /* turns of pieces in list order of their producers */
    size_t section_pieces_room;
    uint32_t sections_room;
    size_t bans_room;
};

/* Looked at for every block and piece: hundreds of them can take a second. */
static inline bool tarn_exact_making_is_over(struct tarn_exact_making *making)
{
    bool spent = making->work_max > 0 && making->work >= making->work_max;
    making->over = making->over || spent || tarn_deadline_is_over(making->deadline);
    return making->over;
}

static inline bool tarn_exact_is_left_out(const struct tarn_exact_making *making, uint32_t block)
{
    return making->is_left_out && making->is_left_out[block];
}

/* Makes room for one more than `count`. False: no memory. */
static inline bool tarn_exact_grow(void **array, size_t *room, size_t count, size_t size)
{
    if (count < *room) return true;
    size_t more = *room ? *room * 2 : 256;
    void *larger = realloc(*array, more * size);
    if (!larger) return false;
    *array = larger;
    *room = more;
    return true;
}

/* Adjacency and bans, whether blocks are plain. False: no memory, or time was over. */
bool tarn_exact_take_conflicts(struct tarn_exact_making *making);
/* Sections, and the loads that they tell. The same. */
bool tarn_exact_make_sections(struct tarn_exact_making *making);

#endif
