/* Copies of plans, and damage of a kind or of several. */
#include "damage.h"

#include <stdlib.h>
#include <string.h>

/* ---- Copies ---- */

static void *duplicate(struct tarn_region *region, const void *from, size_t count, size_t size)
{
    void *to = tarn_region_take(region, count + DAMAGES_MAX, size);
    if (!to) abort();
    if (count > 0) memcpy(to, from, count * size);
    return to;
}

static void copy_claim(struct tarn_plan *copy, const struct tarn_claim *from, struct tarn_claim *to)
{
    struct tarn_region *region = &copy->region;
    if (from->threshold)
        to->threshold =
            duplicate(region, from->threshold, copy->streams_count, sizeof *to->threshold);
    to->gaps = duplicate(region, from->gaps, from->gaps_count, sizeof *to->gaps);
    to->inside = duplicate(region, from->inside, from->inside_count, sizeof *to->inside);
}

static void copy_spaces(struct tarn_plan *copy, const struct tarn_plan *plan)
{
    copy->spaces = duplicate(&copy->region, plan->spaces, plan->spaces_count, sizeof *copy->spaces);
    for (uint32_t s = 0; s < plan->spaces_count; s++) {
        const struct tarn_plan_space *from = &plan->spaces[s];
        struct tarn_plan_space *to = &copy->spaces[s];
        to->method = NULL;
        copy_claim(copy, &from->claim, &to->claim);
    }
}

struct tarn_plan *damage_copy(const struct tarn_plan *plan)
{
    struct tarn_plan *copy = malloc(sizeof *copy);
    if (!copy) abort();
    memcpy(copy, plan, sizeof *copy);
    copy->region = copy->boundary_region = (struct tarn_region){.chunks = NULL};
    atomic_init(&copy->references, 1);
    atomic_init(&copy->program, NULL);
    copy->graph = tarn_graph_retain(plan->graph);
    copy->method = NULL;
    uint32_t streams = plan->streams_count;
    copy_claim(copy, &plan->claim, &copy->claim);
    if (plan->spaces) copy_spaces(copy, plan);
    copy->list_begin =
        duplicate(&copy->region, plan->list_begin, streams + 1, sizeof *copy->list_begin);
    copy->list =
        duplicate(&copy->region, plan->list, plan->list_begin[streams], sizeof *copy->list);
    copy->waits = duplicate(&copy->region, plan->waits, plan->waits_count, sizeof *copy->waits);
    copy->boundary_waits = duplicate(&copy->boundary_region, plan->boundary_waits,
                                     plan->boundary_waits_count, sizeof *copy->boundary_waits);
    copy->storages =
        duplicate(&copy->region, plan->storages, plan->storages_count, sizeof *copy->storages);
    copy->workspaces = duplicate(&copy->region, plan->workspaces, plan->workspaces_count,
                                 sizeof *copy->workspaces);
    copy->places_persistent =
        duplicate(&copy->region, plan->places_persistent, plan->places_persistent_count,
                  sizeof *copy->places_persistent);
    return copy;
}

/* ---- Damage ---- */

static const struct damage_table *const tables[] = {&damages_of_order, &damages_of_bounds,
                                                    &damages_of_numbers};

size_t damages_count(void)
{
    size_t count = 0;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) count += tables[i]->count;
    return count;
}

const struct damage *damage_kind(size_t kind)
{
    size_t i = 0;
    for (; kind >= tables[i]->count; i++) kind -= tables[i]->count;
    return &tables[i]->kinds[kind];
}

struct tarn_plan *damaged(const struct tarn_plan *plan, size_t kind, uint32_t more,
                          struct random_source *source)
{
    struct tarn_plan *copy = damage_copy(plan);
    if (!damage_kind(kind)->apply(copy, source)) {
        tarn_plan_destroy(copy);
        return NULL;
    }
    while (more-- > 0)
        damage_kind(random_below(source, (uint32_t)damages_count()))->apply(copy, source);
    return copy;
}
