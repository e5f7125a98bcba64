/* The host machine, through hwloc where Tarn is built with it, else through the affinity mask.
 *
 * Cores come in hwloc's logical order, which walks the machine depth first: workers 0..n-1 sit on
 * as few NUMA nodes as possible, and the arena is asked for on just those nodes. The only file that
 * includes hwloc. Cost: a few milliseconds to load, once per session; only cores and nodes are
 * loaded. HWLOC_SYNTHETIC shows another machine; then nothing is really pinned or bound. */
#include "topology.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef TARN_HAVE_HWLOC
#include <hwloc.h>

struct tarn_topology {
    hwloc_topology_t machine;
};

struct tarn_topology *tarn_topology_create(void)
{
    struct tarn_topology *topology = calloc(1, sizeof *topology);
    if (!topology) return NULL;
    if (hwloc_topology_init(&topology->machine) != 0) {
        free(topology);
        return NULL;
    }
    hwloc_topology_set_all_types_filter(topology->machine, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_type_filter(topology->machine, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
    if (hwloc_topology_load(topology->machine) != 0) {
        tarn_topology_destroy(topology);
        return NULL;
    }
    /* Keep what this process is bound to, so that `taskset` is respected. */
    hwloc_bitmap_t bound = hwloc_bitmap_alloc();
    if (bound && hwloc_get_cpubind(topology->machine, bound, HWLOC_CPUBIND_PROCESS) == 0 &&
        !hwloc_bitmap_iszero(bound))
        hwloc_topology_restrict(topology->machine, bound, 0);
    hwloc_bitmap_free(bound);
    return topology;
}

void tarn_topology_destroy(struct tarn_topology *topology)
{
    if (!topology) return;
    hwloc_topology_destroy(topology->machine);
    free(topology);
}

/* Machines whose cores are not reported have hardware threads only. */
static hwloc_obj_type_t core_type(const struct tarn_topology *topology)
{
    int cores = hwloc_get_nbobjs_by_type(topology->machine, HWLOC_OBJ_CORE);
    return cores > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
}

uint32_t tarn_topology_cores(const struct tarn_topology *topology)
{
    int cores = hwloc_get_nbobjs_by_type(topology->machine, core_type(topology));
    return cores > 0 ? (uint32_t)cores : 1;
}

/* The NUMA nodes that the first `workers` cores belong to. */
static bool find_nodes(const struct tarn_topology *topology, uint32_t workers, hwloc_bitmap_t nodes)
{
    hwloc_bitmap_zero(nodes);
    for (uint32_t i = 0; i < workers; i++) {
        hwloc_obj_t core = hwloc_get_obj_by_type(topology->machine, core_type(topology), i);
        if (core) hwloc_bitmap_or(nodes, nodes, core->nodeset);
    }
    return !hwloc_bitmap_iszero(nodes);
}

bool tarn_topology_pin(const struct tarn_topology *topology, pthread_t thread, uint32_t worker,
                       uint32_t workers)
{
    uint32_t cores = tarn_topology_cores(topology);
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    if (!set) return false;
    if (workers >= cores) {
        hwloc_obj_t core =
            hwloc_get_obj_by_type(topology->machine, core_type(topology), worker % cores);
        hwloc_bitmap_copy(set, core->cpuset);
    } else if (find_nodes(topology, workers, set)) {
        hwloc_bitmap_t nodes = hwloc_bitmap_dup(set);
        if (nodes)
            hwloc_cpuset_from_nodeset(topology->machine, set, nodes);
        else
            hwloc_bitmap_zero(set);
        hwloc_bitmap_free(nodes);
    }
    bool pinned = !hwloc_bitmap_iszero(set) &&
                  hwloc_set_thread_cpubind(topology->machine, thread, set, 0) == 0;
    hwloc_bitmap_free(set);
    return pinned;
}

void tarn_topology_bind_memory(const struct tarn_topology *topology, void *memory, uint64_t size,
                               uint32_t workers)
{
    if (hwloc_get_nbobjs_by_type(topology->machine, HWLOC_OBJ_NUMANODE) < 2) return;
    hwloc_bitmap_t nodes = hwloc_bitmap_alloc();
    if (nodes && find_nodes(topology, workers, nodes))
        hwloc_set_area_membind(topology->machine, memory, (size_t)size, nodes, HWLOC_MEMBIND_BIND,
                               HWLOC_MEMBIND_BYNODESET);
    hwloc_bitmap_free(nodes);
}

static bool bind_near(hwloc_topology_t machine, const char *bus_id, void *memory, uint64_t size)
{
    hwloc_topology_set_io_types_filter(machine, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    if (hwloc_topology_load(machine) != 0) return false;
    hwloc_obj_t device = hwloc_get_pcidev_by_busidstring(machine, bus_id);
    hwloc_obj_t near = device ? hwloc_get_non_io_ancestor_obj(machine, device) : NULL;
    return near && hwloc_set_area_membind(machine, memory, (size_t)size, near->nodeset,
                                          HWLOC_MEMBIND_BIND, HWLOC_MEMBIND_BYNODESET) == 0;
}

bool tarn_topology_bind_near_pci(const char *bus_id, void *memory, uint64_t size)
{
    hwloc_topology_t machine;
    if (hwloc_topology_init(&machine) != 0) return false;
    bool bound = bind_near(machine, bus_id, memory, size);
    hwloc_topology_destroy(machine);
    return bound;
}

#else

struct tarn_topology {
    cpu_set_t allowed;
};

struct tarn_topology *tarn_topology_create(void)
{
    struct tarn_topology *topology = calloc(1, sizeof *topology);
    if (topology) sched_getaffinity(0, sizeof topology->allowed, &topology->allowed);
    return topology;
}

void tarn_topology_destroy(struct tarn_topology *topology) { free(topology); }

uint32_t tarn_topology_cores(const struct tarn_topology *topology)
{
    int cores = CPU_COUNT(&topology->allowed);
    return cores > 0 ? (uint32_t)cores : 1;
}

bool tarn_topology_pin(const struct tarn_topology *topology, pthread_t thread, uint32_t worker,
                       uint32_t workers)
{
    uint32_t cores = tarn_topology_cores(topology), left = worker % cores;
    if (workers < cores) return true;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &topology->allowed) || left-- > 0) continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        return pthread_setaffinity_np(thread, sizeof one, &one) == 0;
    }
    return false;
}

