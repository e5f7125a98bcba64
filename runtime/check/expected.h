/* The expected content of every storage that an op reads, derived from the graph alone.
 *
 * Walking the list order, iteration by iteration, gives each version of a part of a storage (a
 * storage without slices is one part) a seed:
 *     digest = fold(op's origin, iteration, seeds of the versions that the op reads)
 *     seed   = mix(digest, origin of the output that wrote it)
 * A part's bytes are the pattern of its latest version's seed, mixed with the part's start, so
 * digests do not depend on how storages are cut. A move of a tensor without cuts hands the seed of
 * its input on. If implementations of an op read other inputs than the op, the digest uses only the
 * common inputs. So all runs of an op give the same bytes, and a graph that recomputes ends with
 * the same contents as its source. */
#ifndef TARN_RUNTIME_CHECK_EXPECTED_H
#define TARN_RUNTIME_CHECK_EXPECTED_H

#include "pattern.h"
#include "streams/base/region.h"
#include "streams/graph/graph.h"

/* An access of one launched op to one part of a storage. An op that writes a part which already has
 * a version also reads that version: the write may be partial. */
struct tarn_access {
    uint32_t part;
    uint32_t made; /* origin of the first output with that part; TARN_NONE: a workspace */
    bool reads, writes;
    bool moved; /* a move writes it: its content equals the op's input */
};

struct tarn_expected {
    const struct tarn_graph *graph;
    const bool *skipped; /* by op: does not run, in an arm that is not taken; NULL: all run */
    uint32_t *begin;     /* by op, ops_count + 1: its accesses; inputs first, a workspace last */
    struct tarn_access *accesses;
    uint32_t *mixed_begin; /* by op, ops_count + 1: the accesses that its digest uses */
    uint32_t *mixed;       /* counted from the op's first access */
    uint64_t *versions;    /* by part: seed of the latest version in list order */
    /* The window of iterations that is looked at now: what access i must find in iteration k is
     * seeds[(k - window_begin) * begin[ops_count] + i]. */
    uint64_t *seeds; /* NULL: the window is empty */
    uint64_t window_begin, window_end;
    struct tarn_region window_memory; /* has the seeds */
};

/* The window is empty at first, before iteration 0. TARN_SYSTEM: no memory; it must not be finished
 * then. */
enum tarn_status tarn_expected_init(struct tarn_expected *expected, struct tarn_region *region,
                                    const struct tarn_graph *graph);
/* Frees the window's memory; the rest is the region's. */
void tarn_expected_finish(struct tarn_expected *expected);

/* Moves the window to the next `iterations` iterations; 0: to none. TARN_SYSTEM: no memory. */
enum tarn_status tarn_expected_advance(struct tarn_expected *expected, uint64_t iterations);

/* The number of iterations whose seeds take a moderate amount of memory; at least 1. */
uint64_t tarn_expected_window(const struct tarn_expected *expected);

/* Seed of a persistent storage's version before iteration 0; the tensor is its root. */
uint64_t tarn_expected_initial(uint32_t tensor);

/* By the op's accesses: the seed of the content to find; 0 if the access reads nothing. */
uint64_t *tarn_expected_seeds(const struct tarn_expected *expected, uint32_t op,
                              uint64_t iteration);

/* The digest from which the seeds of the op's outputs are made. */
uint64_t tarn_expected_digest(const struct tarn_expected *expected, uint32_t op,
                              uint64_t iteration);

/* Is there no content, since the producer does not run? */
static inline bool tarn_expected_is_void(const struct tarn_expected *expected, uint32_t part)
{
    const struct tarn_graph *graph = expected->graph;
    const struct tarn_storage *storage = &graph->storages[tarn_part(graph, part).storage];
    return expected->skipped && !storage->persistent && expected->skipped[storage->producer];
}

/* The start word of the pattern of a part that holds the version of a seed. */
static inline uint64_t tarn_expected_bytes(const struct tarn_graph *graph, uint32_t part,
                                           uint64_t seed)
{
    uint64_t offset = tarn_part(graph, part).offset;
    return offset > 0 ? tarn_seed_mix(seed, offset) : seed;
}

static inline uint64_t tarn_expected_written(uint64_t digest, const struct tarn_access *access)
{
    return access->moved ? digest : tarn_seed_mix(digest, access->made);
}

#endif
