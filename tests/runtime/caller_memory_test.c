/* Arenas in memory of the caller's, of the kinds that a machine without a GPU has: huge pages, and
 * memory that two processes see. Two ranks, each a process with a plan of its own making, keep
 * their arenas in such memory, at different addresses: every tensor is equally far from the base,
 * and each rank reads the other's outputs where its own are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/random_graph.h"
#include "support/session_calls.h"
#include "tarn.h"

#define HUGE_PAGE ((size_t)2 << 20)
#define ROOM ((size_t)64 << 20)

enum { RANKS = 2, TENSORS_MAX = 400, RANK_SECONDS = 120 };

static struct tarn_graph *make_graph(void)
{
    return random_graph(&(struct random_graph_options){.seed = 15,
                                                       .ops = 80,
                                                       .streams = 3,
                                                       .parameters = 5,
                                                       .inplace_share = 10,
                                                       .workspace_share = 20,
                                                       .output_share = 20,
                                                       .group_share = 20,
                                                       .size_max = 1 << 16});
}

static struct tarn_plan *make_plan(struct tarn_graph *graph)
{
    struct tarn_plan *plan;
    struct tarn_error error;
    require(tarn_plan_create(graph, NULL, &plan, &error), &error);
    return plan;
}

/* ---- Huge pages ---- */

