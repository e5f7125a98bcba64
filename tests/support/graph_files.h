/* The graphs of a folder: the examples, or those that a long campaign is given (TARN_GRAPHS). */
#ifndef TARN_TESTS_SUPPORT_GRAPH_FILES_H
#define TARN_TESTS_SUPPORT_GRAPH_FILES_H

#include <stdint.h>

/* Calls `check` with the path of every .json and .json.gz there, in order of their names; fails
 * when there is none. Returns the sum of what it returned. */
uint64_t for_graph_files(const char *folder, uint64_t (*check)(const char *path));
/* The same for the folder of the environment; skips the test when none is given. */
uint64_t for_given_graph_files(uint64_t (*check)(const char *path));

#endif
