/* The host machine, as Linux tells of it under /sys: which processors share a core, which belong to
 * a NUMA node, which node a PCI device is near to. (Libraries for that allocate in hundreds of
 * places, crash where one of these fails, and keep locks that a forked child would find taken.)
 *
 * Cores are numbered node by node: workers 0..n-1 sit on as few NUMA nodes as possible, and the
 * arena is asked for on just those nodes. What the system does not tell is taken to be plain: one
 * node, a core for each processor. Cost: a file for each core and node, some 10 µs each, once per
 * session; one allocation. */
#include "topology.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "streams/base/bitset.h"
#include "streams/base/memory.h"

/* Processors and nodes beyond these are left alone. */
enum { CPUS_MAX = 4096, NODES_MAX = 1024, WORDS = CPUS_MAX / 64 };

/* Of mbind, see its manual page. */
enum { PREFERRED = 1, PREFERRED_MANY = 5 };

/* Numbers of processors or nodes; the form that the system's calls take. */
struct set {
    uint64_t word[WORDS];
};

struct tarn_topology {
    struct set cpus;                               /* that this thread may run on */
    uint16_t core_of[CPUS_MAX], node_of[CPUS_MAX]; /* by processor */
    uint32_t cores_count;
    bool elsewhere; /* not this machine: nothing is really pinned or bound */
};

/* ---- Files ---- */

/* The text of a small file, "" where there is none. */
static void read_text(const char *path, char *text, size_t size)
{
    ssize_t length = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        length = read(file, text, size - 1);
        close(file);
    }
    text[length > 0 ? length : 0] = '\0';
}

/* A list such as "0-3,8,10-11"; empty where the file is absent or says something else. */
static void read_set(const char *path, struct set *set)
{
    char text[CPUS_MAX];
    memset(set, 0, sizeof *set);
    read_text(path, text, sizeof text);
    for (char *next = text; isdigit((unsigned char)*next);) {
        unsigned long first = strtoul(next, &next, 10), last = first;
        if (*next == '-') last = strtoul(next + 1, &next, 10);
        for (unsigned long i = first; i <= last && i < CPUS_MAX; i++)
            tarn_set_add(set->word, (uint32_t)i);
        if (*next == ',') next++;
    }
}

/* ---- The machine ---- */

static void find_nodes(struct tarn_topology *topology, const char *root)
{
    char path[256];
    struct set nodes, cpus;
    snprintf(path, sizeof path, "%s/devices/system/node/online", root);
    read_set(path, &nodes);
    for (uint32_t n = 0; n < NODES_MAX; n++) {
        if (!tarn_set_has(nodes.word, n)) continue;
        snprintf(path, sizeof path, "%s/devices/system/node/node%u/cpulist", root, n);
        read_set(path, &cpus);
        for (uint32_t i = 0; i < CPUS_MAX; i++) {
            if (tarn_set_has(cpus.word, i)) topology->node_of[i] = (uint16_t)n;
        }
    }
}

/* The core of processor `cpu`, and of those of its siblings that this thread may run on. */
static void add_core(struct tarn_topology *topology, const char *root, uint32_t cpu,
                     struct set *done)
{
    char path[256];
    struct set siblings;
    snprintf(path, sizeof path, "%s/devices/system/cpu/cpu%u/topology/thread_siblings_list", root,
             cpu);
    read_set(path, &siblings);
    tarn_set_add(siblings.word, cpu);
    for (uint32_t i = 0; i < CPUS_MAX; i++) {
        if (!tarn_set_has(siblings.word, i) || tarn_set_has(done->word, i)) continue;
        topology->core_of[i] = (uint16_t)topology->cores_count;
        tarn_set_add(done->word, i);
    }
    topology->cores_count++;
}

static void find_cores(struct tarn_topology *topology, const char *root)
{
    struct set done = {{0}};
    uint32_t nodes_count = 1;
    for (uint32_t i = 0; i < CPUS_MAX; i++) {
        if (topology->node_of[i] >= nodes_count) nodes_count = topology->node_of[i] + 1u;
    }
    for (uint32_t n = 0; n < nodes_count; n++) {
        for (uint32_t i = 0; i < CPUS_MAX; i++) {
            if (tarn_set_has(topology->cpus.word, i) && topology->node_of[i] == n &&
                !tarn_set_has(done.word, i))
                add_core(topology, root, i, &done);
        }
    }
}

