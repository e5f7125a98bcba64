/* Finding the CUDA runtime: the library is loaded by its soname, newest configured major first, so
 * a runtime that the process has loaded already (a framework's) is the one that is used. It is
 * never unloaded: CUDA's own exit handlers live in it. Source: DESIGN.md, section 2. Cost: one
 * dlopen and a dlsym per entry point, when a device is opened. */
#include "cuda_api.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "../streams/graph/report.h"

#ifndef TARN_CUDA_MAJOR
#define TARN_CUDA_MAJOR 13
#endif

static void *open_library(const char *library, struct tarn_error *error)
{
    char first[32], second[32];
    snprintf(first, sizeof first, "libcudart.so.%d", TARN_CUDA_MAJOR);
    snprintf(second, sizeof second, "libcudart.so.%d", TARN_CUDA_MAJOR == 12 ? 13 : 12);
    void *handle = dlopen(library ? library : first, RTLD_NOW | RTLD_LOCAL);
    if (!handle && !library) handle = dlopen(second, RTLD_NOW | RTLD_LOCAL);
    if (handle) return handle;
    if (library) {
        const char *reason = dlerror();
        tarn_error_set(error, TARN_DEVICE, "the CUDA runtime could not be loaded: %s",
                       reason ? reason : library);
    } else {
        tarn_error_set(error, TARN_DEVICE,
                       "no CUDA runtime: neither %s nor %s could be loaded; install the CUDA "
                       "runtime (package cuda-cudart), put its folder into LD_LIBRARY_PATH, or "
                       "name the library when opening the device",
                       first, second);
    }
    return NULL;
}

/* memcpy: a cast from void * to a function pointer is not C. */
static bool find(void *library, const char *name, void *entry)
{
    void *found = dlsym(library, name);
    memcpy(entry, &found, sizeof found);
    return found != NULL;
}

enum tarn_status tarn_cuda_api_load(const char *library, struct tarn_cuda_api *api,
                                    struct tarn_error *error)
{
    const char *missing = NULL;
    void *handle = open_library(library, error);
    if (!handle) return TARN_DEVICE;
#define FIND(name, parameters) \
    if (!find(handle, "cuda" #name, &api->name)) missing = "cuda" #name;
    TARN_CUDA_LIBRARY_ENTRIES(FIND)
    missing = NULL;
    TARN_CUDA_ENTRIES(FIND)
#undef FIND
    if (!find(handle, "cudaGetErrorString", &api->GetErrorString)) missing = "cudaGetErrorString";
    if (!missing) return TARN_OK;
    return tarn_error_set(error, TARN_DEVICE,
                          "the CUDA runtime has no %s: it is too old, CUDA 12 or later is needed",
                          missing);
}
