/* Opens a CUDA device: runtime library, driver, device, then the objects of the device table.
 * Anything that a machine lacks is detected here, and reported with a text that says what to do. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "device.h"
#include "runtime/state/machine.h"
#include "runtime/state/settings.h"
#include "streams/base/log.h"
#include "streams/base/memory.h"
#include "streams/base/options.h"
#include "streams/graph/report.h"

enum { TEXT_BYTES = 384 }; /* of what was tried */

static enum tarn_status refuse(const struct tarn_cuda *cuda, const char *what, tarn_cuda_code code,
                               struct tarn_error *error)
{
    const char *text = cuda->api.GetErrorString(code);
    if (error && error->status == TARN_OK) error->device_code = (int)code;
    return tarn_error_set(error, TARN_DEVICE, "CUDA: %s failed with code %u: %s", what, code, text);
}

/* ---- The runtime ---- */

/* Does the driver support this runtime? It reports the CUDA version that it supports; 0: no
 * driver. */
struct service {
    tarn_cuda_code code; /* of counting the devices */
    int count;           /* of devices; cudaGetDeviceCount does not set it if it fails */
    int driver, runtime; /* versions, as CUDA writes them */
};

static struct service ask_service(const struct tarn_cuda_api *api)
{
    struct service service = {0};
    service.code = api->GetDeviceCount(&service.count);
    api->DriverGetVersion(&service.driver);
    api->RuntimeGetVersion(&service.runtime);
    if (service.code) api->GetLastError();
    return service;
}

static bool is_too_new(const struct service *service)
{
    return service->code == TARN_CUDA_INSUFFICIENT_DRIVER && service->driver > 0;
}

static enum tarn_status refuse_service(const struct tarn_cuda *cuda, const struct service *service,
                                       struct tarn_error *error)
{
    int major = service->runtime / 1000, minor = service->runtime % 1000 / 10;
    bool has_none = service->code == TARN_CUDA_NO_DEVICE || (!service->code && service->count <= 0);
    if (error && error->status == TARN_OK)
        error->device_code = has_none ? TARN_CUDA_NO_DEVICE : (int)service->code;
    if (service->code == TARN_CUDA_INSUFFICIENT_DRIVER)
        return tarn_error_set(error, TARN_DEVICE,
                              "CUDA: no NVIDIA driver is loaded, the runtime (CUDA %d.%d) finds no "
                              "device; install a driver or use the host device",
                              major, minor);
    if (has_none)
        return tarn_error_set(error, TARN_DEVICE,
                              "CUDA: the driver shows no device to this process (is "
                              "CUDA_VISIBLE_DEVICES set?)");
    return refuse(cuda, "counting the devices", service->code, error);
}

/* Appends to the text of libraries tried. */
__attribute__((format(printf, 2, 3))) static void note(char *tried, const char *format, ...)
{
    size_t used = strlen(tried);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(tried + used, TEXT_BYTES - used, format, arguments);
    va_end(arguments);
}

/* Is this the runtime? If not, `tried` says why. */
static bool suits(struct tarn_cuda *cuda, const struct tarn_cuda_candidate *candidate,
                  struct service *service, char *tried)
{
    struct tarn_error reason = {0};
    const char *comma = *tried ? "; " : "";
    if (!candidate->handle) {
        note(tried, "%s%s could not be loaded", comma, candidate->name);
        return false;
    }
    if (tarn_cuda_api_find(candidate, &cuda->api, &reason)) {
        note(tried, "%s%s: %s", comma, candidate->name, reason.text);
        return false;
    }
    *service = ask_service(&cuda->api);
    if (!is_too_new(service)) return true;
    note(tried, "%s%s needs a driver for CUDA %d.%d", comma, candidate->name,
         service->runtime / 1000, service->runtime % 1000 / 10);
    return false;
}

static enum tarn_status refuse_all(const struct service *service, const char *tried,
                                   struct tarn_error *error)
{
    if (service->driver == 0)
        return tarn_error_set(error, TARN_DEVICE,
                              "no CUDA runtime (%s): install the CUDA runtime (package "
                              "cuda-cudart), put its folder into LD_LIBRARY_PATH, or name the "
                              "library when opening the device",
                              tried);
    if (error && error->status == TARN_OK) error->device_code = TARN_CUDA_INSUFFICIENT_DRIVER;
    return tarn_error_set(error, TARN_DEVICE,
                          "CUDA: the NVIDIA driver is too old: it serves CUDA %d.%d (%s); update "
                          "the driver or name an older runtime library",
                          service->driver / 1000, service->driver % 1000 / 10, tried);
}

