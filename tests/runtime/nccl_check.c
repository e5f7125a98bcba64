/* NCCL on a plan's memory: the arena comes from ncclMemAlloc, its window is registered, and one
 * ncclAllReduce takes a symmetric group as one buffer, on the queue of its stream. One rank, whose
 * sum is its own bytes: what is shown is that NCCL takes the memory, the group and the queue. NCCL
 * and the CUDA runtime are loaded, not linked.
 *
 *   nccl_check [LIBNCCL [LIBCUDART]]      exit 77: one of them, or a GPU, is not here */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "tarn.h"

enum { WORDS = 1000, ITERATIONS = 20, NOT_HERE = 77, BY_ADDRESS = 4, FLOAT = 7, SUM = 0 };

static struct {
    int (*comm_init_all)(void **communicators, int count, const int *devices);
    int (*comm_destroy)(void *communicator);
    int (*all_reduce)(const void *from, void *to, size_t count, int type, int operation,
                      void *communicator, void *queue);
    const char *(*error_text)(int code);
    /* of the stand-in alone; else NULL */
    void *(*window)(int index, size_t *size, int *made, int *wrong);
    int (*copy)(void *to, const void *from, size_t size, int kind, void *queue); /* of CUDA */
} api;

static bool find(void *library, const char *name, void *function)
{
    void *found = library ? dlsym(library, name) : NULL;
    memcpy(function, &found, sizeof found);
    return found;
}

/* A machine that only runs programs has no libcudart.so without a number. */
static void *open_cuda(const char *path)
{
    static const char *const names[] = {"libcudart.so", "libcudart.so.13", "libcudart.so.12"};
    void *cuda = path ? dlopen(path, RTLD_NOW) : NULL;
    for (size_t i = 0; !path && !cuda && i < sizeof names / sizeof *names; i++)
        cuda = dlopen(names[i], RTLD_NOW);
    return cuda;
}

static bool load(const char *nccl_path, const char *cuda_path)
{
    void *nccl = dlopen(nccl_path, RTLD_NOW), *cuda = open_cuda(cuda_path);
    find(nccl, "fakeNcclWindow", &api.window);
    return find(nccl, "ncclCommInitAll", &api.comm_init_all) &&
           find(nccl, "ncclCommDestroy", &api.comm_destroy) &&
           find(nccl, "ncclAllReduce", &api.all_reduce) &&
           find(nccl, "ncclGetErrorString", &api.error_text) &&
           find(cuda, "cudaMemcpyAsync", &api.copy);
}

/* ---- The step: x is copied into two gradients, which are reduced; y is the second one ---- */

enum { BACKWARD, REDUCE, UPDATE };

static struct tarn_graph *build(void)
{
    struct tarn_builder *b = tarn_builder_create("reduce");
    tarn_stream compute = tarn_builder_stream(b, "compute"), comm = tarn_builder_stream(b, "comm");
    uint64_t size = WORDS * sizeof(float);
    tarn_tensor x = tarn_builder_tensor(
        b, &(struct tarn_tensor_info){.name = "x", .size = size, .kind = TARN_INPUT});
    tarn_tensor first = tarn_builder_tensor(
        b, &(struct tarn_tensor_info){.name = "first", .size = size, .kind = TARN_GRADIENT});
    tarn_tensor second = tarn_builder_tensor(
        b, &(struct tarn_tensor_info){.name = "second", .size = size, .kind = TARN_GRADIENT});
    tarn_tensor y = tarn_builder_tensor(
        b, &(struct tarn_tensor_info){.name = "y", .size = size, .kind = TARN_OUTPUT});
    tarn_builder_group(b, TARN_TENSORS(first, second));
    tarn_builder_group_symmetric(b, 0, "gradients");
    tarn_tensor first_sum = tarn_builder_alias(b, first, "first sum");
    tarn_tensor second_sum = tarn_builder_alias(b, second, "second sum");
    tarn_builder_op(b, &(struct tarn_op_info){.name = "backward",
                                              .stream = compute,
                                              .inputs = TARN_TENSORS(x),
                                              .outputs = TARN_TENSORS(first, second)});
    tarn_builder_op(b, &(struct tarn_op_info){.name = "reduce",
                                              .kind = "all_reduce",
                                              .stream = comm,
                                              .inputs = TARN_TENSORS(first, second),
                                              .outputs = TARN_TENSORS(first_sum, second_sum)});
    tarn_builder_op(b, &(struct tarn_op_info){.name = "update",
                                              .stream = compute,
                                              .inputs = TARN_TENSORS(second_sum),
                                              .outputs = TARN_TENSORS(y)});
    struct tarn_graph *graph;
    return tarn_builder_finish(b, &graph, NULL) == TARN_OK ? graph : NULL;
}

struct step {
    void *communicator, *group;
    uint64_t group_size;
};

