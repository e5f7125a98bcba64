/* What a plan computes, against what its source graph computes, in values instead of bytes: what an
 * op writes is a hash of the op and of the values that it reads. Shares no code with the transforms
 * and none with the verifier. */
#ifndef TARN_TESTS_SUPPORT_RECOMPUTE_ORACLE_H
#define TARN_TESTS_SUPPORT_RECOMPUTE_ORACLE_H

#include "random_graph.h"
#include "streams/plan/plan.h"

enum { RECOMPUTE_WHY = 200 };

/* The values of some iterations of a graph, run in list order over storages that share nothing. */
struct recompute_meaning;

/* Never NULL. The graph must outlive it. */
struct recompute_meaning *recompute_meaning_create(const struct tarn_graph *source,
                                                   uint32_t iterations);
void recompute_meaning_destroy(struct recompute_meaning *meaning);

/* Runs the same iterations of a plan of that source graph in one legal order drawn at random, over
 * the plan's bytes: every launch must read the values that its source op (by the implementation
 * that it is) reads in the same iteration, every source op must yield all its outputs, one that
 * does not give the same again only once, and outputs and persistent storages must end with the
 * source's values. False: `why` says what is wrong. */
bool recompute_meaning_is_kept(const struct recompute_meaning *meaning,
                               const struct tarn_plan *plan, struct random_source *random,
                               char why[RECOMPUTE_WHY]);

/* What a plan costs, by its launch lists, its waits and the costs of its ops. */
struct recompute_costs {
    uint64_t work_ns;  /* all launches in a row */
    uint64_t again_ns; /* part of it: launches that make a copy of what another one has made */
    uint64_t path_ns;  /* critical path; a wait takes TARN_WAIT_NS */
    uint64_t peak;     /* reserved bytes at once, launches one by one in list order */
    uint32_t launches, again, implemented;
};

struct recompute_costs recompute_costs_of(const struct tarn_plan *plan);

#endif
