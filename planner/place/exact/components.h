/* Sets of unplaced blocks that fall apart into components. */
#ifndef TARN_PLANNER_PLACE_EXACT_COMPONENTS_H
#define TARN_PLANNER_PLACE_EXACT_COMPONENTS_H

#include "state.h"

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