static int kernel(void *user, const struct tarn_call *call)
{
    const struct step *step = user;
    int code = 0;
    if (call->op == REDUCE)
        return api.all_reduce(step->group, step->group, step->group_size / sizeof(float), FLOAT,
                              SUM, step->communicator, call->queue);
    for (size_t i = 0; i < call->outputs_count && !code; i++)
        code = api.copy(call->outputs[i], call->inputs[0], WORDS * sizeof(float), BY_ADDRESS,
                        call->queue);
    return code;
}

/* ---- The check ---- */

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "nccl_check: %s: %s\n", what, why);
    return 1;
}

static int check(struct tarn_session *session, const struct tarn_graph *graph, struct step *step)
{
    struct tarn_error error;
    float in[WORDS], out[WORDS];
    if (tarn_session_group(session, 0, &step->group, &step->group_size, &error))
        return fail("the group", error.text);
    if (step->group_size != 2 * sizeof in) return fail("the group", "is not two tensors long");
    tarn_session_bind_default(session, kernel, step);
    for (int i = 0; i < ITERATIONS; i++) {
        for (int k = 0; k < WORDS; k++) in[k] = (float)(k + 1000 * i);
        tarn_ticket ticket;
        if (tarn_session_write(session, tarn_graph_find_tensor(graph, "x"), in, sizeof in,
                               &error) ||
            tarn_session_submit(session, 1, &ticket, &error) ||
            tarn_session_wait(session, ticket, TARN_FOREVER, &error) ||
            tarn_session_read(session, tarn_graph_find_tensor(graph, "y"), out, sizeof out, &error))
            return fail("an iteration", error.text);
        if (memcmp(in, out, sizeof in) != 0) return fail("an iteration", "wrong bytes");
    }
    return 0;
}

/* The window has the group, and is the plan's; the stand-in knows what was registered. */
static int check_window(const struct tarn_plan *plan, struct tarn_session *session, bool is_open)
{
    struct tarn_window window;
    size_t size = 0;
    int made = 0, wrong = 0;
    if (!tarn_plan_window(plan, &window)) return fail("the window", "is not there");
    if (!api.window) return 0;
    char *begin = api.window(0, &size, &made, &wrong);
    if (made != 1 || wrong != 0) return fail("the window", "was registered more or less than once");
    if (!is_open) return begin ? fail("the window", "is still registered") : 0;
    char *wanted = (char *)tarn_session_memory(session, 0, NULL) + window.offset;
    return begin && begin <= wanted && begin + size == wanted + window.size
               ? 0
               : fail("the window", "is not what was registered");
}

static int run(struct tarn_device device, struct tarn_nccl *nccl, struct step *step)
{
    struct tarn_error error;
    struct tarn_nccl_communicator communicator = {nccl, step->communicator};
    struct tarn_registrar registrar = tarn_nccl_registrar(&communicator);
    struct tarn_plan *plan;
    struct tarn_session *session;
    struct tarn_graph *graph = build();
    if (tarn_plan_create(graph, NULL, &plan, &error)) return fail("the plan", error.text);
    if (tarn_session_create(plan, device,
                            TARN_SESSION_OPTIONS(.registrars = &registrar, .registrars_count = 1),
                            &session, &error))
        return fail("the session", error.text);
    int result = check(session, graph, step);
    if (result == 0) result = check_window(plan, session, true);
    if (tarn_session_destroy_within(session, TARN_FOREVER, &error))
        return fail("the end", error.text);
    if (result == 0) result = check_window(plan, NULL, false);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
    return result;
}

int main(int count, char **words)
{
    const char *cuda = count > 2 ? words[2] : NULL;
    const char *library = count > 1 ? words[1] : "libnccl.so.2";
    struct tarn_device device;
    struct tarn_error error;
    struct tarn_nccl *nccl;
    if (!load(library, cuda) || tarn_nccl_open(library, &nccl, &error)) {
        puts("nccl_check: NCCL 2.27 or later, or the CUDA runtime, is not here");
        return NOT_HERE;
    }
    struct tarn_memory_source source = tarn_nccl_memory(nccl);
    if (tarn_device_cuda_open(TARN_CUDA_OPTIONS(.library = cuda, .memory = &source), &device,
                              &error)) {
        printf("nccl_check: %s\n", error.text);
        return NOT_HERE;
    }
    struct step step = {.communicator = NULL};
    int code = api.comm_init_all(&step.communicator, 1, &(int){0});
    int result = code ? fail("ncclCommInitAll", api.error_text(code)) : run(device, nccl, &step);
    if (!code) api.comm_destroy(step.communicator);
    tarn_device_cuda_close(device);
    tarn_nccl_close(nccl);
    if (result == 0)
        printf("nccl_check: %d reductions of a symmetric group, every byte is right\n", ITERATIONS);
    return result;
}
