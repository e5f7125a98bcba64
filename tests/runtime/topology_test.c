/* Where workers and memory belong, on machines that hwloc describes: XML files written after real
 * machines, and synthetic ones. Nothing is bound here (bound_test.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "runtime/state/topology.h"
#include "streams/base/bitset.h"
#include "streams/base/cpu_quota.h"

#define MACHINES TARN_SOURCE_DIR "/tests/data/machines/"

static struct tarn_machine machine;
static struct tarn_topology *topology;

static void show(enum tarn_machine_form form, const char *text)
{
#ifndef TARN_HAVE_HWLOC
    skip();
#endif
    assert_true(tarn_machine_read(&machine, form, text));
    assert_true(machine.is_known && machine.is_elsewhere);
    topology = tarn_topology_create(&machine);
    assert_non_null(topology);
}

static void show_file(const char *path)
{
    static char text[1 << 16];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    show(TARN_MACHINE_XML, text);
}

/* Processors of the first 64 on which a worker may run, as bits. */
static uint64_t place(enum tarn_worker_binding binding, uint32_t worker, uint32_t workers)
{
    uint64_t bits = 0;
    for (uint32_t cpu = 0; cpu < 64; cpu++) {
        if (tarn_topology_may_run(topology, binding, worker, workers, cpu))
            bits |= UINT64_C(1) << cpu;
    }
    return bits;
}

/* The nodes near a PCI device, as bits; 0: not known. */
static uint64_t near(const char *bus_id)
{
    const struct tarn_node_set *nodes = tarn_topology_nodes_of_pci(&machine, bus_id);
    return nodes ? nodes->word[0] : 0;
}

static int destroy(void **state)
{
    (void)state;
    tarn_topology_destroy(topology);
    topology = NULL;
    return 0;
}

/* ---- Real machines ---- */

/* Processors 0-3 and 8-11 are the first socket's; i and i + 8 are one core. */
static void two_sockets_fill_one_after_the_other(void **state)
{
    (void)state;
    show_file(MACHINES "two_sockets_eight_gpus.xml");
    assert_int_equal(tarn_topology_cores(topology), 8);
    assert_int_equal(machine.caches_count, 2);
    for (uint32_t workers = 1; workers < 8; workers++)
        assert_int_equal(place(TARN_BIND_AUTO, workers - 1, workers),
                         workers <= 4 ? 0x0f0f : 0xffff);
    for (uint32_t i = 0; i < 20; i++) {
        uint32_t core = i % 8;
        assert_int_equal(place(TARN_BIND_AUTO, i, 20), UINT64_C(0x101) << core);
        assert_int_equal(place(TARN_BIND_CORE, i, 20), UINT64_C(0x101) << core);
        assert_int_equal(place(TARN_BIND_NODE, i, 20), core < 4 ? 0x0f0f : 0xf0f0);
        assert_int_equal(place(TARN_BIND_CACHE, i, 20), core < 4 ? 0x0f0f : 0xf0f0);
        assert_int_equal(place(TARN_BIND_NONE, i, 20), 0xffff);
    }
    assert_int_equal(place(TARN_BIND_CORE, 1, 2), 0x0202); /* also where others are free */
}

static void gpus_are_near_their_socket(void **state)
{
    (void)state;
    static const char *const first[] = {"0000:19:00.0", "0000:3b:00.0", "0000:4C:00.0",
                                        "00000000:5d:00.0"};
    static const char *const second[] = {"0000:9b:00.0", "0000:BB:00.0", "0000:cb:00.0",
                                         "0000:db:00.0"};
    static const char *const unknown[] = {
        "0000:ff:00.0" /* on no socket */,
        "0000:20:00.0",
        "0000:19:00.1",
        "0001:19:00.0",
        "0000:19:00.0/..",
        "../../devices",
        "0000:19:00",
        "",
        "0000:119:00.0",
        "0000:19:00.0 ",
    };
    show_file(MACHINES "two_sockets_eight_gpus.xml");
    for (int i = 0; i < 4; i++) {
        assert_int_equal(near(first[i]), 1);
        assert_int_equal(near(second[i]), 2);
    }
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        assert_int_equal(near(unknown[i]), 0);
}

/* Cores 0-3 are slow; processors 4 and 5, and 6 and 7, are one fast core each. */
static void fast_cores_come_first(void **state)
{
    (void)state;
    show_file(MACHINES "fast_and_slow_cores.xml");
    assert_int_equal(machine.kinds_count, 2);
    assert_int_equal(tarn_topology_cores(topology), 6);
    static const uint64_t cores[] = {0x30, 0xc0, 1, 2, 4, 8};
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(place(TARN_BIND_CORE, i, 6), cores[i]);
        assert_int_equal(place(TARN_BIND_AUTO, i, 6), cores[i]);
        assert_int_equal(place(TARN_BIND_AUTO, i % 5, 5), 0xff); /* one node */
    }
    assert_int_equal(near("0000:01:00.0"), 0); /* there is no node to choose */
}

