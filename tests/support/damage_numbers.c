/* Damage to offsets, sizes, hashes and places. A kind that is always refused or always sound says
 * why. */
#include "damage.h"

#include <string.h>

#include "plan_oracle.h"

/* ---- Offsets ---- */

static struct tarn_place *place_at(struct tarn_plan *plan, uint32_t storage)
{
    const struct tarn_storage *record = &plan->graph->storages[storage];
    struct tarn_place *places = record->persistent            ? plan->places_persistent
                                : record->tensor != TARN_NONE ? plan->storages
                                                              : plan->workspaces;
    uint32_t count = record->persistent            ? plan->places_persistent_count
                     : record->tensor != TARN_NONE ? plan->storages_count
                                                   : plan->workspaces_count;
    uint32_t id = record->tensor != TARN_NONE ? record->tensor : record->producer;
    for (uint32_t i = 0; i < count; i++) {
        if (places[i].id == id) return &places[i];
    }
    return NULL; /* of an earlier damage */
}

/* A lone storage or all of a group. */
struct block {
    const uint32_t *members;
    uint32_t count, lone;
    uint64_t step, size;
    bool persistent;
};

static bool draw_block(const struct tarn_plan *plan, struct block *block,
                       struct random_source *source)
{
    const struct tarn_graph *graph = plan->graph;
    if (graph->storages_count == 0 || plan->alignment == 0) return false;
    uint32_t a = random_below(source, graph->storages_count), g = graph->storages[a].group;
    uint64_t own = plan->spaces ? graph->spaces[graph->storages[a].space].alignment : 0;
    uint64_t alignment = own > 0 ? own : plan->alignment;
    *block = (struct block){NULL, 1, a, alignment, 0, graph->storages[a].persistent};
    if (g != TARN_NONE) {
        block->members = graph->groups[g].storages;
        block->count = graph->groups[g].storages_count;
        block->lone = block->members[0];
    }
    if (tarn_own_alignment(graph, &graph->storages[block->lone]) > block->step)
        block->step = tarn_own_alignment(graph, &graph->storages[block->lone]);
    uint64_t size = 0;
    for (uint32_t i = 0; i < block->count; i++)
        size += oracle_reserved(graph, block->members ? block->members[i] : a, plan->alignment);
    while (block->size < size) block->size += alignment;
    return true;
}

static bool move_by(struct tarn_plan *plan, const struct block *block, uint64_t bytes)
{
    for (uint32_t i = 0; i < block->count; i++) {
        struct tarn_place *place = place_at(plan, block->members ? block->members[i] : block->lone);
        if (!place) return false;
        place->offset += bytes;
    }
    return bytes != 0;
}

static bool move_block(struct tarn_plan *plan, struct random_source *source)
{
    struct block block;
    if (!draw_block(plan, &block, source)) return false;
    uint64_t limit = block.persistent ? plan->persistent : plan->footprint, begin = 0;
    const struct tarn_place *place = place_at(plan, block.lone);
    if (plan->spaces) {
        const struct tarn_plan_space *space =
            &plan->spaces[plan->graph->storages[block.lone].space];
        limit = block.persistent ? space->persistent : space->footprint;
        begin = block.persistent ? space->persistent_begin : space->begin;
    }
    if (!place || block.size > limit || (limit - block.size) / block.step > UINT32_MAX - 1)
        return false;
    uint64_t steps = random_below(source, (uint32_t)((limit - block.size) / block.step) + 1);
    return move_by(plan, &block, begin + block.step * steps - place->offset);
}

static bool nudge_block(struct tarn_plan *plan, struct random_source *source)
{
    struct block block;
    if (!draw_block(plan, &block, source)) return false;
    return move_by(plan, &block, random_below(source, 2) ? block.step : -block.step);
}

static bool swap_blocks(struct tarn_plan *plan, struct random_source *source)
{
    struct block a, b;
    if (!draw_block(plan, &a, source) || !draw_block(plan, &b, source)) return false;
    const struct tarn_place *x = place_at(plan, a.lone), *y = place_at(plan, b.lone);
    if (!x || !y || a.persistent != b.persistent) return false;
    uint64_t bytes = y->offset - x->offset;
    return move_by(plan, &a, bytes) && move_by(plan, &b, -bytes);
}

/* Sound where the alignment is 1. */
static bool misalign_block(struct tarn_plan *plan, struct random_source *source)
{
    struct block block;
    if (!draw_block(plan, &block, source)) return false;
    uint64_t bytes = plan->alignment > 1 ? plan->alignment / 2 : 1;
    return move_by(plan, &block, random_below(source, 2) ? bytes : -bytes);
}

static bool lift_out_of_range(struct tarn_plan *plan, struct random_source *source)
{
    struct block block;
    if (!draw_block(plan, &block, source)) return false;
    const struct tarn_place *place = place_at(plan, block.lone);
    return place && move_by(plan, &block, (UINT64_MAX - 4095) - place->offset);
}

