/* The host machine's topology, read once: processors, cores, caches, NUMA nodes, PCI devices. Plain
 * data; nothing in it refers to hwloc. */
#ifndef TARN_RUNTIME_STATE_MACHINE_H
#define TARN_RUNTIME_STATE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

/* Processors, nodes and PCI devices beyond these are ignored. */
enum {
    TARN_CPUS_MAX = 4096,
    TARN_NODES_MAX = 1024,
    TARN_NO_NODE = TARN_NODES_MAX - 1, /* the node of a processor that has none */
    TARN_PCI_MAX = 256
};

/* A set of processors, as Linux's system calls take it. */
struct tarn_cpu_set {
    uint64_t word[TARN_CPUS_MAX / 64];
};
struct tarn_node_set {
    uint64_t word[TARN_NODES_MAX / 64];
};

struct tarn_pci_device {
    uint32_t domain, bus, device, function;
    struct tarn_node_set nodes; /* the nearest ones; empty: no node is nearer than another */
};

struct tarn_machine {
    struct tarn_cpu_set cpus; /* processors that the process may use, by the system's numbers */
    /* By processor. Cores are numbered node by node; in a node the fastest kind comes first, and
     * cores that share caches are neighbours. The node is the lowest local one (other local nodes
     * are slower, or smaller, memory). The cache is the outermost one. */
    uint16_t core_of[TARN_CPUS_MAX], node_of[TARN_CPUS_MAX], cache_of[TARN_CPUS_MAX];
    uint32_t cores_count, caches_count, kinds_count;
    struct tarn_pci_device pci[TARN_PCI_MAX];
    uint32_t pci_count;
    bool is_known;     /* hwloc has read it; otherwise nothing is bound */
    bool is_elsewhere; /* the topology is another machine's (HWLOC_XMLFILE, tests): nothing is
                        * bound */
};

/* This machine. The first call reads it, which takes some milliseconds; later calls return the
 * result. A forked child never calls hwloc, whose locks another thread of the parent may have held:
 * if the machine was not read before the fork, the child knows only its affinity mask. Any
 * thread. */
const struct tarn_machine *tarn_machine(void);

enum tarn_machine_form {
    TARN_MACHINE_HERE,     /* the machine that the process runs on */
    TARN_MACHINE_XML,      /* the text of an XML file of hwloc */
    TARN_MACHINE_SYNTHETIC /* a synthetic description of hwloc, such as "numa:2 core:4 pu:2" */
};

/* Fills *machine. `text` is used by the last two forms. False: hwloc refuses, knows no processor,
 * or is missing from this build; *machine is then undefined. */
bool tarn_machine_read(struct tarn_machine *machine, enum tarn_machine_form form, const char *text);

/* Fills *machine with the processors that the calling thread may use, each a core, on one node.
 * Nothing is bound on such a machine. */
void tarn_machine_read_plain(struct tarn_machine *machine);

#endif
