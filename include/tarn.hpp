// Tarn for C++17: owners, lists and options over the C functions of tarn.h, header-only. Owners are
// moved, not copied, and destroy what they own; get() gives the C handle for every call without a
// member here. A failing call throws tarn::exception. The form that takes a tarn_error never throws
// and leaves an empty owner instead. It is the only form if exceptions are switched off.
#ifndef TARN_HPP
#define TARN_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tarn.h"

#if defined(__cpp_exceptions) && !defined(TARN_NO_EXCEPTIONS)
#define TARN_HPP_THROWS 1
#else
#define TARN_HPP_THROWS 0
#endif

namespace tarn
{

// ---- Errors ----

#if TARN_HPP_THROWS
class exception : public std::runtime_error
{
  public:
    explicit exception(const tarn_error &error) : std::runtime_error(error.text), details(error) {}
    tarn_status status() const noexcept { return details.status; }

    const tarn_error details;
};

inline void check(tarn_status status, const tarn_error &error)
{
    if (status != TARN_OK) throw exception(error);
}
#endif

// ---- Lists and options ----

// Borrowed, contiguous values; the subset of C++20's std::span that is needed here.
template <class T> class span
{
  public:
    constexpr span() noexcept = default;
    constexpr span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}

    constexpr T *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + size_; }
    constexpr T &operator[](std::size_t i) const noexcept { return data_[i]; }

  private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

using ids = span<const std::uint32_t>;

inline ids view(tarn_list list) noexcept { return {list.ids, list.count}; }
inline span<const tarn_wait> view(tarn_waits list) noexcept { return {list.waits, list.count}; }

// Anything contiguous with data() and size(); it must outlive the call.
template <class List> tarn_list list(const List &values) noexcept
{
    return {values.data(), values.size()};
}
inline tarn_list list(std::initializer_list<std::uint32_t> values) noexcept
{
    return {values.begin(), values.size()};
}

// A struct of options with all defaults: auto options = tarn::options<tarn_plan_options>();
template <class Options> Options options() noexcept
{
    Options result{};
    result.struct_size = sizeof result;
    return result;
}

// ---- Owners ----

namespace detail
{
template <auto destroy> struct destroyer {
    template <class T> void operator()(T *object) const noexcept { destroy(object); }
};
template <class T, auto destroy> using owner = std::unique_ptr<T, destroyer<destroy>>;
} // namespace detail

// The text of a graph or a plan in memory, for read; it must outlive the call.
inline tarn_reader reader(const void *bytes, std::size_t size) noexcept
{
    auto result = options<tarn_reader>();
    result.bytes = bytes;
    result.size = size;
    return result;
}

class graph
{
  public:
    graph() noexcept = default;
    explicit graph(tarn_graph *taken) noexcept : handle_(taken) {}

    // From memory or a function; options: nullptr: defaults.
    static graph read(const tarn_reader &from, const tarn_load_options *options,
                      tarn_error &error) noexcept
    {
        tarn_graph *made = nullptr;
        tarn_graph_read(&from, options, &made, &error);
        return graph(made);
    }

    static graph load(const char *path, tarn_error &error) noexcept
    {
        tarn_graph *loaded = nullptr;
        tarn_graph_load(path, nullptr, &loaded, &error);
        return graph(loaded);
    }
    static graph load(const std::string &path, tarn_error &error) noexcept
    {
        return load(path.c_str(), error);
    }

