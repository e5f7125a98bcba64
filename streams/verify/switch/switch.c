/* Proves that the waits at a switch from one plan to another are enough: forward vector clocks over
 * both programs, and a check of every pair of uses of common bytes, one of them a write. It shares
 * no code with the search for the waits (streams/plan/switch.c).
 *
 * Clocks say, for every step and every stream of the first plan, up to which position that stream
 * has finished its last iteration before the step begins. Inside one iteration only the waits of
 * that iteration count, so the proof does not depend on the boundary.
 * Cost: O((steps + waits) S), O(S) for every pair of storages that share bytes. */
#include <stdlib.h>

#include "streams/base/bisect.h"
#include "streams/base/error.h"
#include "streams/graph/report.h"
#include "streams/plan/program.h"
#include "streams/plan/switch.h"
#include "streams/verify/verify.h"

/* The bytes that a planned storage reserves. `highest`: the maximum end of the spans up to this
 * one. */
struct span {
    uint32_t space;
    uint64_t begin, end, highest; /* in that memory space */
    uint32_t storage;
};

/* Rows have one entry for each stream of `from`: how many of its launches have ended. */
struct proof {
    const struct tarn_switch *pair;
    const struct tarn_program *from, *to;
    struct tarn_region region;
    uint32_t *ended;    /* by step of `from`: when it has ended */
    uint32_t *begun;    /* by step of `to`: when it begins */
    struct span *spans; /* of planned storages of `from`, by space and first byte */
};

static uint32_t *row_of(const struct proof *proof, uint32_t *rows, uint32_t step)
{
    return &rows[(size_t)step * proof->from->streams_count];
}

static void join_row(const struct proof *proof, uint32_t *row, const uint32_t *other)
{
    for (uint32_t s = 0; s < proof->from->streams_count; s++)
        if (other[s] > row[s]) row[s] = other[s];
}

/* ---- Clocks ---- */

static void join_before(const struct proof *proof, const struct tarn_program *program,
                        uint32_t *rows, uint32_t step)
{
    const struct tarn_program_step *record = &program->steps[step];
    uint32_t *row = row_of(proof, rows, step);
    if (step > program->begin[record->stream]) join_row(proof, row, row_of(proof, rows, step - 1));
    for (uint32_t k = record->waits_begin; k < record->waits_end; k++) {
        const struct tarn_program_wait *wait = &program->waits[k];
        uint32_t on = program->begin[wait->stream] + wait->place;
        if (!wait->previous) join_row(proof, row, row_of(proof, rows, on));
    }
}

static void run_clocks(const struct proof *proof, const struct tarn_wait *waits, uint32_t count)
{
    const struct tarn_program *from = proof->from, *to = proof->to;
    for (uint32_t i = 0; i < from->steps_count; i++) {
        uint32_t step = from->order[i], stream = from->steps[step].stream;
        join_before(proof, from, proof->ended, step);
        row_of(proof, proof->ended, step)[stream] = step - from->begin[stream] + 1;
    }
    for (uint32_t i = 0; i < count; i++)
        join_row(proof, row_of(proof, proof->begun, to->step_of[waits[i].op]),
                 row_of(proof, proof->ended, from->step_of[waits[i].on]));
    for (uint32_t i = 0; i < to->steps_count; i++)
        join_before(proof, to, proof->begun, to->order[i]);
}

/* ---- Pairs of touches ---- */

static bool is_writer(const struct tarn_graph *graph, uint32_t op, uint32_t storage)
{
    const struct tarn_graph_op *record = &graph->ops[op];
    bool found = tarn_extra(record)->workspace_storage == storage;
    for (uint32_t k = 0; k < record->outputs_count && !found; k++)
        found = graph->tensors[tarn_outputs(record)[k]].storage == storage;
    return found;
}

static enum tarn_status check_pair(const struct proof *proof, uint32_t a, uint32_t u, uint32_t b,
                                   uint32_t v, struct tarn_error *error)
{
    const struct tarn_graph *f = proof->pair->from->graph, *t = proof->pair->to->graph;
    if (!is_writer(f, u, a) && !is_writer(t, v, b)) return TARN_OK;
    uint32_t on = proof->from->step_of[u], stream = proof->from->steps[on].stream;
    uint32_t place = on - proof->from->begin[stream];
    if (row_of(proof, proof->begun, proof->to->step_of[v])[stream] > place) return TARN_OK;
    if (error) error->op = v;
    return tarn_error_set(error, TARN_REJECTED,
                          "%s of graph %s touches %s, whose bytes %s of graph %s may still use for "
                          "%s: nothing orders them at the switch",
                          tarn_op_label(t, v).text, tarn_quote(t->name).text,
                          tarn_storage_label(t, b).text, tarn_op_label(f, u).text,
                          tarn_quote(f->name).text, tarn_storage_label(f, a).text);
}

