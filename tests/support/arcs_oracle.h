/* The order that a graph asks for between two ops, whatever the order of its list and streams:
 * data, control and hazards. */
#ifndef TARN_TESTS_SUPPORT_ARCS_ORACLE_H
#define TARN_TESTS_SUPPORT_ARCS_ORACLE_H

#include "streams/graph/graph.h"

/* Does op u come before op v by an arc? pre: u comes before v in the list. */
bool must_come_before(const struct tarn_graph *graph, uint32_t u, uint32_t v);

#endif
