/* What a plan must be, said a second time and in the plainest way: form, all pairs of touches over
 * a matrix of who reaches whom, and byte for byte execution of linear orders. */
#ifndef TARN_TESTS_SUPPORT_PLAN_ORACLE_H
#define TARN_TESTS_SUPPORT_PLAN_ORACLE_H

#include "random_graph.h"
#include "streams/plan/plan.h"

bool oracle_reads(const struct tarn_graph *graph, uint32_t op, uint32_t storage);
bool oracle_writes(const struct tarn_graph *graph, uint32_t op, uint32_t storage);
/* Reads or writes; views do neither. */
bool oracle_touches(const struct tarn_graph *graph, uint32_t op, uint32_t storage);
/* Where the plan has it, in the arena or in the persistent part. */
uint64_t oracle_offset(const struct tarn_plan *plan, uint32_t storage);
/* What a storage reserves at an alignment: alone its size rounded up, in a group its size, as the
 * last member also what the group lacks to a multiple. */
uint64_t oracle_reserved(const struct tarn_graph *graph, uint32_t storage, uint64_t alignment);
/* Is a the workspace of an op that ends it before its outputs begin, and b one of these? */
bool oracle_is_workspace_before(const struct tarn_graph *graph, uint32_t a, uint32_t b);
/* Do they share reserved bytes? */
bool oracle_share_bytes(const struct tarn_plan *plan, uint32_t a, uint32_t b);

/* Is every op launched once and every storage placed once, in range, aligned, groups back to back,
 * and the footprint not below the bound? */
bool oracle_is_well_formed(const struct tarn_plan *plan);

/* Do lists and waits form a cycle? The plan must be well-formed. */
bool oracle_deadlocks(const struct tarn_plan *plan);

/* Do lists and waits (boundary waits included) order, over two iterations, every two touches that
 * need an order? The plan must be well-formed. */
bool oracle_accepts(const struct tarn_plan *plan);

/* Does the certificate prove the bound? The plan must be well-formed and without a deadlock; a plan
 * without a certificate claims nothing. */
bool oracle_believes_bound(const struct tarn_plan *plan);

/* Do its hashes say that it is a plan for this graph? */
bool oracle_is_for(const struct tarn_plan *plan, const struct tarn_graph *source);

/* All of that together. */
bool oracle_judges(const struct tarn_plan *plan, const struct tarn_graph *source);

/* The least arena of a memory space (0 where none is declared) in a safe plan with these lists and
 * waits: every placement below that of the plan, which is safe, is tried. For up to about 8 blocks
 * where the heaviest antichain is smaller than the plan, else for up to 64 storages. */
uint64_t oracle_smallest_arena(const struct tarn_plan *plan, uint32_t space);

/* Is it a beginning of the program's work that lists and waits allow? */
bool oracle_is_legal(const struct tarn_plan *plan, const struct tarn_step *steps, size_t count);

/* Runs a legal order on memory in which every byte knows who wrote it: does an op read a byte that
 * is not what list order says, or is an output damaged after the last step? */
bool oracle_corrupts(const struct tarn_plan *plan, const struct tarn_step *steps, size_t count);

/* Tries every legal order of so many iterations, as long as `tries` lasts (it counts down to 0):
 * does one corrupt? */
bool oracle_finds_harm(const struct tarn_plan *plan, uint32_t iterations, uint32_t *tries);

/* The same for one order drawn at random. */
bool oracle_draws_harm(const struct tarn_plan *plan, uint32_t iterations,
                       struct random_source *source);

#endif
