/* Checked execution as one linear order: given step by step, or drawn. The host launches one op
 * after another on the calling thread; a device runs them in one queue. Cost: as check.c, plus the
 * cost of the order (linear.h). */
#include "check.h"
#include "device.h"
#include "runtime/state/failure.h"
#include "streams/graph/report.h"

static enum tarn_status launch(const struct tarn_check *check, struct tarn_step step,
                               struct tarn_error *error)
{
    if (tarn_check_time_left(check) == 0) {
        return tarn_error_set(error, TARN_DEADLINE,
                              "the checked linear order is not finished; next would be %s of "
                              "iteration %u",
                              tarn_op_label(check->session->graph, step.op).text, step.iteration);
    }
    int code = tarn_session_launch(check->session, step.op, step.iteration);
    if (code == 0) return TARN_OK;
    if (check->device)
        return tarn_session_kernel_failed(check->session, step.op, step.iteration, code, error);
    return tarn_check_failed(check, error);
}

/* A device runs a linear order in one queue. */
static enum tarn_status begin_order(struct tarn_check *check, uint64_t iterations,
                                    struct tarn_error *error)
{
    if (tarn_expected_advance(&check->checker->expected, iterations) != TARN_OK)
        return tarn_error_no_memory(error);
    if (!check->device || check->session->program->steps_count == 0) return TARN_OK;
    check->device->queue = check->session->calls[check->session->program->steps[0].op].queue;
    tarn_session_enqueues(check->session); /* outside of the executor */
    return tarn_device_checker_begin(check->device, error);
}

static enum tarn_status end_order(struct tarn_check *check, enum tarn_status status,
                                  struct tarn_error *error)
{
    if (check->device && check->device->queue) {
        enum tarn_status drained = tarn_device_checker_drain(
            check->device, tarn_check_time_left(check), status ? NULL : error);
        if (status == TARN_OK) status = drained;
        if (status == TARN_OK) status = tarn_device_checker_end(check->device, error);
    }
    if (status == TARN_OK) tarn_check_settle(check);
    return status;
}

uint64_t tarn_check_order_iterations(const struct tarn_check_options *options)
{
    uint64_t iterations = 0;
    for (size_t i = 0; i < options->order_count; i++) {
        uint64_t reached = (uint64_t)options->order[i].iteration + 1;
        if (iterations < reached) iterations = reached;
    }
    return iterations;
}

enum tarn_status tarn_check_run_given_order(struct tarn_check *check, struct tarn_error *error)
{
    const struct tarn_step *steps = check->options.order;
    size_t count = check->options.order_count;
    enum tarn_status status = tarn_linear_follow(&check->linear, steps, count, error);
    if (status != TARN_OK) return status;
    status = begin_order(check, tarn_check_order_iterations(&check->options), error);
    if (status != TARN_OK) return status;
    for (size_t i = 0; i < count && status == TARN_OK; i++) status = launch(check, steps[i], error);
    return end_order(check, status, error);
}

/* Runs the next iterations to the end; no stream runs ahead of a window. */
static enum tarn_status draw_window(struct tarn_check *check, struct tarn_draw *draw,
                                    uint64_t iterations, struct tarn_error *error)
{
    struct tarn_step step;
    enum tarn_status status = begin_order(check, iterations, error);
    if (status != TARN_OK) return status;
    uint64_t end = check->checker->expected.window_end;
    while (status == TARN_OK && tarn_draw_step(draw, &check->linear, end, &step))
        status = launch(check, step, error);
    return end_order(check, status, error);
}

enum tarn_status tarn_check_run_random_order(struct tarn_check *check, struct tarn_error *error)
{
    struct tarn_draw draw;
    if (tarn_draw_init(&draw, &check->region, check->session->program->streams_count,
                       check->options.seed) != TARN_OK) {
        return tarn_error_no_memory(error);
    }
    enum tarn_status status = TARN_OK;
    uint64_t window = tarn_check_window(check), begin = 0;
    for (; status == TARN_OK && begin < check->options.iterations; begin += window) {
        uint64_t left = check->options.iterations - begin;
        status = draw_window(check, &draw, left < window ? left : window, error);
    }
    return status;
}
