/* What layers are written with. */
#ifndef LAYER_H
#define LAYER_H

#include "layers.h"

#define EPSILON 1e-5f

/* A name like "conv1.backward". */
struct text {
    char text[FULL_NAME_SIZE];
};
struct text joined(const char *name, const char *suffix);

dnnl_prop_kind_t direction(const struct tape *tape);
/* Puts a layer on the tape; desc: oneDNN's descriptor of its forward pass. */
struct layer *begin(struct tape *tape, const char *name, backward_pass backward, const void *desc,
                    struct value x);
/* Adds the forward op, which writes the layer's result and `more`. */
struct value forward(struct tape *tape, struct layer *layer, const char *kind, dnnl_memory_desc_t y,
                     const struct argument *in, const struct argument *more, int in_place);
/* Adds a backward op, which writes the gradient of the layer's x and `more`. */
void back(struct tape *tape, const struct layer *layer, const char *kind, const void *desc,
          const struct argument *in, const struct argument *more, int in_place);
extern const struct argument nothing[];

#endif
