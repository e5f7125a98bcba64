/* Plan files: for a graph that is sound, or for one that is in the input too; and linear orders.
 * What is well-formed can be replayed, whatever it is; what the verifier accepts is safe by the
 * word of an oracle that shares nothing with it, and passes checked execution.
 *
 * A plan names its graphs by hashes, which no fuzzer finds: they are put right before loading. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "streams/graph/hash.h"
#include "support/plan_oracle.h"

enum { HASH_DIGITS = 32, REPLAY_MAX = 1 << 20 };

/* ---- Loading ---- */

static struct tarn_plan *load(const char *path, struct tarn_graph *source,
                              enum tarn_plan_trust trust, struct tarn_error *error)
{
    struct tarn_plan *plan = (struct tarn_plan *)error;
    *error = fuzz_old_error();
    enum tarn_status status = tarn_plan_load(path, source, trust, NULL, &plan, error);
    if (status == TARN_REJECTED)
        fuzz_answered("load", status, error, ANY_OF(TARN_REJECTED));
    else if (trust == TARN_TRUST && strstr(error->text, ": ") && !strstr(error->text, path))
        fuzz_answered("load", status, error, ANY_OF(TARN_BAD_INPUT)); /* not well-formed */
    else
        fuzz_loaded("load", status, error, path);
    PROMISED((plan != NULL) == (status == TARN_OK), "%s", error->text);
    PROMISED(status != TARN_REJECTED || trust == TARN_VERIFY, "%s", error->text);
    return plan;
}

static void check_verdict(const struct tarn_verdict *verdict, bool is_accepted)
{
    size_t count = tarn_verdict_count(verdict);
    PROMISED(is_accepted == (count == 0) && count <= 100, "%zu violations", count);
    for (size_t i = 0; i < count; i++) {
        const struct tarn_violation *violation = tarn_verdict_get(verdict, i);
        PROMISED(violation->text[0], "violation %zu of %zu", i, count);
    }
    PROMISED(!tarn_verdict_get(verdict, count), "%zu", count);
}

static bool verify(const struct tarn_plan *plan, struct tarn_graph *source)
{
    struct tarn_error error = fuzz_old_error();
    struct tarn_verdict *verdict = NULL;
    enum tarn_status status = tarn_plan_verify(plan, source, NULL, &verdict, &error);
    fuzz_answered("verify", status, &error, ANY_OF(TARN_OK) | ANY_OF(TARN_REJECTED));
    check_verdict(verdict, status == TARN_OK);
    tarn_verdict_destroy(verdict);
    return status == TARN_OK;
}

/* ---- What is accepted ---- */

static void round_trip(struct tarn_plan *plan, struct tarn_graph *source)
{
    struct tarn_error error = fuzz_old_error();
    const char *path = fuzz_path("saved.json");
    struct tarn_plan_identity identity = tarn_plan_identify(plan);
    fuzz_answered("save", tarn_plan_save(plan, path, &error), &error, ANY_OF(TARN_OK));
    struct tarn_plan *again = load(path, source, TARN_TRUST, &error);
    PROMISED(again, "%s", error.text);
    fuzz_answered("expect", tarn_plan_expect(again, &identity, &error), &error, ANY_OF(TARN_OK));
    PROMISED(plan->claim.bound == again->claim.bound &&
                 plan->claim.gaps_count == again->claim.gaps_count,
             "%s", path);
    fuzz_same_graph(plan->graph, again->graph);
    tarn_plan_destroy(again);
}

/* One random order of the plan's work, on the calling thread. */
static void replay(struct tarn_plan *plan, bool is_safe)
{
    struct tarn_error error = fuzz_old_error();
    struct tarn_session *session = NULL;
    struct tarn_plan_summary summary;
    const struct tarn_check_options *options =
        TARN_CHECK_OPTIONS(.iterations = 2, .random_order = true, .seed = 7);
    uint64_t expected = ANY_OF(TARN_OK);
    tarn_plan_summarize(plan, &summary);
    if (summary.footprint > REPLAY_MAX || summary.persistent > REPLAY_MAX) return;
    enum tarn_status status =
        tarn_session_create(plan, tarn_device_host(NULL), NULL, &session, &error);
    fuzz_answered("create", status, &error, expected | (is_safe ? 0 : ANY_OF(TARN_REJECTED)));
    if (status != TARN_OK) return;
    if (!is_safe) expected |= ANY_OF(TARN_CHECK_FAILED) | ANY_OF(TARN_BAD_INPUT);
    error = fuzz_old_error();
    status = tarn_session_check(session, options, NULL, &error);
    fuzz_answered("check", status, &error, expected);
    PROMISED(tarn_session_destroy(session) == TARN_OK, "%s", error.text);
}

static void check_safe(struct tarn_plan *plan)
{
    if (plan->graph->ops_count <= FUZZ_ORACLE_OPS_MAX)
        PROMISED(oracle_accepts(plan), "the verifier accepts what the oracle does not");
    PROMISED(!plan->claim.threshold || plan->claim.bound <= plan->footprint, "%llu",
             (unsigned long long)plan->claim.bound);
}

void fuzz_plan_file(const char *path, struct tarn_graph *source)
{
    struct tarn_error error;
    struct tarn_plan *plan = load(path, source, TARN_TRUST, &error);
    bool is_safe = plan && verify(plan, source);
    struct tarn_plan *verified = load(path, source, TARN_VERIFY, &error);
    PROMISED((verified != NULL) == is_safe, "%s", error.text);
    tarn_plan_destroy(verified);
    struct tarn_verdict *verdict = NULL;
    error = fuzz_old_error();
    enum tarn_status status = tarn_plan_verify_file(path, source, NULL, &verdict, &error);
    fuzz_answered("verify", status, &error,
                  is_safe ? ANY_OF(TARN_OK) : ANY_OF(TARN_REJECTED) | ANY_OF(TARN_BAD_INPUT));
    if (verdict) check_verdict(verdict, is_safe);
    tarn_verdict_destroy(verdict);
    if (!plan) return;
    if (is_safe) check_safe(plan);
    round_trip(plan, source);
    replay(plan, is_safe);
    tarn_plan_destroy(plan);
}

