/* Plays every interleaving of a few iterations of a plan, by starting and finishing ops, any number
 * of them at a time, as lists and waits allow. For tiny graphs. */
#ifndef TARN_TESTS_SUPPORT_INTERLEAVING_ORACLE_H
#define TARN_TESTS_SUPPORT_INTERLEAVING_ORACLE_H

#include "streams/plan/plan.h"

/* Does some state of so many iterations damage a byte that is still needed? At most 64 launches,
 * and 64 storages, over all iterations. Counts the states that were looked at into *states. */
bool interleaving_oracle_finds_harm(const struct tarn_plan *plan, uint32_t iterations,
                                    uint64_t *states);

#endif