static enum tarn_status check_storages(const struct proof *proof, uint32_t a, uint32_t b,
                                       struct tarn_error *error)
{
    const struct tarn_storage *x = &proof->pair->from->graph->storages[a];
    const struct tarn_storage *y = &proof->pair->to->graph->storages[b];
    enum tarn_status status = TARN_OK;
    /* all users of a planned storage come after its producer, as the plan's own proof shows */
    uint32_t count = y->persistent ? y->users_count : 1;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t v = y->persistent ? tarn_storage_users(proof->pair->to->graph, y)[k] : y->producer;
        for (uint32_t i = 0; i < x->users_count && status == TARN_OK; i++)
            status = check_pair(proof, a, tarn_storage_users(proof->pair->from->graph, x)[i], b, v,
                                error);
    }
    return status;
}

/* ---- Pairs of storages ---- */

static struct span span_of(const struct tarn_plan *plan, uint32_t a)
{
    uint32_t space = plan->graph->storages[a].space;
    uint64_t begin = tarn_plan_place(plan, a)->offset - tarn_plan_space_begin(plan, space, false);
    uint64_t end = begin + tarn_storage_reserved(plan->graph, a, plan->alignment);
    return (struct span){space, begin, end, end, a};
}

static int compare_spans(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    if (x->space != y->space) return x->space < y->space ? -1 : 1;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static void sort_spans(const struct proof *proof)
{
    uint32_t count = proof->pair->from->graph->planned_count;
    for (uint32_t a = 0; a < count; a++) proof->spans[a] = span_of(proof->pair->from, a);
    if (count > 0) qsort(proof->spans, count, sizeof *proof->spans, compare_spans);
    for (uint32_t i = 1; i < count; i++) {
        bool is_same = proof->spans[i].space == proof->spans[i - 1].space;
        if (is_same && proof->spans[i].highest < proof->spans[i - 1].highest)
            proof->spans[i].highest = proof->spans[i - 1].highest;
    }
}

/* The number of spans that begin in an earlier space, or below that byte of this space. */
static uint32_t count_below(const struct proof *proof, uint32_t space, uint64_t byte)
{
    uint32_t low = 0, high = proof->pair->from->graph->planned_count;
    TARN_BISECT(low, high, middle,
                proof->spans[middle].space < space ||
                    (proof->spans[middle].space == space && proof->spans[middle].begin < byte));
    return low;
}

static enum tarn_status check_planned(const struct proof *proof, struct tarn_error *error)
{
    enum tarn_status status = TARN_OK;
    for (uint32_t b = 0; b < proof->pair->to->graph->planned_count; b++) {
        struct span own = span_of(proof->pair->to, b);
        for (uint32_t i = count_below(proof, own.space, own.end); i-- > 0 && status == TARN_OK;) {
            if (proof->spans[i].space < own.space || proof->spans[i].highest <= own.begin) break;
            if (proof->spans[i].end > own.begin)
                status = check_storages(proof, proof->spans[i].storage, b, error);
        }
    }
    return status;
}

static enum tarn_status check_persistent(const struct proof *proof, struct tarn_error *error)
{
    const struct tarn_graph *to = proof->pair->to->graph;
    enum tarn_status status = TARN_OK;
    for (uint32_t b = to->planned_count; b < to->storages_count && status == TARN_OK; b++) {
        uint32_t a = proof->pair->same[b - to->planned_count];
        if (a != TARN_NONE) status = check_storages(proof, a, b, error);
    }
    return status;
}

/* ---- The whole ---- */

static bool proof_init(struct proof *proof)
{
    size_t streams = proof->from->streams_count;
    proof->ended =
        tarn_region_take(&proof->region, proof->from->steps_count * streams, sizeof *proof->ended);
    proof->begun =
        tarn_region_take(&proof->region, proof->to->steps_count * streams, sizeof *proof->begun);
    proof->spans = tarn_region_take(&proof->region, proof->pair->from->graph->planned_count,
                                    sizeof *proof->spans);
    return proof->ended && proof->begun && proof->spans;
}

enum tarn_status tarn_switch_verify(const struct tarn_switch *pair, const struct tarn_wait *waits,
                                    uint32_t count, struct tarn_error *error)
{
    struct proof proof = {.pair = pair};
    enum tarn_status status = tarn_plan_program(pair->from, &proof.from, error);
    if (status == TARN_OK) status = tarn_plan_program(pair->to, &proof.to, error);
    if (status == TARN_OK && !proof_init(&proof)) status = tarn_error_no_memory(error);
    if (status == TARN_OK) {
        sort_spans(&proof);
        run_clocks(&proof, waits, count);
        status = check_planned(&proof, error);
    }
    if (status == TARN_OK) status = check_persistent(&proof, error);
    tarn_region_finish(&proof.region);
    return status;
}
