/* Data-parallel training: Tarn's memory and execution, oneDNN's kernels, MPI's communication. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agree.h"
#include "onednn.h"
#include "serial.h"
#include "train.h"

#include "fail.h"

static void print_graph(const struct training *t)
{
    const struct options *o = t->step.options;
    struct tarn_graph_summary s;
    struct tarn_error error;
    TARN(tarn_graph_summarize(t->graph, &s, &error));
    printf("%s: %d steps of %d shards of %d, %d ranks, %s\n", o->network, o->steps, o->shards,
           o->batch, ranks, o->optimizer);
    printf("graph: %u ops, %u storages, %u groups; sum %llu, serial peak %llu, persistent %llu "
           "bytes\n",
           s.ops, s.storages, s.groups, (unsigned long long)s.sum,
           (unsigned long long)s.serial_peak, (unsigned long long)s.persistent);
}

static void print_plan(const struct training *t, const struct planned *p)
{
    struct tarn_plan_summary s;
    tarn_plan_summarize(t->plan, &s);
    printf("plan: arena %llu bytes, bound %llu%s, %u waits and %u on the step before\n",
           (unsigned long long)s.footprint, (unsigned long long)s.bound,
           s.optimal ? " (optimal)" : "", s.waits, s.boundary_waits);
    if (p->in_place.merged) printf("in place: %u outputs\n", p->in_place.merged);
    if (p->couple.arcs) printf("couple: %u waits more\n", p->couple.arcs);
    if (p->budget.budget)
        printf("budget: %llu bytes; %u ops again, %u otherwise; modelled %.3f ms, before %.3f ms\n",
               (unsigned long long)p->budget.budget, p->budget.recomputed, p->budget.implemented,
               (double)p->budget.time_ns / 1e6, (double)p->budget.time_before_ns / 1e6);
}

/* The losses of all shards, in their order, whatever rank had them. */
static void print_curve(const struct training *t)
{
    const struct options *o = t->step.options;
    const size_t steps = (size_t)o->steps, local = t->tape.shards;
    const size_t floats = steps * local * 2;
    float *whole = calloc(floats * (size_t)ranks, sizeof *whole);
    if (!whole) fail(TARN_SYSTEM, "no memory");
    ranks_gather(t->step.curve, floats * sizeof *whole, whole);
    uint64_t bits = 0;
    const double rows = (double)(o->batch * o->shards * network_rows(o));
    for (size_t i = 0; rank == 0 && i < steps; i++) {
        double loss = 0, right = 0;
        for (size_t r = 0; r < (size_t)ranks; r++) {
            const float *part = whole + r * floats + i * local * 2;
            bits = digest(bits, part, local * 2 * sizeof *part);
            for (size_t s = 0; s < local; s++)
                loss += (double)part[2 * s], right += (double)part[2 * s + 1];
        }
        if (i % (steps / 8 + 1) == 0 || i + 1 == steps)
            printf("step %5llu  loss %.4f  right %4.1f %%\n",
                   (unsigned long long)(t->step.first + i), loss / rows, 100 * right / rows);
    }
    if (rank == 0)
        printf("bits: losses %016llx, parameters %016llx\n", (unsigned long long)bits,
               (unsigned long long)state_digest(&t->state, &t->tape));
    free(whole);
}

/* ---- Costs ---- */

/* From a graph that was saved: the same ops under the same numbers. */
static void read_costs(const struct training *t, struct cost *costs)
{
    struct tarn_graph *saved;
    struct tarn_error error;
    TARN(tarn_graph_load(t->step.options->graph, &saved, &error));
    for (tarn_op op = 0; op < t->tape.ops_count; op++) {
        struct tarn_op_info here, there = {0};
        tarn_graph_op(t->graph, op, &here);
        if (!tarn_graph_op(saved, op, &there) || strcmp(here.name, there.name))
            fail(TARN_BAD_INPUT, "%s: its ops are not those of this training; op %u is %s here",
                 t->step.options->graph, op, here.name);
        costs[op].written = there.cost;
        if (there.implementations_count) costs[op].other = there.implementations[0].cost;
    }
    tarn_graph_destroy(saved);
}

