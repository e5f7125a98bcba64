/* Reads the host machine's topology once per process, and keeps it. A lock makes the first caller
 * read. A fork waits for that lock, so a child inherits a topology that is read completely or not
 * at all. */
#include "machine.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "streams/base/bitset.h"
#include "streams/base/log.h"
#include "streams/base/thread.h"

static struct tarn_machine here;
static atomic_bool is_read;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void lock_machine(void) { pthread_mutex_lock(&lock); }
static void unlock_machine(void) { pthread_mutex_unlock(&lock); }

__attribute__((constructor)) static void prepare_for_forks(void)
{
    pthread_atfork(lock_machine, unlock_machine, unlock_machine);
}

void tarn_machine_read_plain(struct tarn_machine *machine)
{
    memset(machine, 0, sizeof *machine);
    if (sched_getaffinity(0, sizeof machine->cpus, (cpu_set_t *)&machine->cpus) != 0)
        memset(&machine->cpus, 0, sizeof machine->cpus);
    if (tarn_set_is_empty(machine->cpus.word, TARN_CPUS_MAX / 64))
        tarn_set_add(machine->cpus.word, 0);
    for (uint32_t i = 0; i < TARN_CPUS_MAX; i++) {
        if (tarn_set_has(machine->cpus.word, i))
            machine->core_of[i] = (uint16_t)machine->cores_count++;
    }
    machine->caches_count = machine->kinds_count = 1;
    assert(machine->cores_count > 0);
}

#ifndef TARN_HAVE_HWLOC
bool tarn_machine_read(struct tarn_machine *machine, enum tarn_machine_form form, const char *text)
{
    (void)machine, (void)form, (void)text;
    return false;
}
#endif

/* Under the lock. */
static void read_here(void)
{
    if (!tarn_is_forked() && tarn_machine_read(&here, TARN_MACHINE_HERE, NULL)) {
        tarn_log(TARN_LOG_INFO, "machine: %u processors, %u cores, %u caches, %u PCI devices%s",
                 tarn_set_size(here.cpus.word, TARN_CPUS_MAX / 64), here.cores_count,
                 here.caches_count, here.pci_count,
                 here.is_elsewhere ? ", another machine than this one: nothing is bound" : "");
        return;
    }
    tarn_machine_read_plain(&here);
    tarn_log(TARN_LOG_WARNING, "workers and memory are not bound: %s",
             tarn_is_forked()
                 ? "the process was forked before the machine was read (tarn_host_cores)"
                 : "the machine is not known, as hwloc has failed or is not in this build");
}

const struct tarn_machine *tarn_machine(void)
{
    if (atomic_load_explicit(&is_read, memory_order_acquire)) return &here;
    pthread_mutex_lock(&lock);
    if (!atomic_load_explicit(&is_read, memory_order_relaxed)) {
        read_here();
        atomic_store_explicit(&is_read, true, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return &here;
}
