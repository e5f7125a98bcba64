/* The device's side of checked execution. Access i of an op in row k (an iteration of the window)
 * has two words in each table:
 *
 *     seeds:   [ what it must find ][ what it leaves ]        uploaded before the window
 *     wrongs:  [ found at its start ][ found at its end ]     index of the first wrong byte
 *
 * so the kernels' arguments are the same for every window, and a captured block can be replayed
 * with new seeds. As on the host, a workspace is compared once more at the op's end, and so are all
 * storages if an op's own storages share bytes. Cost: 32 bytes per access and row, and one call of
 * the device per comparison and write. */
#include "device.h"

#include <assert.h>
#include <string.h>
#include <time.h>

#include "runtime/state/event_count.h"
#include "runtime/state/failure.h"
#include "streams/base/checked.h"
#include "streams/base/error.h"

#define PAUSE_NS 20000

/* ---- Life ---- */

static uint64_t largest_storage(const struct tarn_graph *graph)
{
    uint64_t largest = 1;
    for (uint32_t a = 0; a < graph->storages_count; a++) {
        if (graph->storages[a].size > largest) largest = graph->storages[a].size;
    }
    return largest;
}

static enum tarn_status create_tables(struct tarn_device_checker *made, struct tarn_error *error)
{
    const struct tarn_device *device = &made->session->device;
    int code = device->table->memory_create(device->self, made->table_size, &made->seeds);
    if (code) made->seeds = NULL;
    if (!code) code = device->table->memory_create(device->self, made->table_size, &made->wrongs);
    if (made->seeds && code) made->wrongs = NULL;
    return tarn_device_status(*device, "allocation of the tables of a check", code, error);
}

enum tarn_status tarn_device_checker_init(struct tarn_device_checker *made,
                                          struct tarn_session *session,
                                          struct tarn_checker *checker, uint64_t rows,
                                          struct tarn_error *error)
{
    assert(rows > 0);
    *made = (struct tarn_device_checker){.session = session, .checker = checker, .rows = rows};
    made->accesses = checker->expected.begin[session->graph->ops_count];
    uint64_t largest = largest_storage(session->graph);
    if (!tarn_size_multiply(rows * 2 * sizeof(uint64_t), made->accesses + 1, &made->table_size) ||
        !tarn_size_is_addressable(made->table_size) || !tarn_size_is_addressable(largest))
        return tarn_error_no_memory(error);
    made->words = tarn_region_take(&session->region, (size_t)made->table_size, 1);
    made->bytes = tarn_region_take(&session->region, (size_t)largest, 1);
    if (!made->words || !made->bytes) return tarn_error_no_memory(error);
    return create_tables(made, error);
}

void tarn_device_checker_finish(struct tarn_device_checker *made)
{
    const struct tarn_device *device = &made->session->device;
    if (made->seeds) device->table->memory_destroy(device->self, made->seeds, made->table_size);
    if (made->wrongs) device->table->memory_destroy(device->self, made->wrongs, made->table_size);
    if (made->end) device->table->event_destroy(device->self, made->end);
}

/* TARN_OK for code 0. */
static enum tarn_status status_of(struct tarn_device_checker *made, const char *what, int code,
                                  struct tarn_error *error)
{
    return tarn_session_status(made->session, made->session->device, what, code, error);
}

/* ---- Kernels ---- */

/* In a capture iterations are numbered inside the block, which is the window. */
static uint64_t first_word(const struct tarn_device_checker *made, uint32_t op, uint64_t iteration)
{
    const struct tarn_expected *expected = &made->checker->expected;
    uint64_t row = iteration;
    if (!made->session->settings.options.capture) row -= expected->window_begin;
    assert(row < made->rows);
    return 2 * (row * made->accesses + expected->begin[op]);
}

struct enqueueing {
    struct tarn_device_checker *made;
    void *queue;
    uint64_t word; /* of the op's first access */
    uint32_t begin;
};

static void *address_of(const struct tarn_session *session, uint32_t part)
{
    const struct tarn_graph_part record = tarn_part(session->graph, part);
    return (unsigned char *)session->memory.addresses[record.storage] + record.offset;
}

/* Compares access i with its seed at the start (end = 0) or at the end of the op (1). `seed`
 * selects which of its two seeds it must hold. */
