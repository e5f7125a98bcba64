/* The builder of an instance of exact search. instance.c builds its blocks and pieces, conflicts.c
 * its conflicts, cliques.c its sections. */
#ifndef TARN_PLANNER_PLACE_EXACT_BUILDER_H
#define TARN_PLANNER_PLACE_EXACT_BUILDER_H

#include "instance.h"
#include "streams/base/bitset.h"
#include "streams/base/deadline.h"

/* A piece at its rank: larger pieces come first, so that the largest of a set is its lowest bit. */
struct tarn_exact_ranked {
    int64_t size;
    uint32_t piece;
};

/* Pieces are numbered as in the instance; sets of pieces are bits over ranks. */
struct tarn_exact_builder {
    struct tarn_region region; /* ends when the instance is built */
    struct tarn_exact_instance *instance;
    const struct tarn_problem *problem;
    const bool *is_left_out; /* block of the problem -> ..., or NULL */
    const uint32_t *leader;  /* the same */
    uint32_t *follower;      /* block of the problem -> the next one of its class, or TARN_NONE */
    const struct tarn_deadline *deadline;
    uint64_t work, work_max; /* so far, and at most; 0: no limit */
    bool over;               /* work or time has ended the building */
    uint32_t pieces_count;
    uint32_t words;                   /* of a set of pieces */
    uint32_t *free_index;             /* block of the problem -> of the instance, or TARN_NONE */
    uint32_t *storage;                /* piece -> storage */
    uint32_t *piece_of;               /* storage -> piece, or TARN_NONE */
    uint32_t *block_of;               /* storage -> block of the problem */
    uint64_t *present;                /* set of slots: the blocks that are not left out */
    uint64_t *mask[2];                /* sets of slots to work in */
    struct tarn_exact_ranked *ranked; /* rank -> piece */
    uint32_t *rank_of;                /* piece -> rank */
    uint64_t *adjacent;               /* [rank][words]: the pieces in conflict with that piece */
    uint32_t *by_time;                /* ranks of pieces in list order of their producers */
    /* Of the arrays of the instance that grow; they stand in `region` until their lengths are
     * known.
     */
    size_t section_pieces_room, sections_room, forbidden_room;
};

/* Has work or time run out? Asked for every block and piece: hundreds of them can take a second. */
static inline bool tarn_exact_builder_is_over(struct tarn_exact_builder *builder)
{
    bool spent = builder->work_max > 0 && builder->work >= builder->work_max;
    builder->over = builder->over || spent || tarn_deadline_is_over(builder->deadline);
    return builder->over;
}

static inline uint32_t tarn_exact_leader(const struct tarn_exact_builder *builder, uint32_t block)
{
    return builder->leader ? builder->leader[block] : block;
}

static inline bool tarn_exact_is_left_out(const struct tarn_exact_builder *builder, uint32_t block)
{
    return builder->is_left_out && builder->is_left_out[block];
}

/* Fills adjacency and forbidden intervals, and finds which blocks are plain. False: no memory, or
 * time was over. */
bool tarn_exact_take_conflicts(struct tarn_exact_builder *builder);
/* Fills sections, and the loads that follow from them. False: no memory, or time was over. */
bool tarn_exact_make_sections(struct tarn_exact_builder *builder);
/* Fills, by block, the set of sections that it has pieces in. False: no memory. */
bool tarn_exact_note_sections(struct tarn_exact_instance *instance, struct tarn_region *region);

#endif
