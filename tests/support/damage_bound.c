/* Damage to bounds and their certificates. A kind that is always refused or always sound says why.
 */
#include "damage.h"

#include <string.h>

/* The plan's, or that of one of its memory spaces; NULL: nothing is claimed. */
static struct tarn_claim *draw_claim(struct tarn_plan *plan, struct random_source *source)
{
    struct tarn_claim *claim = &plan->claim;
    if (plan->spaces_count > 0)
        claim = &plan->spaces[random_below(source, plan->spaces_count)].claim;
    return claim->threshold ? claim : NULL;
}

/* The planner's bound is all that its certificate proves. */
static bool raise_bound(struct tarn_plan *plan, struct random_source *source)
{
    struct tarn_claim *claim = draw_claim(plan, source);
    if (!claim) return false;
    claim->bound += 1 + random_below(source, random_below(source, 2) ? 2 : 600);
    return true;
}

/* Less than what is proved is proved. */
static bool lower_bound(struct tarn_plan *plan, struct random_source *source)
{
    struct tarn_claim *claim = draw_claim(plan, source);
    if (!claim || claim->bound == 0) return false;
    claim->bound -= 1 + random_next(source) % claim->bound;
    return true;
}

/* A plan need not claim anything. */
static bool drop_certificate(struct tarn_plan *plan, struct random_source *source)
{
    struct tarn_claim *claim = draw_claim(plan, source);
    if (!claim) return false;
    claim->threshold = NULL;
    claim->gaps_count = 0;
    return true;
}

/* In place of a threshold of a stream; false: it is the same. */
static bool set_threshold(struct tarn_plan *plan, bool beyond, struct random_source *source)
{
    struct tarn_claim *claim = draw_claim(plan, source);
    if (!claim) return false;
    uint32_t s = random_below(source, plan->streams_count);
    uint32_t count = plan->list_begin[s + 1] - plan->list_begin[s];
    uint32_t *threshold = &claim->threshold[s], before = *threshold;
    *threshold = beyond ? count + 1 + random_below(source, 3) : random_below(source, count + 1);
    return *threshold != before;
}

static bool move_threshold(struct tarn_plan *plan, struct random_source *source)
{
    return set_threshold(plan, false, source);
}

static bool move_threshold_out(struct tarn_plan *plan, struct random_source *source)
{
    return set_threshold(plan, true, source);
}

/* Into or out of the next launch of a stream; a bound of one byte is easy to prove. */
static bool halve_cut(struct tarn_plan *plan, struct random_source *source)
{
    struct tarn_claim *claim = draw_claim(plan, source);
    if (!claim) return false;
    uint32_t s = random_below(source, plan->streams_count), i = 0, count = claim->inside_count;
    while (i < count && claim->inside[i] < s) i++;
    bool was_inside = i < count && claim->inside[i] == s;
    size_t behind = count - i - was_inside;
    if (was_inside)
        memmove(&claim->inside[i], &claim->inside[i + 1], behind * sizeof *claim->inside);
    else
        memmove(&claim->inside[i + 1], &claim->inside[i], behind * sizeof *claim->inside);
    if (!was_inside) claim->inside[i] = s;
    claim->inside_count += was_inside ? -1u : 1u;
    if (random_below(source, 2) && claim->bound > 1) claim->bound = 1;
    return true;
}

static bool drop_gap(struct tarn_plan *plan, struct random_source *source)
{
    struct tarn_claim *claim = draw_claim(plan, source);
    if (!claim || claim->gaps_count == 0) return false;
    uint32_t i = random_below(source, claim->gaps_count);
    size_t behind = --claim->gaps_count - i;
    memmove(&claim->gaps[i], &claim->gaps[i + 1], behind * sizeof *claim->gaps);
    return true;
}

/* Sound where the tensor begins a gap, and all gaps stay disjoint. */
static bool add_gap(struct tarn_plan *plan, struct random_source *source)
{
    const struct tarn_graph *graph = plan->graph;
    struct tarn_claim *claim = draw_claim(plan, source);
    if (!claim || graph->groups_count == 0) return false;
    const struct tarn_group *group = &graph->groups[random_below(source, graph->groups_count)];
    uint32_t storage = group->storages[random_below(source, group->storages_count)], i = 0;
    uint32_t tensor = graph->storages[storage].tensor, count = claim->gaps_count;
    while (i < count && claim->gaps[i] < tensor) i++;
    memmove(&claim->gaps[i + 1], &claim->gaps[i], (count - i) * sizeof *claim->gaps);
    claim->gaps[i] = tensor;
    ++claim->gaps_count;
    return true;
}

/* Members of the antichain, and lone storages, begin no gap. */
static bool name_a_lone_storage_as_gap(struct tarn_plan *plan, struct random_source *source)
{
    const struct tarn_graph *graph = plan->graph;
    struct tarn_claim *claim = draw_claim(plan, source);
    if (!claim || graph->planned_count == 0 || claim->gaps_count > 0) return false;
    const struct tarn_storage *record =
        &graph->storages[random_below(source, graph->planned_count)];
    if (record->group != TARN_NONE || record->tensor == TARN_NONE) return false;
    claim->gaps[claim->gaps_count++] = record->tensor;
    return true;
}

/* Members of a group of another space begin no gap of this one. */
static bool name_a_gap_of_another_space(struct tarn_plan *plan, struct random_source *source)
{
    const struct tarn_graph *graph = plan->graph;
    struct tarn_claim *claim = draw_claim(plan, source);
    if (!claim || graph->groups_count == 0 || claim->gaps_count > 0) return false;
    const struct tarn_group *group = &graph->groups[random_below(source, graph->groups_count)];
    uint32_t space = graph->storages[group->storages[0]].space;
    if (plan->spaces_count == 0 || claim == &plan->spaces[space].claim) return false;
    claim->gaps[claim->gaps_count++] = group->tensors[0];
    return true;
}

static const struct damage kinds[] = {
    {"bound raised", DAMAGE_REFUSED, raise_bound},
    {"bound lowered", DAMAGE_SOUND, lower_bound},
    {"certificate dropped", DAMAGE_SOUND, drop_certificate},
    {"threshold moved", DAMAGE_EITHER, move_threshold},
    {"threshold beyond its stream", DAMAGE_REFUSED, move_threshold_out},
    {"cut through an op", DAMAGE_EITHER, halve_cut},
    {"gap dropped", DAMAGE_EITHER, drop_gap},
    {"gap added", DAMAGE_EITHER, add_gap},
    {"lone storage as gap", DAMAGE_REFUSED, name_a_lone_storage_as_gap},
    {"gap of another space", DAMAGE_REFUSED, name_a_gap_of_another_space},
};

const struct damage_table damages_of_bounds = {kinds, sizeof kinds / sizeof kinds[0]};
