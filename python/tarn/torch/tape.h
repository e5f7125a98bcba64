/* Who asked for which bytes, and where they may lie. Knows neither PyTorch nor a device.
 *
 * A frame is one op: its outputs have planned addresses, what else it asks for while it runs is
 * temporary and comes from its planned workspace, first fit. A tape is one iteration: recorded
 * once, planned, and then served from one arena. Serving is safe whatever the program does: bytes
 * are given only while nobody has them, and with several streams only as long as the program
 * repeats the tape.
 * Costs: O(temporaries alive) for a request in a frame, O(log n) for one of a tape. */
#ifndef TARN_TAPE_H
#define TARN_TAPE_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace tarn {

#ifndef TARN_LINE
#define TARN_LINE 64
#endif
constexpr size_t kLine = TARN_LINE; // alignment of whatever is given

inline size_t lines(size_t size) { return (size + kLine - 1) / kLine * kLine; }

/* Places for the temporaries of one op, first fit. */
class FirstFit {
public:
    void clear() { taken_.clear(), top_ = 0; }
    size_t top() const { return top_; }
    size_t taken() const { return taken_.size(); }
    /* The lowest gap; what ends above `limit` is refused: SIZE_MAX. */
    size_t take(size_t size, size_t limit) {
        size_t offset = 0, i = 0;
        for (; i < taken_.size() && taken_[i].first < offset + lines(size); i++)
            offset = taken_[i].second;
        size_t end = offset + lines(size);
        if (end > limit) return SIZE_MAX;
        taken_.insert(taken_.begin() + ptrdiff_t(i), {offset, end});
        if (end > top_) top_ = end;
        return offset;
    }
    void give_back(size_t offset) {
        for (size_t i = 0; i < taken_.size(); i++)
            if (taken_[i].first == offset) {
                taken_.erase(taken_.begin() + ptrdiff_t(i));
                return;
            }
    }

private:
    std::vector<std::pair<size_t, size_t>> taken_; // begin and end, by begin
    size_t top_ = 0;
};

/* An output of an op: the op's `ordinal`-th request, if it has this size. */
struct Slot {
    int64_t ordinal;
    uint64_t size;
    char *address;
};

/* One op at a time; each thread has a frame of its own. */
class Frame {
public:
    void begin(const Slot *slots, size_t count, char *workspace, size_t size) {
        slots_ = slots, count_ = count, workspace_ = workspace, size_ = size;
        requests_ = 0, open_ = true, tracing_ = false;
        fit_.clear();
    }
    void trace() {
        begin(nullptr, 0, nullptr, 0);
        tracing_ = true;
        events_.clear();
    }
    /* Returns how many temporaries are left in the workspace, which others use now. */
    size_t end() {
        open_ = false;
        return tracing_ ? 0 : fit_.taken();
    }
    bool is_open() const { return open_; }
    bool is_tracing() const { return open_ && tracing_; }

    /* The planned address; NULL: there is none. */
    char *request(size_t size) {
        int64_t ordinal = requests_++;
        for (size_t i = 0; i < count_; i++)
            if (slots_[i].ordinal == ordinal && slots_[i].size == size) return slots_[i].address;
        size_t offset = workspace_ ? fit_.take(size, size_) : SIZE_MAX;
        return offset == SIZE_MAX ? nullptr : workspace_ + offset;
    }
    void release(const char *address) {
        if (open_ && address >= workspace_ && address < workspace_ + size_)
            fit_.give_back(size_t(address - workspace_));
    }
    /* While tracing: the heap's address of the last request, or one that was freed. */
    void requested(const void *address, size_t size) {
        if (tracing_ && open_) events_.push_back({address, size});
    }
    void released(const void *address) {
        if (tracing_ && open_) events_.push_back({address, 0});
    }

