/* Families of graphs: tarn plan --family, tarn verify --family. */
#ifndef TARN_CLI_FAMILY_H
#define TARN_CLI_FAMILY_H

#include "command/command.h"

struct tarn_family_request {
    const char *list;   /* a file with the path of a graph in each line; "-": standard input */
    const char *folder; /* a plan is HASH.plan.json in it */
    const struct tarn_load_options *load;
    const struct tarn_plan_options *planning;  /* to plan */
    const struct tarn_verify_options *allowed; /* to verify */
    bool of_ranks; /* each graph is of a rank with an arena of its own */
    bool json;
};

/* Plans all graphs together, saves the plans, and prints a line for each. */
enum tarn_status tarn_family_run(const struct tarn_family_request *request);
/* Verifies each plan, and that they lie alike. */
enum tarn_status tarn_family_judge(const struct tarn_family_request *request);

#endif
