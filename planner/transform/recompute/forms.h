/* Reads a graph into a recompute model: the state of the pass over the ops, and the forms of one
 * op. */
#ifndef TARN_PLANNER_TRANSFORM_RECOMPUTE_FORMS_H
#define TARN_PLANNER_TRANSFORM_RECOMPUTE_FORMS_H

#include "recompute.h"

struct tarn_reading {
    struct tarn_recompute_model *model;
    const struct tarn_graph *graph;
    uint32_t *current; /* storage -> version, or TARN_NONE */
    uint32_t *updates; /* persistent storage -> how often it has been written */
    bool *updated;     /* storage: persistent and written by some op */
    bool *is_read;     /* tensor: by an op, as written or by an implementation; not by a view */
    bool *lacks;       /* output: somewhere else than in its storage it would lack bytes that are
                        * named later */
    uint32_t *last;    /* storage -> the tensor by which it was written last, while that is found */
    uint32_t *held;    /* tensor -> that one, when the tensor was made */
    uint64_t *ends; /* storage -> where the bytes end that are named later, while that is found */
    uint32_t now;   /* ops begun, views included */
    uint32_t *written; /* part -> the op that last wrote it, counted like `now`; 0: none so far */
    uint32_t *named;   /* persistent tensor -> the op that makes it; 0: it is there from the start;
                        * TARN_NONE: not yet */
    uint32_t reads_count, writes_count, states_count, choices_count;
    uint64_t total;
    bool overflow;
};

/* The bytes that a size takes in the arena; notes an overflow. */
uint64_t tarn_reading_reserve(struct tarn_reading *reading, uint64_t size);

/* A form whose lists grow until it ends. */
void tarn_form_begin(struct tarn_reading *reading, struct tarn_form *form, uint32_t v);
void tarn_form_read(struct tarn_reading *reading, struct tarn_form *form, uint32_t version);
void tarn_form_state(struct tarn_reading *reading, uint32_t storage, uint32_t updates);
void tarn_form_end(struct tarn_reading *reading, struct tarn_form *form);

/* May the op run again in this form? */
bool tarn_form_repeats(const struct tarn_reading *reading, uint32_t v, uint32_t implementation);

/* Does the op read the tensor, as written and by each implementation that can be chosen and writes
 * the storage? */
bool tarn_op_always_reads(const struct tarn_graph *graph, uint32_t v, uint32_t storage,
                          uint32_t tensor);

/* Adds the forms of the op's implementations after the form as written, and the choices of all
 * forms. The op's versions exist already, but are not current yet. */
void tarn_reading_forms(struct tarn_reading *reading, uint32_t v);

/* ---- recompute/passes.c ---- */

/* Fills in which ops are forward ops, and the places at which versions are dropped. */
enum tarn_status tarn_model_find_passes(struct tarn_recompute_model *model,
                                        struct tarn_region *region);

/* ---- recompute/launches.c ---- */

/* Lists the places at which versions may be communicated again ahead of their readers; none if
 * there is one stream. TARN_SYSTEM: no memory. */
enum tarn_status tarn_model_list_launches(struct tarn_recompute_model *model,
                                          struct tarn_region *region);

#endif