void tarn_topology_bind_memory(const struct tarn_topology *topology, void *memory, uint64_t size,
                               uint32_t workers)
{
    (void)topology, (void)memory, (void)size, (void)workers;
}

bool tarn_topology_bind_near_pci(const char *bus_id, void *memory, uint64_t size)
{
    (void)bus_id, (void)memory, (void)size;
    return false;
}

#endif

/* ---- What the system grants ---- */

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

uint32_t tarn_cpu_quota(void)
{
    uint64_t quota = read_number("/sys/fs/cgroup/cpu.max", "%llu");
    uint64_t period = read_number("/sys/fs/cgroup/cpu.max", "%*u %llu");
    if (quota == UINT64_MAX || period == UINT64_MAX || quota == 0 || period == 0) return UINT32_MAX;
    uint64_t cpus = (quota - 1) / period + 1;
    return cpus < UINT32_MAX ? (uint32_t)cpus : UINT32_MAX;
}

uint64_t tarn_memory_available(void)
{
    uint64_t available = read_number("/proc/meminfo", "MemAvailable: %llu kB");
    if (available != UINT64_MAX) available *= 1024;
    uint64_t limit = read_number("/sys/fs/cgroup/memory.max", "%llu");
    uint64_t used = read_number("/sys/fs/cgroup/memory.current", "%llu");
    if (limit == UINT64_MAX || used == UINT64_MAX) return available;
    uint64_t cache = read_number("/sys/fs/cgroup/memory.stat", "inactive_file %llu");
    if (cache <= used) used -= cache; /* copies of files, which the system gives up when asked */
    uint64_t left = used < limit ? limit - used : 0;
    return left < available ? left : available;
}
