/* The processor time that the system grants this process, if it has a limit. */
#ifndef TARN_STREAMS_BASE_CPU_QUOTA_H
#define TARN_STREAMS_BASE_CPU_QUOTA_H

#include <stdint.h>

/* The number of processors, rounded up, that the limits of the process's control groups allow
 * (cgroup v2, `cpu.max`, of its own group and the enclosing groups); UINT32_MAX: no limit. Reads a
 * few files. */
uint32_t tarn_cpu_quota(void);

/* tarn_cpu_quota with the process's groups in the file `membership` (/proc/self/cgroup) and the
 * tree of groups in the folder `tree` (/sys/fs/cgroup). */
uint32_t tarn_cpu_quota_of(const char *membership, const char *tree);

#endif
