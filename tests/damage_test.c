/* Plans of random graphs, damaged at one to three places: the verifier says what the oracle says,
 * and every witness does what it claims, on the oracle's bytes and in checked execution. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan_oracle.h"
#include "tarn.h"

/* ---- Plans to damage ---- */

static struct tarn_graph *graph_of_seed(uint64_t seed, uint32_t ops_max)
{
    struct random_graph_options options = random_graph_knobs(seed, ops_max);
    options.size_max = 1 + (uint32_t)(seed % 24);
    return random_graph(&options);
}

/* For checked execution, which knows bytes by their values: a few may be equal by chance. */
static struct tarn_graph *large_graph_of_seed(uint64_t seed)
{
    struct random_graph_options options = random_graph_knobs(seed, 20);
    options.size_max = 4096;
    options.tiny_share = 0;
    return random_graph(&options);
}

static struct tarn_plan *plan_of(struct tarn_graph *graph, uint64_t seed)
{
    static const uint64_t alignments[] = {1, 4, 512, 8};
    struct tarn_plan *plan;
    struct tarn_error error;
    struct tarn_plan_options *options =
        TARN_PLAN_OPTIONS(.alignment = alignments[seed % 4], .threads = 1, .effort = TARN_NO_EFFORT,
                          .boundary = seed / 4 % 2);
    if (tarn_plan_create(graph, options, &plan, &error))
        fail_msg("seed %llu: %s", (unsigned long long)seed, error.text);
    return plan;
}

static void copy_places(struct tarn_place *to, const struct tarn_place *from, uint32_t count)
{
    if (count > 0) memcpy(to, from, count * sizeof *to);
}

static void copy_waits(struct tarn_plan *copy, const struct tarn_plan *plan)
{
    size_t size = plan->boundary_waits_count * sizeof *plan->boundary_waits;
    free(copy->boundary_waits);
    copy->boundary_waits = malloc(size + 1);
    assert_non_null(copy->boundary_waits);
    if (size > 0) memcpy(copy->boundary_waits, plan->boundary_waits, size);
    copy->boundary_waits_count = plan->boundary_waits_count;
}

static struct tarn_plan *copy_of(const struct tarn_plan *plan)
{
    struct tarn_plan *copy = tarn_plan_of_graph(plan->graph);
    assert_non_null(copy);
    copy->alignment = plan->alignment;
    copy->footprint = plan->footprint;
    copy->persistent = plan->persistent;
    copy_waits(copy, plan);
    copy_places(copy->storages, plan->storages, plan->storages_count);
    copy_places(copy->workspaces, plan->workspaces, plan->workspaces_count);
    copy_places(copy->places_persistent, plan->places_persistent, plan->places_persistent_count);
    return copy;
}

/* ---- Damage ---- */

/* Moves a lone storage or a whole group to another aligned offset in range. */
static bool move_block(struct tarn_plan *plan, const uint32_t *members, uint32_t count,
                       struct random_source *source)
{
    const struct tarn_storage *first = &plan->graph->storages[members[0]];
    uint64_t limit = first->persistent ? plan->persistent : plan->footprint, reserved = 0;
    uint64_t step = first->alignment > plan->alignment ? first->alignment : plan->alignment;
    for (uint32_t i = 0; i < count; i++)
        reserved += oracle_reserved(plan->graph, members[i], plan->alignment);
    if (reserved > limit) return false;
    uint64_t from = tarn_plan_place(plan, members[0])->offset;
    uint64_t to = step * random_below(source, (uint32_t)((limit - reserved) / step) + 1);
    for (uint32_t i = 0; i < count; i++) {
        struct tarn_place *place = (struct tarn_place *)tarn_plan_place(plan, members[i]);
        place->offset = place->offset - from + to;
    }
    return to != from;
}

static bool damage_offset(struct tarn_plan *plan, struct random_source *source)
{
    const struct tarn_graph *graph = plan->graph;
    if (graph->storages_count == 0) return false;
    uint32_t a = random_below(source, graph->storages_count), g = graph->storages[a].group;
    if (g == TARN_NONE) return move_block(plan, &a, 1, source);
    return move_block(plan, graph->groups[g].storages, graph->groups[g].storages_count, source);
}