    /* Of a traced op: which request each output was (-1: none), the workspace that the others need,
     * and how many of them are still alive. */
    size_t summarize(const void *const *outputs, size_t count, int64_t *ordinals, size_t *kept) {
        std::vector<bool> is_output(events_.size());
        for (size_t i = 0; i < count; i++) {
            int64_t ordinal = 0;
            ordinals[i] = -1;
            for (size_t e = 0; e < events_.size(); e++) {
                if (events_[e].second == 0) continue;
                if (events_[e].first == outputs[i]) ordinals[i] = ordinal, at_ = e;
                ordinal++;
            }
            if (ordinals[i] >= 0) is_output[at_] = true;
        }
        std::map<const void *, size_t> alive;
        fit_.clear();
        for (size_t e = 0; e < events_.size(); e++) {
            if (is_output[e]) continue;
            auto [address, size] = events_[e];
            if (size) {
                alive[address] = fit_.take(size, SIZE_MAX);
            } else if (alive.count(address)) {
                fit_.give_back(alive[address]);
                alive.erase(address);
            }
        }
        *kept = alive.size();
        return fit_.top();
    }

private:
    const Slot *slots_ = nullptr;
    size_t count_ = 0, size_ = 0, at_ = 0;
    char *workspace_ = nullptr;
    int64_t requests_ = 0;
    bool open_ = false, tracing_ = false;
    FirstFit fit_;
    std::vector<std::pair<const void *, size_t>> events_; // size 0: freed
};

enum class Action : int64_t { Request, Release, Use, Record, Wait };

/* Request: of `block`, `size` bytes. Release and Use (by another stream): of `block`. Record and
 * Wait: `block` is an event. */
struct Event {
    Action action;
    int64_t block;
    uint64_t size;
    int64_t stream;
};

class Tape {
public:
    struct Counts {
        int64_t served, unknown, occupied, lost;
    };

    void begin_recording() {
        std::lock_guard<std::mutex> guard(lock_);
        events_.clear(), given_.clear();
        blocks_ = 0, state_ = State::Recording, epoch_ = ++epochs_;
    }
    void end() {
        std::lock_guard<std::mutex> guard(lock_);
        state_ = State::Idle;
    }
    /* Takes over what another tape has recorded. */
    void copy(const Tape &other) {
        std::vector<Event> events = other.events();
        std::lock_guard<std::mutex> guard(lock_);
        events_ = std::move(events);
    }
    /* As a new tape. Nothing may be alive. */
    void clear() {
        std::lock_guard<std::mutex> guard(lock_);
        base_ = end_ = nullptr;
        events_.clear(), offsets_.clear(), queues_.clear(), alive_.clear(), given_.clear();
    }
    /* Blocks without a place have offset -1. In the same arena as before, what is alive keeps its
     * bytes; in another one nothing may be alive. */
    void plan(const int64_t *offsets, const uint64_t *sizes, const int64_t *streams, size_t count,
              char *base, size_t size) {
        std::lock_guard<std::mutex> guard(lock_);
        offsets_.assign(offsets, offsets + count);
        if (base_ != base) alive_.clear();
        base_ = base, end_ = base + size;
        queues_.clear(), given_.clear();
        strict_ = false;
        for (size_t i = 0; i < count; i++) {
            queues_[{sizes[i], streams[i]}].blocks.push_back(i);
            strict_ |= streams[i] != streams[0];
        }
    }
    void begin_serving() {
        std::lock_guard<std::mutex> guard(lock_);
        for (auto &queue : queues_) queue.second.next = 0;
        cursor_ = 0, lost_ = false, counts_ = {}, state_ = State::Serving;
        given_.clear();
    }
    size_t alive() {
        std::lock_guard<std::mutex> guard(lock_);
        return alive_.size();
    }
    /* Has the iteration left the tape? Then its streams may go on with bytes that the next one is
     * given, unless it waits for them. */
    bool is_lost() {
        std::lock_guard<std::mutex> guard(lock_);
        return lost_;
    }
    Counts counts() {
        std::lock_guard<std::mutex> guard(lock_);
        return counts_;
    }
    std::vector<Event> events() const {
        std::lock_guard<std::mutex> guard(lock_);
        return events_;
    }

