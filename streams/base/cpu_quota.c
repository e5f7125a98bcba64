/* Limits of control groups. A group has a file cpu.max with "QUOTA PERIOD" (microseconds of
 * processor time in each period) or "max PERIOD"; all groups inside a group share its quota, so the
 * minimum along the path counts. Inside a container the tree's root is the container's own group,
 * which has the file, while a machine's root has none. */
#include "cpu_quota.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 4096 };

/* Writes the path of the process's group ("/a/b") to `path`; "" if it cannot be read. */
static void read_group(const char *membership, char path[PATH_BYTES])
{
    char line[PATH_BYTES];
    FILE *file = fopen(membership, "re");
    path[0] = '\0';
    if (!file) return;
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, "0::/", 4) != 0) continue;
        line[strcspn(line, "\n")] = '\0';
        memcpy(path, line + 3, strlen(line + 3) + 1);
    }
    fclose(file);
}

static uint32_t read_limit(const char *tree, const char *group)
{
    char path[2 * PATH_BYTES];
    unsigned long long quota = 0, period = 0;
    snprintf(path, sizeof path, "%s%s/cpu.max", tree, group);
    FILE *file = fopen(path, "re");
    if (!file) return UINT32_MAX;
    bool is_limited = fscanf(file, "%llu %llu", &quota, &period) == 2 && quota > 0 && period > 0;
    fclose(file);
    if (!is_limited) return UINT32_MAX;
    uint64_t processors = (quota - 1) / period + 1;
    return processors < UINT32_MAX ? (uint32_t)processors : UINT32_MAX;
}

uint32_t tarn_cpu_quota_of(const char *membership, const char *tree)
{
    char group[PATH_BYTES];
    read_group(membership, group);
    uint32_t least = UINT32_MAX;
    for (char *end = group; end;) {
        uint32_t limit = read_limit(tree, group);
        if (limit < least) least = limit;
        end = strrchr(group, '/');
        if (end) *end = '\0';
    }
    return least;
}

uint32_t tarn_cpu_quota(void) { return tarn_cpu_quota_of("/proc/self/cgroup", "/sys/fs/cgroup"); }
