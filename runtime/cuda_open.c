/* Opening a CUDA device: runtime library, driver, device, then what the device table needs at hand.
 * Everything that can be missing on a machine is missed here, with a text that says what to do. */
#include <stdio.h>
#include <stdlib.h>

#include "../streams/graph/options.h"
#include "../streams/graph/report.h"
#include "cuda_device.h"

static enum tarn_status refuse(const struct tarn_cuda *cuda, const char *what, tarn_cuda_code code,
                               struct tarn_error *error)
{
    const char *text = cuda->api.GetErrorString(code);
    cuda->api.GetLastError();
    if (error && error->status == TARN_OK) error->device_code = (int)code;
    return tarn_error_set(error, TARN_DEVICE, "CUDA: %s failed with code %u: %s", what, code, text);
}

/* The driver says which CUDA it can serve; 0 means that there is none. */
static enum tarn_status refuse_driver(const struct tarn_cuda *cuda, struct tarn_error *error)
{
    int driver = 0, runtime = 0;
    cuda->api.DriverGetVersion(&driver);
    cuda->api.RuntimeGetVersion(&runtime);
    cuda->api.GetLastError();
    if (error && error->status == TARN_OK) error->device_code = TARN_CUDA_INSUFFICIENT_DRIVER;
    if (driver == 0)
        return tarn_error_set(error, TARN_DEVICE,
                              "CUDA: no NVIDIA driver is loaded, the runtime (CUDA %d.%d) finds no "
                              "device; install a driver or use the host device",
                              runtime / 1000, runtime % 1000 / 10);
    return tarn_error_set(error, TARN_DEVICE,
                          "CUDA: the NVIDIA driver is too old: it serves CUDA %d.%d, the runtime "
                          "needs %d.%d; update the driver or name an older runtime library",
                          driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
}

/* cudaGetDeviceCount leaves the count alone when it fails. */
static enum tarn_status find_device(struct tarn_cuda *cuda, uint32_t ordinal,
                                    struct tarn_error *error)
{
    int count = 0;
    tarn_cuda_code code = cuda->api.GetDeviceCount(&count);
    if (code == TARN_CUDA_INSUFFICIENT_DRIVER) return refuse_driver(cuda, error);
    if (code == TARN_CUDA_NO_DEVICE || (!code && count <= 0)) {
        cuda->api.GetLastError();
        if (error && error->status == TARN_OK) error->device_code = TARN_CUDA_NO_DEVICE;
        return tarn_error_set(error, TARN_DEVICE,
                              "CUDA: the driver shows no device to this process (is "
                              "CUDA_VISIBLE_DEVICES set?)");
    }
    if (code) return refuse(cuda, "counting the devices", code, error);
    if (ordinal >= (uint32_t)count)
        return tarn_error_set(error, TARN_DEVICE,
                              "CUDA: there is no device %u; this process sees %d", ordinal, count);
    cuda->ordinal = (int)ordinal;
    return TARN_OK;
}

/* Host code can follow device memory on some machines; the runtime knows it of a pointer only. */
static tarn_cuda_code probe_memory(struct tarn_cuda *cuda)
{
    struct tarn_cuda_pointer_attributes attributes = {0};
    void *probe;
    tarn_cuda_code code = cuda->api.Malloc(&probe, 1);
    if (code) return code;
    code = cuda->api.PointerGetAttributes((struct cudaPointerAttributes *)&attributes, probe);
    cuda->on_host = !code && attributes.host_pointer == probe;
    cuda->api.Free(probe);
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

/* *what: the step that failed. */
static tarn_cuda_code prepare(struct tarn_cuda *cuda, bool pool, const char **what)
{
    *what = "choosing the device";
    tarn_cuda_code code = tarn_cuda_enter(cuda);
    if (code) return code;
    *what = "asking for stream priorities";
    code = cuda->api.DeviceGetStreamPriorityRange(&cuda->priorities[0], &cuda->priorities[1]);
    if (code) return code;
    if (cuda->api.DeviceGetPCIBusId(cuda->pci_bus_id, sizeof cuda->pci_bus_id, cuda->ordinal)) {
        cuda->api.GetLastError();
        cuda->pci_bus_id[0] = '\0'; /* pinned memory then lies anywhere */
    }
    *what = "allocating a first byte";
    code = probe_memory(cuda);
    if (code) return code;
    *what = "creating the copy stream";
    code = cuda->api.StreamCreateWithPriority(&cuda->copies, TARN_CUDA_STREAM_NON_BLOCKING,
                                              cuda->priorities[0]);
    if (code || !pool) return code;
    *what = "creating the memory pool";
    return create_pool(cuda);
}

static enum tarn_status open_device(struct tarn_cuda *cuda, const struct tarn_cuda_options *options,
                                    struct tarn_error *error)
{
    const char *what;
    enum tarn_status status = tarn_cuda_api_load(options->library, &cuda->api, error);
    if (!status) status = find_device(cuda, options->ordinal, error);
    if (status) return status;
    tarn_cuda_code code = prepare(cuda, options->pool, &what);
    if (code) return refuse(cuda, what, code, error);
    tarn_cuda_check_init(&cuda->check, &cuda->api, cuda->ordinal);
    cuda->nvtx = tarn_nvtx_create();
    return TARN_OK;
}

void tarn_device_cuda_close(struct tarn_device device)
{
    struct tarn_cuda *cuda = device.self;
    if (!cuda) return;
    tarn_nvtx_destroy(cuda->nvtx);
    tarn_cuda_check_finish(&cuda->check, &cuda->api);
    if (cuda->copies) {
        cuda->api.StreamSynchronize(cuda->copies); /* what the pool gets back comes through it */
        cuda->api.StreamDestroy(cuda->copies);
    }
    if (cuda->pool) cuda->api.MemPoolDestroy(cuda->pool);
    pthread_mutex_destroy(&cuda->lock);
    free(cuda);
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
    if (status) return status;
    struct tarn_cuda *cuda = calloc(1, sizeof *cuda);
    if (!cuda) return tarn_error_no_memory(error);
    pthread_mutex_init(&cuda->lock, NULL);
    status = open_device(cuda, &taken, error);
    const struct tarn_device opened = {&tarn_cuda_table, cuda};
    if (status)
        tarn_device_cuda_close(opened);
    else
        *device = opened;
    return status;
}