/* Of 16 processors in 8 cores, 6 to 10 are allowed: two cores and half a core. */
static void a_container_has_what_its_cpuset_allows(void **state)
{
    (void)state;
    show_file(MACHINES "container_of_five_processors.xml");
    assert_int_equal(tarn_topology_cores(topology), 3);
    static const uint64_t cores[] = {0x0c0, 0x300, 0x400};
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(place(TARN_BIND_CORE, i, 3), cores[i]);
        assert_int_equal(place(TARN_BIND_CACHE, i, 3), i == 0 ? 0x0c0 : 0x700);
        assert_int_equal(place(TARN_BIND_NODE, i, 3), 0x7c0);
    }
    assert_int_equal(place(TARN_BIND_AUTO, 1, 2), 0x7c0);
}

/* ---- Synthetic machines ---- */

/* Each core is in one place, and the cores of a node, and of a cache, follow each other. */
static void assert_in_order(const char *text, uint32_t cores, uint32_t caches, uint32_t cpus)
{
    show(TARN_MACHINE_SYNTHETIC, text);
    assert_int_equal(tarn_topology_cores(topology), cores);
    assert_int_equal(machine.caches_count, caches);
    assert_int_equal(tarn_set_size(machine.cpus.word, TARN_CPUS_MAX / 64), cpus);
    for (uint32_t i = 0; i < TARN_CPUS_MAX; i++) {
        if (!tarn_set_has(machine.cpus.word, i)) continue;
        uint32_t core = machine.core_of[i];
        assert_true(core < cores);
        assert_int_equal(machine.cache_of[i], core * caches / cores);
        assert_true(tarn_topology_may_run(topology, TARN_BIND_CORE, core, cores, i));
        assert_false(cores > 1 &&
                     tarn_topology_may_run(topology, TARN_BIND_CORE, (core + 1) % cores, cores, i));
    }
    destroy(NULL);
}

static void synthetic_machines_are_numbered_without_gaps(void **state)
{
    (void)state;
    assert_in_order("numa:2 core:8 pu:2", 16, 2 * 8, 32); /* each core is its own cache's */
    assert_in_order("pu:1", 1, 1, 1);
    assert_in_order("pack:4 numa:2 l3:2 l2:4 core:1 pu:4", 64, 16, 256);
    assert_in_order("numa:16 l3:8 core:16 pu:2", 2048, 128, 4096);
}

static void what_hwloc_cannot_read_is_refused(void **state)
{
    (void)state;
    assert_false(tarn_machine_read(&machine, TARN_MACHINE_SYNTHETIC, "core:no"));
    assert_false(tarn_machine_read(&machine, TARN_MACHINE_XML, "<topology"));
    assert_false(tarn_machine_read(&machine, TARN_MACHINE_XML, ""));
}

/* ---- A machine that is not known ---- */

static void an_unknown_machine_has_the_processors_of_the_affinity_mask(void **state)
{
    (void)state;
    tarn_machine_read_plain(&machine);
    topology = tarn_topology_create(&machine);
    uint32_t cpus = tarn_set_size(machine.cpus.word, TARN_CPUS_MAX / 64);
    assert_int_equal(tarn_topology_cores(topology), cpus);
    assert_true(tarn_topology_pin(topology, pthread_self(), TARN_BIND_CORE, 0, 1));
    assert_int_equal(near("0000:01:00.0"), 0);
    struct tarn_topology *again = tarn_topology_create(&machine); /* the mask is as before */
    assert_int_equal(tarn_topology_cores(again), cpus);
    tarn_topology_destroy(again);
}

static void the_system_grants_memory(void **state)
{
    (void)state;
    assert_true(tarn_memory_available() > 0);
    assert_true(tarn_cpu_quota() > 0);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_teardown(test, destroy)
    const struct CMUnitTest tests[] = {
        TEST(two_sockets_fill_one_after_the_other),
        TEST(gpus_are_near_their_socket),
        TEST(fast_cores_come_first),
        TEST(a_container_has_what_its_cpuset_allows),
        TEST(synthetic_machines_are_numbered_without_gaps),
        TEST(what_hwloc_cannot_read_is_refused),
        TEST(an_unknown_machine_has_the_processors_of_the_affinity_mask),
        TEST(the_system_grants_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
