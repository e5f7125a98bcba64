/* Calls on sessions, on this machine's cores. Kernels fill their outputs and workspace, which must
 * be theirs; some answer with an error. */
#include <stdlib.h>
#include <string.h>

#include "calls.h"

enum { MEMORY_MAX = 1 << 20, PATIENCE_S = 20 };

static const uint64_t patience_ns = (uint64_t)PATIENCE_S * 1000 * 1000 * 1000;

/* ---- Kernels ---- */

static int kernel(void *user, const struct tarn_call *call)
{
    const struct calls_session *session = user;
    const struct tarn_graph *graph = tarn_plan_graph(session->plan);
    struct tarn_op_info op;
    struct tarn_tensor_info tensor;
    volatile unsigned char sum = 0;
    PROMISED(tarn_graph_op(graph, call->op, &op), "op %u", call->op);
    for (size_t i = 0; i < op.inputs.count; i++) sum += *(unsigned char *)call->inputs[i];
    for (size_t i = 0; i < op.outputs.count; i++) {
        PROMISED(tarn_graph_tensor(graph, op.outputs.ids[i], &tensor), "op %u", call->op);
        memset(call->outputs[i], sum, tensor.size);
    }
    PROMISED((call->workspace != NULL) == (op.workspace > 0), "op %u", call->op);
    if (call->workspace) memset(call->workspace, 1, op.workspace);
    return call->iteration == 2 ? session->code : 0;
}

/* ---- Making and ending ---- */

static struct calls_session *any_session(struct world *world)
{
    return &world->sessions[next_below(world, SESSIONS)];
}

void end_session(struct calls_session *of)
{
    struct tarn_error error = fuzz_old_error();
    enum tarn_status status = tarn_session_destroy_within(of->session, patience_ns, &error);
    fuzz_answered("destroy", status, &error, ANY_OF(TARN_OK));
    tarn_plan_destroy(of->plan);
    free(of->memory);
    *of = (struct calls_session){0};
}

/* The session shall keep its plan alive: it gets one of its own, which goes first now and then. */
static struct tarn_plan *plan_for(struct world *world)
{
    struct calls_plan *from = any_plan(world);
    struct tarn_plan *plan = from->plan;
    *from = (struct calls_plan){0};
    return plan;
}

static bool is_small(struct tarn_plan *plan)
{
    struct tarn_error error = fuzz_old_error();
    struct tarn_memory_needs memory;
    enum tarn_status status =
        tarn_session_needs(plan, tarn_device_host(NULL), NULL, 0, &memory, &error);
    fuzz_answered("memory size", status, &error,
                  ANY_OF(TARN_OK) | ANY_OF(TARN_USAGE) | ANY_OF(TARN_SYSTEM));
    return status != TARN_OK || memory.size <= MEMORY_MAX;
}

void call_make_session(struct world *world)
{
    struct calls_session *place = any_session(world);
    struct tarn_session_options options = {.struct_size = sizeof options};
    struct tarn_error error = fuzz_old_error();
    if (!may_cost(world, 1)) return;
    end_session(place);
    struct tarn_plan *plan = plan_for(world);
    uint32_t streams = tarn_graph_streams_count(tarn_plan_graph(plan));
    uint8_t more = next_byte(world);
    if (more & 1) options.blocking = next_ids(world, streams);
    if (more & 2) options.binds_persistent = true;
    if (more & 4) options.flight = next_below(world, 8);
    if (more & 8) options.depth = next_below(world, 4);
    if (more & 16) options.capture = next_below(world, 8) == 7;
    if (more & 64) {
        options.memory = place->memory = aligned_alloc(4096, MEMORY_MAX);
        options.memory_size = next_byte(world) < 200 ? MEMORY_MAX : next_number(world);
        if (options.memory_size > MEMORY_MAX) options.memory_size = MEMORY_MAX;
    }
    if (more & 32) options.struct_size = next_below(world, 2) ? 0 : sizeof options - 16;
    enum tarn_status status = TARN_USAGE;
    if (is_small(plan)) {
        status =
            tarn_session_create(plan, tarn_device_host(NULL), &options, &place->session, &error);
        check_result("create", status, &error, ANY_OF(TARN_OK) | ANY_OF(TARN_USAGE),
                     place->session);
    }
    if (status == TARN_OK)
        place->plan = plan;
    else
        tarn_plan_destroy(plan);
}

/* ---- Using ---- */

void call_bind(struct world *world)
{
    struct calls_session *of = any_session(world);
    const struct tarn_graph *graph = tarn_plan_graph(of->plan);
    struct tarn_error error = fuzz_old_error();
    uint32_t tensor = next_id(world, tarn_graph_tensors_count(graph));
    uint32_t op = next_id(world, tarn_graph_ops_count(graph));
    enum tarn_status status;
    of->code = next_byte(world) < 200 ? 0 : 77;
    switch (next_below(world, 4)) {
    case 0:
    case 1: status = tarn_session_bind_default(of->session, kernel, of); break;
    case 2: status = tarn_session_bind(of->session, op, kernel, of, NULL); break;
    default:
        if (!of->memory) of->memory = aligned_alloc(4096, MEMORY_MAX);
        status = tarn_session_bind_memory(of->session, tensor, of->memory, &error);
        fuzz_answered("bind", status, &error, ANY_OF(TARN_OK) | ANY_OF(TARN_USAGE));
    }
    PROMISED(status == TARN_OK || status == TARN_USAGE, "%s", tarn_status_text(status));
    PROMISED(of->session || status == TARN_USAGE, "%s", tarn_status_text(status));
}

