/* The builder's internal state, for the files that add records: the records so far. */
#ifndef TARN_STREAMS_GRAPH_BUILDER_STATE_H
#define TARN_STREAMS_GRAPH_BUILDER_STATE_H

#include "builder.h"

struct tarn_builder {
    struct tarn_error error;   /* the first one */
    struct tarn_report report; /* of that error */
    struct tarn_graph *graph;
    struct tarn_group *groups;     /* as given; their lists live in the region */
    struct tarn_control_arc *arcs; /* from tarn_builder_control */
    uint32_t ops_capacity, tensors_capacity, streams_capacity, groups_capacity;
    uint32_t arcs_count, arcs_capacity;
    uint32_t *ids; /* scratch: inputs and outputs of one op */
    uint32_t ids_capacity;
    uint32_t references;   /* how many tensors all lists of ops have named so far: has a limit */
    const char *kinds[64]; /* copies by their hash: many ops are of few kinds */
};

/* Is there a builder, and no error so far? */
static inline bool is_usable(const struct tarn_builder *builder)
{
    return tarn_builder_graph(builder) != NULL;
}

/* The value of an enumeration as records store it; unknown values stay unknown. */
static inline uint8_t byte_of(unsigned value)
{
    return value < UINT8_MAX ? (uint8_t)value : UINT8_MAX;
}

/* Copies the caller's info struct of `size` bytes, of which this library knows `known`; false: an
 * error. */
bool tarn_builder_take_info(struct tarn_builder *builder, void *taken, size_t known,
                            const void *info, size_t size, const char *function);
/* Room for one more record: returns the array, moved if necessary; NULL: no memory. */
void *tarn_builder_room(struct tarn_builder *builder, void *array, uint32_t count,
                        uint32_t *capacity, size_t size);
/* Is there an id for one more record? Else an error. */
bool tarn_builder_has_id_left(struct tarn_builder *builder, const char *what, uint32_t count,
                              uint32_t max);
/* Copies the name or kind of a record ("op", "tensor" or "stream"); NULL on error. */
const char *tarn_builder_copy_name(struct tarn_builder *builder, const char *name, const char *what,
                                   uint32_t id, const char *field);

#endif