struct tarn_topology *tarn_topology_create(const char *root)
{
    struct tarn_topology *topology = tarn_take_zeros(1, sizeof *topology);
    char path[256];
    if (!topology) return NULL;
    topology->elsewhere = root != NULL;
    if (root) {
        snprintf(path, sizeof path, "%s/devices/system/cpu/online", root);
        read_set(path, &topology->cpus);
    } else if (sched_getaffinity(0, sizeof topology->cpus, (cpu_set_t *)&topology->cpus) != 0) {
        memset(&topology->cpus, 0, sizeof topology->cpus);
    }
    if (tarn_set_is_empty(topology->cpus.word, WORDS)) tarn_set_add(topology->cpus.word, 0);
    find_nodes(topology, root ? root : "/sys");
    find_cores(topology, root ? root : "/sys");
    assert(topology->cores_count > 0);
    return topology;
}

void tarn_topology_destroy(struct tarn_topology *topology) { tarn_free(topology); }

uint32_t tarn_topology_cores(const struct tarn_topology *topology) { return topology->cores_count; }

/* ---- Places ---- */

/* The NUMA nodes of the first `workers` cores. */
static void nodes_of(const struct tarn_topology *topology, uint32_t workers, struct set *nodes)
{
    memset(nodes, 0, sizeof *nodes);
    for (uint32_t i = 0; i < CPUS_MAX; i++) {
        if (tarn_set_has(topology->cpus.word, i) && topology->core_of[i] < workers)
            tarn_set_add(nodes->word, topology->node_of[i]);
    }
}

/* The processors where a worker belongs. */
static void place_of(const struct tarn_topology *topology, uint32_t worker, uint32_t workers,
                     struct set *place)
{
    struct set nodes;
    bool fills = workers >= topology->cores_count;
    assert(worker < workers && topology->cores_count > 0);
    memset(place, 0, sizeof *place);
    nodes_of(topology, workers, &nodes);
    for (uint32_t i = 0; i < CPUS_MAX; i++) {
        if (!tarn_set_has(topology->cpus.word, i)) continue;
        if (fills ? topology->core_of[i] == worker % topology->cores_count
                  : tarn_set_has(nodes.word, topology->node_of[i]))
            tarn_set_add(place->word, i);
    }
}

bool tarn_topology_may_run(const struct tarn_topology *topology, uint32_t worker, uint32_t workers,
                           uint32_t cpu)
{
    struct set place;
    place_of(topology, worker, workers, &place);
    return cpu < CPUS_MAX && tarn_set_has(place.word, cpu);
}

bool tarn_topology_pin(const struct tarn_topology *topology, pthread_t thread, uint32_t worker,
                       uint32_t workers)
{
    struct set place;
    place_of(topology, worker, workers, &place);
    if (topology->elsewhere) return true;
    return pthread_setaffinity_np(thread, sizeof place, (const cpu_set_t *)&place) == 0;
}

/* Pages that are not there yet come from these nodes while they have any. Systems before Linux 5.15
 * take one node only. */
static bool prefer_nodes(void *memory, uint64_t size, const struct set *nodes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = (uintptr_t)memory & ~(page - 1);
    size_t length = (size_t)((uintptr_t)memory + size - begin);
    if (syscall(SYS_mbind, begin, length, PREFERRED_MANY, nodes->word, NODES_MAX + 1, 0) == 0)
        return true;
    return errno == EINVAL &&
           syscall(SYS_mbind, begin, length, PREFERRED, nodes->word, NODES_MAX + 1, 0) == 0;
}

void tarn_topology_bind_memory(const struct tarn_topology *topology, void *memory, uint64_t size,
                               uint32_t workers)
{
    struct set some, every;
    nodes_of(topology, workers, &some);
    nodes_of(topology, topology->cores_count, &every);
    if (topology->elsewhere || memcmp(&some, &every, sizeof some) == 0) return;
    prefer_nodes(memory, size, &some);
}

int tarn_topology_node_of_pci(const char *root, const char *bus_id)
{
    char path[256], text[32], name[32];
    size_t length = strlen(bus_id);
    if (length == 0 || length >= sizeof name || strchr(bus_id, '/')) return -1;
    for (size_t i = 0; i <= length; i++) name[i] = (char)tolower((unsigned char)bus_id[i]);
    snprintf(path, sizeof path, "%s/bus/pci/devices/%s/numa_node", root ? root : "/sys", name);
    read_text(path, text, sizeof text);
    return isdigit((unsigned char)text[0]) ? atoi(text) : -1;
}

bool tarn_topology_bind_near_pci(const char *bus_id, void *memory, uint64_t size)
{
    struct set nodes = {{0}};
    int node = tarn_topology_node_of_pci(NULL, bus_id);
    if (node < 0 || node >= NODES_MAX) return false;
    tarn_set_add(nodes.word, (uint32_t)node);
    return prefer_nodes(memory, size, &nodes);
}

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