    explicit operator bool() const noexcept { return handle_ != nullptr; }
    tarn_graph *get() const noexcept { return handle_.get(); }
    std::uint32_t streams() const noexcept { return tarn_graph_streams_count(get()); }
    std::uint32_t ops() const noexcept { return tarn_graph_ops_count(get()); }
    std::uint32_t tensors() const noexcept { return tarn_graph_tensors_count(get()); }
    std::uint32_t groups() const noexcept { return tarn_graph_groups_count(get()); }
    ids group(std::uint32_t index) const noexcept { return view(tarn_graph_group(get(), index)); }
    // One for each member; empty: back to back.
    span<const std::uint64_t> group_offsets(std::uint32_t index) const noexcept
    {
        const std::uint64_t *offsets = tarn_graph_group_offsets(get(), index);
        return {offsets, offsets ? group(index).size() : 0};
    }
    // nullptr: not symmetric
    const char *group_symmetric(std::uint32_t index) const noexcept
    {
        return tarn_graph_group_symmetric(get(), index);
    }
    tarn_op find_op(const char *name) const noexcept { return tarn_graph_find_op(get(), name); }
    tarn_tensor find_tensor(const char *name) const noexcept
    {
        return tarn_graph_find_tensor(get(), name);
    }

#if TARN_HPP_THROWS
    static graph load(const std::string &path)
    {
        tarn_error error{};
        graph result = load(path, error);
        check(error.status, error);
        return result;
    }
    static graph read(const tarn_reader &from, const tarn_load_options *options = nullptr)
    {
        tarn_error error{};
        graph result = read(from, options, error);
        check(error.status, error);
        return result;
    }
    static graph read(const std::string &text)
    {
        return read(tarn::reader(text.data(), text.size()));
    }
    void save(const std::string &path) const
    {
        tarn_error error{};
        check(tarn_graph_save(get(), path.c_str(), &error), error);
    }
#endif

  private:
    detail::owner<tarn_graph, tarn_graph_destroy> handle_;
};

// finish reports the first rule that a call broke; it consumes the builder.
class builder
{
  public:
    explicit builder(const char *name = "") noexcept : handle_(tarn_builder_create(name)) {}

    tarn_builder *get() const noexcept { return handle_.get(); }
    tarn_stream stream(const char *name) noexcept { return tarn_builder_stream(get(), name); }
    tarn_tensor tensor(const char *name, std::uint64_t size,
                       tarn_tensor_kind kind = TARN_INTERMEDIATE) noexcept
    {
        tarn_tensor_info info{};
        info.name = name;
        info.size = size;
        info.kind = kind;
        return tensor(info);
    }
    tarn_tensor tensor(const tarn_tensor_info &info) noexcept
    {
        return tarn_builder_tensor(get(), &info);
    }
    // Adds a memory space; tensors and workspaces that name no space are in the first one.
    tarn_space space(const tarn_space_info &info) noexcept
    {
        return tarn_builder_space(get(), &info);
    }
    tarn_space space(const char *name, tarn_space_kind kind, std::uint64_t capacity = 0) noexcept
    {
        tarn_space_info info{};
        info.name = name;
        info.kind = kind;
        info.capacity = capacity;
        return space(info);
    }
    tarn_tensor alias(tarn_tensor of, const char *name) noexcept
    {
        return tarn_builder_alias(get(), of, name);
    }
    tarn_tensor slice(tarn_tensor of, uint64_t offset, uint64_t size, const char *name) noexcept
    {
        return tarn_builder_slice(get(), of, offset, size, name);
    }
    tarn_op op(const char *name, tarn_stream stream, tarn_list inputs, tarn_list outputs,
               std::uint64_t cost = 0, std::uint64_t workspace = 0,
               bool workspace_first = false) noexcept
    {
        tarn_op_info info{};
        info.name = name;
        info.stream = stream;
        info.inputs = inputs;
        info.outputs = outputs;
        info.cost = cost;
        info.workspace = workspace;
        info.workspace_first = workspace_first;
        return op(info);
    }
    tarn_op op(const tarn_op_info &info) noexcept { return tarn_builder_op(get(), &info); }
    void control(tarn_op later, tarn_op earlier) noexcept
    {
        tarn_builder_control(get(), later, earlier);
    }
    // Orders the op after all readers of the storages that it overwrites, see
    // tarn_builder_after_readers.
    void after_readers(tarn_op writer) noexcept { tarn_builder_after_readers(get(), writer); }
    void group(tarn_list tensors) noexcept { tarn_builder_group(get(), tensors); }
    void group_padded(tarn_list tensors) noexcept { tarn_builder_group_padded(get(), tensors); }
    void group_offsets(tarn_list tensors, const std::uint64_t *offsets) noexcept
    {
        tarn_builder_group_offsets(get(), tensors, offsets);
    }
    void group_symmetric(std::uint32_t index, const char *name) noexcept
    {
        tarn_builder_group_symmetric(get(), index, name);
    }