static bool drop_wait(struct tarn_wait *waits, uint32_t *count, struct random_source *source)
{
    if (*count == 0) return false;
    uint32_t i = random_below(source, *count);
    memmove(&waits[i], &waits[i + 1], (--*count - i) * sizeof *waits);
    return true;
}

static bool damage_wait(struct tarn_plan *plan, struct random_source *source)
{
    return drop_wait(plan->waits, &plan->waits_count, source);
}

static bool damage_boundary(struct tarn_plan *plan, struct random_source *source)
{
    return drop_wait(plan->boundary_waits, &plan->boundary_waits_count, source);
}

/* Exchanges two ops of a stream's list. */
static bool damage_list(struct tarn_plan *plan, struct random_source *source)
{
    uint32_t s = random_below(source, plan->streams_count);
    uint32_t begin = plan->list_begin[s], count = plan->list_begin[s + 1] - begin;
    if (count < 2) return false;
    uint32_t *x = &plan->list[begin + random_below(source, count)];
    uint32_t *y = &plan->list[begin + random_below(source, count)];
    uint32_t op = *x;
    *x = *y;
    *y = op;
    return x != y;
}

/* Makes a wait look somewhere else, which may close a cycle. */
static bool damage_target(struct tarn_plan *plan, struct random_source *source)
{
    if (plan->waits_count == 0) return false;
    struct tarn_wait *wait = &plan->waits[random_below(source, plan->waits_count)];
    uint32_t on = plan->list[random_below(source, plan->list_begin[plan->streams_count])];
    if (plan->graph->ops[on].stream == plan->graph->ops[wait->op].stream) return false;
    wait->on = on;
    return true;
}

typedef bool (*damage)(struct tarn_plan *plan, struct random_source *source);
static const damage damages[] = {damage_offset, damage_wait, damage_boundary, damage_list,
                                 damage_target};
enum { DAMAGES = sizeof damages / sizeof damages[0] };

/* A copy with one to three damages; the first is of the kind asked for. NULL: not possible. */
static struct tarn_plan *damaged(const struct tarn_plan *plan, size_t kind,
                                 struct random_source *source)
{
    struct tarn_plan *copy = copy_of(plan);
    if (!damages[kind](copy, source)) {
        tarn_plan_destroy(copy);
        return NULL;
    }
    for (uint32_t more = random_below(source, 5); more > 2; more--)
        damages[random_below(source, DAMAGES)](copy, source);
    return copy;
}

/* ---- What is asked of a verdict ---- */

static size_t count_witnesses(const struct tarn_verdict *verdict)
{
    size_t count = 0;
    for (size_t i = 0; i < tarn_verdict_count(verdict); i++)
        count += tarn_verdict_get(verdict, i)->witness != NULL;
    return count;
}

static void check_witnesses(const struct tarn_plan *plan, const struct tarn_verdict *verdict)
{
    for (size_t i = 0; i < tarn_verdict_count(verdict); i++) {
        const struct tarn_violation *violation = tarn_verdict_get(verdict, i);
        if (!violation->witness) continue;
        assert_true(oracle_is_legal(plan, violation->witness, violation->witness_count));
        if (!oracle_corrupts(plan, violation->witness, violation->witness_count))
            fail_msg("witness that harms nobody: %s", violation->text);
    }
}

/* Verifies, compares with the all-pairs rules, checks all witnesses; the number of witnesses. */
static size_t compare_with_rules(const struct tarn_plan *plan, uint64_t seed, bool *accepted)
{
    struct tarn_verdict *verdict;
    struct tarn_error error;
    enum tarn_status status = tarn_plan_verify(plan, plan->graph, &verdict, &error);
    *accepted = status == TARN_OK;
    if (*accepted != oracle_accepts(plan))
        fail_msg("seed %llu: the verifier says \"%s\"", (unsigned long long)seed, error.text);
    assert_int_equal(status == TARN_OK, tarn_verdict_count(verdict) == 0);
    if (status != TARN_OK) assert_int_equal(status, TARN_REJECTED);
    check_witnesses(plan, verdict);
    size_t witnesses = count_witnesses(verdict);
    tarn_verdict_destroy(verdict);
    return witnesses;
}

struct tally {
    uint32_t plans, accepted, rejected, harmful, witnessed;
};

