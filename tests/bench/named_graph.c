/* Reads the names. */
#include "named_graph.h"

#include <stdio.h>
#include <string.h>

#include "pipeline_graph.h"
#include "rough_graph.h"

struct tarn_graph *named_graph(const char *text)
{
    uint32_t a, b, seed;
    char name[32], end;
    if (sscanf(text, "%31[^:]:%ux%u:%u%c", name, &a, &b, &seed, &end) == 4) {
        for (int kind = 0; kind < ROUGH_KINDS; kind++)
            if (strcmp(name, rough_kind_name((enum rough_kind)kind)) == 0)
                return rough_graph(
                    &(struct rough_graph_options){(enum rough_kind)kind, a, b, seed});
    }
    if (sscanf(text, "%31[^:]:%ux%u%c", name, &a, &b, &end) == 3) {
        for (int schedule = 0; schedule < PIPELINE_SCHEDULES; schedule++)
            if (strcmp(name, pipeline_schedule_name((enum pipeline_schedule)schedule)) == 0)
                return pipeline_graph(
                    &(struct pipeline_graph_options){(enum pipeline_schedule)schedule, a, b, 2});
    }
    return NULL;
}
