/* Graphs are the files of a folder whose names match one pattern, sorted by name. */
#include "graph_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

uint64_t for_graph_files(const char *folder, uint64_t (*check)(const char *path))
{
    char pattern[4096];
    glob_t found;
    uint64_t sum = 0;
    snprintf(pattern, sizeof pattern, "%s/*.json*", folder);
    if (glob(pattern, 0, NULL, &found)) fail_msg("no graphs in %s", folder);
    for (size_t i = 0; i < found.gl_pathc; i++) sum += check(found.gl_pathv[i]);
    print_message("# %zu graphs of %s: %llu\n", found.gl_pathc, folder, (unsigned long long)sum);
    globfree(&found);
    return sum;
}

uint64_t for_given_graph_files(uint64_t (*check)(const char *path))
{
    const char *folder = getenv("TARN_GRAPHS");
    if (!folder) skip();
    return for_graph_files(folder, check);
}