static void say(const char *name, const struct tally *tally)
{
    print_message("# %s: %u damaged plans, %u accepted, %u rejected, %u harmful, %u with witness\n",
                  name, tally->plans, tally->accepted, tally->rejected, tally->harmful,
                  tally->witnessed);
}

/* ---- Campaigns ---- */

static void accepts_every_plan_that_the_planner_makes(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(1500); seed++) {
        struct tarn_graph *graph = graph_of_seed(seed, 40);
        struct tarn_plan *plan = plan_of(graph, seed);
        bool accepted;
        compare_with_rules(plan, seed, &accepted);
        assert_true(accepted);
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
}

/* Random orders show some of the harm; what they show must be rejected, with a witness. */
static void judge_by_draws(const struct tarn_plan *plan, uint64_t seed, struct tally *tally,
                           struct random_source *source)
{
    bool accepted, harmful = false;
    size_t witnesses = compare_with_rules(plan, seed, &accepted);
    bool deadlocked = false;
    if (!accepted) {
        struct tarn_verdict *verdict;
        tarn_plan_verify(plan, plan->graph, &verdict, NULL);
        deadlocked = tarn_verdict_get(verdict, 0)->kind == TARN_DEADLOCK;
        tarn_verdict_destroy(verdict);
    }
    for (uint32_t i = 0; i < 4 && !deadlocked && !harmful; i++)
        harmful = oracle_draws_harm(plan, 3, source);
    if (harmful) assert_true(witnesses > 0);
    tally->plans++;
    tally->accepted += accepted;
    tally->rejected += !accepted;
    tally->harmful += harmful;
    tally->witnessed += witnesses > 0;
}

