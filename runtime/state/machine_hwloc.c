/* Copies a machine's topology from hwloc. This is the only file that includes hwloc's header: the
 * topology is loaded, copied and destroyed here, so no other call, thread or forked child uses
 * hwloc. Components of other libraries are not loaded: they would start OpenCL, CUDA or an X
 * client; libpciaccess leaks, and hwloc can read PCI devices from Linux itself. The binding of
 * threads is not changed.
 * Cost: 2 ms; on a machine of several NUMA nodes twice that, plus the time that its PCI devices
 * take to answer, 7 ms on one machine. */
#include <hwloc.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"
#include "streams/base/bitset.h"

/* A core before it gets its number. */
struct core {
    uint16_t node, index; /* index: in hwloc's order, depth first */
    int speed;            /* rank of its kind; higher is faster */
};

/* ---- Loading ---- */

static bool configure(hwloc_topology_t topology, enum tarn_machine_form form, const char *text,
                      bool with_pci)
{
    static const hwloc_obj_type_t kept[] = {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_DIE, HWLOC_OBJ_CORE};
    static const char *const others[] = {"cuda",   "gl",  "levelzero", "nvml",
                                         "opencl", "pci", "rsmi"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) /* fails if it is not there */
        hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
                                      others[i]);
    bool is_right = hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE) == 0;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        is_right &= !hwloc_topology_set_type_filter(topology, kept[i], HWLOC_TYPE_FILTER_KEEP_ALL);
    is_right &= !hwloc_topology_set_cache_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL);
    is_right &= !hwloc_topology_set_type_filter(topology, HWLOC_OBJ_GROUP,
                                                HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
    if (with_pci)
        is_right &= !hwloc_topology_set_type_filter(topology, HWLOC_OBJ_PCI_DEVICE,
                                                    HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    is_right &= !hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING);
    if (form == TARN_MACHINE_XML)
        is_right &= !hwloc_topology_set_xmlbuffer(topology, text, (int)strlen(text) + 1);
    if (form == TARN_MACHINE_SYNTHETIC) is_right &= !hwloc_topology_set_synthetic(topology, text);
    return is_right;
}

/* ---- Processors ---- */

static uint16_t node_near(hwloc_const_nodeset_t nodes)
{
    int node = nodes ? hwloc_bitmap_first(nodes) : -1;
    return node >= 0 && node < TARN_NO_NODE ? (uint16_t)node : TARN_NO_NODE;
}

/* Higher is faster; 0 if the machine does not say, or all cores are alike. */
static int speed_of(hwloc_topology_t topology, hwloc_obj_t core)
{
    int kind = hwloc_cpukinds_get_by_cpuset(topology, core->cpuset, 0), speed = 0;
    if (kind < 0 ||
        hwloc_cpukinds_get_info(topology, (unsigned)kind, NULL, &speed, NULL, NULL, 0) != 0)
        return 0;
    return speed > 0 ? speed : 0;
}

/* The outermost cache of a core; for a core without caches, the core. */
static hwloc_obj_t outermost_cache(hwloc_obj_t core)
{
    hwloc_obj_t cache = core;
    for (hwloc_obj_t at = core->parent; at; at = at->parent) {
        if (hwloc_obj_type_is_dcache(at->type)) cache = at;
    }
    return cache;
}

static int by_place(const void *first, const void *second)
{
    const struct core *a = first, *b = second;
    if (a->node != b->node) return a->node < b->node ? -1 : 1;
    if (a->speed != b->speed) return a->speed > b->speed ? -1 : 1;
    return a->index < b->index ? -1 : 1;
}

static void number_cores(struct tarn_machine *machine, struct core *cores)
{
    uint16_t number_of[TARN_CPUS_MAX];
    qsort(cores, machine->cores_count, sizeof *cores, by_place);
    for (uint32_t i = 0; i < machine->cores_count; i++) number_of[cores[i].index] = (uint16_t)i;
    for (uint32_t i = 0; i < TARN_CPUS_MAX; i++) {
        if (tarn_set_has(machine->cpus.word, i))
            machine->core_of[i] = number_of[machine->core_of[i]];
    }
}

