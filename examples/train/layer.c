/* Idea: a layer's forward op writes its result, its backward op the gradient of what it read; what
 * else they write comes behind. So a layer says only what is its own.
 * Cost: nothing while the graph runs. */
#include "layer.h"

#include <stdio.h>

#include "fail.h"

const struct argument nothing[] = {{0}};

struct text joined(const char *name, const char *suffix)
{
    struct text joined;
    snprintf(joined.text, sizeof joined.text, "%s%s", name, suffix);
    return joined;
}

dnnl_prop_kind_t direction(const struct tape *t)
{
    return t->training ? dnnl_forward_training : dnnl_forward_inference;
}

struct layer *begin(struct tape *t, const char *name, backward_pass backward, const void *desc,
                    struct value x)
{
    struct layer *l = tape_layer(t, name, backward, tape_describe(t, desc, NULL, 1));
    l->x = x;
    return l;
}

/* `first`, then `more`. */
static const struct argument *behind(struct argument first, const struct argument *more,
                                     struct argument list[static ARGUMENTS_MAX])
{
    int n = 0;
    for (list[n++] = first; more->role; more++) list[n++] = *more;
    list[n] = *more;
    return list;
}

struct value forward(struct tape *t, struct layer *l, const char *kind, dnnl_memory_desc_t y,
                     const struct argument *in, const struct argument *more, int in_place)
{
    struct argument out[ARGUMENTS_MAX];
    l->y = tape_value(t, l->name, "", y, true);
    tape_primitive(t, PRIMITIVE(l->name, kind, t->compute, l->forward, in,
                                behind((struct argument){DNNL_ARG_DST, l->y}, more, out),
                                .in_place = in_place));
    return l->y;
}

void back(struct tape *t, const struct layer *l, const char *kind, const void *desc,
          const struct argument *in, const struct argument *more, int in_place)
{
    struct argument out[ARGUMENTS_MAX];
    struct value dx = tape_value(t, l->name, ".dx", l->x.md, false);
    tape_primitive(t, PRIMITIVE(joined(l->name, ".backward").text, kind, t->compute,
                                tape_describe(t, desc, l->forward, 1), in,
                                behind((struct argument){DNNL_ARG_DIFF_SRC, dx}, more, out),
                                .in_place = in_place));
    tape_collect(t, l->x, dx.id);
}
