/* What the two halves of the recomputation oracle share: the source's values, and what an op reads
 * and writes as one of its forms. Form 0 is the op as written, form i + 1 its implementation i. */
#ifndef TARN_TESTS_SUPPORT_RECOMPUTE_MEANING_H
#define TARN_TESTS_SUPPORT_RECOMPUTE_MEANING_H

#include "recompute_oracle.h"

enum { RECOMPUTE_LIST_MAX = 64 };

struct recompute_meaning {
    const struct tarn_graph *source;
    uint32_t iterations;
    uint32_t *first_output; /* op -> its first output among those of all ops */
    uint32_t *first_form;   /* op -> its form 0 among those of all ops */
    uint32_t outputs_count, forms_count;
    uint64_t *made;    /* iteration x output -> value */
    uint64_t *reads;   /* iteration x form -> hash of the values that it must read */
    uint64_t *content; /* storage -> value after the last iteration */
};

struct tarn_list recompute_inputs(const struct tarn_graph *graph, uint32_t op, uint32_t form);
struct tarn_list recompute_outputs(const struct tarn_graph *graph, uint32_t op, uint32_t form);
uint32_t recompute_index_in(struct tarn_list list, uint32_t tensor);

/* Does the op write, through `output`, over something that none of these inputs reads? */
bool recompute_overwrites_unread(const struct tarn_graph *graph, uint32_t op,
                                 struct tarn_list inputs, uint32_t output);

uint64_t recompute_mixed(uint64_t a, uint64_t b);
uint64_t recompute_hash(const uint64_t *inputs, size_t count, const uint64_t *overwritten,
                        size_t overwritten_count);
/* What the caller has put into a persistent storage before the first iteration. */
uint64_t recompute_first_content(uint32_t root);

#endif