/* Processors come in hwloc's order: processors of one core, and of one cache, are consecutive. */
static void copy_cpus(hwloc_topology_t topology, struct tarn_machine *machine)
{
    struct core cores[TARN_CPUS_MAX];
    hwloc_obj_t cpu = NULL, last_core = NULL, last_cache = NULL;
    while ((cpu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, cpu))) {
        unsigned i = cpu->os_index;
        hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, cpu);
        if (i >= TARN_CPUS_MAX) continue;
        if (!core) core = cpu;
        hwloc_obj_t cache = outermost_cache(core);
        if (core != last_core) {
            cores[machine->cores_count] = (struct core){.node = node_near(core->nodeset),
                                                        .index = (uint16_t)machine->cores_count,
                                                        .speed = speed_of(topology, core)};
            machine->cores_count++;
        }
        if (cache != last_cache) machine->caches_count++;
        tarn_set_add(machine->cpus.word, i);
        machine->core_of[i] = (uint16_t)(machine->cores_count - 1);
        machine->cache_of[i] = (uint16_t)(machine->caches_count - 1);
        machine->node_of[i] = node_near(cpu->nodeset);
        last_core = core;
        last_cache = cache;
    }
    number_cores(machine, cores);
}

/* ---- PCI devices ---- */

/* Nodes without a near processor, such as GPU memory, are skipped: staging memory does not belong
 * there. */
static void copy_nodes(struct tarn_pci_device *device, hwloc_const_nodeset_t nodes,
                       const struct tarn_node_set *near_cpus)
{
    for (uint32_t n = 0; nodes && n < TARN_NO_NODE; n++) {
        if (tarn_set_has(near_cpus->word, n) && hwloc_bitmap_isset(nodes, n))
            tarn_set_add(device->nodes.word, n);
    }
    if (memcmp(&device->nodes, near_cpus, sizeof *near_cpus) == 0 &&
        tarn_set_size(near_cpus->word, TARN_NODES_MAX / 64) > 1)
        memset(&device->nodes, 0, sizeof device->nodes);
}

static void copy_pci(hwloc_topology_t topology, struct tarn_machine *machine)
{
    struct tarn_node_set near_cpus = {{0}};
    hwloc_obj_t device = NULL;
    for (uint32_t i = 0; i < TARN_CPUS_MAX; i++) {
        if (tarn_set_has(machine->cpus.word, i) && machine->node_of[i] != TARN_NO_NODE)
            tarn_set_add(near_cpus.word, machine->node_of[i]);
    }
    while ((device = hwloc_get_next_pcidev(topology, device)) &&
           machine->pci_count < TARN_PCI_MAX) {
        const struct hwloc_pcidev_attr_s *pci = &device->attr->pcidev;
        struct tarn_pci_device *copy = &machine->pci[machine->pci_count++];
        hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(topology, device);
        *copy = (struct tarn_pci_device){
            .domain = pci->domain, .bus = pci->bus, .device = pci->dev, .function = pci->func};
        copy_nodes(copy, near ? near->nodeset : NULL, &near_cpus);
    }
}

/* NULL: hwloc refuses. */
static hwloc_topology_t load(enum tarn_machine_form form, const char *text, bool with_pci)
{
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0) return NULL;
    if (configure(topology, form, text, with_pci) && hwloc_topology_load(topology) == 0)
        return topology;
    hwloc_topology_destroy(topology);
    return NULL;
}

/* With a single node, distances of devices do not matter, and the devices are not read. */
bool tarn_machine_read(struct tarn_machine *machine, enum tarn_machine_form form, const char *text)
{
    assert(machine && (form == TARN_MACHINE_HERE || text));
    memset(machine, 0, sizeof *machine);
    hwloc_topology_t topology = load(form, text, false);
    if (topology && hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE) > 1) {
        hwloc_topology_destroy(topology);
        topology = load(form, text, true);
    }
    if (!topology) return false;
    int kinds = hwloc_cpukinds_get_nr(topology, 0);
    copy_cpus(topology, machine);
    copy_pci(topology, machine);
    machine->kinds_count = kinds > 1 ? (uint32_t)kinds : 1;
    machine->is_known = machine->cores_count > 0;
    machine->is_elsewhere = !hwloc_topology_is_thissystem(topology);
    hwloc_topology_destroy(topology);
    return machine->is_known;
}
