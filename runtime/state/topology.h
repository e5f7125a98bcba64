/* What the host machine looks like to the runtime: the cores that this process may use, where
 * memory is near to them, and how much of it is left. */
#ifndef TARN_RUNTIME_STATE_TOPOLOGY_H
#define TARN_RUNTIME_STATE_TOPOLOGY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct tarn_topology;

/* root: the folder that tells of the machine; NULL: of this one, /sys. Of another, for tests, all
 * processors count, and nothing is really pinned or bound. NULL when out of memory. */
struct tarn_topology *tarn_topology_create(const char *root);
void tarn_topology_destroy(struct tarn_topology *topology);

/* Cores that the calling thread may use, at least 1: affinity and cpusets respected, hardware
 * threads of one core counted once. */
uint32_t tarn_topology_cores(const struct tarn_topology *topology);

/* Pins a thread, the worker of that number among `workers`. When the workers fill the machine each
 * gets a core of its own; fewer are kept on the NUMA nodes of the first `workers` cores, where the
 * system spreads them, so that two sessions do not sit on the same cores. False when the system
 * refuses; the thread then stays where it is. */
bool tarn_topology_pin(const struct tarn_topology *topology, pthread_t thread, uint32_t worker,
                       uint32_t workers);

/* Where tarn_topology_pin keeps that worker: may it run on that processor? */
bool tarn_topology_may_run(const struct tarn_topology *topology, uint32_t worker, uint32_t workers,
                           uint32_t cpu);

/* Asks that pages of this memory, when first touched, come from the NUMA nodes of the first
 * `workers` cores. A wish: nothing happens on one node or when the system refuses. */
void tarn_topology_bind_memory(const struct tarn_topology *topology, void *memory, uint64_t size,
                               uint32_t workers);

/* Asks that pages of this memory, when first touched, come from the NUMA nodes nearest to the PCI
 * device of that bus id ("0000:65:00.0"). False when the device is not known, the machine says
 * nothing of nodes, or the system refuses; the pages then come from anywhere. */
bool tarn_topology_bind_near_pci(const char *bus_id, void *memory, uint64_t size);

/* That node; -1: not known. root: as above. */
int tarn_topology_node_of_pci(const char *root, const char *bus_id);

/* Bytes that can still be allocated without the system starting to kill: what is available on the
 * machine, or less where the control group has a limit. UINT64_MAX when the system does not say. */
uint64_t tarn_memory_available(void);

#endif