static int compare(const struct enqueueing *to, uint32_t i, unsigned seed, unsigned end)
{
    const struct tarn_session *session = to->made->session;
    uint32_t part = to->made->checker->expected.accesses[i].part;
    uint64_t word = to->word + 2 * (uint64_t)(i - to->begin);
    if (tarn_expected_is_void(&to->made->checker->expected, part)) return 0;
    return session->device.table->pattern_compare(
        session->device.self, to->queue, address_of(session, part),
        tarn_part(session->graph, part).size, to->made->seeds, word + seed, to->made->wrongs,
        word + end);
}

static int fill(const struct enqueueing *to, uint32_t i)
{
    const struct tarn_session *session = to->made->session;
    uint32_t part = to->made->checker->expected.accesses[i].part;
    uint64_t word = to->word + 2 * (uint64_t)(i - to->begin);
    return session->device.table->pattern_fill(
        session->device.self, to->queue, address_of(session, part),
        tarn_part(session->graph, part).size, to->made->seeds, word + 1);
}

static int enqueue(const struct enqueueing *to, uint32_t op)
{
    const struct tarn_checker *checker = to->made->checker;
    const struct tarn_access *accesses = checker->expected.accesses;
    uint32_t end = checker->expected.begin[op + 1];
    const struct tarn_graph *graph = to->made->session->graph;
    uint32_t workspace = tarn_extra(&graph->ops[op])->workspace_storage;
    bool workspace_is_first = graph->ops[op].workspace_first;
    int code = 0;
    for (uint32_t i = to->begin; i < end && !code; i++) {
        if (accesses[i].reads) code = compare(to, i, 0, 0);
    }
    if (workspace_is_first && !code) { /* it is the last access of the list */
        code = fill(to, end - 1);
        if (!code) code = compare(to, end - 1, 1, 1);
        end--;
        for (uint32_t i = to->begin; i < end && checker->clashes[op] && !code; i++) {
            if (accesses[i].reads) code = compare(to, i, 0, 0); /* an input may lie there */
        }
    }
    for (uint32_t i = to->begin; i < end && !code; i++) {
        if (accesses[i].writes) code = fill(to, i);
    }
    for (uint32_t i = to->begin; i < end && !code; i++) {
        if (tarn_part(graph, accesses[i].part).storage == workspace || checker->clashes[op])
            code = compare(to, i, accesses[i].writes, 1);
    }
    return code;
}

int tarn_device_checker_kernel(void *user, const struct tarn_call *call)
{
    struct tarn_device_checker *made = user;
    struct enqueueing to = {made, made->queue ? made->queue : call->queue,
                            first_word(made, call->op, call->iteration),
                            made->checker->expected.begin[call->op]};
    int code = enqueue(&to, call->op);
    status_of(made, "a checking kernel", code, NULL);
    return code;
}

/* ---- Windows ---- */

static void write_seeds(struct tarn_device_checker *made, uint32_t op, uint64_t iteration)
{
    const struct tarn_expected *expected = &made->checker->expected;
    const uint64_t *seeds = tarn_expected_seeds(expected, op, iteration);
    uint64_t digest = tarn_expected_digest(expected, op, iteration);
    uint32_t begin = expected->begin[op], end = expected->begin[op + 1];
    uint64_t row = iteration - expected->window_begin;
    uint64_t *words = made->words + 2 * (row * made->accesses + begin);
    for (uint32_t i = begin; i < end; i++) {
        const struct tarn_access *access = &expected->accesses[i];
        uint64_t written = access->writes ? tarn_expected_written(digest, access) : 0;
        *words++ = tarn_expected_bytes(expected->graph, access->part, seeds[i - begin]);
        *words++ = tarn_expected_bytes(expected->graph, access->part, written);
    }
}

static void write_all_seeds(struct tarn_device_checker *made)
{
    const struct tarn_expected *expected = &made->checker->expected;
    for (uint64_t k = expected->window_begin; k < expected->window_end; k++) {
        for (uint32_t v = 0; v < made->session->graph->ops_count; v++) write_seeds(made, v, k);
    }
}

enum tarn_status tarn_device_checker_begin(struct tarn_device_checker *made,
                                           struct tarn_error *error)
{
    const struct tarn_device *device = &made->session->device;
    const struct tarn_expected *expected = &made->checker->expected;
    assert(expected->window_end - expected->window_begin <= made->rows);
    memset(made->words, 0, (size_t)made->table_size);
    write_all_seeds(made);
    int code = device->table->copy_in(device->self, made->seeds, made->words, made->table_size);
    if (!code) code = device->table->fill(device->self, made->wrongs, 0xff, made->table_size);
    return status_of(made, "the upload of what is expected", code, error);
}

