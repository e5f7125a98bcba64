/* The door to the methods of papers, which are kept to compare with and run only when they are
 * asked for by name. A build with -Dpapers=false has none of them: papers.c is the door where they
 * are, none.c where they are not. The third function of the door is public: tarn_graph_pairs. */
#ifndef TARN_PLANNER_PAPERS_PAPERS_H
#define TARN_PLANNER_PAPERS_PAPERS_H

#include "planner/place/place.h"

/* The i-th layout of a paper, or NULL past the last. */
const struct tarn_layout *tarn_papers_layout(size_t i);

/* Whether `name` is a layout of a paper that this build was made without. */
bool tarn_papers_lack(const char *name);

#endif
