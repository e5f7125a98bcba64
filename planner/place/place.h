/* All ways of placing, from the cheapest to the most thorough, until the bound is met. */
#ifndef TARN_PLANNER_PLACE_PLACE_H
#define TARN_PLANNER_PLACE_PLACE_H

#include "improve.h"

enum tarn_way {
    TARN_WAY_ALL,
    TARN_WAY_BASELINE, /* all methods of the paper, see portfolio.h */
    TARN_WAY_LOWEST,   /* lowest-offset-first: keys and walks, see improve.h */
    TARN_WAY_EXACT,    /* complete search at the bound, or the capacity, for so many steps */
    TARN_WAY_ROAM,     /* the layout of ROAM's subgraph tree, see roam_tree.h */
    TARN_WAY_LLFB,     /* longest-lived first, best-fit, see llfb.h */
    TARN_WAY_METHOD    /* one method of the paper */
};

/* What a word asks for; false: no such word. method: index for TARN_WAY_METHOD. */
bool tarn_way_find(const char *word, enum tarn_way *way, uint32_t *method);
/* The i-th word, or NULL past the last. */
const char *tarn_way_word(size_t i);

struct tarn_place_request {
    enum tarn_way way;
    uint32_t method;
    uint32_t node_limit; /* TARN_WAY_ROAM: nodes in a leaf at most; 0: a default */
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
