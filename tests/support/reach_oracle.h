/* Who comes before whom in two iterations of a plan, and who touches what: sets of nodes, from the
 * lists and waits as they are written. What the plan's oracles share. */
#ifndef TARN_TESTS_SUPPORT_REACH_ORACLE_H
#define TARN_TESTS_SUPPORT_REACH_ORACLE_H

#include "streams/plan/plan.h"

/* A node is a launch: iteration * listed + place in plan->list. A set of nodes has `words` words.
 */
struct reach {
    const struct tarn_plan *plan;
    uint32_t listed, words;
    uint32_t *index; /* op -> place in plan->list; TARN_NONE: not launched */
    uint64_t *after; /* node -> the nodes that must come after it, as a set */
    /* By iteration, then by storage, as sets. */
    uint64_t *touches[2], *writes[2];
};

/* The plan's lists and waits must be well-formed. Never NULL. */
struct reach *reach_create(const struct tarn_plan *plan);
void reach_destroy(struct reach *reach);

bool reach_has_cycle(const struct reach *reach);
/* Op a of iteration i comes before op b of iteration j. */
bool reach_is_before(const struct reach *reach, uint32_t a, uint32_t i, uint32_t b, uint32_t j);
/* All touches of storage a in iteration i come before every write of storage b in iteration j. */
bool reach_precedes(const struct reach *reach, uint32_t a, uint32_t i, uint32_t b, uint32_t j);
/* May b take bytes of a in the same iteration? */
bool reach_may_follow(const struct reach *reach, uint32_t a, uint32_t b);
/* May two planned storages share bytes in one iteration? */
bool reach_may_share(const struct reach *reach, uint32_t a, uint32_t b);

#endif
