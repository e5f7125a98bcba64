/* The content hash: every field of every record is fed as a 64-bit word, lists and strings with
 * their length first, so that no two different graphs feed the same words. Two lanes with different
 * odd multipliers (of splitmix64 and murmur3) absorb each word and are mixed together at the end.
 * Later additions to the format are fed only if a graph has them, after a flag in an older word, so
 * that a graph keeps its hash for ever. Cost: a few nanoseconds a word.
 */
#include "hash.h"

#include <string.h>

static uint64_t rotate(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

void tarn_hasher_add(struct tarn_hasher *hasher, uint64_t word)
{
    hasher->a = rotate((hasher->a ^ word) * UINT64_C(0xbf58476d1ce4e5b9), 29);
    hasher->b = rotate((hasher->b + word) * UINT64_C(0xff51afd7ed558ccd), 37) ^ hasher->a;
}

/* Little-endian words, the last one filled with zeros. */
static void add_string(struct tarn_hasher *hasher, const char *text)
{
    size_t length = strlen(text);
    tarn_hasher_add(hasher, length);
    for (size_t i = 0; i < length; i += 8) {
        uint64_t word = 0;
        for (size_t k = 0; k < 8 && i + k < length; k++)
            word |= (uint64_t)(unsigned char)text[i + k] << (8 * k);
        tarn_hasher_add(hasher, word);
    }
}

void tarn_hasher_add_list(struct tarn_hasher *hasher, const uint32_t *ids, size_t count)
{
    tarn_hasher_add(hasher, count);
    for (size_t i = 0; i < count; i++) tarn_hasher_add(hasher, ids[i]);
}

static void add_implementations(struct tarn_hasher *hasher, const struct tarn_graph_op *op)
{
    const struct tarn_op_extra *extra = tarn_extra(op);
    tarn_hasher_add(hasher, extra->implementations_count);
    for (uint32_t i = 0; i < extra->implementations_count; i++) {
        const struct tarn_list *inputs = &extra->implementations[i].inputs;
        const struct tarn_list *outputs = &extra->implementations[i].outputs;
        add_string(hasher, extra->implementations[i].name);
        tarn_hasher_add(hasher, extra->implementations[i].cost);
        tarn_hasher_add(hasher, (uint64_t)(inputs->count > 0) << 63 |
                                    (uint64_t)(outputs->count > 0) << 62 |
                                    (uint64_t)extra->implementations[i].workspace_first << 61 |
                                    extra->implementations[i].workspace);
        if (inputs->count > 0) tarn_hasher_add_list(hasher, inputs->ids, inputs->count);
        if (outputs->count > 0) tarn_hasher_add_list(hasher, outputs->ids, outputs->count);
    }
}

/* 0, too, if neither the op nor an implementation of it has a workspace: then it has no effect. */
static uint64_t workspace_space(const struct tarn_op_extra *extra)
{
    bool has_workspace = extra->workspace > 0;
    for (uint32_t i = 0; i < extra->implementations_count; i++)
        has_workspace = has_workspace || extra->implementations[i].workspace > 0;
    return has_workspace ? extra->workspace_space : 0;
}

static void add_op(struct tarn_hasher *hasher, const struct tarn_graph_op *op)
{
    const struct tarn_op_extra *extra = tarn_extra(op);
    add_string(hasher, op->name);
    add_string(hasher, op->kind);
    tarn_hasher_add(hasher, op->stream);
    tarn_hasher_add_list(hasher, op->inputs, op->inputs_count);
    tarn_hasher_add_list(hasher, tarn_outputs(op), op->outputs_count);
    tarn_hasher_add_list(hasher, extra->control, extra->control_count);
    uint64_t space = workspace_space(extra);
    tarn_hasher_add(hasher, (uint64_t)op->workspace_first << 63 | (uint64_t)(space > 0) << 62 |
                                extra->workspace);
    if (space > 0) tarn_hasher_add(hasher, space);
    tarn_hasher_add(hasher, op->cost);
    tarn_hasher_add(hasher, extra->flops);
    bool yes = op->recomputable == TARN_RECOMPUTABLE,
         no = op->recomputable == TARN_NOT_RECOMPUTABLE;
    tarn_hasher_add(hasher, (uint64_t)(extra->branch_count > 0) << 63 |
                                (uint64_t)op->op_class << 3 | (uint64_t)no << 2 |
                                (uint64_t)op->view << 1 | yes);
    if (extra->branch_count > 0)
        tarn_hasher_add_list(hasher, *extra->branch, 2 * (size_t)extra->branch_count);
    tarn_hasher_add(hasher, extra->inplace_count);
    for (uint32_t i = 0; i < extra->inplace_count; i++)
        tarn_hasher_add_list(hasher, extra->inplace[i], 2);
    add_implementations(hasher, op);
    tarn_hasher_add(hasher, op->origin);
    if (op->move) tarn_hasher_add(hasher, UINT64_C(1) << 62);
    if (extra->common_is_given) {
        tarn_hasher_add(hasher, UINT64_C(1) << 63);
        tarn_hasher_add_list(hasher, extra->common, extra->common_count);
    }
    tarn_hasher_add(hasher, extra->implementation + UINT32_C(1)); /* as written: 0 */
}

static void add_tensor(struct tarn_hasher *hasher, const struct tarn_graph *graph, uint32_t t)
{
    const struct tarn_graph_tensor *tensor = &graph->tensors[t];
    add_string(hasher, tensor->name);
    tarn_hasher_add(hasher, tensor->size);
    tarn_hasher_add(hasher, tensor->alignment);
    bool is_copy = tensor->origin != t;
    tarn_hasher_add(hasher, (uint64_t)tensor->root << 8 | (uint64_t)is_copy << 7 |
                                (uint64_t)(tensor->space > 0) << 6 |
                                (uint64_t)(tarn_tensor_begin(tensor) > 0) << 5 |
                                (uint64_t)(tensor->offset_rule > 0) << 4 | (uint64_t)tensor->kind);
    if (tensor->space > 0) tarn_hasher_add(hasher, tensor->space);
    if (tarn_tensor_begin(tensor) > 0) tarn_hasher_add(hasher, tarn_tensor_begin(tensor));
    if (tensor->offset_rule > 0)
        tarn_hasher_add(hasher, tarn_tensor_wanted(tensor) << 2 | tensor->offset_rule);
    if (is_copy) tarn_hasher_add(hasher, tensor->origin);
}

/* murmur3's finalizer: every bit in reaches every bit out. */
static uint64_t finish(uint64_t x)
{
    x = (x ^ x >> 33) * UINT64_C(0xff51afd7ed558ccd);
    x = (x ^ x >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ x >> 33;
}

struct tarn_hasher tarn_hasher_begin(void)
{
    return (struct tarn_hasher){UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0x7461726e2e677261)};
}

struct tarn_hash tarn_hasher_end(const struct tarn_hasher *hasher)
{
    uint64_t a = finish(hasher->a), b = finish(hasher->b + a);
    return (struct tarn_hash){{a + b, b}};
}

struct tarn_hash tarn_hash_of_graph(const struct tarn_graph *graph)
{
    struct tarn_hasher hasher = tarn_hasher_begin();
    tarn_hasher_add(&hasher, graph->streams_count);
    for (uint32_t s = 0; s < graph->streams_count; s++) add_string(&hasher, graph->streams[s].name);
    tarn_hasher_add(&hasher, graph->ops_count);
    for (uint32_t v = 0; v < graph->ops_count; v++) add_op(&hasher, &graph->ops[v]);
    tarn_hasher_add(&hasher, graph->tensors_count);
    for (uint32_t t = 0; t < graph->tensors_count; t++) add_tensor(&hasher, graph, t);
    tarn_hasher_add(&hasher, graph->given_count);
    for (uint32_t g = 0; g < graph->given_count; g++) {
        const struct tarn_group *group = &graph->given[g];
        if (group->padded) tarn_hasher_add(&hasher, UINT64_C(1) << 63);
        tarn_hasher_add_list(&hasher, group->tensors, group->tensors_count);
        if (group->offsets) tarn_hasher_add(&hasher, UINT64_C(1) << 62);
        for (uint32_t i = 0; group->offsets && i < group->tensors_count; i++)
            tarn_hasher_add(&hasher, group->offsets[i]);
        if (group->symmetric) tarn_hasher_add(&hasher, UINT64_C(1) << 61);
        if (group->symmetric) add_string(&hasher, group->symmetric);
    }
    if (graph->spaces_count > 0) tarn_hasher_add(&hasher, graph->spaces_count);
    for (uint32_t s = 0; s < graph->spaces_count; s++) {
        add_string(&hasher, graph->spaces[s].name);
        tarn_hasher_add(&hasher, (uint64_t)graph->spaces[s].kind);
        tarn_hasher_add(&hasher, graph->spaces[s].alignment);
        tarn_hasher_add(&hasher, graph->spaces[s].capacity);
    }
    return tarn_hasher_end(&hasher);
}

struct tarn_hash_text tarn_hash_format(struct tarn_hash hash)
{
    struct tarn_hash_text result;
    for (int i = 0; i < 32; i++) {
        uint64_t word = hash.word[i / 16];
        result.text[i] = "0123456789abcdef"[word >> (60 - 4 * (i % 16)) & 15];
    }
    result.text[32] = '\0';
    return result;
}

bool tarn_hash_parse(const char *text, struct tarn_hash *hash)
{
    static const char digits[] = "0123456789abcdef";
    struct tarn_hash result = {{0, 0}};
    if (strlen(text) != 32) return false;
    for (int i = 0; i < 32; i++) {
        const char *digit = strchr(digits, text[i]);
        if (!digit) return false;
        result.word[i / 16] = result.word[i / 16] << 4 | (uint64_t)(digit - digits);
    }
    *hash = result;
    return true;
}