    graph finish(tarn_error &error) noexcept
    {
        tarn_graph *made = nullptr;
        tarn_builder_finish(handle_.release(), &made, &error);
        return graph(made);
    }
#if TARN_HPP_THROWS
    graph finish()
    {
        tarn_error error{};
        graph result = finish(error);
        check(error.status, error);
        return result;
    }
#endif

  private:
    detail::owner<tarn_builder, tarn_builder_destroy> handle_;
};

class plan
{
  public:
    plan() noexcept = default;
    explicit plan(tarn_plan *taken) noexcept : handle_(taken) {}

    // options: nullptr: defaults
    static plan create(const graph &source, const tarn_plan_options *options,
                       tarn_error &error) noexcept
    {
        tarn_plan *made = nullptr;
        tarn_plan_create(source.get(), options, &made, &error);
        return plan(made);
    }
    static plan load(const std::string &path, const graph &source, tarn_error &error) noexcept
    {
        tarn_plan *loaded = nullptr;
        tarn_plan_load(path.c_str(), source.get(), TARN_VERIFY, nullptr, &loaded, &error);
        return plan(loaded);
    }
    // allowed: permissions of the plan beyond its graph
    static plan load(const std::string &path, const graph &source,
                     const tarn_verify_options &allowed, tarn_error &error) noexcept
    {
        tarn_plan *loaded = nullptr;
        tarn_plan_load(path.c_str(), source.get(), TARN_VERIFY, &allowed, &loaded, &error);
        return plan(loaded);
    }

    explicit operator bool() const noexcept { return handle_ != nullptr; }
    tarn_plan *get() const noexcept { return handle_.get(); }
    tarn_plan_summary summary() const noexcept
    {
        tarn_plan_summary result{};
        tarn_plan_summarize(get(), &result);
        return result;
    }
    std::uint64_t footprint() const noexcept { return summary().footprint; }
    std::uint64_t bound() const noexcept { return summary().bound; }
    std::uint64_t offset(tarn_tensor tensor) const noexcept
    {
        return tarn_plan_offset(get(), tensor);
    }
    ids launches(tarn_stream stream) const noexcept
    {
        return view(tarn_plan_launches(get(), stream));
    }
    span<const tarn_wait> waits() const noexcept { return view(tarn_plan_waits(get())); }
    span<const tarn_wait> boundary_waits() const noexcept
    {
        return view(tarn_plan_boundary_waits(get()));
    }
    // All zeros: there are no symmetric groups.
    tarn_window window() const noexcept
    {
        tarn_window result{};
        tarn_plan_window(get(), &result);
        return result;
    }
    tarn_op origin(tarn_op op) const noexcept { return tarn_plan_op_origin(get(), op); }
    static plan read(const tarn_reader &from, const graph &source, tarn_plan_trust trust,
                     tarn_error &error) noexcept
    {
        tarn_plan *made = nullptr;
        tarn_plan_read(&from, source.get(), trust, nullptr, &made, &error);
        return plan(made);
    }
    // Proves the plan against the graph that it was made from. `error` has the first violation.
    [[nodiscard]] tarn_status verify(const graph &source, tarn_error &error) const noexcept
    {
        return tarn_plan_verify(get(), source.get(), nullptr, nullptr, &error);
    }

#if TARN_HPP_THROWS
    static plan create(const graph &source, const tarn_plan_options *options = nullptr)
    {
        tarn_error error{};
        plan result = create(source, options, error);
        check(error.status, error);
        return result;
    }
    static plan create(const graph &source, const tarn_plan_options &options)
    {
        return create(source, &options);
    }
    static plan load(const std::string &path, const graph &source)
    {
        tarn_error error{};
        plan result = load(path, source, error);
        check(error.status, error);
        return result;
    }
    static plan load(const std::string &path, const graph &source,
                     const tarn_verify_options &allowed)
    {
        tarn_error error{};
        plan result = load(path, source, allowed, error);
        check(error.status, error);
        return result;
    }
    static plan read(const tarn_reader &from, const graph &source,
                     tarn_plan_trust trust = TARN_VERIFY)
    {
        tarn_error error{};
        plan result = read(from, source, trust, error);
        check(error.status, error);
        return result;
    }
    void verify(const graph &source) const
    {
        tarn_error error{};
        check(verify(source, error), error);
    }
    void save(const std::string &path) const
    {
        tarn_error error{};
        check(tarn_plan_save(get(), path.c_str(), &error), error);
    }
#endif

