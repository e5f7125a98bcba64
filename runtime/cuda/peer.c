/* Memory of one GPU under kernels of another. What cudaMalloc gives is reached from the peers that
 * the reaching context has enabled, a pool's memory from those that the pool lets in. Source: CUDA
 * Runtime API, "Peer Device Memory Access", "Stream Ordered Memory Allocator". */
#include "device.h"
#include "streams/graph/report.h"

static tarn_cuda_code enable(struct tarn_cuda *cuda, const struct tarn_cuda *owner)
{
    struct tarn_cuda_visit visit = tarn_cuda_enter(cuda);
    const struct tarn_cuda_pool_access access = {.location_type = TARN_CUDA_LOCATION_IS_DEVICE,
                                                 .location_id = cuda->ordinal,
                                                 .flags = TARN_CUDA_ACCESS_READ_WRITE};
    if (!visit.code && owner->pool)
        visit.code =
            visit.api->MemPoolSetAccess(owner->pool, (const struct cudaMemAccessDesc *)&access, 1);
    else if (!visit.code)
        visit.code = visit.api->DeviceEnablePeerAccess(owner->ordinal, 0);
    if (visit.code == TARN_CUDA_PEER_ALREADY_ENABLED) {
        visit.api->GetLastError();
        visit.code = 0;
    }
    return (tarn_cuda_code)tarn_cuda_leave(&visit);
}

enum tarn_status tarn_device_cuda_reach(struct tarn_device device, struct tarn_device owner,
                                        struct tarn_error *error)
{
    int can = 0;
    tarn_error_clear(error);
    if (device.table != &tarn_cuda_table || owner.table != &tarn_cuda_table)
        return tarn_error_set(error, TARN_USAGE, "both devices must be CUDA devices");
    struct tarn_cuda *cuda = device.self;
    const struct tarn_cuda *other = owner.self;
    if (cuda->ordinal == other->ordinal) return TARN_OK;
    tarn_cuda_code code = cuda->api.DeviceCanAccessPeer(&can, cuda->ordinal, other->ordinal);
    if (!code && !can)
        return tarn_error_set(error, TARN_DEVICE,
                              "CUDA: kernels on device %d cannot reach memory of device %d: the "
                              "machine has no connection between them",
                              cuda->ordinal, other->ordinal);
    if (!code) code = enable(cuda, other);
    if (!code) return TARN_OK;
    if (error) error->device_code = (int)code;
    return tarn_error_set(error, TARN_DEVICE,
                          "CUDA: letting device %d reach memory of device %d failed with code %u: "
                          "%s",
                          cuda->ordinal, other->ordinal, code, cuda->api.GetErrorString(code));
}
