/* Assigns workers and memory to processors and NUMA nodes of the host machine, and makes the system
 * calls that bind them.
 *
 * Cores are numbered node by node: workers 0..n-1 sit on as few NUMA nodes as possible, and the
 * arena is requested on the same nodes. Binding uses Linux's system calls directly and not hwloc,
 * which makes the same calls: so a forked child binds as its parent does, without hwloc. Cost: one
 * allocation for each session. */
#include "topology.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "streams/base/bitset.h"
#include "streams/base/memory.h"

enum { WORDS = TARN_CPUS_MAX / 64, NODE_WORDS = TARN_NODES_MAX / 64 };

/* Of mbind, see its manual page. */
enum { PREFERRED = 1, PREFERRED_MANY = 5 };

struct tarn_topology {
    const struct tarn_machine *machine;
    struct tarn_machine *plain; /* NULL, or the machine in use, if the given one lacks the thread's
                                 * processors */
    struct tarn_cpu_set cpus;   /* processors that the creating thread may run on */
    uint16_t core_of[TARN_CPUS_MAX]; /* by processor; numbers without gaps */
    uint32_t cores_count;
};

/* Leaves out processors that this thread may not use. */
static bool restrict_cpus(struct tarn_topology *topology)
{
    struct tarn_cpu_set allowed = {{0}};
    topology->cpus = topology->machine->cpus;
    if (topology->machine->is_elsewhere ||
        sched_getaffinity(0, sizeof allowed, (cpu_set_t *)&allowed) != 0)
        return true;
    for (uint32_t w = 0; w < WORDS; w++) topology->cpus.word[w] &= allowed.word[w];
    if (!tarn_set_is_empty(topology->cpus.word, WORDS)) return true;
    topology->plain = tarn_take_zeros(1, sizeof *topology->plain);
    if (!topology->plain) return false;
    tarn_machine_read_plain(topology->plain);
    topology->machine = topology->plain;
    topology->cpus = topology->plain->cpus;
    return true;
}

static void number_cores(struct tarn_topology *topology)
{
    const struct tarn_machine *machine = topology->machine;
    struct tarn_cpu_set used = {{0}}; /* of the machine's cores */
    uint16_t number_of[TARN_CPUS_MAX];
    for (uint32_t i = 0; i < TARN_CPUS_MAX; i++) {
        if (tarn_set_has(topology->cpus.word, i)) tarn_set_add(used.word, machine->core_of[i]);
    }
    for (uint32_t core = 0; core < machine->cores_count; core++) {
        if (tarn_set_has(used.word, core)) number_of[core] = (uint16_t)topology->cores_count++;
    }
    for (uint32_t i = 0; i < TARN_CPUS_MAX; i++) {
        if (tarn_set_has(topology->cpus.word, i))
            topology->core_of[i] = number_of[machine->core_of[i]];
    }
}

struct tarn_topology *tarn_topology_create(const struct tarn_machine *machine)
{
    struct tarn_topology *topology = tarn_take_zeros(1, sizeof *topology);
    if (!topology) return NULL;
    topology->machine = machine ? machine : tarn_machine();
    if (!restrict_cpus(topology)) {
        tarn_topology_destroy(topology);
        return NULL;
    }
    number_cores(topology);
    assert(topology->cores_count > 0);
    return topology;
}

void tarn_topology_destroy(struct tarn_topology *topology)
{
    if (topology) tarn_free(topology->plain);
    tarn_free(topology);
}

uint32_t tarn_topology_cores(const struct tarn_topology *topology) { return topology->cores_count; }

static bool can_bind(const struct tarn_machine *machine)
{
    return machine->is_known && !machine->is_elsewhere;
}

/* ---- Places ---- */

/* The NUMA nodes of the first `workers` cores; TARN_NO_NODE among them. */
static void nodes_of(const struct tarn_topology *topology, uint32_t workers,
                     struct tarn_node_set *nodes)
{
    memset(nodes, 0, sizeof *nodes);
    for (uint32_t i = 0; i < TARN_CPUS_MAX; i++) {
        if (tarn_set_has(topology->cpus.word, i) && topology->core_of[i] < workers)
            tarn_set_add(nodes->word, topology->machine->node_of[i]);
    }
}

/* A processor of that core. */
static uint32_t cpu_of(const struct tarn_topology *topology, uint32_t core)
{
    uint32_t i = 0;
    assert(core < topology->cores_count);
    while (!tarn_set_has(topology->cpus.word, i) || topology->core_of[i] != core) i++;
    return i;
}

/* The processors that a worker is bound to. */
static void place_of(const struct tarn_topology *topology, enum tarn_worker_binding binding,
                     uint32_t worker, uint32_t workers, struct tarn_cpu_set *place)
{
    const struct tarn_machine *machine = topology->machine;
    struct tarn_node_set nodes;
    assert(worker < workers && topology->cores_count > 0);
    uint32_t core = worker % topology->cores_count, own = cpu_of(topology, core);
    if (binding == TARN_BIND_AUTO && workers >= topology->cores_count) binding = TARN_BIND_CORE;
    memset(place, 0, sizeof *place);
    nodes_of(topology, workers, &nodes);
    for (uint32_t i = 0; i < TARN_CPUS_MAX; i++) {
        bool belongs = tarn_set_has(topology->cpus.word, i);
        if (!belongs) continue;
        switch (binding) {
        case TARN_BIND_AUTO: belongs = tarn_set_has(nodes.word, machine->node_of[i]); break;
        case TARN_BIND_NONE: break;
        case TARN_BIND_NODE: belongs = machine->node_of[i] == machine->node_of[own]; break;
        case TARN_BIND_CACHE: belongs = machine->cache_of[i] == machine->cache_of[own]; break;
        case TARN_BIND_CORE: belongs = topology->core_of[i] == core; break;
        }
        if (belongs) tarn_set_add(place->word, i);
    }
}