/* Two neighbours in a group of several. */
static bool draw_neighbours(struct tarn_plan *plan, struct tarn_place **front,
                            struct tarn_place **back, struct random_source *source)
{
    const struct tarn_graph *graph = plan->graph;
    if (graph->groups_count == 0) return false;
    const struct tarn_group *group = &graph->groups[random_below(source, graph->groups_count)];
    if (group->storages_count < 2) return false;
    uint32_t i = random_below(source, group->storages_count - 1);
    *front = place_at(plan, group->storages[i]);
    *back = place_at(plan, group->storages[i + 1]);
    return *front && *back;
}

/* The rest stays where it was: never back to back. */
static bool split_group(struct tarn_plan *plan, struct random_source *source)
{
    struct tarn_place *front, *back;
    if (!draw_neighbours(plan, &front, &back, source)) return false;
    back->offset += plan->alignment;
    return true;
}

/* The order of a group is fixed, whatever the sizes are. */
static bool swap_members(struct tarn_plan *plan, struct random_source *source)
{
    struct tarn_place *front, *back;
    if (!draw_neighbours(plan, &front, &back, source)) return false;
    uint64_t offset = front->offset;
    front->offset = back->offset;
    back->offset = offset;
    return true;
}

/* Sound where that op ends its workspace before its outputs begin, and nobody else is there. */
static bool put_workspace_over_output(struct tarn_plan *plan, struct random_source *source)
{
    const struct tarn_graph *graph = plan->graph;
    if (plan->workspaces_count == 0) return false;
    struct tarn_place *place = &plan->workspaces[random_below(source, plan->workspaces_count)];
    if (place->id >= graph->ops_count || graph->ops[place->id].outputs_count == 0) return false;
    const struct tarn_graph_op *op = &graph->ops[place->id];
    uint32_t storage =
        graph->tensors[tarn_outputs(op)[random_below(source, op->outputs_count)]].storage;
    const struct tarn_place *output = place_at(plan, storage);
    if (!output || graph->storages[storage].persistent) return false;
    place->offset = output->offset;
    return true;
}

/* ---- Sizes ---- */

/* Where a plan has spaces, those behind one that grows or shrinks move with its end. */
static void resize(struct tarn_plan *plan, bool persistent, uint32_t s, uint64_t bytes)
{
    uint64_t *sum = persistent ? &plan->persistent : &plan->footprint;
    *sum += bytes;
    if (!plan->spaces) return;
    *(persistent ? &plan->spaces[s].persistent : &plan->spaces[s].footprint) += bytes;
    for (uint32_t next = s + 1; next < plan->spaces_count; next++)
        *(persistent ? &plan->spaces[next].persistent_begin : &plan->spaces[next].begin) += bytes;
    for (uint32_t a = 0; a < plan->graph->storages_count; a++) {
        const struct tarn_storage *record = &plan->graph->storages[a];
        struct tarn_place *place = place_at(plan, a);
        if (place && record->space > s && record->persistent == persistent) place->offset += bytes;
    }
}

static uint32_t draw_part(const struct tarn_plan *plan, bool persistent, uint64_t *size,
                          struct random_source *source)
{
    uint32_t s = plan->spaces ? random_below(source, plan->spaces_count) : 0;
    *size = persistent ? plan->persistent : plan->footprint;
    if (plan->spaces) *size = persistent ? plan->spaces[s].persistent : plan->spaces[s].footprint;
    return s;
}

static bool shrink(struct tarn_plan *plan, bool persistent, struct random_source *source)
{
    uint64_t size;
    uint32_t s = draw_part(plan, persistent, &size, source);
    if (size == 0) return false;
    resize(plan, persistent, s, -(1 + random_next(source) % size));
    return true;
}

/* The planner's footprint is the highest end of a block. */
static bool shrink_footprint(struct tarn_plan *plan, struct random_source *source)
{
    return shrink(plan, false, source);
}

static bool shrink_persistent(struct tarn_plan *plan, struct random_source *source)
{
    return shrink(plan, true, source);
}

/* The bound is not above it either way. */
static bool grow_footprint(struct tarn_plan *plan, struct random_source *source)
{
    uint64_t size;
    uint32_t s = draw_part(plan, false, &size, source);
    if (plan->spaces && plan->graph->spaces[s].capacity > 0) return false;
    resize(plan, false, s, 1 + random_below(source, 4096));
    return true;
}

static bool exceed_capacity(struct tarn_plan *plan, struct random_source *source)
{
    if (!plan->spaces) return false;
    uint32_t s = random_below(source, plan->spaces_count);
    uint64_t capacity = plan->graph->spaces[s].capacity;
    if (capacity == 0) return false;
    resize(plan, false, s, capacity - plan->spaces[s].persistent - plan->spaces[s].footprint + 1);
    return true;
}

