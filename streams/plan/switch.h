/* Two plans that take turns over one arena: their common persistent tensors, and the waits of the
 * first iteration of one for the last iteration of the other. */
#ifndef TARN_STREAMS_PLAN_SWITCH_H
#define TARN_STREAMS_PLAN_SWITCH_H

#include "plan.h"

/* Both plans, and the matches of their persistent tensors. */
struct tarn_switch {
    const struct tarn_plan *from, *to;
    /* By persistent storage of `to`, counted from planned_count: the storage of `from` that has the
     * same name, or TARN_NONE. */
    const uint32_t *same;
};

/* Plans that share an arena share it space by space. TARN_USAGE: the graphs declare memory spaces
 * of other names or kinds. */
enum tarn_status tarn_switch_check_spaces(const struct tarn_graph *first,
                                          const struct tarn_graph *other, struct tarn_error *error);

/* Finds `same`; from the region. Names of persistent tensors must be unique in each plan. Two
 * tensors of the same name must have equal sizes, except inputs, whose sizes may differ.
 * TARN_USAGE: a rule is broken; TARN_SYSTEM: no memory. */
enum tarn_status tarn_switch_match(const struct tarn_plan *from, const struct tarn_plan *to,
                                   struct tarn_region *region, uint32_t **same,
                                   struct tarn_error *error);

/* Do persistent storages of the same name have the same offset, and do no others share bytes?
 * TARN_USAGE: they do not, and the text names two. TARN_SYSTEM. */
enum tarn_status tarn_switch_check_layout(const struct tarn_switch *pair, struct tarn_error *error);

/* `op` of the first iteration of `to` waits for `on` of the last iteration of `from`, so that each
 * op comes after all users of its reserved bytes, or of its storages by name, if one of the two
 * writes: the transitive reduction of that order. From the region. TARN_SYSTEM: no memory;
 * TARN_REJECTED: lists and waits of a plan form a cycle. */
enum tarn_status tarn_switch_waits(const struct tarn_switch *pair, struct tarn_region *region,
                                   struct tarn_wait **waits, uint32_t *count,
                                   struct tarn_error *error);

#endif