  private:
    detail::owner<tarn_plan, tarn_plan_destroy> handle_;
};

namespace detail
{
// The handles of the objects that `part` finds in each element of many.
template <class T, class Many, class Part>
std::vector<T *> handles(const Many &many, const Part &part)
{
    std::vector<T *> result;
    for (const auto &one : many) result.push_back(std::invoke(part, one).get());
    return result;
}
struct itself {
    template <class T> const T &operator()(const T &one) const noexcept { return one; }
};

inline std::vector<plan> plan_family(const std::vector<tarn_graph *> &sources,
                                     const tarn_plan_options *options, tarn_error &error)
{
    std::vector<tarn_plan *> made(sources.size());
    std::vector<plan> plans;
    plans.reserve(made.size());
    if (tarn_family_plan(sources.data(), sources.size(), options, made.data(), &error) == TARN_OK)
        for (tarn_plan *one : made) plans.emplace_back(one);
    return plans;
}
} // namespace detail

// Plans of graphs that will share an arena, see tarn_family_plan; empty: `error` says why.
template <class Graphs>
std::vector<plan> family(const Graphs &graphs, const tarn_plan_options *options, tarn_error &error)
{
    return detail::plan_family(detail::handles<tarn_graph>(graphs, detail::itself()), options,
                               error);
}
// For graphs that are parts of other objects: `part` is a member, or a function that finds one:
// tarn::family_of(buckets, &bucket::graph, nullptr, error).
template <class Many, class Part>
std::vector<plan> family_of(const Many &many, const Part &part, const tarn_plan_options *options,
                            tarn_error &error)
{
    return detail::plan_family(detail::handles<tarn_graph>(many, part), options, error);
}

// Plans of graphs of different ranks, see tarn_ranks_plan; empty: `error` says why.
template <class Graphs>
std::vector<plan> ranks(const Graphs &graphs, const tarn_plan_options *options, tarn_error &error)
{
    const auto sources = detail::handles<tarn_graph>(graphs, detail::itself());
    std::vector<tarn_plan *> made(sources.size());
    std::vector<plan> plans;
    plans.reserve(made.size());
    if (tarn_ranks_plan(sources.data(), sources.size(), options, made.data(), &error) == TARN_OK)
        for (tarn_plan *one : made) plans.emplace_back(one);
    return plans;
}

// Do the plans lie alike? See tarn_family_verify.
template <class Plans> tarn_status family_verify(const Plans &plans, tarn_error &error)
{
    const auto list = detail::handles<tarn_plan>(plans, detail::itself());
    return tarn_family_verify(list.data(), list.size(), &error);
}

// One arena for a session of each plan. Sessions go before their arena: declare them after it.
class arena
{
  public:
    arena() noexcept = default;
    template <class Plans>
    static arena create(const Plans &plans, tarn_device device, const tarn_arena_options *options,
                        tarn_error &error)
    {
        arena result;
        tarn_arena *made = nullptr;
        const auto list = detail::handles<tarn_plan>(plans, detail::itself());
        tarn_arena_create(list.data(), list.size(), device, options, &made, &error);
        result.handle_.reset(made);
        return result;
    }

    explicit operator bool() const noexcept { return handle_ != nullptr; }
    tarn_arena *get() const noexcept { return handle_.get(); }
    void *memory(tarn_space space = 0) const noexcept
    {
        return tarn_arena_memory(get(), space, nullptr);
    }

#if TARN_HPP_THROWS
    template <class Plans>
    explicit arena(const Plans &plans, tarn_device device = tarn_device_host(nullptr),
                   const tarn_arena_options *options = nullptr)
    {
        tarn_error error{};
        *this = create(plans, device, options, error);
        check(error.status, error);
    }
#endif

  private:
    detail::owner<tarn_arena, tarn_arena_destroy> handle_;
};