/* ---- Hashes ---- */

static void put_hash(char *text, const char *field, const char *hash)
{
    for (char *at = text; (at = strstr(at, field)) != NULL; at++) {
        char *digits = strchr(at, ':') + 1;
        digits += strspn(digits, " \"");
        if (strspn(digits, "0123456789abcdef") >= HASH_DIGITS) memcpy(digits, hash, HASH_DIGITS);
    }
}

/* Writes the plan with the hash of the source graph; an embedded graph's own is in the message of
 * who loads it without. */
static const char *plan_file(const uint8_t *data, size_t size, struct tarn_graph *source)
{
    static const char wrong[] = "is not the hash of the graph in the plan, ";
    struct tarn_error error;
    struct tarn_hash_text hash = tarn_hash_format(source->hash);
    char *text = malloc(size + 1);
    PROMISED(text, "no memory");
    memcpy(text, data, size);
    text[size] = '\0';
    put_hash(text, "\"source_hash\":", hash.text);
    put_hash(text, "\"graph_hash\":", hash.text);
    const char *path = fuzz_file("plan.json", (const uint8_t *)text, size);
    if (strstr(text, "\"graph\":")) {
        struct tarn_plan *plan = load(path, source, TARN_TRUST, &error);
        const char *right = strstr(error.text, wrong);
        if (right) put_hash(text, "\"graph_hash\":", right + strlen(wrong));
        tarn_plan_destroy(plan);
        path = fuzz_file("plan.json", (const uint8_t *)text, size);
    }
    free(text);
    return path;
}

/* ---- Targets ---- */

static struct tarn_graph *sound_graph(void)
{
    struct tarn_graph *graph = NULL;
    struct tarn_error error;
    if (tarn_graph_load(TARN_SOURCE_DIR "/tests/data/invalid_plans/graph.json", NULL, &graph,
                        &error))
        fuzz_broken(__FILE__, __LINE__, "graph", "%s", error.text);
    return graph;
}

void fuzz_plan(const uint8_t *data, size_t size)
{
    struct tarn_graph *graph = sound_graph();
    fuzz_plan_file(plan_file(data, size, graph), graph);
    tarn_graph_destroy(graph);
}

void fuzz_pair(const uint8_t *data, size_t size)
{
    const uint8_t *end = size > 0 ? memchr(data, 0, size) : NULL;
    struct tarn_graph *graph = NULL;
    struct tarn_error error;
    if (!end) return;
    size_t graph_size = (size_t)(end - data);
    const char *path = fuzz_file("graph.json", data, graph_size);
    if (tarn_graph_load(path, TARN_LOAD_OPTIONS(.text_max = FUZZ_TEXT_MAX), &graph, &error)) return;
    fuzz_plan_file(plan_file(end + 1, size - graph_size - 1, graph), graph);
    tarn_graph_destroy(graph);
}

/* A legal order of a sound plan never reads a wrong byte. */
static void run_order(const struct tarn_step *steps, size_t count)
{
    struct tarn_graph *graph = sound_graph();
    struct tarn_plan *plan = NULL;
    struct tarn_session *session = NULL;
    struct tarn_error error = fuzz_old_error();
    enum tarn_status status =
        tarn_plan_create(graph, TARN_PLAN_OPTIONS(.threads = 1), &plan, &error);
    fuzz_answered("plan", status, &error, ANY_OF(TARN_OK));
    status = tarn_session_create(plan, tarn_device_host(NULL), NULL, &session, &error);
    fuzz_answered("create", status, &error, ANY_OF(TARN_OK));
    bool is_legal = true;
    for (size_t i = 0; i < count; i++) is_legal = is_legal && steps[i].op < graph->ops_count;
    is_legal = is_legal && oracle_is_legal(plan, steps, count);
    error = fuzz_old_error();
    status = tarn_session_check(
        session, TARN_CHECK_OPTIONS(.iterations = 2, .order = steps, .order_count = count), NULL,
        &error);
    fuzz_answered("check", status, &error, ANY_OF(is_legal ? TARN_OK : TARN_BAD_INPUT));
    PROMISED(tarn_session_destroy(session) == TARN_OK, "%s", error.text);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

void fuzz_order(const uint8_t *data, size_t size)
{
    struct tarn_error error = fuzz_old_error();
    struct tarn_step *steps = NULL, *again = NULL;
    size_t count, count_again;
    const char *path = fuzz_file("order.json", data, size);
    fuzz_memory_begin();
    enum tarn_status status = tarn_order_load(path, &steps, &count, &error);
    fuzz_memory_check(data, size);
    fuzz_loaded("load", status, &error, path);
    PROMISED((steps != NULL) == (status == TARN_OK), "%s", error.text);
    if (status != TARN_OK) return;
    path = fuzz_path("saved.json");
    fuzz_answered("save", tarn_order_save(steps, count, path, &error), &error, ANY_OF(TARN_OK));
    status = tarn_order_load(path, &again, &count_again, &error);
    fuzz_answered("load again", status, &error, ANY_OF(TARN_OK));
    PROMISED(count == count_again && (count == 0 || !memcmp(steps, again, count * sizeof *steps)),
             "%zu, %zu", count, count_again);
    run_order(steps, count);
    free(again);
    free(steps);
}
