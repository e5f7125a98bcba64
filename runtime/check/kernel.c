/* Checking kernels: the executing half of checked execution. An op's bytes are compared before any
 * write. A workspace is compared once more at the op's end (or before the outputs are written, if
 * it ends before they begin), so that overwrites in between are found. An op whose own storages
 * share bytes compares all of them again, as its reads and writes would mix. Runs at memory speed;
 * allocates nothing.
 *
 * The first wrong byte is described in full: its reader, its expected value, and its writer, if the
 * bytes found are a whole piece of another version's pattern. */
#include "kernel.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "runtime/state/event_count.h"
#include "streams/graph/report.h"

#define WRONG_BYTE 1
#define SLEEP_FROM_NS 100000u /* shorter delays spin */

/* ---- Life ---- */

/* Do two parts share bytes of the arena, or of the persistent part? */
static bool share_bytes(const struct tarn_session *session, uint32_t a, uint32_t b)
{
    const struct tarn_graph *graph = session->graph;
    const struct tarn_graph_part x = tarn_part(graph, a), y = tarn_part(graph, b);
    bool is_persistent = graph->storages[x.storage].persistent;
    uint64_t x_begin = tarn_plan_place(session->plan, x.storage)->offset + x.offset;
    uint64_t y_begin = tarn_plan_place(session->plan, y.storage)->offset + y.offset;
    if (is_persistent != graph->storages[y.storage].persistent) return false;
    if (is_persistent && session->memory.is_bound) return false;
    return x_begin < y_begin + y.size && y_begin < x_begin + x.size;
}

static bool op_clashes(const struct tarn_checker *checker, uint32_t op)
{
    const struct tarn_expected *expected = &checker->expected;
    for (uint32_t i = expected->begin[op]; i < expected->begin[op + 1]; i++) {
        for (uint32_t j = expected->begin[op]; j < i; j++) {
            uint32_t a = expected->accesses[i].part, b = expected->accesses[j].part;
            const struct tarn_graph *graph = checker->session->graph;
            if (share_bytes(checker->session, a, b) &&
                !tarn_storages_take_turns(graph, tarn_part(graph, a).storage,
                                          tarn_part(graph, b).storage))
                return true;
        }
    }
    return false;
}

enum tarn_status tarn_checker_init(struct tarn_checker *checker, struct tarn_session *session,
                                   uint64_t seed, uint32_t delay_ns)
{
    struct tarn_region *region = &session->region;
    uint32_t ops_count = session->graph->ops_count;
    checker->session = session;
    checker->seed = seed;
    checker->delay_ns = delay_ns;
    atomic_init(&checker->failed, 0);
    checker->addresses = (unsigned char *const *)session->memory.addresses;
    checker->clashes = tarn_region_take(region, ops_count, sizeof *checker->clashes);
    if (!checker->clashes || tarn_expected_init(&checker->expected, region, session->graph))
        return TARN_SYSTEM;
    checker->expected.skipped = session->skipped;
    for (uint32_t v = 0; v < ops_count; v++) checker->clashes[v] = op_clashes(checker, v);
    return TARN_OK;
}

void tarn_checker_finish(struct tarn_checker *checker) { tarn_expected_finish(&checker->expected); }

/* ---- Findings ---- */

static unsigned char *address_of(const struct tarn_checker *checker, uint32_t part)
{
    const struct tarn_graph_part record = tarn_part(checker->session->graph, part);
    return checker->addresses[record.storage] + record.offset;
}

/* A wrong byte, or a part that cannot hold its content. */
struct finding {
    uint32_t op; /* the reader; TARN_NONE: the final inspection */
    uint64_t iteration;
    uint32_t part;
    uint64_t byte;
    uint64_t seed; /* of the expected version */
};

/* Only the first thread that claims the failure describes it. */
static bool claim_failure(struct tarn_checker *checker)
{
    int unclaimed = 0;
    return atomic_compare_exchange_strong(&checker->failed, &unclaimed, 1);
}

static void write_who_looked(const struct tarn_checker *checker, const struct finding *finding,
                             char text[static 160])
{
    if (finding->op == TARN_NONE)
        snprintf(text, 160, "after the last op");
    else
        snprintf(text, 160, "%s of iteration %llu",
                 tarn_op_label(checker->session->graph, finding->op).text,
                 (unsigned long long)finding->iteration);
}

/* Do the bytes at `address` equal a part's content there? Requires at least four equal bytes, since
 * fewer are too often equal by chance. */
static bool is_piece_of(const struct tarn_checker *checker, uint32_t part, uint64_t seed,
                        const unsigned char *address)
{
    uint64_t size = tarn_part(checker->session->graph, part).size;
    const unsigned char *begin = address_of(checker, part);
    seed = tarn_expected_bytes(checker->session->graph, part, seed);
    if (address < begin || address >= begin + size) return false;
    uint64_t i = (uint64_t)(address - begin), equal = 0;
    while (i < size && equal < 16 && begin[i] == tarn_pattern_byte(seed, i)) i++, equal++;
    return equal >= 4;
}

