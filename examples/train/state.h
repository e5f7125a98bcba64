/* What lasts: parameters, moments, statistics, and the next batch. It belongs to the trainer, not
 * to a plan; so sessions, other ways of memory, checkpoints and evaluation all work on it. */
#ifndef STATE_H
#define STATE_H

#include "network.h"

struct state {
    void **at; /* by tensor: where it lies; NULL: it is not persistent, or an alias */
    uint64_t *sizes;
    uint32_t count;
};

/* Takes memory for all persistent tensors of a graph. */
void state_create(struct state *state, const struct tarn_graph *graph);
/* Zeros, the initial values of parameters, and the first batch. */
void state_reset(const struct state *state, const struct tape *tape, const struct step *step);
void state_destroy(struct state *state);
/* The batch of the first step, alone. */
void state_load(const struct state *state, const struct tape *tape, const struct step *step);
/* What is learnt: parameters, moments, statistics. Returns how many there are. */
struct piece {
    void *at;
    size_t size;
};
enum { PIECES_MAX = 3 * PARAMETERS_MAX + 2 * STATISTICS_MAX };
int state_pieces(const struct state *state, const struct tape *tape,
                 struct piece pieces[static PIECES_MAX]);
/* A number for the bits of all that is learnt. */
uint64_t state_digest(const struct state *state, const struct tape *tape);
uint64_t digest(uint64_t so_far, const void *data, size_t size); /* begins with 0 */

/* ---- Checkpoints: the bytes of all that is learnt, and which step comes next ---- */
/* Writes a file that is there whole or not at all. */
void checkpoint_write(const char *path, const struct state *state, const struct tape *tape,
                      const struct options *options, uint64_t next);
/* Rank 0 reads, all get it. Returns the next step. */
uint64_t checkpoint_read(const char *path, const struct state *state, const struct tape *tape,
                         const struct options *options);

#endif
