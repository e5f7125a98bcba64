/* Loads the checking kernels' image through the runtime's library calls (CUDA 12.8), so that
 * nothing links cudart. The image is an array of bytes that the build makes from cuda/check.cu. One
 * thread compares 16 bytes at a time; a grid no larger than the GPU can hold loops over the rest.
 * Cost of a launch: one runtime call. */
#include "check.h"

enum { THREADS = 256, BYTES_PER_THREAD = 16, BLOCKS_PER_MULTIPROCESSOR = 8 };

#ifdef TARN_HAVE_CUDA_KERNELS
extern const unsigned char tarn_cuda_check_image[];

static tarn_cuda_code find_kernels(struct tarn_cuda_check *check, const struct tarn_cuda_api *api)
{
    tarn_cuda_code code =
        api->LibraryLoadData(&check->library, tarn_cuda_check_image, NULL, NULL, 0, NULL, NULL, 0);
    if (code) return code;
    code = api->LibraryGetKernel(&check->fill, check->library, "tarn_pattern_fill");
    if (!code)
        code = api->LibraryGetKernel(&check->compare, check->library, "tarn_pattern_compare");
    if (!code) code = api->LibraryGetKernel(&check->spin, check->library, "tarn_spin");
    return code;
}
#else
static tarn_cuda_code find_kernels(struct tarn_cuda_check *check, const struct tarn_cuda_api *api)
{
    (void)check, (void)api;
    return TARN_CUDA_NOT_SUPPORTED;
}
#endif

void tarn_cuda_check_init(struct tarn_cuda_check *check, const struct tarn_cuda_api *api,
                          int ordinal)
{
    int multiprocessors = 1;
    *check = (struct tarn_cuda_check){.failure = TARN_CUDA_NOT_SUPPORTED};
    if (!api->LibraryLoadData || !api->LibraryGetKernel || !api->LibraryUnload) return;
    check->failure = api->DeviceGetAttribute(&multiprocessors, TARN_CUDA_MULTIPROCESSORS, ordinal);
    check->blocks_max = (uint32_t)multiprocessors * BLOCKS_PER_MULTIPROCESSOR;
    if (!check->failure) check->failure = find_kernels(check, api);
    if (!check->failure) return;
    api->GetLastError();
    tarn_cuda_check_finish(check, api);
}

void tarn_cuda_check_finish(struct tarn_cuda_check *check, const struct tarn_cuda_api *api)
{
    if (check->library) api->LibraryUnload(check->library);
    check->library = NULL;
}

static tarn_cuda_code start(const struct tarn_cuda_check *check, const struct tarn_cuda_api *api,
                            tarn_cuda_kernel kernel, uint64_t size, void *queue, void **arguments)
{
    if (check->failure) return check->failure;
    uint64_t blocks = size / (THREADS * BYTES_PER_THREAD) + 1;
    const struct tarn_cuda_launch launch = {
        .blocks = {blocks < check->blocks_max ? (unsigned)blocks : check->blocks_max, 1, 1},
        .threads = {size > 1 ? THREADS : 1, 1, 1},
        .stream = queue};
    return api->LaunchKernelExC((const struct cudaLaunchConfig_st *)&launch, kernel, arguments);
}

tarn_cuda_code tarn_cuda_pattern_fill(const struct tarn_cuda_check *check,
                                      const struct tarn_cuda_api *api, void *queue, void *bytes,
                                      uint64_t size, const uint64_t *seed)
{
    void *arguments[] = {&bytes, &size, &seed};
    return start(check, api, check->fill, size, queue, arguments);
}

tarn_cuda_code tarn_cuda_pattern_compare(const struct tarn_cuda_check *check,
                                         const struct tarn_cuda_api *api, void *queue,
                                         const void *bytes, uint64_t size, const uint64_t *seed,
                                         uint64_t *wrong)
{
    void *arguments[] = {&bytes, &size, &seed, &wrong};
    return start(check, api, check->compare, size, queue, arguments);
}

tarn_cuda_code tarn_cuda_spin(const struct tarn_cuda_check *check, const struct tarn_cuda_api *api,
                              void *queue, uint64_t duration_ns)
{
    void *arguments[] = {&duration_ns};
    return start(check, api, check->spin, 1, queue, arguments);
}