/* Runs a few steps with malloc. All ranks do, as they sum gradients together. */
static void measure_costs(struct training *t, struct cost *costs)
{
    struct serial serial = {
        .graph = t->graph, .tape = &t->tape, .state = &t->state, .costs = costs};
    state_create(&t->state, t->graph);
    state_reset(&t->state, &t->tape, &t->step);
    serial_begin(&serial);
    serial_run(&serial, 6);
    serial_end(&serial);
    state_destroy(&t->state);
}

/* The same graph again, with what rank 0 has measured or read. */
static void set_costs(struct training *t)
{
    const size_t count = t->tape.ops_count;
    struct cost *costs = calloc(count, sizeof *costs);
    if (!costs) fail(TARN_SYSTEM, "no memory");
    if (!t->step.options->graph)
        measure_costs(t, costs);
    else if (rank == 0)
        read_costs(t, costs);
    ranks_send(costs, count * sizeof *costs);
    tarn_graph_destroy(t->graph);
    tape_finish(&t->tape);
    t->graph = step_build(&t->tape, &t->step, costs);
    free(costs);
    agree_on_graph(t->graph);
}

/* ---- From options to a plan ---- */

static void prepare(struct training *t, struct planned *planned)
{
    const struct options *o = t->step.options;
    const size_t local = (size_t)(o->shards / ranks);
    t->step.curve = calloc((size_t)o->steps * local * 2, sizeof *t->step.curve);
    if (!t->step.curve) fail(TARN_SYSTEM, "no memory");
    t->graph = step_build(&t->tape, &t->step, NULL);
    agree_on_graph(t->graph);
    if (o->graph || o->save_graph || o->budget || o->couple || o->reorder) set_costs(t);
    struct tarn_error error;
    if (o->save_graph && rank == 0) TARN(tarn_graph_save(t->graph, o->save_graph, &error));
    if (rank == 0) print_graph(t);
    t->plan = agree_on_plan(t->graph, o, planned);
    if (rank == 0) print_plan(t, planned);
    state_create(&t->state, t->graph);
    state_reset(&t->state, &t->tape, &t->step);
    if (!o->resume) return;
    t->step.first = checkpoint_read(o->resume, &t->state, &t->tape, o);
    state_load(&t->state, &t->tape, &t->step);
}

static void train(struct training *t)
{
    const struct options *o = t->step.options;
    struct evaluation *evaluation = evaluation_create(t);
    struct tarn_error error;
    training_begin(t, evaluation_plan(evaluation));
    if (o->check_gradient) {
        if (!check_gradient(t)) fail(TARN_CHECK_FAILED, "gradients are wrong");
    } else {
        training_run(t);
        print_curve(t);
        if (rank == 0 && t->session) evaluation_run(evaluation, t);
        if (rank == 0)
            printf("%s: %llu bytes, %.3f ms a step\n", o->memory, (unsigned long long)t->bytes,
                   t->seconds * 1e3 / o->steps);
        if (rank == 0 && t->session && o->trace)
            TARN(tarn_session_save_trace(t->session, o->trace, &error));
    }
    training_end(t);
    evaluation_destroy(evaluation);
}

int main(int argc, char **argv)
{
    static struct training t;
    struct options options;
    struct data data;
    struct planned planned = {0};
    ranks_begin(&argc, &argv);
    options_parse(&options, argc, argv);
    if (options_fault(&options, "graph", NULL)) options.width += 16;
    data_load(&data, &options);
    onednn_begin();
    t.step = (struct step){.options = &options, .data = &data, .channel = channel_create()};
    prepare(&t, &planned);
    train(&t);
    state_destroy(&t.state);
    tarn_couple_report_finish(&planned.couple);
    tarn_plan_destroy(t.plan);
    tarn_graph_destroy(t.graph);
    tape_finish(&t.tape);
    channel_destroy(t.step.channel);
    free(t.step.curve);
    data_free(&data);
    onednn_end();
    ranks_end();
    return 0;
}
