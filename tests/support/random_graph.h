/* Random graphs for the tests of every room, made through the builder: same knobs, same graph. */
#ifndef TARN_TESTS_SUPPORT_RANDOM_GRAPH_H
#define TARN_TESTS_SUPPORT_RANDOM_GRAPH_H

#include <stdbool.h>

#include "tarn/graph.h"

/* How many random graphs a test draws. Sanitized code is five to ten times slower, and what
 * sanitizers see shows on fewer; so does what coverage sees (FEW_DRAWS, of tests/coverage.sh). */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature) /* clang's way to tell */
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifdef SANITIZED
#define FEW_DRAWS
#else
#define SANITIZED 0
#endif
#ifdef FEW_DRAWS
#define HAS_FEW_DRAWS 1
#define DRAWS(count) (((count) + 31) / 32)
#else
#define HAS_FEW_DRAWS 0
#define DRAWS(count) (count)
#endif

/* A small generator of random numbers (splitmix64), free for any test to use. */
struct random_source {
    uint64_t state; /* the seed */
};

uint64_t random_next(struct random_source *source);
/* Uniform in [0, limit); limit above 0. */
uint32_t random_below(struct random_source *source, uint32_t limit);
bool random_percent(struct random_source *source, uint32_t percent);

/* Shares are percentages; a feature whose share is 0 does not occur. */
struct random_graph_options {
    uint64_t seed;
    uint32_t ops;
    uint32_t streams;
    uint32_t parameters;      /* persistent tensors: parameters, optimizer states, inputs */
    uint32_t reach;           /* inputs are drawn from the last `reach` tensors; 0: from all */
    uint32_t view_share;      /* ops that are views */
    uint32_t inplace_share;   /* other ops that write a storage in place */
    uint32_t control_share;   /* ops with a control arc that nothing asks for */
    uint32_t fill_share;      /* ops with one to four control arcs more, half of them past a view */
    uint32_t workspace_share; /* non-view ops with a workspace */
    uint32_t dead_share;      /* storages that nobody reads */
    uint32_t output_share;    /* pinned storages */
    uint32_t group_share;     /* storages in a contiguous group */
    uint32_t alignment_share; /* storages with an alignment of their own */
    uint32_t tiny_share;      /* storages of 1 to 3 bytes */
    uint32_t size_max;        /* of the others; 0: 4096 */
    uint32_t padded_share;    /* groups that are padded */
    uint32_t early_share;     /* workspaces that end before the outputs begin */
    uint32_t backward_share;  /* ops that are backward ops by their kind: the last ones */
    uint32_t spaces;          /* memory spaces that are declared; 0: none is */
    const uint64_t *capacities; /* bytes, by space; NULL: no limits */
    bool shuffled; /* the list order is any interleaving of the streams, topological or not */
};

/* A graph without data races: every hazard is ordered by a data arc, by stream order or by a
 * control arc. The caller destroys it; never NULL (a refused graph fails the test). */
struct tarn_graph *random_graph(const struct random_graph_options *options);

/* All knobs drawn from the seed: 1 to `ops_max` ops, 1 to 6 streams, every feature on or off. */
struct random_graph_options random_graph_knobs(uint64_t seed, uint32_t ops_max);

#endif
