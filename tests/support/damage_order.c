/* Damage to waits and launch lists. A kind that is always refused or always sound says why. */
#include "damage.h"

#include <stdlib.h>
#include <string.h>

/* ---- Waits ---- */

static bool drop_from(struct tarn_wait *waits, uint32_t *count, struct random_source *source)
{
    if (*count == 0) return false;
    uint32_t i = random_below(source, *count);
    memmove(&waits[i], &waits[i + 1], (--*count - i) * sizeof *waits);
    return true;
}

static bool drop_wait(struct tarn_plan *plan, struct random_source *source)
{
    return drop_from(plan->waits, &plan->waits_count, source);
}

static bool drop_boundary_wait(struct tarn_plan *plan, struct random_source *source)
{
    return drop_from(plan->boundary_waits, &plan->boundary_waits_count, source);
}

static bool drop_waits_of_an_op(struct tarn_plan *plan, struct random_source *source)
{
    if (plan->waits_count == 0) return false;
    uint32_t op = plan->waits[random_below(source, plan->waits_count)].op, kept = 0;
    for (uint32_t i = 0; i < plan->waits_count; i++) {
        if (plan->waits[i].op != op) plan->waits[kept++] = plan->waits[i];
    }
    plan->waits_count = kept;
    return true;
}

static bool drop_all_boundary_waits(struct tarn_plan *plan, struct random_source *source)
{
    (void)source;
    bool had = plan->boundary_waits_count > 0;
    plan->boundary_waits_count = 0;
    return had;
}

static bool draw_launch(const struct tarn_plan *plan, uint32_t *op, struct random_source *source)
{
    uint32_t count = plan->list_begin[plan->streams_count];
    if (count == 0) return false;
    *op = plan->list[random_below(source, count)];
    return *op < plan->graph->ops_count;
}

/* Two launched ops of different streams. */
static bool draw_wait(const struct tarn_plan *plan, struct tarn_wait *wait,
                      struct random_source *source)
{
    return draw_launch(plan, &wait->op, source) && draw_launch(plan, &wait->on, source) &&
           plan->graph->ops[wait->op].stream != plan->graph->ops[wait->on].stream;
}

static bool retarget(struct tarn_plan *plan, struct tarn_wait *waits, uint32_t count,
                     struct random_source *source)
{
    struct tarn_wait drawn;
    if (count == 0 || !draw_wait(plan, &drawn, source)) return false;
    struct tarn_wait *wait = &waits[random_below(source, count)];
    if (wait->on == drawn.on || wait->op == drawn.on) return false;
    wait->on = drawn.on;
    return true;
}

static bool retarget_wait(struct tarn_plan *plan, struct random_source *source)
{
    return retarget(plan, plan->waits, plan->waits_count, source);
}

static bool retarget_boundary_wait(struct tarn_plan *plan, struct random_source *source)
{
    return retarget(plan, plan->boundary_waits, plan->boundary_waits_count, source);
}

static bool reverse_wait(struct tarn_plan *plan, struct random_source *source)
{
    if (plan->waits_count == 0) return false;
    struct tarn_wait *wait = &plan->waits[random_below(source, plan->waits_count)];
    *wait = (struct tarn_wait){wait->on, wait->op};
    return true;
}

static bool add_wait(struct tarn_plan *plan, struct random_source *source)
{
    return draw_wait(plan, &plan->waits[plan->waits_count], source) && ++plan->waits_count > 0;
}

/* More order than needed, and never a cycle: the other op is of the previous iteration. */
static bool add_boundary_wait(struct tarn_plan *plan, struct random_source *source)
{
    return draw_wait(plan, &plan->boundary_waits[plan->boundary_waits_count], source) &&
           ++plan->boundary_waits_count > 0;
}

static bool move_wait_to_boundary(struct tarn_plan *plan, struct random_source *source)
{
    if (plan->waits_count == 0) return false;
    uint32_t i = random_below(source, plan->waits_count);
    plan->boundary_waits[plan->boundary_waits_count++] = plan->waits[i];
    plan->waits[i] = plan->waits[--plan->waits_count];
    return true;
}

static bool move_boundary_wait_inside(struct tarn_plan *plan, struct random_source *source)
{
    if (plan->boundary_waits_count == 0) return false;
    uint32_t i = random_below(source, plan->boundary_waits_count);
    plan->waits[plan->waits_count++] = plan->boundary_waits[i];
    plan->boundary_waits[i] = plan->boundary_waits[--plan->boundary_waits_count];
    return true;
}

/* A wait twice says no more than once. */
static bool repeat_wait(struct tarn_plan *plan, struct random_source *source)
{
    if (plan->waits_count == 0) return false;
    plan->waits[plan->waits_count] = plan->waits[random_below(source, plan->waits_count)];
    plan->waits_count++;
    return true;
}

static bool draw_view(const struct tarn_plan *plan, uint32_t *op, struct random_source *source)
{
    *op = random_below(source, plan->graph->ops_count);
    return plan->graph->ops[*op].view;
}

static bool wait_for_what_is_not_launched(struct tarn_plan *plan, struct random_source *source)
{
    if (plan->waits_count == 0) return false;
    uint32_t *on = &plan->waits[random_below(source, plan->waits_count)].on;
    if (!draw_view(plan, on, source)) *on = plan->graph->ops_count + random_below(source, 3);
    return true;
}

/* ---- Launch lists ---- */

