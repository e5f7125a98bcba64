/* A stand-in for NCCL with one rank, on the stand-in for CUDA: memory is cudaMalloc's, and a sum
 * over one rank, in place, is there already. */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { INVALID_ARGUMENT = 4 };

/* A function of the stand-in for CUDA, which the program has loaded. */
static void find(const char *name, void *function)
{
    void *cuda = dlopen(FAKE_CUDART, RTLD_NOW | RTLD_NOLOAD);
    void *found = cuda ? dlsym(cuda, name) : NULL;
    memcpy(function, &found, sizeof found);
}

/* As NCCL does, it begins at a multiple of what windows need. */
enum { ALIGNMENT = 4096, MEMORIES_MAX = 8, WINDOWS_MAX = 8 };

static struct {
    char *given, *begin;
    size_t size;
} memories[MEMORIES_MAX];

static struct {
    char *begin;
    size_t size;
} windows[WINDOWS_MAX];

/* What has gone wrong, and how many windows there were; a test that knows the stand-in asks. */
static int faults, windows_made;

EXPORT int ncclMemAlloc(void **memory, size_t size)
{
    int (*allocate)(void **memory, size_t size);
    void *given;
    find("cudaMalloc", &allocate);
    for (int i = 0; i < MEMORIES_MAX && allocate; i++) {
        if (memories[i].begin) continue;
        if (allocate(&given, size + ALIGNMENT)) return INVALID_ARGUMENT;
        memories[i].given = given;
        memories[i].begin = (char *)given + (ALIGNMENT - (size_t)given % ALIGNMENT) % ALIGNMENT;
        memories[i].size = size;
        *memory = memories[i].begin;
        return 0;
    }
    return INVALID_ARGUMENT;
}

EXPORT int ncclMemFree(void *memory)
{
    int (*release)(void *memory);
    find("cudaFree", &release);
    for (int i = 0; i < MEMORIES_MAX && release; i++) {
        if (memories[i].begin != memory) continue;
        for (int w = 0; w < WINDOWS_MAX; w++) /* it is registered still */
            faults += windows[w].begin >= memories[i].begin &&
                      windows[w].begin < memories[i].begin + memories[i].size;
        memories[i].begin = NULL;
        return release(memories[i].given);
    }
    return INVALID_ARGUMENT;
}

static int communicator;

EXPORT int ncclCommInitAll(void **communicators, int count, const int *devices)
{
    if (count != 1 || devices[0] != 0) return INVALID_ARGUMENT;
    *communicators = &communicator;
    return 0;
}

EXPORT int ncclCommDestroy(void *given) { return given == &communicator ? 0 : INVALID_ARGUMENT; }

/* In one allocation, from a multiple of the alignment on, symmetric. */
EXPORT int ncclCommWindowRegister(void *given, void *buffer, size_t size, void **window, int flags)
{
    char *begin = buffer;
    if (given != &communicator || flags != 1 || size == 0 || (size_t)begin % ALIGNMENT != 0)
        return INVALID_ARGUMENT;
    for (int i = 0; i < MEMORIES_MAX; i++) {
        if (!memories[i].begin || begin < memories[i].begin ||
            begin + size > memories[i].begin + memories[i].size)
            continue;
        for (int w = 0; w < WINDOWS_MAX; w++) {
            if (windows[w].begin) continue;
            windows[w].begin = begin;
            windows[w].size = size;
            windows_made++;
            *window = &windows[w];
            return 0;
        }
    }
    return INVALID_ARGUMENT;
}

EXPORT int ncclCommWindowDeregister(void *given, void *window)
{
    for (int w = 0; w < WINDOWS_MAX && given == &communicator; w++) {
        if (window != &windows[w] || !windows[w].begin) continue;
        windows[w].begin = NULL;
        return 0;
    }
    return INVALID_ARGUMENT;
}

/* The i-th window that is there, counted from 0: its bytes; NULL: no more. Of the stand-in only. */
EXPORT void *fakeNcclWindow(int index, size_t *size, int *made, int *wrong)
{
    *made = windows_made;
    *wrong = faults;
    for (int w = 0; w < WINDOWS_MAX; w++) {
        if (!windows[w].begin || index-- > 0) continue;
        *size = windows[w].size;
        return windows[w].begin;
    }
    return NULL;
}

EXPORT int ncclAllReduce(const void *from, void *to, size_t count, int type, int operation,
                         void *given, void *queue)
{
    (void)type, (void)operation;
    return from == to && count > 0 && given == &communicator && queue ? 0 : INVALID_ARGUMENT;
}

EXPORT const char *ncclGetErrorString(int code) { return code ? "invalid argument" : "no error"; }
