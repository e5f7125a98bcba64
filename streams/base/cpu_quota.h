/* The processor time that the system grants this process, if it has a limit. */
#ifndef TARN_STREAMS_BASE_CPU_QUOTA_H
#define TARN_STREAMS_BASE_CPU_QUOTA_H

#include <stdint.h>

/* Processors, rounded up, that the limits of the process's control groups (cgroup v2, `cpu.max`, of
 * its own group and of those around it) are worth; UINT32_MAX: no limit. Reads a few files. */
uint32_t tarn_cpu_quota(void);

/* The same, where the groups of the process stand in the file `membership` (/proc/self/cgroup) and
 * the tree of groups in the folder `tree` (/sys/fs/cgroup). */
uint32_t tarn_cpu_quota_of(const char *membership, const char *tree);

#endif
