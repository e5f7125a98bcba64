/* The few functions of NCCL that arenas need, found at run time. A window's buffer is memory of
 * ncclMemAlloc, begins at a multiple of 4,096 bytes and lies in one allocation.
 * Source: NCCL 2.27 to 2.30, "User Buffer Registration", "Window Registration". */
#include "tarn/nccl.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "streams/base/error.h"
#include "streams/base/memory.h"

enum {
    WINDOW_ALIGNMENT = 4096, /* NCCL_WIN_REQUIRED_ALIGNMENT */
    COLL_SYMMETRIC = 1,      /* NCCL_WIN_COLL_SYMMETRIC */
    CUDA_OUT_OF_MEMORY = 2,
    ARENA_ALIGNMENT = 4096
};

struct tarn_nccl {
    int (*mem_alloc)(void **memory, size_t size);
    int (*mem_free)(void *memory);
    int (*window_register)(void *communicator, void *buffer, size_t size, void **window, int flags);
    int (*window_deregister)(void *communicator, void *window);
    const char *(*error_text)(int code);
};

static bool find(void *library, const char *name, void *function, const char **missing)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    if (!found) *missing = name;
    return found;
}

enum tarn_status tarn_nccl_open(const char *library, struct tarn_nccl **nccl,
                                struct tarn_error *error)
{
    const char *name = library ? library : "libnccl.so.2", *missing = NULL;
    if (nccl) *nccl = NULL;
    if (!nccl) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *reason = dlerror();
        return tarn_error_set(error, TARN_DEVICE, "NCCL could not be loaded: %.300s",
                              reason ? reason : name);
    }
    struct tarn_nccl *made = tarn_take_zeros(1, sizeof *made);
    if (!made) return tarn_error_no_memory(error);
    if (find(handle, "ncclMemAlloc", &made->mem_alloc, &missing) &&
        find(handle, "ncclMemFree", &made->mem_free, &missing) &&
        find(handle, "ncclCommWindowRegister", &made->window_register, &missing) &&
        find(handle, "ncclCommWindowDeregister", &made->window_deregister, &missing) &&
        find(handle, "ncclGetErrorString", &made->error_text, &missing)) {
        *nccl = made;
        return TARN_OK;
    }
    tarn_free(made);
    return tarn_error_set(error, TARN_DEVICE,
                          "%.200s has no %s: windows of symmetric memory need NCCL 2.27 or later",
                          name, missing);
}

void tarn_nccl_close(struct tarn_nccl *nccl) { tarn_free(nccl); }

/* ---- Memory ---- */

static int create_memory(void *user, uint64_t size, void **memory)
{
    const struct tarn_nccl *nccl = user;
    if (size > SIZE_MAX) return CUDA_OUT_OF_MEMORY;
    return nccl->mem_alloc(memory, (size_t)size) == 0 ? 0 : CUDA_OUT_OF_MEMORY;
}

static void destroy_memory(void *user, void *memory, uint64_t size)
{
    const struct tarn_nccl *nccl = user;
    (void)size;
    nccl->mem_free(memory);
}

struct tarn_memory_source tarn_nccl_memory(struct tarn_nccl *nccl)
{
    if (!nccl) return (struct tarn_memory_source){0};
    return (struct tarn_memory_source){.struct_size = sizeof(struct tarn_memory_source),
                                       .create = create_memory,
                                       .destroy = destroy_memory,
                                       .user = nccl,
                                       .alignment = ARENA_ALIGNMENT};
}

/* ---- Windows ---- */

static int enter(void *user, void *address, uint64_t size, void **handle)
{
    const struct tarn_nccl_communicator *to = user;
    return to->nccl->window_register(to->communicator, address, (size_t)size, handle,
                                     COLL_SYMMETRIC);
}

/* NCCL answers with no window where the machine has none: then nothing is registered. */
static int leave(void *user, void *handle)
{
    const struct tarn_nccl_communicator *from = user;
    return handle ? from->nccl->window_deregister(from->communicator, handle) : 0;
}

static const char *text(void *user, int code)
{
    const struct tarn_nccl_communicator *of = user;
    return of->nccl->error_text(code);
}

struct tarn_registrar tarn_nccl_registrar(const struct tarn_nccl_communicator *communicator)
{
    if (!communicator || !communicator->nccl) return (struct tarn_registrar){0};
    return (struct tarn_registrar){.enter = enter,
                                   .leave = leave,
                                   .text = text,
                                   .user = (void *)(uintptr_t)communicator,
                                   .alignment = WINDOW_ALIGNMENT};
}
