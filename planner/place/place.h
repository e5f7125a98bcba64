/* All ways of placing, from the cheapest to the most thorough, until the bound is met. */
#ifndef TARN_PLANNER_PLACE_PLACE_H
#define TARN_PLANNER_PLACE_PLACE_H

#include "improve.h"

enum tarn_way {
    TARN_WAY_ALL,
    TARN_WAY_BASELINE, /* all methods of the paper, see portfolio.h */
    TARN_WAY_LOWEST,   /* lowest-offset-first: keys and walks, see improve.h */
    TARN_WAY_EXACT,    /* complete search at the bound, or the capacity, for so many steps */
    TARN_WAY_METHOD,   /* one method of the paper */
    TARN_WAY_LAYOUT    /* what another room lays out, once and for all */
};

/* A method of another room, which is not searched with but taken as it comes. */
struct tarn_layout {
    const char *name;
    /* Writes the offset of every planned storage; conflicts have their rows. node_limit: nodes of a
     * part at most, where the layout has such; 0: a default. TARN_SYSTEM: no memory. */
    enum tarn_status (*place)(const struct tarn_problem *problem, uint32_t node_limit,
                              uint64_t *offset, uint64_t *footprint);
};

/* What a word asks for; false: no such word. method: index for TARN_WAY_METHOD. */
bool tarn_way_find(const char *word, enum tarn_way *way, uint32_t *method);
/* The i-th word of tarn_ways_count(). */
const char *tarn_way_word(size_t i);
size_t tarn_ways_count(void);

struct tarn_place_request {
    enum tarn_way way;
    uint32_t method;
    const struct tarn_layout *layout; /* TARN_WAY_LAYOUT; else NULL */
    uint32_t node_limit;              /* the layout's */
    /* NULL, or called once when cheap ways have not met the bound: writes one at least as high. */
    enum tarn_status (*raise_bound)(void *user, uint64_t *bound);
    void *user;
    struct tarn_improve_options improve; /* bound, capacity, threads and so on, for every way */
};

struct tarn_place_result {
    uint64_t *offset; /* by storage; the caller's */
    uint64_t footprint;
    bool cannot_fit; /* proved: no placement is at the bound, or the capacity where that is more */
    enum tarn_stop stopped;
    char method[64]; /* what made it, for example "lowest:size-life" */
};

/* TARN_SYSTEM: no memory. */
enum tarn_status tarn_place(const struct tarn_problem *problem,
                            const struct tarn_antichain *antichain,
                            const struct tarn_place_request *request,
                            struct tarn_place_result *result);

#endif