/* The named runtime, or the first that the driver supports. */
static enum tarn_status find_runtime(struct tarn_cuda *cuda, const char *library,
                                     struct service *service, struct tarn_error *error)
{
    struct tarn_cuda_candidate candidate;
    char tried[TEXT_BYTES] = "";
    if (library) {
        enum tarn_status status = tarn_cuda_candidate_load(library, &candidate, error);
        if (status == TARN_OK) status = tarn_cuda_api_find(&candidate, &cuda->api, error);
        if (status != TARN_OK) return status;
        if (suits(cuda, &candidate, service, tried)) return TARN_OK;
        return refuse_all(service, tried, error);
    }
    for (uint32_t i = 0; tarn_cuda_candidate(i, &candidate); i++) {
        if (candidate.is_repeated || !suits(cuda, &candidate, service, tried)) continue;
        tarn_log(TARN_LOG_INFO, "CUDA: the runtime is %s%s%s", candidate.name,
                 *tried ? "; passed over: " : "", tried);
        return TARN_OK;
    }
    return refuse_all(service, tried, error);
}

/* ---- The device ---- */

static enum tarn_status find_device(struct tarn_cuda *cuda, const struct service *service,
                                    uint32_t ordinal, struct tarn_error *error)
{
    if (service->code || service->count <= 0) return refuse_service(cuda, service, error);
    if (ordinal >= (uint32_t)service->count)
        return tarn_error_set(error, TARN_DEVICE,
                              "CUDA: there is no device %u; this process sees %d", ordinal,
                              service->count);
    cuda->ordinal = (int)ordinal;
    return TARN_OK;
}

/* Host code can access device memory on some machines; the runtime reports it only for a
 * pointer. */
static tarn_cuda_code probe_memory(struct tarn_cuda *cuda)
{
    struct tarn_cuda_pointer_attributes attributes = {0};
    void *probe;
    tarn_cuda_code code = cuda->api.Malloc(&probe, 1);
    if (code) return code;
    code = cuda->api.PointerGetAttributes((struct cudaPointerAttributes *)&attributes, probe);
    cuda->on_host = !code && attributes.host_pointer == probe;
    tarn_cuda_release(cuda, TARN_CUDA_FROM_MALLOC, probe, 1);
    return code;
}

static tarn_cuda_code create_pool(struct tarn_cuda *cuda)
{
    const struct tarn_cuda_pool_props props = {.allocation_type = TARN_CUDA_PINNED_ALLOCATION,
                                               .location_type = TARN_CUDA_LOCATION_IS_DEVICE,
                                               .location_id = cuda->ordinal};
    uint64_t keep_all = UINT64_MAX;
    tarn_cuda_code code =
        cuda->api.MemPoolCreate(&cuda->pool, (const struct cudaMemPoolProps *)&props);
    if (code) return code;
    return cuda->api.MemPoolSetAttribute(cuda->pool, TARN_CUDA_RELEASE_THRESHOLD, &keep_all);
}

/* Retains the context that the runtime itself uses; the calling thread's current context is
 * unchanged. */
static tarn_cuda_code retain_context(struct tarn_cuda *cuda)
{
    tarn_cuda_context context;
    tarn_cuda_code code = tarn_cuda_api_find_driver(&cuda->api);
    if (!code) code = cuda->api.DeviceGet(&cuda->device, cuda->ordinal);
    if (!code) code = cuda->api.DevicePrimaryCtxRetain(&context, cuda->device);
    if (!code) cuda->context = context;
    return code;
}