/* Describes the writer of the bytes at `address`, if one of the op's writes explains them. */
static bool explain_by_op(const struct tarn_checker *checker, const unsigned char *address,
                          uint32_t op, uint64_t iteration, char text[static 320])
{
    const struct tarn_expected *expected = &checker->expected;
    const struct tarn_graph *graph = checker->session->graph;
    if (expected->skipped && expected->skipped[op]) return false;
    uint64_t digest = tarn_expected_digest(expected, op, iteration);
    for (uint32_t i = expected->begin[op]; i < expected->begin[op + 1]; i++) {
        const struct tarn_access *access = &expected->accesses[i];
        if (!access->writes) continue;
        uint64_t seed = tarn_expected_written(digest, access);
        if (!is_piece_of(checker, access->part, seed, address)) continue;
        snprintf(text, 320, ": %s of iteration %llu wrote it there as %s",
                 tarn_op_label(graph, op).text, (unsigned long long)iteration,
                 tarn_storage_label(graph, tarn_part(graph, access->part).storage).text);
        return true;
    }
    return false;
}

/* Checks every write of the iterations around the finding. */
static void explain(const struct tarn_checker *checker, const struct finding *finding,
                    char text[static 320])
{
    const struct tarn_expected *expected = &checker->expected;
    const unsigned char *address = address_of(checker, finding->part) + finding->byte;
    uint64_t begin = finding->iteration > 1 ? finding->iteration - 1 : 0;
    uint64_t end = finding->iteration + 2;
    if (begin < expected->window_begin) begin = expected->window_begin;
    if (end > expected->window_end) end = expected->window_end;
    text[0] = '\0';
    for (uint64_t k = begin; k < end; k++) {
        for (uint32_t v = 0; v < checker->session->graph->ops_count; v++) {
            if (explain_by_op(checker, address, v, k, text)) return;
        }
    }
}

/* `verdict`: what the byte is. */
static void publish_failure(struct tarn_checker *checker, const struct finding *finding,
                            const char *verdict)
{
    const struct tarn_graph *graph = checker->session->graph;
    const struct tarn_graph_part part = tarn_part(graph, finding->part);
    char who[160];
    write_who_looked(checker, finding, who);
    tarn_error_clear(&checker->failure);
    tarn_error_set(&checker->failure, TARN_CHECK_FAILED, "%s: byte %llu of %s is %s", who,
                   (unsigned long long)(part.offset + finding->byte),
                   tarn_storage_label(graph, part.storage).text, verdict);
    checker->failure.op = finding->op;
    checker->failure.tensor = graph->storages[part.storage].tensor;
    atomic_store_explicit(&checker->failed, 2, memory_order_release);
}

static void note_wrong_byte(struct tarn_checker *checker, const struct finding *finding)
{
    if (!claim_failure(checker)) return;
    unsigned found = address_of(checker, finding->part)[finding->byte];
    char author[320], verdict[360];
    explain(checker, finding, author);
    snprintf(verdict, sizeof verdict, "0x%02x instead of 0x%02x%s", found,
             tarn_pattern_byte(
                 tarn_expected_bytes(checker->session->graph, finding->part, finding->seed),
                 finding->byte),
             author);
    publish_failure(checker, finding, verdict);
}

void tarn_checker_note(struct tarn_checker *checker, uint32_t op, uint64_t iteration, uint32_t part,
                       uint64_t byte)
{
    assert(part < checker->session->graph->parts_count);
    assert(byte < tarn_part(checker->session->graph, part).size);
    struct finding finding = {.op = op, .iteration = iteration, .part = part, .byte = byte};
    if (claim_failure(checker)) publish_failure(checker, &finding, "wrong");
}

/* ---- Comparing and writing ---- */

static bool holds(struct tarn_checker *checker, const struct finding *finding)
{
    const struct tarn_graph *graph = checker->session->graph;
    uint64_t size = tarn_part(graph, finding->part).size;
    uint64_t equal = tarn_pattern_compare(address_of(checker, finding->part), size,
                                          tarn_expected_bytes(graph, finding->part, finding->seed));
    if (equal == size) return true;
    struct finding wrong = *finding;
    wrong.byte = equal;
    note_wrong_byte(checker, &wrong);
    return false;
}

bool tarn_checker_look(struct tarn_checker *checker, uint32_t part, uint64_t seed)
{
    struct finding finding = {.op = TARN_NONE, .part = part, .seed = seed};
    if (checker->expected.window_end > 0) finding.iteration = checker->expected.window_end - 1;
    return holds(checker, &finding);
}

