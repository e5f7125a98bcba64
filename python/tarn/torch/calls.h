/* What an allocator in front of a heap needs, for calls by ctypes: the tape of this process, a frame
 * for each thread, the arenas, and counts of the heap. Whoever includes this defines
 * TARN_TAPING_THREAD: may other threads than the one that marks an iteration take part in it (bool),
 * or not (thread_local)? */
#ifndef TARN_CALLS_H
#define TARN_CALLS_H

#include "tape.h"

namespace {

tarn::Tape tape;
TARN_TAPING_THREAD taping{false}; // an iteration is under way
thread_local tarn::Frame frame;

struct Arena {
    std::atomic<char *> from{nullptr}, to{nullptr};
};
constexpr size_t kArenas = 64;
Arena arenas[kArenas];
std::atomic<size_t> arenas_count{0};

bool is_in_arena(const char *address) {
    for (size_t i = 0, count = arenas_count; i < count; i++)
        if (address >= arenas[i].from && address < arenas[i].to) return true;
    return false;
}

std::atomic<int64_t> live{0}, peak{0}, requests{0};

void counted(int64_t size) {
    int64_t now = live += size, most = peak;
    while (now > most && !peak.compare_exchange_weak(most, now)) {
    }
}

/* The planned address of a request; NULL: it is one of the heap. */
char *planned(size_t size, int64_t stream) {
    if (frame.is_open()) return frame.request(size);
    return taping ? tape.serve(size, stream) : nullptr;
}

/* Does an arena keep these bytes? */
bool kept(char *address, int64_t stream) {
    if (!is_in_arena(address)) return false;
    frame.release(address);
    if (tape.owns(address)) tape.returned(address, stream);
    return true;
}

} // namespace

extern "C" {

int64_t tarn_live() { return live; }
int64_t tarn_peak() { return peak; }
int64_t tarn_requests() { return requests; }
void tarn_reset_peak() { peak = live.load(), requests = 0; }

/* Nothing in an arena is freed. The same place is used again after tarn_arena_drop. Returns 0 if
 * there are too many. */
int64_t tarn_arena(char *from, int64_t size) {
    size_t i = 0;
    while (i < arenas_count && arenas[i].from) i++;
    if (i == kArenas) return 0;
    arenas[i].from = from, arenas[i].to = from + size;
    if (i == arenas_count) arenas_count++;
    return 1;
}
void tarn_arena_drop(char *from) {
    for (Arena &arena : arenas)
        if (arena.from == from) arena.to = nullptr, arena.from = nullptr;
}

void tarn_frame_begin(const tarn::Slot *slots, int64_t count, char *workspace, int64_t size) {
    frame.begin(slots, size_t(count), workspace, size_t(size));
}
void tarn_frame_trace() { frame.trace(); }
int64_t tarn_frame_end() { return int64_t(frame.end()); }
int64_t tarn_frame_summarize(const void *const *outputs, int64_t count, int64_t *ordinals,
                             int64_t *alive) {
    size_t left, workspace = frame.summarize(outputs, size_t(count), ordinals, &left);
    *alive = int64_t(left);
    return int64_t(workspace);
}

void tarn_tape_record() { tape.begin_recording(), taping = true; }
void tarn_tape_serve() { tape.begin_serving(), taping = true; }
void tarn_tape_end() { taping = false, tape.end(); }
void tarn_tape_told(int64_t action, int64_t block, int64_t stream) {
    if (taping) tape.told(tarn::Action(action), block, stream);
}
int64_t tarn_tape_alive() { return int64_t(tape.alive()); }
int64_t tarn_tape_events(int64_t *events) {
    std::vector<tarn::Event> all = tape.events();
    for (size_t i = 0; events && i < all.size(); i++) {
        events[4 * i] = int64_t(all[i].action), events[4 * i + 1] = all[i].block;
        events[4 * i + 2] = int64_t(all[i].size), events[4 * i + 3] = all[i].stream;
    }
    return int64_t(all.size());
}
void tarn_tape_plan(const int64_t *offsets, const uint64_t *sizes, const int64_t *streams,
                    int64_t count, char *base, int64_t size) {
    tape.plan(offsets, sizes, streams, size_t(count), base, size_t(size));
}
void tarn_tape_counts(int64_t *counts) {
    tarn::Tape::Counts now = tape.counts();
    counts[0] = now.served, counts[1] = now.unknown, counts[2] = now.occupied;
    counts[3] = now.lost;
}
}

#endif
