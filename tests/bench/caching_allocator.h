/* The caching allocator of a framework, on paper: what PyTorch's allocator for CUDA would reserve
 * for a sequence of allocations and frees. */
#ifndef TARN_TESTS_BENCH_CACHING_ALLOCATOR_H
#define TARN_TESTS_BENCH_CACHING_ALLOCATOR_H

#include <stdint.h>

struct tarn_graph;

/* Bytes that the allocator has reserved after `iterations` of the graph: planned storages and
 * workspaces, each allocated in its first writer's stream and given back after its last user in
 * list order, outputs after the iteration. Frees are taken to be usable at once, as if no other
 * stream were still at work: a real run reserves at least as much. */
uint64_t caching_allocator_replay(const struct tarn_graph *graph, uint32_t iterations);

#endif
