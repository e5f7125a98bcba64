/* Gives offsets to storages by all methods, from the cheapest to the most thorough, until the bound
 * is met. */
#ifndef TARN_PLANNER_PLACE_PLACE_H
#define TARN_PLANNER_PLACE_PLACE_H

#include "improve.h"

enum tarn_place_method {
    TARN_PLACE_ALL,
    TARN_PLACE_BASELINE, /* all methods of SOMAS, see portfolio.h */
    TARN_PLACE_LOWEST, /* lowest-offset-first: priority orders and local searches, see improve.h */
    TARN_PLACE_EXACT,  /* complete search at the bound, or at the capacity if that is larger */
    TARN_PLACE_SOMAS,  /* one method of SOMAS */
    TARN_PLACE_LAYOUT  /* a layout of another room */
};

/* A method of another directory, whose placement is taken unchanged, without search. */
struct tarn_layout {
    const char *name;
    /* Writes the offset of every planned storage; conflicts have their rows. node_limit: maximum of
     * nodes in a part, if the layout has parts; 0: a default. TARN_SYSTEM: no memory. */
    enum tarn_status (*place)(const struct tarn_problem *problem, uint32_t node_limit,
                              uint64_t *offset, uint64_t *footprint);
};

/* The method of that name; false: there is none. somas: portfolio.h's index, or TARN_NONE. */
bool tarn_place_method_find(const char *name, enum tarn_place_method *method, uint32_t *somas);
/* The i-th name of tarn_place_methods_count(). */
const char *tarn_place_method_name(size_t i);
size_t tarn_place_methods_count(void);

struct tarn_place_request {
    enum tarn_place_method method;
    uint32_t somas;                   /* TARN_PLACE_SOMAS: index of portfolio.h */
    const struct tarn_layout *layout; /* TARN_PLACE_LAYOUT; else NULL */
    uint32_t node_limit;              /* the layout's */
    /* NULL, or called once when cheap methods have not met the bound: writes a bound that is at
     * least as high.
     */
    enum tarn_status (*raise_bound)(void *user, uint64_t *bound);
    void *user;
    struct tarn_improve_options improve; /* bound, capacity, threads and so on, for every method */
    uint64_t enough; /* bytes: with a plan up to there no round follows the first; 0: nothing is */
};

struct tarn_place_result {
    uint64_t *offset; /* by storage; the caller's */
    uint64_t footprint;
    bool cannot_fit; /* proved: no placement is at the larger of bound and capacity */
    enum tarn_stop stopped;
    enum tarn_end ended;
    char method[64]; /* the method that made it, for example "lowest:size-life" */
};

/* TARN_SYSTEM: no memory. */
enum tarn_status tarn_place(const struct tarn_problem *problem,
                            const struct tarn_place_request *request,
                            struct tarn_place_result *result);

#endif
