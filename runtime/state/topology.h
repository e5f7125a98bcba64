/* The placement of workers and memory on the host machine, and the system's limits: cores, time and
 * memory. */
#ifndef TARN_RUNTIME_STATE_TOPOLOGY_H
#define TARN_RUNTIME_STATE_TOPOLOGY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "machine.h"
#include "tarn/device.h"

#define TARN_HUGE_PAGE (UINT64_C(2) << 20)

struct tarn_topology;

/* The machine's processors that the calling thread may use; machine: NULL for this one. NULL: no
 * memory. */
struct tarn_topology *tarn_topology_create(const struct tarn_machine *machine);
void tarn_topology_destroy(struct tarn_topology *topology);

/* Cores that the calling thread may use, at least 1: affinity and cpusets respected, hardware
 * threads of one core counted once. */
uint32_t tarn_topology_cores(const struct tarn_topology *topology);

/* Binds a thread, the worker of that number among `workers`, as tarn_worker_binding says. True
 * without effect if the machine is unknown or another machine. False if the system refuses; the
 * thread's binding is then unchanged. */
bool tarn_topology_pin(const struct tarn_topology *topology, pthread_t thread,
                       enum tarn_worker_binding binding, uint32_t worker, uint32_t workers);

/* May that worker run on that processor after tarn_topology_pin? */
bool tarn_topology_may_run(const struct tarn_topology *topology, enum tarn_worker_binding binding,
                           uint32_t worker, uint32_t workers, uint32_t cpu);

/* Requests that pages of this memory, when first touched, come from the NUMA nodes of the first
 * `workers` cores. Without effect on a machine with one node, or if the system refuses. */
void tarn_topology_bind_memory(const struct tarn_topology *topology, void *memory, uint64_t size,
                               uint32_t workers);

/* Requests that pages of this memory, when first touched, come from the NUMA nodes nearest to the
 * PCI device of that bus id ("0000:65:00.0"). False if the device or the nodes are not known, or
 * the system refuses; the pages then come from any node. */
bool tarn_topology_bind_near_pci(const char *bus_id, void *memory, uint64_t size);

/* The NUMA nodes nearest to a PCI device; NULL: not known. */
const struct tarn_node_set *tarn_topology_nodes_of_pci(const struct tarn_machine *machine,
                                                       const char *bus_id);

/* The memory policy of a thread, as Linux keeps it. */
struct tarn_memory_policy {
    bool is_changed;
    int mode;
    struct tarn_node_set nodes;
};
/* Between these two calls, pages that the system takes for this thread come from the nodes nearest
 * to that PCI device, if they are known: for memory that a driver allocates. */
void tarn_memory_policy_near_pci(struct tarn_memory_policy *before, const char *bus_id);
void tarn_memory_policy_restore(const struct tarn_memory_policy *before);

/* Bytes that can still be allocated before the system kills processes: the machine's available
 * memory, or less if the control group has a limit. UINT64_MAX: not known. */
uint64_t tarn_memory_available(void);

#endif