bool tarn_topology_may_run(const struct tarn_topology *topology, enum tarn_worker_binding binding,
                           uint32_t worker, uint32_t workers, uint32_t cpu)
{
    struct tarn_cpu_set place;
    place_of(topology, binding, worker, workers, &place);
    return cpu < TARN_CPUS_MAX && tarn_set_has(place.word, cpu);
}

bool tarn_topology_pin(const struct tarn_topology *topology, pthread_t thread,
                       enum tarn_worker_binding binding, uint32_t worker, uint32_t workers)
{
    struct tarn_cpu_set place;
    if (binding == TARN_BIND_NONE || !can_bind(topology->machine)) return true;
    place_of(topology, binding, worker, workers, &place);
    return pthread_setaffinity_np(thread, sizeof place, (const cpu_set_t *)&place) == 0;
}

/* ---- Memory ---- */

/* Pages not allocated yet come from these nodes while they have free pages. Systems before Linux
 * 5.15 take only one node. */
static bool prefer_nodes(void *memory, uint64_t size, const struct tarn_node_set *nodes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = (uintptr_t)memory & ~(page - 1);
    size_t length = (size_t)((uintptr_t)memory + size - begin);
    if (syscall(SYS_mbind, begin, length, PREFERRED_MANY, nodes->word, TARN_NODES_MAX + 1, 0) == 0)
        return true;
    return errno == EINVAL &&
           syscall(SYS_mbind, begin, length, PREFERRED, nodes->word, TARN_NODES_MAX + 1, 0) == 0;
}

void tarn_topology_bind_memory(const struct tarn_topology *topology, void *memory, uint64_t size,
                               uint32_t workers)
{
    struct tarn_node_set some, every;
    nodes_of(topology, workers, &some);
    nodes_of(topology, topology->cores_count, &every);
    if (!can_bind(topology->machine) || memcmp(&some, &every, sizeof some) == 0) return;
    tarn_set_drop(some.word, TARN_NO_NODE);
    if (!tarn_set_is_empty(some.word, NODE_WORDS)) prefer_nodes(memory, size, &some);
}

const struct tarn_node_set *tarn_topology_nodes_of_pci(const struct tarn_machine *machine,
                                                       const char *bus_id)
{
    unsigned domain, bus, device, function;
    int length = 0;
    if (sscanf(bus_id, "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &length) != 4 ||
        bus_id[length] != '\0')
        return NULL;
    for (uint32_t i = 0; i < machine->pci_count; i++) {
        const struct tarn_pci_device *pci = &machine->pci[i];
        if (pci->domain == domain && pci->bus == bus && pci->device == device &&
            pci->function == function)
            return tarn_set_is_empty(pci->nodes.word, NODE_WORDS) ? NULL : &pci->nodes;
    }
    return NULL;
}

static const struct tarn_node_set *nodes_near(const char *bus_id)
{
    const struct tarn_machine *machine = tarn_machine();
    return can_bind(machine) ? tarn_topology_nodes_of_pci(machine, bus_id) : NULL;
}

bool tarn_topology_bind_near_pci(const char *bus_id, void *memory, uint64_t size)
{
    const struct tarn_node_set *nodes = nodes_near(bus_id);
    return nodes && prefer_nodes(memory, size, nodes);
}

void tarn_memory_policy_near_pci(struct tarn_memory_policy *before, const char *bus_id)
{
    const struct tarn_node_set *nodes = nodes_near(bus_id);
    before->is_changed = false;
    if (!nodes ||
        syscall(SYS_get_mempolicy, &before->mode, before->nodes.word, TARN_NODES_MAX, NULL, 0) != 0)
        return;
    before->is_changed =
        syscall(SYS_set_mempolicy, PREFERRED_MANY, nodes->word, TARN_NODES_MAX + 1) == 0 ||
        syscall(SYS_set_mempolicy, PREFERRED, nodes->word, TARN_NODES_MAX + 1) == 0;
}

void tarn_memory_policy_restore(const struct tarn_memory_policy *before)
{
    if (before->is_changed)
        syscall(SYS_set_mempolicy, before->mode, before->nodes.word, TARN_NODES_MAX + 1);
}

/* ---- Limits of the system ---- */

/* The number in a line that matches `format`, or UINT64_MAX. */
static uint64_t read_number(const char *path, const char *format)
{
    FILE *file = fopen(path, "re");
    if (!file) return UINT64_MAX;
    char line[256];
    unsigned long long number = 0;
    bool found = false;
    while (!found && fgets(line, sizeof line, file)) found = sscanf(line, format, &number) == 1;
    fclose(file);
    return found ? number : UINT64_MAX;
}

uint64_t tarn_memory_available(void)
{
    uint64_t available = read_number("/proc/meminfo", "MemAvailable: %llu kB");
    if (available != UINT64_MAX) available *= 1024;
    uint64_t limit = read_number("/sys/fs/cgroup/memory.max", "%llu");
    uint64_t used = read_number("/sys/fs/cgroup/memory.current", "%llu");
    if (limit == UINT64_MAX || used == UINT64_MAX) return available;
    uint64_t cache = read_number("/sys/fs/cgroup/memory.stat", "inactive_file %llu");
    if (cache <= used) used -= cache; /* copies of files, which the system frees on demand */
    uint64_t left = used < limit ? limit - used : 0;
    return left < available ? left : available;
}

/* ---- For the caller ---- */

uint32_t tarn_host_cores(void)
{
    struct tarn_topology *topology = tarn_topology_create(NULL);
    uint32_t cores = topology ? topology->cores_count : 1;
    tarn_topology_destroy(topology);
    return cores;
}
