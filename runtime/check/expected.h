/* What every op must find in every storage that it reads, from the graph alone.
 *
 * Walking the list order, iteration by iteration, gives each version of a part of a storage (all of
 * it, where it has no slices) a seed:
 *     digest = fold(op's origin, iteration, seeds of the versions that the op reads)
 *     seed   = mix(digest, origin of the output that wrote it)
 * A part's bytes are the pattern of its latest version's seed, mixed with where the part begins; so
 * what a digest takes in does not depend on how storages are cut. A move of a tensor without cuts
 * hands the seed of its input on. Where implementations of an op
 * read other inputs than it does, the digest takes those that they have in common: so all runs of
 * an op give the same bytes, and a graph that recomputes ends with what its source ends with. */
#ifndef TARN_RUNTIME_CHECK_EXPECTED_H
#define TARN_RUNTIME_CHECK_EXPECTED_H

#include "pattern.h"
#include "streams/base/region.h"
#include "streams/graph/graph.h"

/* One part of a storage as one launched op touches it. An op that writes what already has a version
 * also reads that version: the write may be partial. */
struct tarn_access {
    uint32_t part;
    uint32_t made; /* origin of the first output with that part; TARN_NONE: a workspace */
    bool reads, writes;
    bool moved; /* a move writes it: it holds what the op's input holds */
};

struct tarn_expected {
    const struct tarn_graph *graph;
    const bool *skipped; /* by op: does not run, in an arm that is not taken; NULL: all run */
    uint32_t *begin;     /* by op, ops_count + 1: its accesses; inputs first, a workspace last */
    struct tarn_access *accesses;
    uint32_t *mixed_begin; /* by op, ops_count + 1: which of its accesses the digest takes in */
    uint32_t *mixed;       /* counted from the op's first access */
    uint64_t *versions;    /* by part: seed of the latest version in list order */
    /* The window of iterations that is looked at now: what access i must find in iteration k is
     * seeds[(k - window_begin) * begin[ops_count] + i]. */
    uint64_t *seeds; /* NULL: the window is empty */
    uint64_t window_begin, window_end;
    struct tarn_region window_memory; /* has the seeds */
};

/* The window is empty at first, before iteration 0. TARN_SYSTEM: no memory; nothing is to be
 * finished then. */
enum tarn_status tarn_expected_init(struct tarn_expected *expected, struct tarn_region *region,
                                    const struct tarn_graph *graph);
/* Gives the window's memory back; the rest is the region's. */
void tarn_expected_finish(struct tarn_expected *expected);

/* Moves the window to the `iterations` iterations after it; 0: to none. TARN_SYSTEM: no memory. */
enum tarn_status tarn_expected_advance(struct tarn_expected *expected, uint64_t iterations);

/* For how many iterations the seeds take a moderate amount of memory; at least 1. */
uint64_t tarn_expected_window(const struct tarn_expected *expected);

/* Seed of a persistent storage's version before iteration 0; the tensor is its root. */
uint64_t tarn_expected_initial(uint32_t tensor);

/* By the op's accesses: the seed of what each must find; 0 where it reads nothing. */
uint64_t *tarn_expected_seeds(const struct tarn_expected *expected, uint32_t op,
                              uint64_t iteration);

/* What the versions that the op writes grow from. */
uint64_t tarn_expected_digest(const struct tarn_expected *expected, uint32_t op,
                              uint64_t iteration);

/* Is nothing there, since what makes it does not run? */
static inline bool tarn_expected_is_void(const struct tarn_expected *expected, uint32_t part)
{
    const struct tarn_graph *graph = expected->graph;
    const struct tarn_storage *storage = &graph->storages[graph->parts[part].storage];
    return expected->skipped && !storage->persistent && expected->skipped[storage->producer];
}

/* What the bytes of a part grow from that holds the version of a seed. */
static inline uint64_t tarn_expected_bytes(const struct tarn_graph *graph, uint32_t part,
                                           uint64_t seed)
{
    uint64_t offset = graph->parts[part].offset;
    return offset > 0 ? tarn_seed_mix(seed, offset) : seed;
}

static inline uint64_t tarn_expected_written(uint64_t digest, const struct tarn_access *access)
{
    return access->moved ? digest : tarn_seed_mix(digest, access->made);
}

#endif
