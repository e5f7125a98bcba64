/* What Tarn is compared with: the same ops one after another, each tensor from malloc. */
#ifndef SERIAL_H
#define SERIAL_H

#include "state.h"

struct serial {
    const struct tarn_graph *graph; /* the plan's, or the source graph */
    const struct tarn_plan *plan; /* what ops of the graph come from; NULL: they are the source's */
    const struct tape *tape;      /* its kernels */
    const struct state *state;
    bool frees;           /* at last use; else every tensor stays for ever */
    struct cost *costs;   /* fastest times, by op of the source graph; NULL: not wanted */
    uint64_t iteration;   /* the next one */
    uint64_t now, most;   /* bytes of tensors and workspaces, without the state */
    struct block *blocks; /* by tensor */
};

void serial_begin(struct serial *serial);
void serial_run(struct serial *serial, uint64_t iterations);
void serial_end(struct serial *serial);

#endif
