/* Linear orders: advances a program's streams one step at a time. A stream's launches are numbered
 * through all iterations, launch n being position n % length of iteration n / length; a wait is
 * then one comparison with the other stream's number. Cost per step: its waits; drawing checks
 * every stream in the worst case. */
#include "linear.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "pattern.h"
#include "streams/graph/report.h"

#define RESHUFFLE_ONE_IN 24u

enum tarn_status tarn_linear_init(struct tarn_linear *linear, struct tarn_region *region,
                                  const struct tarn_program *program,
                                  const struct tarn_graph *graph)
{
    *linear = (struct tarn_linear){.program = program, .graph = graph};
    linear->done = tarn_region_take(region, program->streams_count, sizeof *linear->done);
    return linear->done ? TARN_OK : TARN_SYSTEM;
}

static const struct tarn_program_step *next_step(const struct tarn_linear *linear, uint32_t stream)
{
    assert(tarn_linear_length(linear, stream) > 0);
    uint64_t place = linear->done[stream] % tarn_linear_length(linear, stream);
    return &linear->program->steps[linear->program->begin[stream] + place];
}

struct tarn_step tarn_linear_next(const struct tarn_linear *linear, uint32_t stream)
{
    uint64_t iteration = linear->done[stream] / tarn_linear_length(linear, stream);
    return (struct tarn_step){next_step(linear, stream)->op, (uint32_t)iteration};
}

/* The wait that blocks the stream's next step, or NULL. */
static const struct tarn_program_wait *first_open_wait(const struct tarn_linear *linear,
                                                       uint32_t stream)
{
    const struct tarn_program_step *step = next_step(linear, stream);
    uint64_t iteration = linear->done[stream] / tarn_linear_length(linear, stream);
    for (uint32_t i = step->waits_begin; i < step->waits_end; i++) {
        const struct tarn_program_wait *wait = &linear->program->waits[i];
        if (wait->previous > iteration) continue;
        uint64_t launch =
            (iteration - wait->previous) * tarn_linear_length(linear, wait->stream) + wait->place;
        if (linear->done[wait->stream] <= launch) return wait;
    }
    return NULL;
}

bool tarn_linear_is_ready(const struct tarn_linear *linear, uint32_t stream)
{
    return first_open_wait(linear, stream) == NULL;
}

/* ---- Following a given order ---- */

/* An order's mistake: "step 12 of the order: ...". */
struct mistake {
    struct tarn_error *error;
    struct tarn_step step;
    size_t index;
};

static enum tarn_status refuse(const struct mistake *mistake, const struct tarn_graph *graph,
                               const char *format, ...) __attribute__((format(printf, 3, 4)));

static enum tarn_status refuse(const struct mistake *mistake, const struct tarn_graph *graph,
                               const char *format, ...)
{
    char reason[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    tarn_error_set(mistake->error, TARN_BAD_INPUT, "step %zu of the order, %s of iteration %u, %s",
                   mistake->index, tarn_op_label(graph, mistake->step.op).text,
                   mistake->step.iteration, reason);
    if (mistake->error) mistake->error->op = mistake->step.op;
    return TARN_BAD_INPUT;
}

static enum tarn_status check_step(const struct tarn_linear *linear, const struct mistake *mistake)
{
    const struct tarn_graph *graph = linear->graph;
    struct tarn_step step = mistake->step;
    if (step.op >= graph->ops_count) return refuse(mistake, graph, "is not in the graph");
    if (graph->ops[step.op].view) return refuse(mistake, graph, "is a view and never launched");
    uint32_t stream = graph->ops[step.op].stream;
    struct tarn_step next = tarn_linear_next(linear, stream);
    if (next.op != step.op || next.iteration != step.iteration) {
        return refuse(mistake, graph, "is not the next of its stream, which is %s of iteration %u",
                      tarn_op_label(graph, next.op).text, next.iteration);
    }
    const struct tarn_program_wait *wait = first_open_wait(linear, stream);
    if (!wait) return TARN_OK;
    uint32_t on = linear->program->steps[linear->program->begin[wait->stream] + wait->place].op;
    return refuse(mistake, graph, "must wait for %s of iteration %u", tarn_op_label(graph, on).text,
                  step.iteration - wait->previous);
}

enum tarn_status tarn_linear_follow(struct tarn_linear *linear, const struct tarn_step *steps,
                                    size_t count, struct tarn_error *error)
{
    for (size_t i = 0; i < count; i++) {
        struct mistake mistake = {.error = error, .step = steps[i], .index = i};
        enum tarn_status status = check_step(linear, &mistake);
        if (status != TARN_OK) return status;
        linear->done[linear->graph->ops[steps[i].op].stream]++;
    }
    return TARN_OK;
}

/* ---- Drawing one ---- */

static uint64_t draw_number(struct tarn_draw *draw, uint64_t below)
{
    draw->state++;
    return tarn_seed_mix(draw->state, 0) % below;
}

static void shuffle(struct tarn_draw *draw, uint32_t count)
{
    for (uint32_t i = count; i > 1; i--) {
        uint32_t j = (uint32_t)draw_number(draw, i);
        uint32_t stream = draw->preference[i - 1];
        draw->preference[i - 1] = draw->preference[j];
        draw->preference[j] = stream;
    }
}

enum tarn_status tarn_draw_init(struct tarn_draw *draw, struct tarn_region *region,
                                uint32_t streams_count, uint64_t seed)
{
    *draw = (struct tarn_draw){.state = tarn_seed_mix(seed, 1)};
    draw->preference = tarn_region_take(region, streams_count, sizeof *draw->preference);
    if (!draw->preference) return TARN_SYSTEM;
    for (uint32_t s = 0; s < streams_count; s++) draw->preference[s] = s;
    shuffle(draw, streams_count);
    return TARN_OK;
}

bool tarn_draw_step(struct tarn_draw *draw, struct tarn_linear *linear, uint64_t iterations,
                    struct tarn_step *step)
{
    uint32_t streams_count = linear->program->streams_count;
    bool all_done = true;
    if (draw_number(draw, RESHUFFLE_ONE_IN) == 0) shuffle(draw, streams_count);
    for (uint32_t i = 0; i < streams_count; i++) {
        uint32_t stream = draw->preference[i];
        if (linear->done[stream] == iterations * tarn_linear_length(linear, stream)) continue;
        all_done = false;
        if (!tarn_linear_is_ready(linear, stream)) continue;
        *step = tarn_linear_next(linear, stream);
        linear->done[stream]++;
        return true;
    }
    assert(all_done); /* a program has no cycle */
    (void)all_done;
    return false;
}
