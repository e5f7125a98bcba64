/* Finds the holders that have a holder's bytes before and after it, and the way of program order
 * and waits that makes this safe. */
#ifndef TARN_CLI_MODEL_WAYS_H
#define TARN_CLI_MODEL_WAYS_H

#include "model.h"

/* A holder of some of the same bytes. */
struct tarn_neighbour {
    uint32_t holder;
    uint64_t bytes;          /* of those asked for; reserved ones count */
    bool is_other_iteration; /* the one before, or the one after */
};

enum tarn_direction { TARN_BEFORE, TARN_AFTER };

/* Lists, for every reserved byte of a holder, the nearest holder that has this byte before (after)
 * it in the order of the model. What is there only where the holder is not counts as one of another
 * iteration. If there is no such holder in this iteration, it is the last
 * one of the iteration before (the first one of the iteration after). The list ends with holder
 * TARN_NONE. Allocated from the memory; NULL: no memory left. Cost: O(holders + k log k + k^2) for
 * k holders that share bytes. */
struct tarn_neighbour *tarn_neighbours(struct tarn_memory *memory, const struct tarn_model *model,
                                       uint32_t holder, enum tarn_direction direction);

/* How one step of a way comes after the step before it. */
enum tarn_how {
    TARN_STARTS,
    TARN_BY_ORDER,    /* later in the same stream */
    TARN_BY_WAIT,     /* an event wait */
    TARN_BY_BOUNDARY, /* an event wait on the previous iteration */
    TARN_BY_NEXT      /* same stream, in the iteration after */
};
struct tarn_way_step {
    uint32_t launch;
    enum tarn_how how;
};
struct tarn_way {
    const struct tarn_way_step *steps; /* NULL: no memory */
    uint32_t count;                    /* 0: there is no way */
};

/* Explains why the writer of holder `later` may overwrite holder `earlier` (of the previous
 * iteration if asked for): a way from the last use in every stream that uses it, *count ways, by
 * launch. Allocated from the memory; NULL: no memory left. */
struct tarn_way *tarn_ways(struct tarn_memory *memory, const struct tarn_model *model,
                           uint32_t earlier, bool of_previous, uint32_t later, size_t *count);

/* In each stream, the places [from[s], to[s]) that may run while the holder's bytes are in use:
 * neither before its writer in every legal order, nor after all its uses. from, to: room for all
 * streams. False: no memory. Cost: O(S (launches + waits + touches)). */
bool tarn_meanwhile(const struct tarn_model *model, uint32_t holder, uint32_t *from, uint32_t *to);

#endif
