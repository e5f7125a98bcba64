/* A small model of one stream as exact search sees it: forward results are bits of a set, and all
 * else is there from its writer to its last reader. */
#ifndef TARN_PLANNER_TRANSFORM_BUDGET_NET_H
#define TARN_PLANNER_TRANSFORM_BUDGET_NET_H

#include "planner/transform/recompute/recompute.h"

enum { TARN_NET_RESULTS_MAX = 24 };

/* A form of an op that runs for the first time or again. */
struct tarn_net_form {
    uint32_t form;          /* of the model */
    uint32_t reads, writes; /* sets of results */
    uint64_t aside;         /* bytes of copies that no op reads, when it runs again */
    uint64_t over_size;     /* bytes that it need not allocate beside `over` */
    uint32_t over;          /* result that it may overwrite, or TARN_NONE */
    bool forced;            /* it cannot write elsewhere */
    uint32_t begin, end;    /* places before which it may run again */
};

struct tarn_net {
    const struct tarn_recompute_model *model;
    uint32_t results_count;
    uint32_t result_version[TARN_NET_RESULTS_MAX];
    uint64_t size[TARN_NET_RESULTS_MAX]; /* reserved bytes */
    struct tarn_net_form *forms;         /* primary ones by place, then those that run again */
    uint32_t *first;                     /* place -> its first primary form; count + 1 */
    uint32_t again, count;               /* of `forms`: the first that runs again, and all */
    uint64_t *between; /* place -> bytes, before its op runs, that are no result */
    uint64_t *during;  /* place -> and while it runs */
    uint32_t *wanted;  /* place -> results that ops at this place or later may read; count + 1 */
};

/* TARN_SYSTEM: no memory. `fits` false: the model has several streams, too many results, or ops in
 * forms that a net does not have: parts, two results overwritten at once. */
enum tarn_status tarn_net_init(struct tarn_net *net, struct tarn_region *region,
                               const struct tarn_recompute_model *model, bool *fits);

#endif
