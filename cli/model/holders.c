/* Makes the holders of a model. The storages that each launch reads and writes give one touch each;
 * touches are sorted by storage and launch. A storage without touches holds nothing. The
 * certificate's storages are written before its cut, and no storage written before the cut may
 * follow them in the same bytes. Cost: O(S (V + E) + touches log touches). */
#include "model.h"

#include <stdlib.h>
#include <string.h>

/* A touch of the storage `key`: a root tensor, or tensors_count + op for a workspace. */
struct entry {
    uint32_t key;
    struct tarn_model_touch touch;
};

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    if (x->touch.launch != y->touch.launch) return x->touch.launch < y->touch.launch ? -1 : 1;
    return (int)y->touch.writes - (int)x->touch.writes; /* a launch that does both writes */
}

static int compare_holders(const void *a, const void *b)
{
    const struct tarn_holder *x = a, *y = b;
    if (x->writer != y->writer) return x->writer < y->writer ? -1 : 1;
    if (x->half != y->half) return x->half < y->half ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* The bytes missing to a multiple of the alignment, a power of two. */
static uint64_t padding(uint64_t size, uint64_t alignment) { return (0 - size) & (alignment - 1); }

static bool is_persistent(enum tarn_tensor_kind kind) { return kind >= TARN_PARAMETER; }

static size_t add_entries(const struct tarn_model *model, struct entry *entries, size_t count,
                          struct tarn_list tensors, struct tarn_model_touch touch)
{
    for (size_t i = 0; i < tensors.count; i++) {
        struct tarn_tensor_info info;
        tarn_tensor root = tarn_graph_root(model->graph, tensors.ids[i]);
        tarn_graph_tensor(model->graph, root, &info);
        if (!is_persistent(info.kind)) entries[count++] = (struct entry){root, touch};
    }
    return count;
}

static size_t collect_entries(const struct tarn_model *model, struct entry *entries)
{
    size_t count = 0;
    for (uint32_t v = 0; v < model->launches_count; v++) {
        struct tarn_op_info info;
        tarn_op op = model->launches[v].op;
        tarn_graph_op(model->graph, op, &info);
        count =
            add_entries(model, entries, count, info.inputs, (struct tarn_model_touch){v, false});
        count =
            add_entries(model, entries, count, info.outputs, (struct tarn_model_touch){v, true});
        if (info.workspace > 0)
            entries[count++] =
                (struct entry){tarn_graph_tensors_count(model->graph) + op, {v, true}};
    }
    qsort(entries, count, sizeof *entries, compare_entries);
    return count;
}

static size_t count_entries(const struct tarn_model *model)
{
    size_t count = 0;
    for (uint32_t v = 0; v < model->launches_count; v++) {
        struct tarn_op_info info;
        tarn_graph_op(model->graph, model->launches[v].op, &info);
        count += info.inputs.count + info.outputs.count + (info.workspace > 0);
    }
    return count;
}

static void describe(const struct tarn_model *model, uint32_t key, struct tarn_holder *holder)
{
    static const enum tarn_holder_kind kinds[] = {
        [TARN_INTERMEDIATE] = TARN_HOLDS_INTERMEDIATE,
        [TARN_GRADIENT] = TARN_HOLDS_GRADIENT,
        [TARN_OUTPUT] = TARN_HOLDS_OUTPUT,
    };
    uint32_t tensors_count = tarn_graph_tensors_count(model->graph);
    holder->group = TARN_NONE;
    if (key >= tensors_count) {
        struct tarn_op_info info;
        holder->op = key - tensors_count;
        holder->tensor = TARN_NONE;
        tarn_graph_op(model->graph, holder->op, &info);
        holder->name = info.name;
        holder->size = info.workspace;
        holder->kind = TARN_HOLDS_WORKSPACE;
        holder->space = info.workspace_space;
        holder->offset = model->spaces[holder->space].begin +
                         tarn_plan_workspace_offset(model->plan, holder->op);
        return;
    }
    struct tarn_tensor_info info;
    tarn_graph_tensor(model->graph, key, &info);
    holder->tensor = key;
    holder->op = TARN_NONE;
    holder->name = info.name;
    holder->size = info.size;
    holder->kind = kinds[info.kind];
    holder->pinned = info.kind == TARN_OUTPUT;
    holder->space = info.space;
    holder->offset = model->spaces[info.space].begin + tarn_plan_offset(model->plan, key);
}

/* Holders in one group, or in groups that share members, as one block. */
struct block {
    uint32_t leader; /* a holder before it in the block, or itself */
    uint64_t begin, end;
};

static uint32_t leader_of(struct block *blocks, uint32_t h)
{
    while (blocks[h].leader != h) h = blocks[h].leader = blocks[blocks[h].leader].leader;
    return h;
}

static void unite(struct block *blocks, uint32_t h, uint32_t with)
{
    struct block *a = &blocks[leader_of(blocks, h)], *b = &blocks[leader_of(blocks, with)];
    if (b->begin < a->begin) a->begin = b->begin;
    if (b->end > a->end) a->end = b->end;
    b->leader = a->leader;
}

/* holder_of: root tensor -> holder or TARN_NONE. Only members that end where their block does have
 * its padding. False: no memory. */
static bool add_groups(struct tarn_model *model, const uint32_t *holder_of)
{
    struct block *blocks = tarn_memory_take(&model->memory, model->holders_count, sizeof *blocks);
    if (!blocks) return false;
    for (uint32_t h = 0; h < model->holders_count; h++) {
        const struct tarn_holder *holder = &model->holders[h];
        blocks[h] = (struct block){h, holder->offset, holder->offset + holder->size};
    }
    for (uint32_t g = 0; g < tarn_graph_groups_count(model->graph); g++) {
        struct tarn_list members = tarn_graph_group(model->graph, g);
        bool is_padded = tarn_graph_group_is_padded(model->graph, g); /* each, not the whole */
        uint32_t before = TARN_NONE;
        for (size_t i = 0; i < members.count; i++) {
            uint32_t h = holder_of[members.ids[i]];
            if (h == TARN_NONE) continue;
            model->holders[h].group = members.count > 1 ? g : TARN_NONE;
            if (is_padded || model->holders[h].size == 0) continue;
            if (before != TARN_NONE) unite(blocks, before, h);
            before = h;
        }
    }
    for (uint32_t h = 0; h < model->holders_count; h++) {
        struct tarn_holder *holder = &model->holders[h];
        const struct block *block = &blocks[leader_of(blocks, h)];
        bool is_last = holder->offset + holder->size == block->end;
        if (holder->group == TARN_NONE || tarn_graph_group_is_padded(model->graph, holder->group))
            continue;
        holder->padding =
            !is_last ? 0
                     : padding(block->end - block->begin, model->spaces[holder->space].alignment);
    }
    return true;
}

static enum tarn_holder_half half_of(const struct tarn_model *model,
                                     const struct tarn_holder *holder)
{
    struct tarn_op_info info;
    tarn_graph_op(model->graph, model->launches[holder->writer].op, &info);
    if (info.workspace == 0 || !info.workspace_first) return TARN_WHOLE;
    return holder->tensor == TARN_NONE ? TARN_FIRST_HALF : TARN_SECOND_HALF;
}

static void make_holders(struct tarn_model *model, const struct entry *entries, size_t count,
                         struct tarn_model_touch *touches)
{
    for (size_t i = 0, end; i < count; i = end) {
        struct tarn_holder *holder = &model->holders[model->holders_count++];
        describe(model, entries[i].key, holder);
        holder->padding = padding(holder->size, model->spaces[holder->space].alignment);
        holder->touches = touches;
        for (end = i; end < count && entries[end].key == entries[i].key; end++) {
            bool again = end > i && entries[end].touch.launch == entries[end - 1].touch.launch;
            if (!again) touches[holder->touches_count++] = entries[end].touch;
        }
        touches += holder->touches_count;
        holder->writer = holder->touches[0].launch;
        holder->half = half_of(model, holder);
        model->sum += holder->size;
    }
    qsort(model->holders, model->holders_count, sizeof *model->holders, compare_holders);
}

/* ---- Data that follows from the holders ---- */

/* Is the op in all the arms that the certificate is of? */
static bool is_taken(const struct tarn_model *model, tarn_op op)
{
    struct tarn_op_info info;
    struct tarn_list arms = model->certificate.arms;
    tarn_graph_op(model->graph, op, &info);
    for (size_t i = 0; i < info.branch_count; i++)
        if (info.branch[i][0] < arms.count && arms.ids[info.branch[i][0]] != info.branch[i][1])
            return false;
    return true;
}

static bool mark_certified(struct tarn_model *model)
{
    const struct tarn_certificate *certificate = &model->certificate;
    uint32_t *first = tarn_memory_take(&model->memory, model->holders_count, sizeof *first);
    if (!first) return false;
    if (!model->has_certificate || certificate->streams_count != model->streams_count) return true;
    for (uint32_t h = 0; h < model->holders_count; h++) {
        const struct tarn_launch *writer = &model->launches[model->holders[h].writer];
        uint32_t launched = certificate->launched[writer->stream];
        model->holders[h].certified =
            model->holders[h].half == TARN_FIRST_HALF /* or its outputs may follow it */
                ? writer->place == launched && tarn_model_cuts_inside(model, writer->stream)
                : writer->place < launched;
    }
    for (tarn_stream s = 0; s < model->streams_count; s++) {
        uint32_t launched = certificate->launched[s] + tarn_model_cuts_inside(model, s);
        if (launched == 0) continue;
        if (tarn_model_first(model, s, first) != TARN_OK) return false;
        for (uint32_t h = 0; h < model->holders_count; h++)
            if (first[h] < launched) model->holders[h].certified = false;
    }
    for (uint32_t h = 0; h < model->holders_count; h++)
        if (model->holders[h].space > 0 ||
            !is_taken(model, model->launches[model->holders[h].writer].op))
            model->holders[h].certified = false;
    return true;
}

/* *peak of a space; TARN_NONE: of all. */
static bool find_serial_peak(struct tarn_model *model, tarn_space space, uint64_t *peak)
{
    uint64_t *released =
        tarn_memory_take(&model->memory, (size_t)model->launches_count + 1, sizeof *released);
    uint64_t alive = 0;
    if (!released) return false;
    for (uint32_t v = 0, h = 0; v < model->launches_count; v++) {
        alive -= released[v];
        for (; h < model->holders_count && model->holders[h].writer == v; h++) {
            const struct tarn_holder *holder = &model->holders[h];
            if (space != TARN_NONE && holder->space != space) continue;
            if (holder->half == TARN_FIRST_HALF) { /* freed before the other holders begin */
                if (alive + holder->size > *peak) *peak = alive + holder->size;
                continue;
            }
            alive += holder->size;
            if (!holder->pinned)
                released[holder->touches[holder->touches_count - 1].launch + 1] += holder->size;
        }
        if (alive > *peak) *peak = alive;
    }
    return true;
}

bool tarn_holders_read(struct tarn_model *model)
{
    struct tarn_memory *memory = &model->memory, scratch = {NULL, false};
    size_t room = count_entries(model);
    uint32_t tensors_count = tarn_graph_tensors_count(model->graph);
    struct entry *entries = tarn_memory_take(&scratch, room, sizeof *entries);
    uint32_t *holder_of = tarn_memory_take(&scratch, tensors_count, sizeof *holder_of);
    struct tarn_model_touch *touches = tarn_memory_take(memory, room, sizeof *touches);
    bool is_complete = !scratch.is_exhausted && !memory->is_exhausted;
    if (is_complete) {
        size_t count = collect_entries(model, entries), holders_count = 0;
        for (size_t i = 0; i < count; i++)
            holders_count += i == 0 || entries[i].key != entries[i - 1].key;
        model->holders = tarn_memory_take(memory, holders_count, sizeof *model->holders);
        is_complete = model->holders != NULL;
        if (is_complete) make_holders(model, entries, count, touches);
    }
    if (is_complete) {
        memset(holder_of, 0xff, (size_t)tensors_count * sizeof *holder_of);
        for (uint32_t h = 0; h < model->holders_count; h++)
            if (model->holders[h].tensor != TARN_NONE) holder_of[model->holders[h].tensor] = h;
        is_complete = add_groups(model, holder_of) && mark_certified(model) &&
                      find_serial_peak(model, TARN_NONE, &model->serial_peak);
        for (tarn_space s = 0; is_complete && s < model->spaces_count; s++)
            is_complete = find_serial_peak(model, s, &model->spaces[s].serial_peak);
    }
    tarn_memory_finish(&scratch);
    return is_complete;
}
