/* The tape of this process, for calls by ctypes. Whoever includes this defines TARN_TAPING_THREAD: may
 * other threads than the one that marks an iteration take part in it (bool), or not (thread_local)? */
#ifndef TARN_TAPE_CALLS_H
#define TARN_TAPE_CALLS_H

#include "tape.h"

namespace {

tarn::Tape tape;
TARN_TAPING_THREAD taping{false}; // an iteration is under way

} // namespace

extern "C" {

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
