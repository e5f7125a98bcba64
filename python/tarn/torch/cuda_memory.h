/* Memory of a GPU, with a frame for each thread and a tape in front of cudaMalloc. Knows neither
 * PyTorch nor the headers of CUDA: CUDART_MAJOR is the version of the runtime that is loaded. */
#ifndef TARN_CUDA_MEMORY_H
#define TARN_CUDA_MEMORY_H

#include <dlfcn.h>

#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#define TARN_TAPING_FLAG std::atomic<bool>
#define TARN_LINE 512
#include "calls.h"

#ifndef CUDART
#define TARN_TEXT_OF(word) #word
#define TARN_TEXT(macro) TARN_TEXT_OF(macro)
#define CUDART "libcudart.so." TARN_TEXT(CUDART_MAJOR)
#endif

namespace
{

struct Runtime {
    int (*malloc)(void **, size_t) = nullptr;
    int (*free)(void *) = nullptr;
    int (*last_error)() = nullptr;
    int (*info)(size_t *, size_t *) = nullptr;
    int (*exchange)(int *) = nullptr;
    int (*host_allocate)(void **, size_t, unsigned) = nullptr;
    int (*host_free)(void *) = nullptr;
    int (*copy)(void *, const void *, size_t, int, void *) = nullptr;
    Runtime()
    {
        void *library =
            dlsym(RTLD_DEFAULT, "cudaMalloc") ? RTLD_DEFAULT : dlopen(CUDART, RTLD_LAZY);
        malloc = reinterpret_cast<int (*)(void **, size_t)>(dlsym(library, "cudaMalloc"));
        free = reinterpret_cast<int (*)(void *)>(dlsym(library, "cudaFree"));
        last_error = reinterpret_cast<int (*)()>(dlsym(library, "cudaGetLastError"));
        info = reinterpret_cast<int (*)(size_t *, size_t *)>(dlsym(library, "cudaMemGetInfo"));
        exchange =
            reinterpret_cast<int (*)(int *)>(dlsym(library, "cudaThreadExchangeStreamCaptureMode"));
        host_allocate = reinterpret_cast<int (*)(void **, size_t, unsigned)>(
            dlsym(library, "cudaHostAlloc"));
        host_free = reinterpret_cast<int (*)(void *)>(dlsym(library, "cudaFreeHost"));
        copy = reinterpret_cast<int (*)(void *, const void *, size_t, int, void *)>(
            dlsym(library, "cudaMemcpyAsync"));
    }
    /* Pinned memory of the host, which the GPU reads and writes at the same addresses. NULL: there is
     * none. */
    void *pinned(size_t size) const
    {
        void *address = nullptr;
        if (!host_allocate || host_allocate(&address, size, 0))
            address = nullptr, last_error && last_error();
        return address;
    }
    /* NULL: there is no memory. PyTorch looks for errors after each launch, and would find this
     * one. */
    void *allocate(size_t size) const
    {
        void *address = nullptr;
        if (malloc && malloc(&address, size)) address = nullptr, last_error && last_error();
        return address;
    }
};
const Runtime runtime;

struct Block {
    int64_t number; // on the tape, or -1
    bool is_shared; // another stream has used it
    int64_t pool;   // 0: of the heap
};

/* Free blocks are kept for requests of the same size on the same stream, which come behind whatever
 * has used them. Large ones are not, nor those that other streams have used: cudaFree waits. */
constexpr ptrdiff_t kLarge = ptrdiff_t(64) << 20;
using Kind = std::tuple<ptrdiff_t, int, void *>; // size, device, stream

/* While a thread captures a CUDA graph, its requests get blocks of the graph's pool, at whose
 * addresses nothing else lies as long as the graph may be launched; in the capture a block is used
 * again by its stream. A capture forbids cudaMalloc, unless the thread says that it knows what it
 * does, and cudaFree in any case. */
struct Pool {
    std::map<Kind, std::vector<void *>> free;
    std::vector<void *> all;
    int64_t bytes = 0;
};

std::mutex lock;
auto &pools = *new std::map<int64_t, Pool>;
/* To be freed when the capture has ended. */
auto &deferred = *new std::vector<void *>, &deferred_pinned = *new std::vector<void *>;
int64_t pools_count = 0;
thread_local int64_t capturing = 0;                    // the pool of this thread's capture, or 0
auto &blocks = *new std::unordered_map<void *, Block>; // that are in use
auto &pinned_blocks = *new std::unordered_set<void *>;  // of the host's memory
thread_local bool on_host = false; // this thread's requests get such blocks
auto &free_blocks = *new std::map<Kind, std::vector<void *>>;
auto &streams = *new std::unordered_map<void *, int64_t>; // numbered as they come

int64_t number_of(void *stream)
{
    std::lock_guard<std::mutex> guard(lock);
    return streams.emplace(stream, int64_t(streams.size())).first->second;
}

/* Gives free blocks back. */
void trim()
{
    for (auto &[kind, all] : free_blocks) {
        for (void *unused : all) runtime.free(unused);
        all.clear();
    }
}

/* NULL: there is no memory. */
void *pooled(Pool &pool, const Kind &kind)
{
    std::vector<void *> &same = pool.free[kind];
    if (!same.empty()) {
        void *address = same.back();
        same.pop_back();
        return address;
    }
    int mode = 2; // relaxed
    if (runtime.exchange) runtime.exchange(&mode);
    void *address = runtime.allocate(size_t(std::get<0>(kind)));
    if (runtime.exchange) runtime.exchange(&mode);
    if (address) pool.all.push_back(address), pool.bytes += std::get<0>(kind);
    return address;
}

/* NULL: there is no memory. */
void *block_of(const Kind &kind)
{
    std::vector<void *> &same = free_blocks[kind];
    if (!same.empty()) {
        void *address = same.back();
        same.pop_back();
        return address;
    }
    if (void *address = runtime.allocate(size_t(std::get<0>(kind)))) return address;
    trim();
    return runtime.allocate(size_t(std::get<0>(kind)));
}

/* Those of an arena are never among the free blocks: cudaFree waits for all streams. */
char *bytes_for(size_t size)
{
    std::lock_guard<std::mutex> guard(lock);
    return static_cast<char *>(block_of({ptrdiff_t(tarn::lines(size)), -1, nullptr}));
}
void give_back(char *bytes) { runtime.free(bytes); }

/* Frees a block of the host's memory, for which it waits until the GPU is done with it. */
bool was_pinned(void *address)
{
    std::lock_guard<std::mutex> guard(lock);
    if (!pinned_blocks.erase(address)) return false;
    if (capturing)
        deferred_pinned.push_back(address);
    else
        runtime.host_free(address);
    return true;
}

} // namespace

