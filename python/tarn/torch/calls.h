/* What an allocator in front of a heap needs, for calls by ctypes: the tapes of this process, a
 * frame for each thread, the arenas, and counts of the heap. One iteration at a time is under way;
 * blocks of all tapes may be released at any time by any thread. Whoever includes this defines
 * TARN_TAPING_FLAG, the type of a flag: may other threads than the one that marks an iteration take
 * part in it (atomic), or not (thread_local)? */
#ifndef TARN_CALLS_H
#define TARN_CALLS_H

#include <algorithm>

#include "tape.h"

namespace {

/* Bytes for arenas, of the device; NULL: there are none. */
char *bytes_for(size_t size);
void give_back(char *bytes);

/* A tape with the arena in which its plan is served. Without an owner it stays as long as somebody
 * has bytes of the arena; then another owner may take it, if all is on one stream: its plan is
 * served beside those bytes. */
struct Place {
    tarn::Tape tape;
    std::atomic<bool> is_owned{false};
    char *bytes = nullptr; // NULL: the place is free
    size_t size = 0;
    int64_t stream = -1; // -1: several ones
};
constexpr size_t kPlaces = 64;
/* The first one records for all, and has no arena. They are never destroyed: tensors may end after
 * them. */
Place *const places = new Place[kPlaces];
std::mutex places_lock; // of those who take and leave them
std::atomic<Place *> chosen{places};
tarn::Tape &tape() { return chosen.load()->tape; }
TARN_TAPING_FLAG taping{false}; // an iteration is under way
thread_local tarn::Frame frame;

/* place: to which the arena belongs; NULL for the arena of a planned step. */
struct Arena {
    std::atomic<char *> from{nullptr}, to{nullptr};
    std::atomic<Place *> place{nullptr};
};
constexpr size_t kArenas = 64;
Arena arenas[kArenas];
std::atomic<size_t> arenas_count{0};
std::mutex arenas_lock; // of those who make and drop them

/* NULL: the address is in none. */
Arena *arena_of(const char *address) {
    for (size_t i = 0, count = arenas_count; i < count; i++)
        if (address >= arenas[i].from && address < arenas[i].to) return &arenas[i];
    return nullptr;
}

bool note(char *from, size_t size, Place *place) {
    std::lock_guard<std::mutex> guard(arenas_lock);
    size_t i = 0;
    while (i < arenas_count && arenas[i].from) i++;
    if (i == kArenas) return false;
    arenas[i].place = place, arenas[i].from = from, arenas[i].to = from + size;
    if (i == arenas_count) arenas_count++;
    return true;
}
void forget(const char *from) {
    std::lock_guard<std::mutex> guard(arenas_lock);
    for (Arena &arena : arenas)
        if (arena.from == from) arena.to = nullptr, arena.from = nullptr;
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
    return taping ? tape().serve(size, stream) : nullptr;
}

/* A place whose owner has left it, or out of whose arena something has been returned. */
void leave(Place &place) {
    std::lock_guard<std::mutex> guard(places_lock);
    if (!place.bytes || place.is_owned || place.tape.alive()) return;
    forget(place.bytes);
    place.tape.clear();
    counted(-int64_t(place.size));
    give_back(place.bytes);
    place.bytes = nullptr;
}

/* For a plan of so many bytes; NULL: there is no memory, or there are bytes in use in too many
 * places that have no owner. */
Place *take(size_t size, int64_t stream) {
    std::lock_guard<std::mutex> guard(places_lock);
    Place *free = nullptr, *used = nullptr;
    size_t left = 0, wanted = std::max(size, tarn::kLine);
    for (Place *place = places + 1; place != places + kPlaces; place++) {
        if (!place->bytes) {
            free = place;
        } else if (!place->is_owned) {
            if (stream >= 0 && place->stream == stream && place->size >= size &&
                (!used || used->size > place->size))
                used = place;
            left += place->size;
            if (place->size < size) // fewer places, if plans grow and grow
                wanted = std::max(wanted, place->size + place->size / 2);
        }
    }
    if (used) {
        used->is_owned = true;
        return used;
    }
    if (!free || left > 2 * wanted || !(free->bytes = bytes_for(wanted))) return nullptr;
    if (!note(free->bytes, wanted, free)) {
        give_back(free->bytes);
        free->bytes = nullptr;
        return nullptr;
    }
    counted(int64_t(wanted));
    free->size = wanted, free->stream = stream, free->is_owned = true;
    return free;
}

/* Does an arena keep these bytes? */
bool kept(char *address, int64_t stream) {
    Arena *arena = arena_of(address);
    if (!arena) return false;
    frame.release(address);
    Place *place = arena->place;
    if (!place) return true;
    place->tape.returned(address, stream);
    if (!place->is_owned) leave(*place);
    return true;
}

} // namespace

