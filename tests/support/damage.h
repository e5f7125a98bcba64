/* Ways to damage a plan, each at a place that is drawn at random. */
#ifndef TARN_TESTS_SUPPORT_DAMAGE_H
#define TARN_TESTS_SUPPORT_DAMAGE_H

#include "random_graph.h"
#include "streams/plan/plan.h"

/* What may become of a sound plan that the planner has made. */
enum damage_outcome {
    DAMAGE_EITHER,  /* sound or not */
    DAMAGE_REFUSED, /* never sound: a rule forbids it whatever the plan is */
    DAMAGE_SOUND    /* always sound: it only gives something away */
};

struct damage {
    const char *name;
    enum damage_outcome outcome;
    /* False: the plan has nothing of the kind; it may have been changed all the same. */
    bool (*apply)(struct tarn_plan *plan, struct random_source *source);
};

struct damage_table {
    const struct damage *kinds;
    size_t count;
};
extern const struct damage_table damages_of_order, damages_of_bounds, damages_of_numbers;

/* All of them. */
size_t damages_count(void);
const struct damage *damage_kind(size_t kind);

/* A copy with all that the plan has, and room for DAMAGES_MAX damages. The caller destroys it. */
enum { DAMAGES_MAX = 4 };
struct tarn_plan *damage_copy(const struct tarn_plan *plan);

/* A copy with a damage of the kind asked for, and `more` of random kinds. NULL: the plan has
 * nothing of the first kind. */
struct tarn_plan *damaged(const struct tarn_plan *plan, size_t kind, uint32_t more,
                          struct random_source *source);

#endif