static bool draw_list(const struct tarn_plan *plan, uint32_t least, uint32_t **list,
                      uint32_t *count, struct random_source *source)
{
    uint32_t s = random_below(source, plan->streams_count);
    *list = plan->list + plan->list_begin[s];
    *count = plan->list_begin[s + 1] - plan->list_begin[s];
    return *count >= least;
}

static bool swap_launches(struct tarn_plan *plan, struct random_source *source)
{
    uint32_t *list, count;
    if (!draw_list(plan, 2, &list, &count, source)) return false;
    uint32_t *x = &list[random_below(source, count)], *y = &list[random_below(source, count)];
    uint32_t op = *x;
    *x = *y;
    *y = op;
    return x != y;
}

static bool move_launch(struct tarn_plan *plan, struct random_source *source)
{
    uint32_t *list, count;
    if (!draw_list(plan, 3, &list, &count, source)) return false;
    uint32_t from = random_below(source, count), to = random_below(source, count), op = list[from];
    for (; from < to; from++) list[from] = list[from + 1];
    for (; from > to; from--) list[from] = list[from - 1];
    list[to] = op;
    return true;
}

/* Takes the launch out that stands there, or puts one in. */
static void resize_lists(struct tarn_plan *plan, uint32_t stream, uint32_t at, bool grows,
                         uint32_t op)
{
    uint32_t end = plan->list_begin[plan->streams_count];
    if (grows) {
        memmove(&plan->list[at + 1], &plan->list[at], (end - at) * sizeof *plan->list);
        plan->list[at] = op;
    } else {
        memmove(&plan->list[at], &plan->list[at + 1], (end - at - 1) * sizeof *plan->list);
    }
    for (uint32_t s = stream + 1; s <= plan->streams_count; s++)
        plan->list_begin[s] += grows ? 1 : UINT32_MAX;
}

static bool drop_launch(struct tarn_plan *plan, struct random_source *source)
{
    uint32_t s = random_below(source, plan->streams_count);
    uint32_t count = plan->list_begin[s + 1] - plan->list_begin[s];
    if (count == 0) return false;
    resize_lists(plan, s, plan->list_begin[s] + random_below(source, count), false, 0);
    return true;
}

static bool repeat_launch(struct tarn_plan *plan, struct random_source *source)
{
    uint32_t s = random_below(source, plan->streams_count);
    uint32_t begin = plan->list_begin[s], count = plan->list_begin[s + 1] - begin;
    if (count == 0) return false;
    uint32_t op = plan->list[begin + random_below(source, count)];
    resize_lists(plan, s, begin + random_below(source, count + 1), true, op);
    return true;
}

static bool move_launch_to_another_stream(struct tarn_plan *plan, struct random_source *source)
{
    uint32_t s = random_below(source, plan->streams_count);
    uint32_t to = random_below(source, plan->streams_count);
    uint32_t count = plan->list_begin[s + 1] - plan->list_begin[s];
    if (count == 0 || s == to) return false;
    uint32_t at = plan->list_begin[s] + random_below(source, count), op = plan->list[at];
    resize_lists(plan, s, at, false, 0);
    resize_lists(plan, to, plan->list_begin[to], true, op);
    return true;
}

static bool launch_a_view(struct tarn_plan *plan, struct random_source *source)
{
    uint32_t op;
    if (!draw_view(plan, &op, source)) return false;
    uint32_t s = plan->graph->ops[op].stream;
    resize_lists(plan, s, plan->list_begin[s], true, op);
    return true;
}

static bool launch_what_is_no_op(struct tarn_plan *plan, struct random_source *source)
{
    uint32_t *list, count;
    if (!draw_list(plan, 1, &list, &count, source)) return false;
    list[random_below(source, count)] = plan->graph->ops_count + random_below(source, 3);
    return true;
}

/* ---- All kinds ---- */

static const struct damage kinds[] = {
    {"wait dropped", DAMAGE_EITHER, drop_wait},
    {"waits of an op dropped", DAMAGE_EITHER, drop_waits_of_an_op},
    {"boundary wait dropped", DAMAGE_EITHER, drop_boundary_wait},
    {"all boundary waits dropped", DAMAGE_EITHER, drop_all_boundary_waits},
    {"wait for another op", DAMAGE_EITHER, retarget_wait},
    {"boundary wait for another op", DAMAGE_EITHER, retarget_boundary_wait},
    {"wait reversed", DAMAGE_EITHER, reverse_wait},
    {"wait added", DAMAGE_EITHER, add_wait},
    {"boundary wait added", DAMAGE_SOUND, add_boundary_wait},
    {"wait made a boundary wait", DAMAGE_EITHER, move_wait_to_boundary},
    {"boundary wait made a wait", DAMAGE_EITHER, move_boundary_wait_inside},
    {"wait twice", DAMAGE_SOUND, repeat_wait},
    {"wait for what is not launched", DAMAGE_REFUSED, wait_for_what_is_not_launched},
    {"two launches swapped", DAMAGE_EITHER, swap_launches},
    {"launch moved", DAMAGE_EITHER, move_launch},
    {"launch dropped", DAMAGE_REFUSED, drop_launch},
    {"launch twice", DAMAGE_REFUSED, repeat_launch},
    {"launch in another stream", DAMAGE_REFUSED, move_launch_to_another_stream},
    {"view launched", DAMAGE_REFUSED, launch_a_view},
    {"launch of no op", DAMAGE_REFUSED, launch_what_is_no_op},
};

const struct damage_table damages_of_order = {kinds, sizeof kinds / sizeof kinds[0]};
