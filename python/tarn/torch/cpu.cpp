/* PyTorch's allocator for the CPU, with a frame for each thread and a tape in front of the heap.
 * A block of the heap has a line before it, in which it keeps its size and its number on the tape.
 * Compiled by tarn.torch where it is first needed; called by ctypes. */
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#define TARN_TAPING_FLAG thread_local bool
#include "calls.h"

namespace {

using tarn::kLine;

struct Header {
    size_t size;
    int64_t block;
};

char *bytes_for(size_t size) {
    try {
        return static_cast<char *>(c10::alloc_cpu(size));
    } catch (const std::exception &) {
        return nullptr;
    }
}
void give_back(char *bytes) { c10::free_cpu(bytes); }

void release(void *address) {
    if (!address) return;
    char *bytes = static_cast<char *>(address);
    if (kept(bytes, 0)) return;
    char *block = bytes - kLine;
    Header *header = reinterpret_cast<Header *>(block);
    frame.released(address);
    if (header->block >= 0) tape().released(header->block, 0);
    counted(-int64_t(header->size));
    c10::free_cpu(block);
}

class CpuAllocator final : public c10::Allocator {
public:
    c10::DataPtr allocate(size_t size) override {
        if (size == 0) return given(nullptr);
        requests++;
        if (char *address = planned(size, 0)) return given(address);
        char *block = static_cast<char *>(c10::alloc_cpu(size + kLine));
        int64_t number = taping && !frame.is_open() ? tape().recorded(size, 0) : -1;
        *reinterpret_cast<Header *>(block) = {size, number};
        counted(int64_t(size));
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

extern "C" void tarn_install() { c10::SetCPUAllocator(&allocator, 255); }