/* The first finding of an op in that iteration, if there is one. */
static bool note_op(struct tarn_device_checker *made, uint32_t op, uint64_t iteration)
{
    const struct tarn_expected *expected = &made->checker->expected;
    uint32_t begin = expected->begin[op], end = expected->begin[op + 1];
    uint64_t row = iteration - expected->window_begin;
    for (uint64_t i = 2 * begin; i < 2 * (uint64_t)end; i++) {
        uint64_t byte = made->words[2 * row * made->accesses + i];
        if (byte == UINT64_MAX) continue;
        tarn_checker_note(made->checker, op, iteration, expected->accesses[i / 2].part, byte);
        return true;
    }
    return false;
}

enum tarn_status tarn_device_checker_end(struct tarn_device_checker *made, struct tarn_error *error)
{
    const struct tarn_device *device = &made->session->device;
    const struct tarn_expected *expected = &made->checker->expected;
    const struct tarn_graph *graph = made->session->graph;
    int code = device->table->copy_out(device->self, made->words, made->wrongs, made->table_size);
    if (code) return status_of(made, "reading what was found", code, error);
    for (uint64_t k = expected->window_begin; k < expected->window_end; k++) {
        for (uint32_t rank = 0; rank < graph->ops_count; rank++) {
            if (!note_op(made, graph->order[rank], k)) continue;
            if (error) *error = made->checker->failure;
            return TARN_CHECK_FAILED;
        }
    }
    return TARN_OK;
}

/* ---- Whole parts ---- */

enum tarn_status tarn_device_checker_fill(struct tarn_device_checker *made, uint32_t part,
                                          uint64_t seed, struct tarn_error *error)
{
    const struct tarn_session *session = made->session;
    uint64_t size = tarn_part(session->graph, part).size;
    tarn_pattern_fill(made->bytes, size, tarn_expected_bytes(session->graph, part, seed));
    int code = session->device.table->copy_in(session->device.self, address_of(session, part),
                                              made->bytes, size);
    return status_of(made, "filling a persistent tensor", code, error);
}

enum tarn_status tarn_device_checker_look(struct tarn_device_checker *made, uint32_t part,
                                          uint64_t seed, struct tarn_error *error)
{
    const struct tarn_session *session = made->session;
    uint64_t size = tarn_part(session->graph, part).size;
    int code = session->device.table->copy_out(session->device.self, made->bytes,
                                               address_of(session, part), size);
    if (code) return status_of(made, "reading a tensor back", code, error);
    uint64_t equal =
        tarn_pattern_compare(made->bytes, size, tarn_expected_bytes(session->graph, part, seed));
    if (equal == size) return TARN_OK;
    tarn_checker_note(made->checker, TARN_NONE, made->checker->expected.window_end, part, equal);
    if (error) *error = made->checker->failure;
    return TARN_CHECK_FAILED;
}

/* ---- One queue ---- */

static enum tarn_status poll(struct tarn_device_checker *made, uint64_t timeout_ns,
                             struct tarn_error *error)
{
    const struct tarn_device *device = &made->session->device;
    uint64_t began = tarn_now_ns();
    for (bool done = false;;) {
        int code = device->table->event_query(device->self, made->end, &done);
        if (code) return status_of(made, "the device's work", code, error);
        if (done) return TARN_OK;
        if (tarn_now_ns() - began >= timeout_ns)
            return tarn_error_set(error, TARN_DEADLINE,
                                  "the checked linear order is not finished in time");
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
}

enum tarn_status tarn_device_checker_drain(struct tarn_device_checker *made, uint64_t timeout_ns,
                                           struct tarn_error *error)
{
    const struct tarn_device *device = &made->session->device;
    assert(made->queue);
    int code = made->end ? 0 : device->table->event_create(device->self, &made->end);
    if (code) made->end = NULL;
    if (!code) code = device->table->event_record(device->self, made->end, made->queue);
    enum tarn_status status = status_of(made, "recording the end of a linear order", code, error);
    if (status == TARN_OK) status = poll(made, timeout_ns, error);
    made->session->refused |= status != TARN_OK; /* the queue may still be at work */
    made->session->overdue |= status == TARN_DEADLINE;
    return status;
}
