/* Clusters, and the placement problem that they make up. Only clusters.c uses it. */
#ifndef TARN_PLANNER_PLACE_WINDOWS_CLUSTER_PROBLEM_H
#define TARN_PLANNER_PLACE_WINDOWS_CLUSTER_PROBLEM_H

#include "field.h"
#include "planner/place/problem/problem.h"

/* A stream, or a line of streams, that produces some of the crossing storages. */
struct tarn_source {
    uint32_t stream;     /* of the whole graph, or line */
    uint32_t begin, end; /* its storages, as places in tarn_clusters.storages */
};

/* Blocks order[begin]..order[end - 1], stacked. */
struct tarn_cluster {
    uint32_t begin, end;
    int32_t size, alignment, floor; /* in units */
};

/* Streams with the same line are treated as one stream, whose storages are in the global order;
 * without lines, every stream is a line. Storage i precedes the storages of line k at place end[k *
 * count + i] and later. */
struct tarn_lines {
    uint32_t *of;       /* stream -> line; NULL: there are no lines */
    uint32_t *place_of; /* place in the order of slots -> place in the order of lines */
    uint32_t *end;
};

/* The storages that cross cuts, as clusters. A storage is known by its place in `storages`. */
struct tarn_clusters {
    const struct tarn_field *field;
    const struct tarn_windows_settings *settings;
    const uint32_t *storages; /* place -> storage of the whole graph; in the order of slots, or by
                                 line and then in the global order */
    uint32_t count;
    struct tarn_slot_set listed;
    struct tarn_lines lines;
    struct tarn_source *sources;
    uint32_t sources_count;
    uint32_t *period;  /* place -> the period in which the storage is produced, see periods.c */
    uint32_t shift;    /* 1 << shift periods count as one */
    uint64_t *release; /* place -> hash of the periods in which sources release the storage */
    uint32_t *order;   /* blocks cluster by cluster, as places of their first members */
    uint32_t blocks_count;
    struct tarn_cluster *list;
    uint32_t list_count;
};

static inline struct tarn_block tarn_clusters_block(const struct tarn_clusters *clusters,
                                                    uint32_t i)
{
    const struct tarn_field *field = clusters->field;
    return tarn_block_at(&field->problem->blocks, field->block_of[clusters->storages[i]]);
}

/* The place of a storage of the whole graph. */
static inline uint32_t tarn_clusters_place_of(const struct tarn_clusters *clusters, uint32_t a)
{
    const uint32_t *slot_of = clusters->field->problem->conflicts.slot_of;
    uint32_t place = tarn_slot_set_below(&clusters->listed, slot_of[a]);
    return clusters->lines.of ? clusters->lines.place_of[place] : place;
}

/* The stream, or the line, that produces a storage. */
static inline uint32_t tarn_clusters_stream(const struct tarn_clusters *clusters, uint32_t i)
{
    uint32_t s = clusters->field->problem->conflicts.reuse.stream[clusters->storages[i]];
    return clusters->lines.of ? clusters->lines.of[s] : s;
}

/* Finds lines and sorts storages by them; does nothing if lines are many. False: no memory. */
bool tarn_lines_find(struct tarn_clusters *clusters, struct tarn_region *region);

/* The first storage of a source that storage i precedes; the source's end if there is none. */
uint32_t tarn_clusters_release(const struct tarn_clusters *clusters,
                               const struct tarn_source *source, uint32_t i);

/* Whether every block is in one cluster, and every cluster has a size and an alignment. For
 * assertions; cost: linear in clusters. */
bool tarn_clusters_are_valid(const struct tarn_clusters *clusters);

/* One storage for each cluster, for a group one for each member. Sizes are in units. */
struct tarn_cluster_problem {
    struct tarn_problem problem; /* block n is cluster n; storages of the problem that have one of
                                    the antichain belong to it */
    uint32_t *mate;              /* place -> storage of the problem that the storage belongs to */
};

/* Lives in the region, and reads the clusters as long. TARN_SYSTEM: no memory. */
enum tarn_status tarn_cluster_problem_init(struct tarn_cluster_problem *problem,
                                           struct tarn_region *region,
                                           const struct tarn_clusters *clusters);

#endif