/* Does access i hold the pattern of `seed`, as the op of this call needs it? */
static bool access_holds(struct tarn_checker *checker, const struct tarn_call *call, uint32_t i,
                         uint64_t seed)
{
    struct finding finding = {.op = call->op,
                              .iteration = call->iteration,
                              .part = checker->expected.accesses[i].part,
                              .seed = seed};
    return holds(checker, &finding);
}

static bool reads_hold(struct tarn_checker *checker, const struct tarn_call *call)
{
    const struct tarn_expected *expected = &checker->expected;
    const uint64_t *seeds = tarn_expected_seeds(expected, call->op, call->iteration);
    uint32_t begin = expected->begin[call->op], end = expected->begin[call->op + 1];
    for (uint32_t i = begin; i < end; i++) {
        if (!expected->accesses[i].reads ||
            tarn_expected_is_void(expected, expected->accesses[i].part))
            continue;
        if (!access_holds(checker, call, i, seeds[i - begin])) return false;
    }
    return true;
}

/* Which parts to write: the workspace, the outputs, or both. */
enum part { WORKSPACE = 1, OUTPUTS = 2 };

static void write_part(struct tarn_checker *checker, uint32_t op, uint64_t digest, unsigned parts)
{
    const struct tarn_expected *expected = &checker->expected;
    const struct tarn_graph *graph = checker->session->graph;
    uint32_t workspace = tarn_extra(&graph->ops[op])->workspace_storage;
    for (uint32_t i = expected->begin[op]; i < expected->begin[op + 1]; i++) {
        const struct tarn_access *access = &expected->accesses[i];
        const struct tarn_graph_part record = tarn_part(graph, access->part);
        unsigned part = record.storage == workspace ? WORKSPACE : OUTPUTS;
        if (!access->writes || !(parts & part)) continue;
        tarn_pattern_fill(
            address_of(checker, access->part), record.size,
            tarn_expected_bytes(graph, access->part, tarn_expected_written(digest, access)));
    }
}

/* Compares the workspace when its lifetime ends; all storages, if the op's storages share bytes. */
static bool end_holds(struct tarn_checker *checker, const struct tarn_call *call, uint64_t digest,
                      unsigned parts)
{
    const struct tarn_expected *expected = &checker->expected;
    const uint64_t *seeds = tarn_expected_seeds(expected, call->op, call->iteration);
    uint32_t begin = expected->begin[call->op], end = expected->begin[call->op + 1];
    const struct tarn_graph *graph = checker->session->graph;
    uint32_t workspace = tarn_extra(&graph->ops[call->op])->workspace_storage;
    for (uint32_t i = begin; i < end; i++) {
        const struct tarn_access *access = &expected->accesses[i];
        unsigned part = tarn_part(graph, access->part).storage == workspace ? WORKSPACE : OUTPUTS;
        if (!(parts & part) || (part == OUTPUTS && !checker->clashes[call->op])) continue;
        if (tarn_expected_is_void(expected, access->part)) continue;
        uint64_t seed = access->writes ? tarn_expected_written(digest, access) : seeds[i - begin];
        if (!access_holds(checker, call, i, seed)) return false;
    }
    return true;
}

/* ---- Delays ---- */

static void delay(const struct tarn_checker *checker, uint64_t draw)
{
    if (checker->delay_ns == 0) return;
    uint64_t ns = draw % ((uint64_t)checker->delay_ns + 1);
    if (ns >= SLEEP_FROM_NS) {
        struct timespec pause = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
        nanosleep(&pause, NULL);
        return;
    }
    for (uint64_t end = tarn_now_ns() + ns; tarn_now_ns() < end;) {
    }
}

/* ---- The kernel ---- */

int tarn_checker_kernel(void *user, const struct tarn_call *call)
{
    struct tarn_checker *checker = user;
    assert(call->op < checker->session->graph->ops_count);
    if (atomic_load_explicit(&checker->failed, memory_order_relaxed) != 0) return WRONG_BYTE;
    uint64_t draw = tarn_seed_mix(tarn_seed_mix(checker->seed, call->op), call->iteration);
    delay(checker, draw);
    if (!reads_hold(checker, call)) return WRONG_BYTE;
    uint64_t digest = tarn_expected_digest(&checker->expected, call->op, call->iteration);
    bool in_turn = checker->session->graph->ops[call->op].workspace_first;
    write_part(checker, call->op, digest, in_turn ? WORKSPACE : WORKSPACE | OUTPUTS);
    if (call->workspace) delay(checker, tarn_seed_mix(draw, 1));
    if (in_turn) {
        bool clashes = checker->clashes[call->op]; /* its inputs may be overwritten */
        if (clashes && !reads_hold(checker, call)) return WRONG_BYTE;
        if (!end_holds(checker, call, digest, WORKSPACE)) return WRONG_BYTE;
        write_part(checker, call->op, digest, OUTPUTS);
    }
    return end_holds(checker, call, digest, in_turn ? OUTPUTS : WORKSPACE | OUTPUTS) ? 0
                                                                                     : WRONG_BYTE;
}
