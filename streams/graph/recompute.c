/* The rule of what may run twice. What an op says of itself (`recomputable`) settles whether it
 * gives the same again; unless it speaks, its kind does: no random numbers, no communication. In
 * either case a repetition must leave alone what outlives the iteration, and must be able to write
 * to storages of its own: where it overwrites, it has to read what was there.
 * Cost: linear in the op's inputs and outputs.
 */
#include "recompute.h"

#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* ---- By kind ---- */

/* Words of kinds whose ops draw random numbers, or that another machine or the host takes part in.
 */
static const char *const unrepeatable_words[] = {
    "dropout",        "bernoulli",  "multinomial",   "poisson",
    "exponential",    "randint",    "randn",         "randperm",
    "rand_",          "random",     "normal_",       "uniform",
    "seed",           "rng",        "philox",        "all_reduce",
    "allreduce",      "all_gather", "allgather",     "reduce_scatter",
    "all_to_all",     "alltoall",   "reducescatter", "broadcast_",
    "send",           "recv",       "barrier",       "h2d",
    "host_to_device", "d2h",        "memcpy_h2d",    "device_to_host",
};

static bool is_repeatable_kind(const char *kind)
{
    for (size_t i = 0; i < COUNT_OF(unrepeatable_words); i++) {
        if (strstr(kind, unrepeatable_words[i])) return false;
    }
    return true;
}

/* ---- By what it reads and writes ---- */

static bool has_storage(const struct tarn_graph *graph, struct tarn_list tensors, uint32_t storage)
{
    for (size_t k = 0; k < tensors.count; k++) {
        if (graph->tensors[tensors.ids[k]].storage == storage) return true;
    }
    return false;
}

static bool can_write_elsewhere(const struct tarn_graph *graph, uint32_t op,
                                struct tarn_list inputs, struct tarn_list outputs)
{
    for (size_t k = 0; k < outputs.count; k++) {
        uint32_t a = graph->tensors[outputs.ids[k]].storage;
        const struct tarn_storage *storage = &graph->storages[a];
        if (storage->persistent) return false;
        if (storage->producer != op && !has_storage(graph, inputs, a)) return false;
    }
    return true;
}

bool tarn_op_repeats(const struct tarn_graph *graph, uint32_t op, uint32_t implementation)
{
    const struct tarn_graph_op *record = &graph->ops[op];
    if (record->view || record->recomputable == TARN_NOT_RECOMPUTABLE) return false;
    if (record->recomputable == TARN_RECOMPUTABLE_BY_RULE && !is_repeatable_kind(record->kind))
        return false;
    struct tarn_list inputs = {record->inputs, record->inputs_count};
    struct tarn_list outputs = {record->outputs, record->outputs_count};
    if (implementation != TARN_NONE) {
        const struct tarn_implementation *other = &record->implementations[implementation];
        if (other->inputs.count > 0) inputs = other->inputs;
        if (other->outputs.count > 0) outputs = other->outputs;
    }
    return can_write_elsewhere(graph, op, inputs, outputs);
}
