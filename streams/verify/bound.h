/* The certificate of a plan's bound while it is proved: what its parts share (see bound.c). */
#ifndef TARN_STREAMS_VERIFY_BOUND_H
#define TARN_STREAMS_VERIFY_BOUND_H

#include "verdict.h"

/* Consecutive members of a group, or a lone storage. */
struct tarn_proof_run {
    const uint32_t *members;
    uint32_t count;
    uint32_t group;        /* TARN_NONE: a lone storage */
    uint64_t size, within; /* bytes, and the byte of its group where it begins */
    uint32_t left, right;  /* of a gap: the runs of A beside it; TARN_NONE: the group ends */
};

/* lone, items, gaps and sums are NULL until a gap is asked for. */
struct tarn_proof {
    struct tarn_region *region; /* of all arrays */
    const struct tarn_plan *plan;
    struct tarn_claim claim; /* the bound and its certificate */
    uint32_t space;          /* that they are of */
    const struct tarn_program *program;
    uint64_t *reserved; /* by planned storage */
    bool *inside;       /* by planned storage: in A */
    bool *halved;       /* by stream: the cut goes through its next launch */
    uint32_t *lone;     /* storage -> itself: a list of one member */
    uint32_t *row_of;   /* step -> its row of clocks; TARN_NONE: not kept */
    uint32_t *rows;     /* [row][stream]: the nodes of the stream that lie before the step */
    uint32_t rows_count;
    struct tarn_proof_run *items, *gaps; /* runs of A; gaps that the certificate names */
    uint32_t items_count, gaps_count;
    unsigned char *sums; /* [sum]: 1 when the sizes of some items add up to it */
    uint64_t effort;     /* spent so far: tests of a pair of storages, and sums */
};

static inline uint32_t tarn_proof_producer(const struct tarn_proof *proof, uint32_t storage)
{
    return proof->program->step_of[proof->plan->graph->storages[storage].producer];
}

#endif