// A counter that only grows, see struct tarn_host_event; at(n) is the event that it reaches n.
class host_event
{
  public:
    host_event() noexcept
    {
        tarn_host_event *made = nullptr;
        tarn_host_event_create(&made, nullptr);
        handle_.reset(made);
    }
    explicit operator bool() const noexcept { return handle_ != nullptr; } // false: no memory
    tarn_host_event *get() const noexcept { return handle_.get(); }
    void raise(std::uint64_t value) noexcept { tarn_host_event_raise(get(), value); }
    std::uint64_t value() const noexcept { return tarn_host_event_value(get()); }
    tarn_event at(std::uint64_t value) const noexcept { return {get(), value}; }
    // False: the timeout was reached.
    bool wait(std::uint64_t value, std::uint64_t timeout_ns = TARN_FOREVER) noexcept
    {
        return tarn_host_event_wait(get(), value, timeout_ns, nullptr) == TARN_OK;
    }

  private:
    detail::owner<tarn_host_event, tarn_host_event_destroy> handle_;
};

using events = std::initializer_list<tarn_event>;

#if TARN_HPP_THROWS
template <class Graphs>
std::vector<plan> family(const Graphs &graphs, const tarn_plan_options *options = nullptr)
{
    tarn_error error{};
    std::vector<plan> result = family(graphs, options, error);
    check(error.status, error);
    return result;
}
template <class Many, class Part>
std::vector<plan> family_of(const Many &many, const Part &part,
                            const tarn_plan_options *options = nullptr)
{
    tarn_error error{};
    std::vector<plan> result = family_of(many, part, options, error);
    check(error.status, error);
    return result;
}
#endif

// Kernels are functions of a tarn_call that return 0, and must not throw. Destroying the owner
// waits until kernels are done with what they use.
class session
{
  public:
    using kernel = std::function<int(const tarn_call &)>;

    session() = default;
    session(session &&) noexcept = default;
    session &operator=(session &&other) noexcept
    {
        handle_ = std::move(other.handle_); // first: the destroyed session may use the kernels
        kernels_ = std::move(other.kernels_);
        return *this;
    }
    static session create(const plan &made, tarn_device device, const tarn_session_options *options,
                          tarn_error &error)
    {
        session result;
        tarn_session *created = nullptr;
        tarn_session_create(made.get(), device, options, &created, &error);
        result.handle_.reset(created);
        return result;
    }

