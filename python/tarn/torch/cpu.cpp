/* PyTorch's allocator for the CPU, with a frame for each thread and a tape in front of the heap.
 * A block of the heap has a line before it, in which it keeps its size and its number on the tape.
 * Compiled by tarn.torch where it is first needed; called by ctypes. */
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include <atomic>

#define TARN_TAPING_THREAD thread_local bool
#include "tape_calls.h"

namespace {

using tarn::kLine;

struct Header {
    size_t size;
    int64_t block;
};

struct Arena {
    std::atomic<char *> from{nullptr}, to{nullptr};
};
constexpr size_t kArenas = 64;
Arena arenas[kArenas];
std::atomic<size_t> arenas_count{0};

std::atomic<int64_t> live{0}, peak{0}, requests{0};
thread_local tarn::Frame frame;

bool is_in_arena(const char *address) {
    for (size_t i = 0, count = arenas_count; i < count; i++)
        if (address >= arenas[i].from && address < arenas[i].to) return true;
    return false;
}

void release(void *address) {
    if (!address) return;
    char *bytes = static_cast<char *>(address);
    if (is_in_arena(bytes)) {
        frame.release(bytes);
        if (tape.owns(bytes)) tape.returned(bytes, 0);
        return;
    }
    char *block = bytes - kLine;
    Header *header = reinterpret_cast<Header *>(block);
    frame.released(address);
    if (header->block >= 0) tape.released(header->block, 0);
    live -= int64_t(header->size);
    c10::free_cpu(block);
}


class CpuAllocator final : public c10::Allocator {
public:
    c10::DataPtr allocate(size_t size) override {
        if (size == 0) return given(nullptr);
        requests++;
        if (frame.is_open()) {
            if (char *planned = frame.request(size)) return given(planned);
        } else if (taping) {
            if (char *planned = tape.serve(size, 0)) return given(planned);
        }
        char *block = static_cast<char *>(c10::alloc_cpu(size + kLine));
        int64_t number = taping && !frame.is_open() ? tape.recorded(size, 0) : -1;
        *reinterpret_cast<Header *>(block) = {size, number};
        int64_t now = live += int64_t(size), most = peak;
        while (now > most && !peak.compare_exchange_weak(most, now)) {
        }
        frame.requested(block + kLine, size);
        return given(block + kLine);
    }
    c10::DeleterFnPtr raw_deleter() const override { return &release; }
    void copy_data(void *to, const void *from, size_t size) const override {
        default_copy_data(to, from, size);
    }

private:
    static c10::DataPtr given(void *address) {
        return {address, address, &release, c10::Device(c10::DeviceType::CPU)};
    }
};
CpuAllocator allocator;

} // namespace

extern "C" {

void tarn_install() { c10::SetCPUAllocator(&allocator, 255); }
int64_t tarn_live() { return live; }
int64_t tarn_peak() { return peak; }
int64_t tarn_requests() { return requests; }
void tarn_reset_peak() { peak = live.load(), requests = 0; }

/* Nothing in an arena is freed. The same place is used again after tarn_arena_drop. */
void tarn_arena(char *from, int64_t size) {
    size_t i = 0;
    while (i < arenas_count && arenas[i].from) i++;
    TORCH_CHECK(i < kArenas, "more than 64 arenas");
    arenas[i].from = from, arenas[i].to = from + size;
    if (i == arenas_count) arenas_count++;
}
void tarn_arena_drop(char *from) {
    for (Arena &arena : arenas)
        if (arena.from == from) arena.to = nullptr, arena.from = nullptr;
}

void tarn_frame_begin(const tarn::Slot *slots, int64_t count, char *workspace, int64_t size) {
    frame.begin(slots, size_t(count), workspace, size_t(size));
}
void tarn_frame_trace() { frame.trace(); }
void tarn_frame_end() { frame.end(); }
int64_t tarn_frame_summarize(const void *const *outputs, int64_t count, int64_t *ordinals,
                             int64_t *kept) {
    size_t alive, workspace = frame.summarize(outputs, size_t(count), ordinals, &alive);
    *kept = int64_t(alive);
    return int64_t(workspace);
}
}
