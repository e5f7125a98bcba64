/* Computes a plan's identity: a hash of all that decides the tensors' offsets and the order of ops.
 * How the plan was found, its bound and its times are left out. Cost: linear. */
#include "plan.h"
#include "streams/base/error.h"
#include "streams/graph/hash.h"

static void add_waits(struct tarn_hasher *hasher, const struct tarn_wait *waits, uint32_t count)
{
    tarn_hasher_add(hasher, count);
    for (uint32_t i = 0; i < count; i++)
        tarn_hasher_add(hasher, (uint64_t)waits[i].op << 32 | waits[i].on);
}

static void add_places(struct tarn_hasher *hasher, const struct tarn_place *places, uint32_t count)
{
    tarn_hasher_add(hasher, count);
    for (uint32_t i = 0; i < count; i++) {
        tarn_hasher_add(hasher, places[i].id);
        tarn_hasher_add(hasher, places[i].offset);
        tarn_hasher_add(hasher, places[i].size);
    }
}

static void add_hash(struct tarn_hasher *hasher, struct tarn_hash hash)
{
    tarn_hasher_add(hasher, hash.word[0]);
    tarn_hasher_add(hasher, hash.word[1]);
}

struct tarn_plan_identity tarn_plan_identify(const struct tarn_plan *plan)
{
    if (!plan) return (struct tarn_plan_identity){{{0, 0}}, {{0, 0}}};
    struct tarn_hasher hasher = tarn_hasher_begin();
    add_hash(&hasher, plan->source_hash);
    add_hash(&hasher, plan->graph->hash);
    tarn_hasher_add(&hasher, plan->alignment);
    tarn_hasher_add(&hasher, plan->footprint);
    tarn_hasher_add(&hasher, plan->persistent);
    tarn_hasher_add_list(&hasher, plan->list_begin, (size_t)plan->streams_count + 1);
    tarn_hasher_add_list(&hasher, plan->list, plan->list_begin[plan->streams_count]);
    add_waits(&hasher, plan->waits, plan->waits_count);
    add_waits(&hasher, plan->boundary_waits, plan->boundary_waits_count);
    add_places(&hasher, plan->storages, plan->storages_count);
    add_places(&hasher, plan->workspaces, plan->workspaces_count);
    add_places(&hasher, plan->places_persistent, plan->places_persistent_count);
    if (plan->window.size > 0) {
        tarn_hasher_add(&hasher, plan->window.space);
        tarn_hasher_add(&hasher, plan->window.offset);
        tarn_hasher_add(&hasher, plan->window.size);
    }
    return (struct tarn_plan_identity){plan->source_hash, tarn_hasher_end(&hasher)};
}

enum tarn_status tarn_plan_expect(const struct tarn_plan *plan,
                                  const struct tarn_plan_identity *expected,
                                  struct tarn_error *error)
{
    if (!plan || !expected) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    struct tarn_plan_identity own = tarn_plan_identify(plan);
    if (!tarn_hash_equal(own.source, expected->source))
        return tarn_error_set(error, TARN_REJECTED,
                              "the plan was made for graph %s, but graph %s is expected: the ranks "
                              "have built different graphs",
                              tarn_hash_format(own.source).text,
                              tarn_hash_format(expected->source).text);
    if (!tarn_hash_equal(own.plan, expected->plan))
        return tarn_error_set(error, TARN_REJECTED,
                              "the graphs are equal, but the plan is %s and %s is expected: plan "
                              "on one rank and send the plan's file, or plan with equal options "
                              "and without a time limit",
                              tarn_hash_format(own.plan).text,
                              tarn_hash_format(expected->plan).text);
    return TARN_OK;
}