    explicit operator bool() const noexcept { return handle_ != nullptr; }
    tarn_session *get() const noexcept { return handle_.get(); }
    // Binds by the source graph's op.
    [[nodiscard]] tarn_status bind(tarn_op origin, kernel function, tarn_error &error)
    {
        kernels_->push_back(std::move(function));
        return tarn_session_bind(get(), origin, call, &kernels_->back(), &error);
    }
    // Binds for every op without its own kernel.
    [[nodiscard]] tarn_status bind_default(kernel function, tarn_error &error)
    {
        kernels_->push_back(std::move(function));
        error = {};
        error.status = tarn_session_bind_default(get(), call, &kernels_->back());
        if (error.status != TARN_OK)
            std::strncpy(error.text, "a default kernel is bound while nothing is submitted",
                         sizeof error.text - 1);
        return error.status;
    }
#if TARN_HPP_THROWS
    tarn_status bind(tarn_op origin, kernel function)
    {
        tarn_error error{};
        tarn::check(bind(origin, std::move(function), error), error);
        return TARN_OK;
    }
    tarn_status bind_default(kernel function)
    {
        tarn_error error{};
        tarn::check(bind_default(std::move(function), error), error);
        return TARN_OK;
    }
#else
    [[nodiscard]] tarn_status bind(tarn_op origin, kernel function)
    {
        tarn_error error{};
        return bind(origin, std::move(function), error);
    }
    [[nodiscard]] tarn_status bind_default(kernel function)
    {
        tarn_error error{};
        return bind_default(std::move(function), error);
    }
#endif
    void *address(tarn_tensor tensor) const noexcept { return tarn_session_address(get(), tensor); }
    // Starting with the next submit; see tarn_session_bind_memory.
    [[nodiscard]] tarn_status bind_memory(tarn_tensor tensor, void *memory,
                                          tarn_error &error) noexcept
    {
        return tarn_session_bind_memory(get(), tensor, memory, &error);
    }
    // Submits between events of other software; see tarn_submit_options.
    [[nodiscard]] tarn_status submit(std::uint64_t iterations, events waits, events signals,
                                     tarn_error &error, void *queue = nullptr,
                                     tarn_ticket *ticket = nullptr) noexcept
    {
        auto around = options<tarn_submit_options>();
        around.waits = waits.begin();
        around.waits_count = waits.size();
        around.signals = signals.begin();
        around.signals_count = signals.size();
        around.queue = queue;
        return tarn_session_submit_with(get(), iterations, &around, ticket, &error);
    }
    [[nodiscard]] tarn_status wait(tarn_ticket ticket, std::uint64_t timeout_ns,
                                   tarn_error &error) noexcept
    {
        return tarn_session_wait(get(), ticket, timeout_ns, &error);
    }
    // A contiguous group as one buffer, see tarn_session_group.
    [[nodiscard]] tarn_status group(std::uint32_t index, span<unsigned char> &bytes,
                                    tarn_error &error) const noexcept
    {
        void *address = nullptr;
        std::uint64_t size = 0;
        const tarn_status status = tarn_session_group(get(), index, &address, &size, &error);
        bytes = {static_cast<unsigned char *>(address), static_cast<std::size_t>(size)};
        return status;
    }
    // Checked execution, see tarn_session_check; options: nullptr: defaults.
    [[nodiscard]] tarn_status check(const tarn_check_options *options, tarn_check_report &report,
                                    tarn_error &error) noexcept
    {
        return tarn_session_check(get(), options, &report, &error);
    }
    void cancel() noexcept { tarn_session_cancel(get()); }

#if TARN_HPP_THROWS
    explicit session(const plan &made, tarn_device device = tarn_device_host(nullptr),
                     const tarn_session_options *options = nullptr)
    {
        tarn_error error{};
        *this = create(made, device, options, error);
        tarn::check(error.status, error);
    }
    // On a shared arena, with other options, too.
    session(const plan &made, tarn_device device, const arena &on,
            tarn_session_options others = options<tarn_session_options>())
    {
        others.arena = on.get();
        *this = session(made, device, &others);
    }
    void bind_memory(tarn_tensor tensor, void *memory)
    {
        tarn_error error{};
        tarn::check(bind_memory(tensor, memory, error), error);
    }
    tarn_ticket submit(std::uint64_t iterations, events waits, events signals,
                       void *queue = nullptr)
    {
        tarn_error error{};
        tarn_ticket ticket = 0;
        tarn::check(submit(iterations, waits, signals, error, queue, &ticket), error);
        return ticket;
    }
    template <class T> void write(tarn_tensor tensor, const T &values)
    {
        tarn_error error{};
        tarn::check(tarn_session_write(get(), tensor, values.data(),
                                       values.size() * sizeof *values.data(), &error),
                    error);
    }
    template <class T> void read(tarn_tensor tensor, T &values)
    {
        tarn_error error{};
        tarn::check(tarn_session_read(get(), tensor, values.data(),
                                      values.size() * sizeof *values.data(), &error),
                    error);
    }
    tarn_ticket submit(std::uint64_t iterations = 1)
    {
        tarn_error error{};
        tarn_ticket ticket = 0;
        tarn::check(tarn_session_submit(get(), iterations, &ticket, &error), error);
        return ticket;
    }
    void wait(tarn_ticket ticket, std::uint64_t timeout_ns = TARN_FOREVER)
    {
        tarn_error error{};
        tarn::check(tarn_session_wait(get(), ticket, timeout_ns, &error), error);
    }
    span<unsigned char> group(std::uint32_t index) const
    {
        tarn_error error{};
        span<unsigned char> bytes;
        tarn::check(group(index, bytes, error), error);
        return bytes;
    }
    tarn_check_report check(const tarn_check_options *options = nullptr)
    {
        tarn_error error{};
        tarn_check_report report{};
        tarn::check(check(options, report, error), error);
        return report;
    }
    void run(std::uint64_t iterations = 1) { wait(submit(iterations)); }
#endif

  private:
    static int call(void *user, const tarn_call *what) noexcept
    {
        return (*static_cast<kernel *>(user))(*what);
    }

    // Before the handle, so that it is destroyed after it. A deque's members stay where they are.
    std::unique_ptr<std::deque<kernel>> kernels_ = std::make_unique<std::deque<kernel>>();
    detail::owner<tarn_session, tarn_session_destroy> handle_;
};

} // namespace tarn

#endif
