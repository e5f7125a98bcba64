/* The processes that train together. */
#ifndef RANKS_H
#define RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern int rank, ranks; /* from ranks_begin on */

void ranks_begin(int *argc, char ***argv);
void ranks_end(void);
/* Rank 0's bytes for all. */
void ranks_send(void *data, size_t size);
/* True on all ranks if it is true on all of them. */
bool ranks_agree(bool here);
/* All ranks' parts on rank 0, one behind the other; size: of one part, in bytes. */
void ranks_gather(const void *part, size_t size, void *whole);

/* ---- A communication stream ----
 * It has a communicator of its own: its collectives cannot be mistaken for another stream's. */
struct channel;
struct channel *channel_create(void);
void channel_destroy(struct channel *channel);

/* Sums the ranks' buffers in place. Each rank sums one part of the buffer over all ranks, always as
 * ((0 + 1) + (2 + 3)): together with the trees of local shards, the bits are those of one rank
 * that holds all shards. `scratch`: channel_scratch bytes. Returns 0 or MPI's code. */
int channel_sum(struct channel *channel, float *buffer, size_t count, float *scratch);
size_t channel_scratch(size_t count);

#endif