static void says_of_damaged_plans_what_all_pairs_say(void **state)
{
    (void)state;
    struct tally tally = {0};
    for (uint64_t seed = 0; seed < DRAWS(1200); seed++) {
        struct random_source source = {seed * 77 + 5};
        struct tarn_graph *graph = graph_of_seed(seed, 30);
        struct tarn_plan *plan = plan_of(graph, seed);
        for (size_t kind = 0; kind < 3 * DAMAGES; kind++) {
            struct tarn_plan *copy = damaged(plan, kind % DAMAGES, &source);
            if (copy) judge_by_draws(copy, seed, &tally, &source);
            tarn_plan_destroy(copy);
        }
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
    say("all pairs", &tally);
    assert_true(tally.harmful > DRAWS(100) && tally.accepted > DRAWS(100));
}

/* Every legal order of two iterations is run: harm and witness come together. */
static void judge_by_all_orders(const struct tarn_plan *plan, uint64_t seed, struct tally *tally)
{
    bool accepted, deadlocked = false;
    uint32_t tries = 3000;
    size_t witnesses = compare_with_rules(plan, seed, &accepted);
    if (!accepted) {
        struct tarn_verdict *verdict;
        tarn_plan_verify(plan, plan->graph, &verdict, NULL);
        deadlocked = tarn_verdict_get(verdict, 0)->kind == TARN_DEADLOCK;
        tarn_verdict_destroy(verdict);
    }
    if (deadlocked) return;
    bool harmful = oracle_finds_harm(plan, 2, &tries);
    if (!harmful && tries > 0) {
        uint32_t once = 3000;
        harmful = oracle_finds_harm(plan, 1, &once);
    }
    if (harmful && witnesses == 0) fail_msg("seed %llu: no witness", (unsigned long long)seed);
    if (tries > 0 && !harmful) assert_int_equal(witnesses, 0);
    tally->plans++;
    tally->accepted += accepted;
    tally->rejected += !accepted;
    tally->harmful += harmful;
    tally->witnessed += witnesses > 0;
}

static void finds_a_witness_whenever_some_legal_order_corrupts(void **state)
{
    (void)state;
    struct tally tally = {0};
    for (uint64_t seed = 0; seed < DRAWS(2500); seed++) {
        struct random_source source = {seed * 31 + 1};
        struct tarn_graph *graph = graph_of_seed(seed, 6);
        struct tarn_plan *plan = plan_of(graph, seed);
        for (size_t kind = 0; kind < 2 * DAMAGES; kind++) {
            struct tarn_plan *copy = damaged(plan, kind % DAMAGES, &source);
            if (copy) judge_by_all_orders(copy, seed, &tally);
            tarn_plan_destroy(copy);
        }
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
    say("all orders", &tally);
    assert_true(tally.harmful > DRAWS(100) && tally.accepted > DRAWS(100));
}

/* ---- Checked execution agrees ---- */

static enum tarn_status run_checked(struct tarn_plan *plan,
                                    const struct tarn_check_options *options,
                                    struct tarn_error *error)
{
    struct tarn_session *session;
    struct tarn_host_options *host = TARN_HOST_OPTIONS(.workers = 1, .unpinned = true);
    if (tarn_session_create(plan, tarn_device_host(host), NULL, &session, error))
        fail_msg("%s", error->text);
    enum tarn_status status = tarn_session_check(session, options, NULL, error);
    tarn_session_destroy(session);
    return status;
}

static void check_by_running(struct tarn_plan *plan, const struct tarn_violation *violation)
{
    struct tarn_error error;
    enum tarn_status status = run_checked(
        plan,
        TARN_CHECK_OPTIONS(.order = violation->witness, .order_count = violation->witness_count),
        &error);
    if (status != TARN_CHECK_FAILED)
        fail_msg("checked execution does not see: %s (%s)", violation->text, error.text);
}

static void every_witness_fails_checked_execution(void **state)
{
    (void)state;
    uint32_t runs = 0;
    for (uint64_t seed = 0; seed < DRAWS(150); seed++) {
        struct random_source source = {seed * 13 + 7};
        struct tarn_graph *graph = large_graph_of_seed(seed);
        struct tarn_plan *plan = plan_of(graph, 3);
        for (size_t kind = 0; kind < DAMAGES; kind++) {
            struct tarn_plan *copy = damaged(plan, kind, &source);
            struct tarn_verdict *verdict = NULL;
            if (copy) tarn_plan_verify(copy, graph, &verdict, NULL);
            for (size_t i = 0; verdict && i < tarn_verdict_count(verdict); i++) {
                if (!tarn_verdict_get(verdict, i)->witness) continue;
                check_by_running(copy, tarn_verdict_get(verdict, i));
                runs++;
            }
            tarn_verdict_destroy(verdict);
            tarn_plan_destroy(copy);
        }
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
    assert_true(runs > DRAWS(100));
}

/* The first witness must fail; what is accepted must pass in an adverse order. */
static bool judge_real_plan(struct tarn_plan *plan, uint64_t seed)
{
    struct tarn_verdict *verdict;
    struct tarn_error error;
    tarn_plan_verify(plan, plan->graph, &verdict, NULL);
    size_t i = 0, count = tarn_verdict_count(verdict);
    while (i < count && !tarn_verdict_get(verdict, i)->witness) i++;
    if (i < count) check_by_running(plan, tarn_verdict_get(verdict, i));
    if (count == 0 &&
        run_checked(plan, TARN_CHECK_OPTIONS(.random_order = true, .seed = seed, .iterations = 2),
                    &error))
        fail_msg("accepted, but %s", error.text);
    tarn_verdict_destroy(verdict);
    return i < count;
}

static void damage_to_a_real_plan_shows_in_checked_execution(void **state)
{
    (void)state;
    struct random_source source = {1};
    struct tarn_graph *graph;
    struct tarn_error error;
    uint32_t witnessed = 0;
    if (tarn_graph_load(TARN_SOURCE_DIR "/examples/graphs/googlenet_b1_adam.ddp_branch4.json.gz",
                        &graph, &error))
        fail_msg("%s", error.text);
    struct tarn_plan *plan = plan_of(graph, 3);
    for (size_t i = 0; i < 2 * DAMAGES; i++) {
        struct tarn_plan *copy = copy_of(plan);
        if (damages[i % DAMAGES](copy, &source)) witnessed += judge_real_plan(copy, i);
        tarn_plan_destroy(copy);
    }
    assert_true(witnessed >= 4);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_every_plan_that_the_planner_makes),
        cmocka_unit_test(says_of_damaged_plans_what_all_pairs_say),
        cmocka_unit_test(finds_a_witness_whenever_some_legal_order_corrupts),
        cmocka_unit_test(every_witness_fails_checked_execution),
        cmocka_unit_test(damage_to_a_real_plan_shows_in_checked_execution),
    };
    return cmocka_run_group_tests_name("damage", tests, NULL, NULL);
}
