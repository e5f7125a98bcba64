/* Legal linear orders of a program: which stream may run next if ops run one after another. */
#ifndef TARN_RUNTIME_CHECK_LINEAR_H
#define TARN_RUNTIME_CHECK_LINEAR_H

#include "streams/base/region.h"
#include "streams/plan/program.h"

/* How far every stream is. */
struct tarn_linear {
    const struct tarn_program *program;
    const struct tarn_graph *graph; /* for messages */
    uint64_t *done;                 /* by stream: launches since iteration 0 */
};

/* No stream has begun. TARN_SYSTEM: no memory. */
enum tarn_status tarn_linear_init(struct tarn_linear *linear, struct tarn_region *region,
                                  const struct tarn_program *program,
                                  const struct tarn_graph *graph);

static inline uint32_t tarn_linear_length(const struct tarn_linear *linear, uint32_t stream)
{
    return linear->program->begin[stream + 1] - linear->program->begin[stream];
}

/* The stream's next step. The stream must not be empty. */
struct tarn_step tarn_linear_next(const struct tarn_linear *linear, uint32_t stream);

/* Are all waits of the stream's next step met? */
bool tarn_linear_is_ready(const struct tarn_linear *linear, uint32_t stream);

/* Checks that the steps are a legal beginning of the program's iterations, and counts them into
 * `done`. TARN_BAD_INPUT: `error` names the step and the step that must come before it. */
enum tarn_status tarn_linear_follow(struct tarn_linear *linear, const struct tarn_step *steps,
                                    size_t count, struct tarn_error *error);

/* Draws legal orders: prefers streams in a random order that changes now and then, so that some
 * run far ahead. */
struct tarn_draw {
    uint64_t state;
    uint32_t *preference; /* a permutation of the streams */
};
/* TARN_SYSTEM: no memory. */
enum tarn_status tarn_draw_init(struct tarn_draw *draw, struct tarn_region *region,
                                uint32_t streams_count, uint64_t seed);

/* Draws the next step of the first `iterations` iterations; false if all are done. */
bool tarn_draw_step(struct tarn_draw *draw, struct tarn_linear *linear, uint64_t iterations,
                    struct tarn_step *step);

#endif