/* In a visit. *what: the step that failed. */
static tarn_cuda_code prepare(struct tarn_cuda *cuda, bool pool, const char **what)
{
    *what = "asking for stream priorities";
    tarn_cuda_code code =
        cuda->api.DeviceGetStreamPriorityRange(&cuda->priorities[0], &cuda->priorities[1]);
    if (code) return code;
    if (cuda->api.DeviceGetPCIBusId(cuda->pci_bus_id, sizeof cuda->pci_bus_id, cuda->ordinal)) {
        cuda->api.GetLastError();
        cuda->pci_bus_id[0] = '\0'; /* pinned memory is then on any node */
    }
    *what = "allocating a first byte";
    code = probe_memory(cuda);
    if (code) return code;
    *what = "creating the copy stream";
    code = cuda->api.StreamCreateWithPriority(&cuda->copies, TARN_CUDA_STREAM_NON_BLOCKING,
                                              cuda->priorities[0]);
    if (code) return code;
    *what = "creating the memory pool";
    code = pool ? create_pool(cuda) : 0;
    if (!code) tarn_cuda_check_init(&cuda->check, &cuda->api, cuda->ordinal);
    return code;
}

static enum tarn_status open_device(struct tarn_cuda *cuda, const struct tarn_cuda_options *options,
                                    struct tarn_error *error)
{
    const char *what = "choosing the device";
    struct service service = {0};
    enum tarn_status status =
        tarn_settings_take_source(&cuda->source, options->memory, "CUDA", error);
    if (status == TARN_OK && options->memory && options->pool)
        status = tarn_error_set(error, TARN_USAGE,
                                "a device has a source of memory, or a pool, not both");
    if (status == TARN_OK) status = find_runtime(cuda, options->library, &service, error);
    if (status == TARN_OK) status = find_device(cuda, &service, options->ordinal, error);
    if (status != TARN_OK) return status;
    tarn_cuda_code code = retain_context(cuda);
    if (!code) {
        struct tarn_cuda_visit visit = tarn_cuda_enter(cuda);
        if (!visit.code) visit.code = prepare(cuda, options->pool, &what);
        code = (tarn_cuda_code)tarn_cuda_leave(&visit);
    }
    if (code) return refuse(cuda, what, code, error);
    cuda->nvtx = tarn_nvtx_create();
    return TARN_OK;
}

static void close_parts(struct tarn_cuda *cuda)
{
    struct tarn_cuda_visit visit = tarn_cuda_enter(cuda);
    tarn_cuda_check_finish(&cuda->check, &cuda->api);
    if (cuda->copies) {
        /* Memory returns to the pool through this stream. Tries twice if that fails. */
        if (cuda->api.StreamSynchronize(cuda->copies)) cuda->api.StreamSynchronize(cuda->copies);
        cuda->api.StreamDestroy(cuda->copies);
    }
    if (cuda->pool) cuda->api.MemPoolDestroy(cuda->pool);
    tarn_cuda_leave(&visit);
    cuda->api.DevicePrimaryCtxRelease(cuda->device);
}

static void close_device(struct tarn_cuda *cuda)
{
    tarn_nvtx_destroy(cuda->nvtx);
    if (cuda->context) close_parts(cuda);
    pthread_cond_destroy(&cuda->release.done);
    pthread_mutex_destroy(&cuda->release.lock);
    pthread_mutex_destroy(&cuda->lock);
    tarn_free(cuda);
}

void tarn_device_cuda_close(struct tarn_device device)
{
    struct tarn_cuda *cuda = device.self;
    if (cuda) tarn_cuda_release_finish(cuda, close_device);
}

enum tarn_status tarn_device_cuda_open(const struct tarn_cuda_options *options,
                                       struct tarn_device *device, struct tarn_error *error)
{
    struct tarn_cuda_options taken;
    tarn_error_clear(error);
    if (!device) return tarn_error_set(error, TARN_USAGE, "no place for the device");
    *device = (struct tarn_device){0};
    enum tarn_status status =
        tarn_options_take(&taken, sizeof taken, options, "CUDA options", error);
    if (status != TARN_OK) return status;
    struct tarn_cuda *cuda = tarn_take_zeros(1, sizeof *cuda);
    if (!cuda) return tarn_error_no_memory(error);
    tarn_machine(); /* read before the device has threads */
    pthread_mutex_init(&cuda->lock, NULL);
    tarn_cuda_release_init(&cuda->release);
    status = open_device(cuda, &taken, error);
    const struct tarn_device opened = {&tarn_cuda_table, cuda};
    if (status != TARN_OK)
        tarn_device_cuda_close(opened);
    else
        *device = opened;
    return status;
}
