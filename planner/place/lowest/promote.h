/* A search for a better plan by lowest-offset-first: what ends too high comes first. */
#ifndef TARN_PLANNER_PLACE_LOWEST_PROMOTE_H
#define TARN_PLANNER_PLACE_LOWEST_PROMOTE_H

#include "decoder.h"
#include "streams/base/region.h"

struct tarn_promotion {
    const int32_t *floor;  /* by place, the least offset allowed, or NULL */
    const int32_t *target; /* by place, what it should end at or below; in units */
    int32_t *key;          /* by place: those to begin with; they change */
    uint32_t decodes_max;
    int32_t
        excess; /* the most that any place ends above its target; at first: in the plan so far */
    int32_t *offset; /* by place: the best plan, where there is a better one than the plan so far */
    int32_t top;     /* of the best plan */
};

/* Up to decodes_max decodes, until every target is met, or the decoder has no work or time left.
 * Gives back what it takes from the region. TARN_SYSTEM: no memory. */
enum tarn_status tarn_promote(struct tarn_promotion *promotion, struct tarn_decoder *decoder,
                              struct tarn_region *region);

#endif