/* Pages of 2 MiB where the machine has set some aside, else those that the system joins. */
static void *map_huge(size_t size)
{
    size_t rounded = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    void *memory = mmap(NULL, rounded, PROT_READ | PROT_WRITE, flags | MAP_HUGETLB, -1, 0);
    if (memory != MAP_FAILED) return memory;
    unsigned char *mapping = mmap(NULL, rounded + HUGE_PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
    assert_ptr_not_equal(mapping, MAP_FAILED);
    mapping += -(uintptr_t)mapping % HUGE_PAGE;
    madvise(mapping, rounded, MADV_HUGEPAGE); /* a system without them has small ones */
    return mapping;
}

static void an_arena_lies_in_huge_pages_of_the_callers(void **state)
{
    (void)state;
    struct tarn_graph *graph = make_graph();
    struct tarn_plan *plan = make_plan(graph);
    struct tarn_device host = tarn_device_host(NULL);
    struct tarn_session *session;
    struct tarn_memory_needs needs;
    struct tarn_check_report own, huge;
    struct tarn_error error;
    require(tarn_session_create(plan, host, NULL, &session, &error), &error);
    require(tarn_session_check(session, NULL, &own, &error), &error);
    assert_int_equal(tarn_session_destroy(session), TARN_OK);
    require(tarn_session_needs(plan, host, NULL, 0, &needs, &error), &error);
    void *memory = map_huge((size_t)needs.size);
    struct tarn_session_options *options =
        TARN_SESSION_OPTIONS(.memory = memory, .memory_size = needs.size);
    require(tarn_session_create(plan, host, options, &session, &error), &error);
    assert_ptr_equal(tarn_session_memory(session, 0, NULL), memory);
    require(tarn_session_check(session, NULL, &huge, &error), &error);
    assert_true(huge.bytes_read == own.bytes_read && huge.digest == own.digest);
    assert_int_equal(tarn_session_destroy(session), TARN_OK);
    munmap(memory, ((size_t)needs.size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

/* ---- Memory that two processes see ---- */

/* On a page of both ranks: how far each tensor is from the base, and a sum of each output as its
 * rank read it. */
struct board {
    atomic_int done[RANKS];
    uint64_t offset[RANKS][TENSORS_MAX], sum[RANKS][TENSORS_MAX];
};

struct rank {
    uint32_t number;
    int file[RANKS]; /* the arenas */
    struct board *board;
    unsigned char *room;  /* ROOM for the arena of each, so that their bases differ */
    unsigned char *taken; /* by its source, not given back */
};

static int create_shared(void *user, uint64_t size, void **memory)
{
    struct rank *rank = user;
    int file = rank->file[rank->number];
    if (size > ROOM || ftruncate(file, (off_t)size)) return 1;
    *memory = mmap(rank->room + rank->number * ROOM, (size_t)size, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_FIXED, file, 0);
    rank->taken = *memory;
    return *memory == MAP_FAILED;
}

static void destroy_shared(void *user, void *memory, uint64_t size)
{
    struct rank *rank = user;
    munmap(memory, (size_t)size); /* the file keeps the bytes */
    rank->taken = NULL;
}

/* What an op writes differs between ranks. */
static int write_outputs(void *user, const struct tarn_call *call)
{
    const struct rank *rank = user;
    for (size_t i = 0; i < call->outputs_count; i++)
        memset(call->outputs[i], (int)(1 + call->op * 3 + i + rank->number),
               (size_t)call->output_sizes[i]);
    return 0;
}

static uint64_t sum_of(const unsigned char *bytes, uint64_t size)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < size; i++) sum = sum * 31 + bytes[i];
    return sum;
}

/* Size of an output, or 0. */
static uint64_t output_size(const struct tarn_graph *graph, tarn_tensor tensor)
{
    struct tarn_tensor_info info;
    assert_true(tarn_graph_tensor(graph, tensor, &info));
    return info.kind == TARN_OUTPUT ? info.size : 0;
}

static void run_rank(struct rank *rank, const struct tarn_graph *graph, struct tarn_plan *plan,
                     struct tarn_session **session)
{
    static unsigned char bytes[1 << 16];
    static struct tarn_memory_source source; /* they live as long as the device */
    static struct tarn_host_options options;
    struct tarn_error error;
    source = *TARN_MEMORY_SOURCE(.create = create_shared, .destroy = destroy_shared, .user = rank);
    options = *TARN_HOST_OPTIONS(.memory = &source);
    require(tarn_session_create(plan, tarn_device_host(&options), NULL, session, &error), &error);
    assert_int_equal(tarn_session_bind_default(*session, write_outputs, rank), TARN_OK);
    run_iterations(*session, 2);
    for (tarn_tensor t = 0; t < tarn_graph_tensors_count(graph); t++) {
        uint64_t size = output_size(graph, t);
        unsigned char *address = tarn_session_address(*session, t);
        assert_true(size <= sizeof bytes);
        rank->board->offset[rank->number][t] = (uint64_t)(address - rank->taken);
        if (size == 0) continue;
        require(tarn_session_read(*session, t, bytes, size, &error), &error);
        rank->board->sum[rank->number][t] = sum_of(bytes, size);
    }
}

/* By mapping the other rank's arena, and looking where the own outputs are; how many there were. */
static uint32_t read_other(const struct rank *rank, const struct tarn_graph *graph, uint64_t size)
{
    const struct board *board = rank->board;
    uint32_t other = 1 - rank->number, outputs = 0;
    unsigned char *base = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, rank->file[other], 0);
    assert_ptr_not_equal(base, MAP_FAILED);
    for (tarn_tensor t = 0; t < tarn_graph_tensors_count(graph); t++) {
        uint64_t bytes = output_size(graph, t), offset = board->offset[rank->number][t];
        assert_int_equal(board->offset[other][t], offset);
        if (bytes == 0) continue;
        assert_int_equal(sum_of(base + offset, bytes), board->sum[other][t]);
        assert_int_not_equal(board->sum[other][t], board->sum[rank->number][t]);
        outputs++;
    }
    munmap(base, (size_t)size);
    return outputs;
}

static void wait_for_rank(const struct rank *rank, uint32_t other)
{
    for (int naps = 0; !atomic_load(&rank->board->done[other]); naps++) {
        assert_true(naps < RANK_SECONDS * 1000);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

static void be_rank(struct rank *rank)
{
    struct tarn_graph *graph = make_graph();
    struct tarn_plan *plan = make_plan(graph);
    struct tarn_session *session;
    struct tarn_memory_needs needs;
    assert_true(tarn_graph_tensors_count(graph) <= TENSORS_MAX);
    run_rank(rank, graph, plan, &session);
    assert_ptr_equal(tarn_session_memory(session, 0, &needs), rank->taken);
    atomic_store(&rank->board->done[rank->number], 1);
    wait_for_rank(rank, 1 - rank->number);
    assert_true(read_other(rank, graph, needs.size) > 0);
    assert_int_equal(tarn_session_destroy(session), TARN_OK);
    assert_null(rank->taken);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

static void two_processes_read_each_others_outputs_at_their_own_offsets(void **state)
{
    (void)state;
    int status;
    struct rank rank = {.board = mmap(NULL, sizeof *rank.board, PROT_READ | PROT_WRITE,
                                      MAP_SHARED | MAP_ANONYMOUS, -1, 0)};
    assert_ptr_not_equal(rank.board, MAP_FAILED);
    rank.room = mmap(NULL, RANKS * ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(rank.room, MAP_FAILED);
    for (int r = 0; r < RANKS; r++) {
        rank.file[r] = memfd_create("tarn-arena", MFD_CLOEXEC);
        assert_true(rank.file[r] >= 0);
    }
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(RANK_SECONDS);
        rank.number = 1;
        be_rank(&rank);
        _exit(
            0); /* a child that fails goes on with the other tests, and ends with another status */
    }
    be_rank(&rank);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    for (int r = 0; r < RANKS; r++) close(rank.file[r]);
    munmap(rank.room, RANKS * ROOM);
    munmap(rank.board, sizeof *rank.board);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_processes_read_each_others_outputs_at_their_own_offsets),
        cmocka_unit_test(an_arena_lies_in_huge_pages_of_the_callers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
