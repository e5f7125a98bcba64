/* A placement problem in coarse sizes: all sizes are rounded down to multiples of a grain, and
 * storages smaller than it are left out. */
#ifndef TARN_PLANNER_PLACE_COARSE_H
#define TARN_PLANNER_PLACE_COARSE_H

#include "compact.h"

struct tarn_coarse {
    const struct tarn_problem *fine;
    uint64_t grain;        /* bytes */
    struct tarn_part part; /* the coarse problem; it has no graph, but a source */
    uint64_t bound;        /* bytes: no placement of the coarse problem is lower */
};

/* bound: bytes, of the fine problem, which must be of a graph and have its rows. *is_worth: there
 * is a grain that loses next to nothing of the bound and that not all sizes are multiples of; else
 * nothing is made. Lives in the region. TARN_SYSTEM: no memory. */
enum tarn_status tarn_coarse_init(struct tarn_coarse *coarse, struct tarn_region *region,
                                  const struct tarn_problem *fine, uint64_t bound, bool *is_worth);

/* Makes a placement of the fine problem from one of the coarse problem, by compaction with these
 * options. coarse_offset: by storage of the part; offset: by storage. *footprint: UINT64_MAX if the
 * options allow too little work. TARN_SYSTEM: no memory. */
enum tarn_status tarn_coarse_refine(const struct tarn_coarse *coarse, const uint64_t *coarse_offset,
                                    const struct tarn_compact_options *options, uint64_t *offset,
                                    uint64_t *footprint, uint64_t *work);

#endif
