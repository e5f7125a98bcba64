/* Finds the CUDA runtime. A runtime that the process uses already (a framework's) comes first,
 * whatever its version: under a known soname, or inside the program itself. Then the libraries that
 * can be loaded, the configured major version first. A runtime is never unloaded: CUDA's own exit
 * handlers live in it. Source: dlopen(3). Cost: one dlopen and a dlsym per entry point when a
 * device is opened. */
#include "api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "streams/graph/report.h"

#ifndef TARN_CUDA_MAJOR
#define TARN_CUDA_MAJOR 13
#endif

/* Major versions with the API that cuda/api.h declares. CUDA 11 has another cudaGraphInstantiate.
 */
static const int majors[] = {TARN_CUDA_MAJOR, 13, 12};

enum { MAJORS = sizeof majors / sizeof *majors };

/* memcpy: a cast from void * to a function pointer is not C. */
static bool find(void *library, const char *name, void *entry)
{
    void *found = dlsym(library, name);
    memcpy(entry, &found, sizeof found);
    return found != NULL;
}

/* ---- Candidates ---- */

static void name_major(struct tarn_cuda_candidate *candidate, uint32_t i, int flags)
{
    snprintf(candidate->name, sizeof candidate->name, "libcudart.so.%d", majors[i]);
    for (uint32_t k = 0; k < i; k++) {
        if (majors[k] == majors[i]) return; /* was tried */
    }
    candidate->handle = dlopen(candidate->name, RTLD_NOW | RTLD_LOCAL | flags);
    candidate->is_repeated = false;
}

bool tarn_cuda_candidate(uint32_t number, struct tarn_cuda_candidate *candidate)
{
    *candidate = (struct tarn_cuda_candidate){.is_repeated = true};
    if (number < MAJORS) {
        name_major(candidate, number, RTLD_NOLOAD);
        candidate->is_repeated = !candidate->handle; /* it is loaded further down */
    } else if (number == MAJORS) {
        void *self = dlopen(NULL, RTLD_NOW);
        bool is_there = self && dlsym(self, "cudaRuntimeGetVersion");
        snprintf(candidate->name, sizeof candidate->name, "the runtime in the program itself");
        candidate->handle = is_there ? self : NULL;
        candidate->is_repeated = !is_there;
    } else if (number <= 2 * MAJORS) {
        name_major(candidate, number - MAJORS - 1, 0);
    }
    return number <= 2 * MAJORS;
}

enum tarn_status tarn_cuda_candidate_load(const char *library,
                                          struct tarn_cuda_candidate *candidate,
                                          struct tarn_error *error)
{
    *candidate = (struct tarn_cuda_candidate){0};
    snprintf(candidate->name, sizeof candidate->name, "%s", library);
    candidate->handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (candidate->handle) return TARN_OK;
    const char *reason = dlerror();
    return tarn_error_set(error, TARN_DEVICE, "the CUDA runtime could not be loaded: %s",
                          reason ? reason : library);
}

/* ---- Entry points ---- */

enum tarn_status tarn_cuda_api_find(const struct tarn_cuda_candidate *candidate,
                                    struct tarn_cuda_api *api, struct tarn_error *error)
{
    const char *missing = NULL;
    memset(api, 0, sizeof *api);
#define FIND(name, parameters) \
    if (!find(candidate->handle, "cuda" #name, &api->name)) missing = "cuda" #name;
    TARN_CUDA_LIBRARY_ENTRIES(FIND)
    missing = NULL;
    TARN_CUDA_LOOKUP_ENTRIES(FIND)
    if (api->GetDriverEntryPoint || api->GetDriverEntryPointByVersion) missing = NULL;
    TARN_CUDA_ENTRIES(FIND)
#undef FIND
    if (!find(candidate->handle, "cudaGetErrorString", &api->GetErrorString))
        missing = "cudaGetErrorString";
    if (!missing) return TARN_OK;
    return tarn_error_set(error, TARN_DEVICE,
                          "the CUDA runtime has no %s: it is too old, CUDA 12 or later is needed",
                          missing);
}

static tarn_cuda_code find_in_driver(const struct tarn_cuda_api *api, const char *name, void *entry)
{
    enum { API_VERSION = 12000, LEGACY_STREAM = 1 };
    void *found = NULL;
    unsigned answer;
    tarn_cuda_code code =
        api->GetDriverEntryPointByVersion
            ? api->GetDriverEntryPointByVersion(name, &found, API_VERSION, LEGACY_STREAM, &answer)
            : api->GetDriverEntryPoint(name, &found, LEGACY_STREAM, &answer);
    memcpy(entry, &found, sizeof found);
    return code || found ? code : TARN_CUDA_NOT_SUPPORTED;
}

tarn_cuda_code tarn_cuda_api_find_driver(struct tarn_cuda_api *api)
{
    tarn_cuda_code code = 0;
#define FIND(name, parameters) \
    if (!code) code = find_in_driver(api, "cu" #name, &api->name);
    TARN_CUDA_DRIVER_ENTRIES(FIND)
#undef FIND
    return code;
}

enum tarn_status tarn_cuda_api_load(const char *library, struct tarn_cuda_api *api,
                                    struct tarn_error *error)
{
    struct tarn_cuda_candidate candidate;
    enum tarn_status status = tarn_cuda_candidate_load(library, &candidate, error);
    return status != TARN_OK ? status : tarn_cuda_api_find(&candidate, api, error);
}