extern "C" {

int64_t tarn_live() { return live; }
int64_t tarn_peak() { return peak; }
int64_t tarn_requests() { return requests; }
void tarn_reset_peak() { peak = live.load(), requests = 0; }

/* Nothing in an arena is freed. The same entry is used again after tarn_arena_drop. Returns 0 if
 * there are too many. */
int64_t tarn_arena(char *from, int64_t size) { return note(from, size_t(size), nullptr); }
void tarn_arena_drop(char *from) { forget(from); }

/* An op's frame, as the caller keeps it: one argument is passed sooner than four. */
struct Opened {
    const tarn::Slot *slots;
    int64_t count;
    char *workspace;
    int64_t size;
};
void tarn_frame_begin(const Opened *op) {
    frame.begin(op->slots, size_t(op->count), op->workspace, size_t(op->size));
}
void tarn_frame_trace() { frame.trace(); }
int64_t tarn_frame_end() { return int64_t(frame.end()); }
int64_t tarn_frame_summarize(const void *const *outputs, int64_t count, int64_t *ordinals,
                             int64_t *alive) {
    size_t left, workspace = frame.summarize(outputs, size_t(count), ordinals, &left);
    *alive = int64_t(left);
    return int64_t(workspace);
}

/* Plans what was recorded on tape 0: where its blocks lie, in the order of their requests, in an
 * arena of that size. Returns the tape's number, or -1: there is no arena. */
int tarn_tape_make(const int64_t *offsets, int64_t size) {
    std::vector<tarn::Event> events = places->tape.events();
    std::vector<int64_t> at, streams;
    std::vector<uint64_t> sizes;
    int64_t stream = events.empty() ? -1 : events[0].stream;
    for (const tarn::Event &e : events) {
        if (e.stream != stream) stream = -1;
        if (e.action == tarn::Action::Request)
            at.push_back(-1), sizes.push_back(e.size), streams.push_back(e.stream);
        if (e.action == tarn::Action::Release) // others outlive the iteration
            at[size_t(e.block)] = offsets[e.block];
    }
    Place *place = take(size_t(size), stream);
    if (!place) return -1;
    place->tape.copy(places->tape);
    place->tape.plan(at.data(), sizes.data(), streams.data(), at.size(), place->bytes, place->size);
    return int(place - places);
}
void tarn_tape_leave(int number) { places[number].is_owned = false, leave(places[number]); }
int tarn_tape_arenas() {
    std::lock_guard<std::mutex> guard(places_lock);
    return int(std::count_if(places, places + kPlaces, [](const Place &p) { return p.bytes; }));
}

/* One iteration: is recorded (0), or served. The other calls mean the same tape. */
void tarn_tape_begin(int number) {
    chosen = places + number;
    if (number) tape().begin_serving();
    else tape().begin_recording();
    taping = true;
}
void tarn_tape_end() { taping = false, tape().end(); }
void tarn_tape_told(int64_t action, int64_t block, int64_t stream) {
    if (taping) tape().told(tarn::Action(action), block, stream);
}
int64_t tarn_tape_events(int64_t *events) {
    std::vector<tarn::Event> all = tape().events();
    for (size_t i = 0; events && i < all.size(); i++) {
        events[4 * i] = int64_t(all[i].action), events[4 * i + 1] = all[i].block;
        events[4 * i + 2] = int64_t(all[i].size), events[4 * i + 3] = all[i].stream;
    }
    return int64_t(all.size());
}
int tarn_tape_is_lost() { return tape().is_lost(); }
/* Adds those of the last iteration. Returns whether most of its requests were recorded ones. */
int tarn_tape_counts(int64_t *counts) {
    tarn::Tape::Counts now = tape().counts();
    counts[0] += now.served, counts[1] += now.unknown, counts[2] += now.occupied;
    counts[3] += now.lost;
    return now.unknown <= now.served;
}
}

#endif
