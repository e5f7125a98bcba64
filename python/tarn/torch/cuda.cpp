/* A pluggable allocator for CUDA (torch.cuda.memory.CUDAPluggableAllocator) with a frame for each
 * thread and a tape in front of cudaMalloc. Needs no headers of CUDA: CUDART_MAJOR is the version of the runtime that PyTorch has
 * loaded. */
#include <dlfcn.h>

#include <stdexcept>
#include <string>
#include <unordered_map>

#define TARN_TAPING_THREAD std::atomic<bool>
#define TARN_LINE 512
#include "calls.h"

#ifndef CUDART
#define TARN_TEXT_OF(word) #word
#define TARN_TEXT(macro) TARN_TEXT_OF(macro)
#define CUDART "libcudart.so." TARN_TEXT(CUDART_MAJOR)
#endif

namespace {

struct Runtime {
    int (*malloc)(void **, size_t) = nullptr;
    int (*free)(void *) = nullptr;
    Runtime() {
        void *library = dlsym(RTLD_DEFAULT, "cudaMalloc") ? RTLD_DEFAULT : dlopen(CUDART, RTLD_LAZY);
        malloc = reinterpret_cast<int (*)(void **, size_t)>(dlsym(library, "cudaMalloc"));
        free = reinterpret_cast<int (*)(void *)>(dlsym(library, "cudaFree"));
    }
};
const Runtime runtime;

std::mutex lock;
std::unordered_map<void *, int64_t> blocks;  // of cudaMalloc: number on the tape
std::unordered_map<void *, int64_t> streams; // numbered as they come

int64_t number_of(void *stream) {
    std::lock_guard<std::mutex> guard(lock);
    return streams.emplace(stream, int64_t(streams.size())).first->second;
}

int64_t block_at(void *address) {
    if (tape.owns(static_cast<char *>(address))) return tape.block_at(static_cast<char *>(address));
    std::lock_guard<std::mutex> guard(lock);
    auto found = blocks.find(address);
    return found == blocks.end() || found->second < 0 ? -1 : found->second & 0xFFFFFFFF;
}

} // namespace

extern "C" {

int64_t tarn_cuda_stream(void *stream) { return number_of(stream); }

void *tarn_cuda_allocate(ptrdiff_t size, int, void *stream) {
    if (size == 0) return nullptr;
    requests++;
    int64_t on = number_of(stream);
    if (char *address = planned(size_t(size), on)) return address;
    void *address = nullptr;
    if (!runtime.malloc || runtime.malloc(&address, size_t(size)))
        throw std::runtime_error("CUDA out of memory: cudaMalloc of " + std::to_string(size) +
                                 " bytes has failed");
    counted(size);
    frame.requested(address, size_t(size));
    int64_t number = taping && !frame.is_open() ? tape.recorded(size_t(size), on) : -1;
    std::lock_guard<std::mutex> guard(lock);
    blocks[address] = number;
    return address;
}

void tarn_cuda_release(void *address, ptrdiff_t size, int, void *stream) {
    int64_t on = number_of(stream), number = -1;
    if (!address || kept(static_cast<char *>(address), on)) return;
    {
        std::lock_guard<std::mutex> guard(lock);
        auto found = blocks.find(address);
        if (found != blocks.end()) number = found->second, blocks.erase(found);
    }
    frame.released(address);
    counted(-size);
    if (number >= 0) tape.released(number, on);
    runtime.free(address);
}

void tarn_cuda_use(void *address, void *stream) {
    int64_t block = block_at(address);
    if (taping && block >= 0) tape.told(tarn::Action::Use, block, number_of(stream));
}
}