static bool is_busy(const struct calls_session *of)
{
    uint64_t finished;
    return of->session &&
           (tarn_session_query(of->session, &finished, NULL) != TARN_OK || finished < of->ticket);
}

static void lend_memory(struct calls_session *of, uint64_t size)
{
    struct tarn_error error = fuzz_old_error();
    void *memory = NULL;
    if (size > MEMORY_MAX) return;
    enum tarn_status status = tarn_session_host_memory_create(of->session, size, &memory, &error);
    check_result("host memory", status, &error, ANY_OF(of->session ? TARN_OK : TARN_USAGE), memory);
    if (memory) memset(memory, 1, size);
    tarn_session_host_memory_destroy(of->session, memory, size);
}

void call_copy(struct world *world)
{
    static unsigned char bytes[MEMORY_MAX];
    struct calls_session *of = any_session(world);
    const struct tarn_graph *graph = tarn_plan_graph(of->plan);
    struct tarn_error error = fuzz_old_error();
    uint32_t tensor = next_id(world, tarn_graph_tensors_count(graph));
    struct tarn_tensor_info info = {0};
    bool is_tensor = tarn_graph_tensor(graph, tensor, &info);
    uint64_t size = next_byte(world) < 128 ? info.size : next_number(world);
    bool fits = is_tensor && size <= info.size;
    if (fits && size > sizeof bytes) return;
    uint32_t which = next_below(world, 5);
    if (which == 4) {
        lend_memory(of, info.size + 1);
        return;
    }
    if (which == 3) {
        void *address = tarn_session_address(of->session, tensor);
        PROMISED(!address || (of->session && is_tensor), "tensor %u", tensor);
        return;
    }
    enum tarn_status status = next_below(world, 2)
                                  ? tarn_session_write(of->session, tensor, bytes, size, &error)
                                  : tarn_session_read(of->session, tensor, bytes, size, &error);
    fuzz_answered("copy", status, &error,
                  ANY_OF(TARN_USAGE) | ANY_OF(TARN_DEVICE) | ANY_OF(TARN_INTERRUPTED) |
                      ANY_OF(TARN_DEADLINE) | (fits ? ANY_OF(TARN_OK) : 0));
}

#define ENDINGS (ANY_OF(TARN_DEVICE) | ANY_OF(TARN_INTERRUPTED) | ANY_OF(TARN_USAGE))

void call_submit(struct world *world)
{
    struct calls_session *of = any_session(world);
    struct tarn_error error = fuzz_old_error();
    enum tarn_status status =
        tarn_session_submit(of->session, next_below(world, 6), &of->ticket, &error);
    fuzz_answered("submit", status, &error, ANY_OF(TARN_OK) | ENDINGS);
    PROMISED(of->session || status == TARN_USAGE, "%s", error.text);
}

static void take_line(void *user, const char *line)
{
    (void)user;
    PROMISED(line && !strchr(line, '\n'), "%s", line);
}

void call_wait(struct world *world)
{
    struct calls_session *of = any_session(world);
    struct tarn_error error = fuzz_old_error();
    uint64_t finished, expected = ANY_OF(TARN_OK) | ENDINGS | ANY_OF(TARN_DEADLINE);
    tarn_ticket ticket = next_byte(world) < 220 ? of->ticket : next_number(world);
    switch (next_below(world, 6)) {
    case 0:
    case 1:
        if (ticket <= of->ticket)
            fuzz_answered("wait", tarn_session_wait(of->session, ticket, patience_ns, &error),
                          &error, expected);
        break;
    case 2:
        fuzz_answered("ask", tarn_session_wait(of->session, ticket, 0, &error), &error, expected);
        break;
    case 3:
        fuzz_answered("query", tarn_session_query(of->session, &finished, &error), &error,
                      expected);
        break;
    case 4: tarn_session_cancel(of->session); break;
    default:
        tarn_session_dump(of->session, take_line, NULL);
        if (is_busy(of)) return;
        fuzz_answered("trace",
                      tarn_session_save_trace(of->session, fuzz_path("trace.json"), &error), &error,
                      ANY_OF(TARN_OK) | ENDINGS | ANY_OF(TARN_DEADLINE));
    }
}

void call_check(struct world *world)
{
    struct calls_session *of = any_session(world);
    struct tarn_error error = fuzz_old_error();
    struct tarn_check_report report;
    struct tarn_step steps[4];
    struct tarn_check_options options = {.struct_size = sizeof options,
                                         .iterations = next_below(world, 4),
                                         .seed = next_byte(world)};
    uint64_t expected = ANY_OF(TARN_OK) | ENDINGS | ANY_OF(TARN_DEADLINE);
    if (!may_cost(world, 1)) return;
    switch (next_below(world, 4)) {
    case 0: options.random_order = true; break;
    case 1:
        for (int i = 0; i < 4; i++)
            steps[i] = (struct tarn_step){next_id(world, 8), next_below(world, 3)};
        options.order = steps;
        options.order_count = next_below(world, 5);
        expected |= ANY_OF(TARN_BAD_INPUT);
        break;
    case 2: options.delay_ns = next_byte(world); break;
    default: break;
    }
    fuzz_answered("check", tarn_session_check(of->session, &options, &report, &error), &error,
                  expected);
}
