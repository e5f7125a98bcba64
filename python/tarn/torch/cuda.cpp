/* PyTorch's pluggable allocator for CUDA, on cuda_memory.h. Compiled by tarn.torch where it is first
 * needed; called by ctypes. */
#include <c10/util/Exception.h>
#include <torch/csrc/cuda/CUDAPluggableAllocator.h>

#include "cuda_memory.h"

namespace {

void *allocate(size_t size, int device, cudaStream_t stream) {
    void *address = tarn_cuda_allocate(ptrdiff_t(size), device, stream);
    TORCH_CHECK_WITH(OutOfMemoryError, address || !size, "CUDA out of memory: cudaMalloc of ", size,
                     " bytes has failed");
    return address;
}

class Allocator final : public torch::cuda::CUDAPluggableAllocator::CUDAPluggableAllocator {
public:
    using CUDAPluggableAllocator::CUDAPluggableAllocator;
    /* What cuDNN may try with `benchmark`: the largest request that can be had. */
    void cacheInfo(c10::DeviceIndex, size_t *largest) override {
        size_t left = 0, total = 0;
        if (runtime.info) runtime.info(&left, &total);
        *largest = left;
    }
};

} // namespace

/* Returns why it cannot be installed, or NULL. */
extern "C" const char *tarn_cuda_install() {
    static std::string why;
    try {
        auto made = std::make_shared<Allocator>(allocate, tarn_cuda_release);
        made->set_record_stream_fn(tarn_cuda_use);
        made->set_reset_fn(tarn_cuda_trim); // torch.cuda.empty_cache
        torch::cuda::CUDAPluggableAllocator::changeCurrentAllocator(made);
        return nullptr;
    } catch (const std::exception &error) {
        return (why = error.what()).c_str();
    }
}
