/* PyTorch's pluggable allocator for CUDA, on cuda_memory.h. Compiled by tarn.torch where it is first
 * needed; called by ctypes. */
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/Exception.h>
#include <torch/csrc/cuda/CUDAPluggableAllocator.h>

#include "cuda_memory.h"

namespace {

void *allocate(size_t size, int device, cudaStream_t stream) {
    void *address = tarn_cuda_allocate(ptrdiff_t(size), device, stream);
    if (address || !size) return address;
    /* No stream writes the number: a compiler that links the C++ library statically brings a second
     * one, whose streams do not know the first one's locale. */
    const std::string text =
        std::string(on_host ? "out of pinned memory: cudaHostAlloc"
                            : "CUDA out of memory: cudaMalloc") +
        " of " + std::to_string(size) + " bytes has failed";
    TORCH_CHECK_WITH(OutOfMemoryError, false, text);
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
    /* torch.cuda.memory_allocated and its like: an arena is one allocation. */
    c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override {
        c10::CachingDeviceAllocator::DeviceStats stats;
        for (auto *bytes : {&stats.allocated_bytes, &stats.active_bytes, &stats.requested_bytes})
            (*bytes)[0].current = tarn_live(), (*bytes)[0].peak = tarn_peak();
        stats.reserved_bytes[0].current = tarn_live() + tarn_cuda_kept();
        stats.reserved_bytes[0].peak = std::max(tarn_peak(), stats.reserved_bytes[0].current);
        stats.allocation[0].allocated = tarn_requests();
        return stats;
    }
    void resetPeakStats(c10::DeviceIndex) override { tarn_reset_peak(); }
    void resetAccumulatedStats(c10::DeviceIndex) override {}
};

} // namespace

/* Two storages (c10::StorageImpl) get each other's bytes. */
extern "C" void tarn_cuda_swap(void *one, void *other) {
    auto *first = static_cast<c10::StorageImpl *>(one), *second = static_cast<c10::StorageImpl *>(other);
    c10::DataPtr bytes = first->set_data_ptr(c10::DataPtr(nullptr, first->device()));
    first->set_data_ptr_noswap(second->set_data_ptr(std::move(bytes)));
}

/* Moves PyTorch's generator forward by so many numbers, a multiple of 4, and returns where it was: in
 * a capture counted from where the capture begins. (Its own functions refuse to tell that, and to
 * move, in a capture: here it draws that many numbers.) -1: it refuses. */
extern "C" int64_t tarn_cuda_generator(int64_t by) {
    try {
        at::Generator generator = at::cuda::detail::getDefaultCUDAGenerator();
        std::lock_guard<std::mutex> guard(generator.mutex());
        auto *own = at::check_generator<at::CUDAGeneratorImpl>(generator);
        at::PhiloxCudaState state = own->philox_cuda_state(uint64_t(by));
        return int64_t(state.captured_ ? state.offset_intragraph_ : state.offset_.val);
    } catch (const std::exception &) {
        return -1;
    }
}

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