    /* A number that the heap's block keeps for release; -1: nothing is being recorded. */
    int64_t recorded(size_t size, int64_t stream) {
        std::lock_guard<std::mutex> guard(lock_);
        if (state_ != State::Recording) return -1;
        events_.push_back({Action::Request, blocks_, size, stream});
        return (epoch_ << 32) | blocks_++;
    }
    void released(int64_t block, int64_t stream) {
        std::lock_guard<std::mutex> guard(lock_);
        if (state_ == State::Recording && block >> 32 == epoch_)
            events_.push_back({Action::Release, block & 0xFFFFFFFF, 0, stream});
    }
    /* Uses by other streams, events made and waited for: recorded, or compared with the tape. */
    void told(Action action, int64_t block, int64_t stream) {
        std::lock_guard<std::mutex> guard(lock_);
        if (state_ == State::Recording) events_.push_back({action, block, 0, stream});
        if (state_ != State::Serving) return;
        if (!strict_ && action == Action::Use) lost_ = true; // one stream was recorded
        follows(action, block, 0, stream);
    }

    /* NULL: the ordinary allocator has to serve it. */
    char *serve(size_t size, int64_t stream) {
        std::lock_guard<std::mutex> guard(lock_);
        if (state_ != State::Serving) return nullptr;
        auto queue = queues_.find({size, stream});
        if (queue == queues_.end() || queue->second.next == queue->second.blocks.size()) {
            lost_ |= strict_;
            counts_.unknown++;
            return nullptr;
        }
        size_t block = queue->second.blocks[queue->second.next++];
        if ((strict_ || lost_) && !follows(Action::Request, int64_t(block), size, stream)) {
            counts_.lost++;
            return nullptr;
        }
        if (offsets_[block] < 0) return nullptr;
        size_t from = size_t(offsets_[block]), to = from + lines(size);
        auto after = alive_.lower_bound(from);
        if ((after != alive_.end() && after->first < to) ||
            (after != alive_.begin() && std::prev(after)->second > from)) {
            counts_.occupied++;
            return nullptr;
        }
        alive_[from] = to, given_[from] = int64_t(block);
        counts_.served++;
        return base_ + from;
    }
    bool owns(const char *address) const { return address >= base_ && address < end_; }
    /* Whose bytes begin at this address; -1: nobody's. */
    int64_t block_at(const char *address) {
        std::lock_guard<std::mutex> guard(lock_);
        auto block = given_.find(size_t(address - base_));
        return block == given_.end() ? -1 : block->second;
    }
    void returned(const char *address, int64_t stream) {
        std::lock_guard<std::mutex> guard(lock_);
        if (!owns(address)) return; // while it was asked, another thread has planned
        size_t from = size_t(address - base_);
        alive_.erase(from);
        auto block = given_.find(from);
        if (block == given_.end()) return; // of an iteration before
        if (state_ == State::Serving) follows(Action::Release, block->second, 0, stream);
        given_.erase(block);
    }

private:
    enum class State { Idle, Recording, Serving };
    struct Queue {
        std::vector<size_t> blocks;
        size_t next = 0;
    };

    /* Several streams are ordered as the tape says only as long as the program repeats it. */
    bool follows(Action action, int64_t block, uint64_t size, int64_t stream) {
        if (!strict_ || lost_) return !lost_;
        while (cursor_ < events_.size() && events_[cursor_].action == Action::Release &&
               offsets_[size_t(events_[cursor_].block)] < 0)
            cursor_++; // of a block that the ordinary allocator serves
        lost_ = cursor_ == events_.size();
        if (!lost_) {
            const Event &event = events_[cursor_++];
            lost_ = event.action != action || event.block != block || event.stream != stream ||
                    (action == Action::Request && event.size != size);
        }
        return !lost_;
    }

    inline static std::atomic<int64_t> epochs_{0}; // recordings, of all tapes
    mutable std::mutex lock_;
    State state_ = State::Idle;
    std::vector<Event> events_;
    int64_t blocks_ = 0, epoch_ = 0;
    std::vector<int64_t> offsets_;
    std::atomic<char *> base_{nullptr}, end_{nullptr};
    std::map<std::pair<uint64_t, int64_t>, Queue> queues_; // by size and stream
    std::map<size_t, size_t> alive_;                       // begin and end of what is given
    std::map<size_t, int64_t> given_;                      // in this iteration: block, by begin
    size_t cursor_ = 0;
    bool strict_ = false, lost_ = false;
    Counts counts_ = {};
};

} // namespace tarn

#endif