extern "C" {

/* Bytes that are kept for later requests, or for graphs. */
int64_t tarn_cuda_kept() {
    std::lock_guard<std::mutex> guard(lock);
    int64_t bytes = 0;
    for (const auto &[kind, all] : free_blocks) bytes += std::get<0>(kind) * int64_t(all.size());
    for (const auto &[number, pool] : pools)
        for (const auto &[kind, all] : pool.free) bytes += std::get<0>(kind) * int64_t(all.size());
    return bytes;
}

/* A capture by this thread begins; returns the number of its pool. */
int64_t tarn_cuda_pool_open()
{
    std::lock_guard<std::mutex> guard(lock);
    pools[++pools_count];
    return capturing = pools_count;
}
/* It has ended. Returns bytes of the pool. */
int64_t tarn_cuda_pool_close()
{
    std::lock_guard<std::mutex> guard(lock);
    for (void *address : deferred) runtime.free(address);
    deferred.clear();
    for (void *address : deferred_pinned) runtime.host_free(address);
    deferred_pinned.clear();
    int64_t bytes = capturing ? pools[capturing].bytes : 0;
    capturing = 0;
    return bytes;
}
/* Its graph is gone. A block that is in use is freed when it is released. */
void tarn_cuda_pool_drop(int64_t number)
{
    std::lock_guard<std::mutex> guard(lock);
    auto found = pools.find(number);
    if (found == pools.end()) return;
    for (void *address : found->second.all) {
        auto used = blocks.find(address);
        if (used == blocks.end())
            runtime.free(address);
        else
            used->second.pool = 0, used->second.is_shared = true;
    }
    pools.erase(found);
}

int64_t tarn_cuda_stream(void *stream) { return number_of(stream); }
void tarn_cuda_trim()
{
    if (capturing) return;
    std::lock_guard<std::mutex> guard(lock);
    trim();
}

/* May requests of this thread be answered with pinned memory of the host? */
void tarn_cuda_on_host(int is_on) { on_host = is_on; }
/* Does a block of such memory begin there? */
int tarn_cuda_is_on_host(void *address)
{
    std::lock_guard<std::mutex> guard(lock);
    return pinned_blocks.count(address) > 0;
}
/* Between any two memories, on a stream. Returns CUDA's error. */
int tarn_cuda_copy(void *to, const void *from, size_t size, void *stream)
{
    constexpr int kByAddresses = 4; // cudaMemcpyDefault
    return runtime.copy(to, from, size, kByAddresses, stream);
}

/* NULL: nothing was asked for, or there is no memory. */
void *tarn_cuda_allocate(ptrdiff_t size, int device, void *stream)
{
    if (size == 0) return nullptr;
    if (on_host) {
        void *address = runtime.pinned(size_t(size));
        std::lock_guard<std::mutex> guard(lock);
        if (address) pinned_blocks.insert(address);
        return address;
    }
    requests++;
    int64_t on = number_of(stream);
    if (char *address = planned(size_t(size), on)) return address;
    std::lock_guard<std::mutex> guard(lock);
    const Kind kind{ptrdiff_t(tarn::lines(size_t(size))), device, stream};
    void *address = capturing ? pooled(pools[capturing], kind) : block_of(kind);
    if (!address) return nullptr;
    counted(size);
    frame.requested(address, size_t(size));
    bool tapes = taping && !frame.is_open();
    blocks[address] = {tapes ? tape().recorded(size_t(size), on) : -1, false, capturing};
    return address;
}

void tarn_cuda_release(void *address, ptrdiff_t size, int device, void *stream)
{
    if (was_pinned(address)) return;
    int64_t on = number_of(stream);
    if (!address || kept(static_cast<char *>(address), on)) return;
    frame.released(address);
    counted(-size);
    std::lock_guard<std::mutex> guard(lock);
    Block block = blocks[address];
    blocks.erase(address);
    if (block.number >= 0) tape().released(block.number, on);
    const Kind kind{ptrdiff_t(tarn::lines(size_t(size))), device, stream};
    bool waits = block.is_shared || (size > kLarge && !frame.is_tracing()); // not what is measured
    if (block.pool) {
        if (capturing == block.pool && !block.is_shared)
            pools[block.pool].free[kind].push_back(address);
    } else if (waits && capturing)
        deferred.push_back(address);
    else if (waits)
        runtime.free(address);
    else
        free_blocks[kind].push_back(address);
}

void tarn_cuda_use(void *address, void *stream)
{
    int64_t number = -1, on = number_of(stream);
    if (arena_of(static_cast<char *>(address))) {
        number = tape().owns(static_cast<char *>(address))
                     ? tape().block_at(static_cast<char *>(address))
                     : -1;
    } else {
        std::lock_guard<std::mutex> guard(lock);
        auto found = blocks.find(address);
        if (found == blocks.end()) return;
        found->second.is_shared = true;
        number = found->second.number < 0 ? -1 : found->second.number & 0xFFFFFFFF;
    }
    if (taping && number >= 0) tape().told(tarn::Action::Use, number, on);
}
}

#endif