/* Between its neighbours, or the sums, it no longer fits. */
static bool move_space(struct tarn_plan *plan, struct random_source *source)
{
    if (!plan->spaces) return false;
    struct tarn_plan_space *space = &plan->spaces[random_below(source, plan->spaces_count)];
    *(random_below(source, 2) ? &space->begin : &space->persistent_begin) += 1;
    return true;
}

static bool drop_space(struct tarn_plan *plan, struct random_source *source)
{
    (void)source;
    if (plan->spaces_count == 0) return false;
    plan->spaces_count--;
    return true;
}

/* Sound where it is 0. */
static bool overflow_sizes(struct tarn_plan *plan, struct random_source *source)
{
    (void)source;
    plan->footprint = UINT64_MAX;
    return true;
}

static bool change_alignment(struct tarn_plan *plan, struct random_source *source)
{
    if (random_below(source, 2))
        plan->alignment *= 2;
    else
        plan->alignment /= 2;
    return true;
}

static bool set_odd_alignment(struct tarn_plan *plan, struct random_source *source)
{
    plan->alignment = random_below(source, 4) ? 3 * plan->alignment : 0;
    return true;
}

/* ---- Places and hashes ---- */

static struct tarn_place *draw_places(struct tarn_plan *plan, uint32_t **count,
                                      struct random_source *source)
{
    struct tarn_place *places[] = {plan->storages, plan->workspaces, plan->places_persistent};
    uint32_t *counts[] = {&plan->storages_count, &plan->workspaces_count,
                          &plan->places_persistent_count};
    uint32_t i = random_below(source, 3);
    *count = counts[i];
    return **count > 0 ? places[i] : NULL;
}

static bool change_size(struct tarn_plan *plan, struct random_source *source)
{
    uint32_t *count;
    struct tarn_place *places = draw_places(plan, &count, source);
    if (!places) return false;
    uint64_t *size = &places[random_below(source, *count)].size;
    *size = random_below(source, 2) ? *size + 1 : *size - 1;
    return true;
}

static bool drop_place(struct tarn_plan *plan, struct random_source *source)
{
    uint32_t *count;
    struct tarn_place *places = draw_places(plan, &count, source);
    if (!places) return false;
    uint32_t i = random_below(source, *count);
    memmove(&places[i], &places[i + 1], (--*count - i) * sizeof *places);
    return true;
}

static bool repeat_place(struct tarn_plan *plan, struct random_source *source)
{
    uint32_t *count;
    struct tarn_place *places = draw_places(plan, &count, source);
    if (!places) return false;
    uint32_t i = random_below(source, *count);
    memmove(&places[i + 1], &places[i], ((*count)++ - i) * sizeof *places);
    return true;
}

static bool change_id(struct tarn_plan *plan, struct random_source *source)
{
    uint32_t *count;
    struct tarn_place *places = draw_places(plan, &count, source);
    if (!places) return false;
    places[*count - 1].id += 1 + random_below(source, 3);
    return true;
}

static bool change_hash(struct tarn_plan *plan, struct random_source *source)
{
    plan->source_hash.word[random_below(source, 2)] ^= UINT64_C(1) << random_below(source, 64);
    return true;
}

/* ---- All kinds ---- */

static const struct damage kinds[] = {
    {"block moved", DAMAGE_EITHER, move_block},
    {"block nudged", DAMAGE_EITHER, nudge_block},
    {"two blocks swapped", DAMAGE_EITHER, swap_blocks},
    {"block misaligned", DAMAGE_EITHER, misalign_block},
    {"block out of range", DAMAGE_REFUSED, lift_out_of_range},
    {"group split", DAMAGE_REFUSED, split_group},
    {"members of a group swapped", DAMAGE_REFUSED, swap_members},
    {"workspace over an output", DAMAGE_EITHER, put_workspace_over_output},
    {"footprint shrunk", DAMAGE_REFUSED, shrink_footprint},
    {"footprint grown", DAMAGE_SOUND, grow_footprint},
    {"persistent part shrunk", DAMAGE_REFUSED, shrink_persistent},
    {"capacity of a space exceeded", DAMAGE_REFUSED, exceed_capacity},
    {"begin of a space moved", DAMAGE_REFUSED, move_space},
    {"space dropped", DAMAGE_REFUSED, drop_space},
    {"sizes overflow", DAMAGE_EITHER, overflow_sizes},
    {"alignment halved or doubled", DAMAGE_EITHER, change_alignment},
    {"alignment no power of two", DAMAGE_REFUSED, set_odd_alignment},
    {"size of a place changed", DAMAGE_REFUSED, change_size},
    {"place dropped", DAMAGE_REFUSED, drop_place},
    {"place twice", DAMAGE_REFUSED, repeat_place},
    {"place of another id", DAMAGE_REFUSED, change_id},
    {"hash of another graph", DAMAGE_REFUSED, change_hash},
};

const struct damage_table damages_of_numbers = {kinds, sizeof kinds / sizeof kinds[0]};
