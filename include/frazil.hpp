/*
 * frazil for C++17: 64-bit, time-ordered, globally unique IDs. Header-only, over frazil.h.
 *
 *     frazil::snowflake ids{"twitter datacenter=1 worker=7"};
 *     std::int64_t id = ids.next();
 *     auto parts = ids.layout().decode(id);
 *
 * Errors: a call returns its value or throws frazil::error; compiled without exceptions, it returns frazil::result<T>. open and open_for
 * of snowflake, segment, tickets and buffered, and every parse of a class, always return a result, because a constructor can only throw.
 *
 *     auto ids = frazil::snowflake::open("game server=4711");
 *     if (!ids) return fail(ids.error().what());
 *
 * Threads: any number may use one object at once. Before an object is moved or destroyed, the other calls on it must have ended. All else
 * is as in frazil.h.
 */
#ifndef FRAZIL_HPP
#define FRAZIL_HPP

#if !defined(_MSVC_LANG) && __cplusplus < 201703L
#error "frazil.hpp needs C++17: compile with -std=c++17 or later"
#elif defined(_MSVC_LANG) && _MSVC_LANG < 201703L
#error "frazil.hpp needs C++17: compile with /std:c++17 or later"
#endif

#include "frazil.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iosfwd>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#if defined(__has_include) && (__cplusplus >= 202002L || (defined(_MSVC_LANG) && _MSVC_LANG >= 202002L))
#if __has_include(<span>)
#include <span>
#endif
#if __has_include(<format>)
#include <format>
#endif
#endif

#if !defined(FRAZIL_NO_EXCEPTIONS) && !defined(__cpp_exceptions)
#define FRAZIL_NO_EXCEPTIONS
#endif

namespace frazil {

// The two return types of one call must not be the same symbol in a program that mixes both.
#ifdef FRAZIL_NO_EXCEPTIONS
inline namespace returning {
#else
inline namespace throwing {
#endif

/// The code of an error: a row of the error table, with the same number in every language.
enum class errc : std::int32_t {
    spec = FRAZIL_SPEC,
    unknown_key = FRAZIL_UNKNOWN_KEY,
    out_of_range = FRAZIL_OUT_OF_RANGE,
    layout_invalid = FRAZIL_LAYOUT_INVALID,
    id_invalid = FRAZIL_ID_INVALID,
    wrong_type = FRAZIL_WRONG_TYPE,
    closed = FRAZIL_CLOSED,
    layout_expired = FRAZIL_LAYOUT_EXPIRED,
    before_epoch = FRAZIL_BEFORE_EPOCH,
    clock_back = FRAZIL_CLOCK_BACK,
    exhausted = FRAZIL_EXHAUSTED,
    would_block = FRAZIL_WOULD_BLOCK,
    clock_not_set = FRAZIL_CLOCK_NOT_SET,
    clock_skew = FRAZIL_CLOCK_SKEW,
    node_missing = FRAZIL_NODE_MISSING,
    node_in_use = FRAZIL_NODE_IN_USE,
    no_free_node = FRAZIL_NO_FREE_NODE,
    lease_exhausted = FRAZIL_LEASE_EXHAUSTED,
    forked = FRAZIL_FORKED,
    conflict = FRAZIL_CONFLICT,
    copied = FRAZIL_COPIED,
    store_unreachable = FRAZIL_STORE_UNREACHABLE,
    store_auth = FRAZIL_STORE_AUTH,
    store_readonly = FRAZIL_STORE_READONLY,
    store_corrupt = FRAZIL_STORE_CORRUPT,
    store_changed = FRAZIL_STORE_CHANGED,
    store_unsuitable = FRAZIL_STORE_UNSUITABLE,
    layout_mismatch = FRAZIL_LAYOUT_MISMATCH,
    store_not_built = FRAZIL_STORE_NOT_BUILT,
    tag_missing = FRAZIL_TAG_MISSING,
    segment_exhausted = FRAZIL_SEGMENT_EXHAUSTED,
    segment_mismatch = FRAZIL_SEGMENT_MISMATCH,
    internal = FRAZIL_INTERNAL,
};

/// The stable name of an error, for example "CLOCK_BACK".
inline const char *name(errc code) { return frazil_error_name(static_cast<frazil_status>(code)); }

/// The meaning of an error, in one sentence.
inline const char *meaning(errc code) { return frazil_error_meaning(static_cast<frazil_status>(code)); }

/// Writes the stable name of an error, or its number if it has no name.
template <typename Traits>
std::basic_ostream<char, Traits> &operator<<(std::basic_ostream<char, Traits> &out, errc code) {
    const char *text = name(code);
    if (text == nullptr) return out << static_cast<std::int32_t>(code);
    return out << text;
}

/// An instant: milliseconds of the system clock.
using time_point = std::chrono::time_point<std::chrono::system_clock, std::chrono::milliseconds>;

/// An error. what() names the argument, the value and the allowed values.
class error : public std::runtime_error {
public:
    error(errc code, const std::string &what, std::optional<std::chrono::milliseconds> retry_after = std::nullopt, std::size_t written = 0)
        : std::runtime_error(what), code_(code), retry_after_(retry_after), written_(written) {}

    /// The row of the error table.
    errc code() const noexcept { return code_; }

    /// The time until a retry can succeed, if known: would_block, exhausted, clock_back.
    std::optional<std::chrono::milliseconds> retry_after() const noexcept { return retry_after_; }

    /// The number of numbers that fill had written when it failed.
    std::size_t written() const noexcept { return written_; }

private:
    errc code_;
    std::optional<std::chrono::milliseconds> retry_after_;
    std::size_t written_;
};

/// A value, or an error.
template <typename T>
class [[nodiscard]] result {
public:
    result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    result(frazil::error error) : state_(std::in_place_index<1>, std::move(error)) {}

    /// Returns whether there is a value.
    explicit operator bool() const noexcept { return state_.index() == 0; }

    /// The value; without one, throws the error, or aborts where exceptions are off.
    T &value() & { return *require(); }
    const T &value() const & { return *const_cast<result *>(this)->require(); }
    T value() && { return std::move(*require()); }
    T &operator*() & { return value(); }
    const T &operator*() const & { return value(); }
    T operator*() && { return std::move(*this).value(); }
    T *operator->() { return require(); }
    const T *operator->() const { return const_cast<result *>(this)->require(); }

    /// The error; aborts if there is a value instead.
    const frazil::error &error() const {
        const auto *error = std::get_if<1>(&state_);
        if (error == nullptr) std::abort();
        return *error;
    }

private:
    T *require() {
        T *value = std::get_if<0>(&state_);
        if (value == nullptr) {
#ifdef FRAZIL_NO_EXCEPTIONS
            std::abort();
#else
            throw error();
#endif
        }
        return value;
    }

    std::variant<T, frazil::error> state_;
};

/// Success, or an error.
template <>
class [[nodiscard]] result<void> {
public:
    result() = default;
    result(frazil::error error) : error_(std::move(error)) {}

    /// Returns whether the call succeeded.
    explicit operator bool() const noexcept { return !error_; }

    /// The error; aborts if there is none.
    const frazil::error &error() const {
        if (!error_) std::abort();
        return *error_;
    }

private:
    std::optional<frazil::error> error_;
};

/// The return type of a call: T, or result<T> where exceptions are off.
#ifdef FRAZIL_NO_EXCEPTIONS
template <typename T>
using outcome = result<T>;
#else
template <typename T>
using outcome = T;
#endif

/// A string argument: a C string, which may be null, a std::string or a std::string_view.
class text_arg {
public:
    text_arg(const char *text) : text_(text) {}
    text_arg(const std::string &text) : text_(text.c_str()), holds_nul_(text.find('\0') != std::string::npos) {}
    text_arg(std::string_view text) : copy_(text), holds_nul_(text.find('\0') != std::string_view::npos) {}

    /// The string for C, which would end at a NUL.
    const char *c_str() const noexcept { return copy_ ? copy_->c_str() : text_; }
    bool holds_nul() const noexcept { return holds_nul_; }

private:
    const char *text_ = nullptr;
    /// Copies a view, which is not terminated by a NUL.
    std::optional<std::string> copy_;
    bool holds_nul_ = false;
};

namespace detail {

/// Whole milliseconds. Values out of range become the nearest int64_t, which the library checks.
template <typename Milliseconds, typename Rep, typename Period>
std::int64_t saturated(std::chrono::duration<Rep, Period> duration, Milliseconds rounded) {
    const auto about = std::chrono::duration<long double, std::milli>(duration).count();
    // A NaN is less than all values, and is therefore refused.
    if (!(about > -9.2e18L)) return std::numeric_limits<std::int64_t>::min();
    if (about > 9.2e18L) return std::numeric_limits<std::int64_t>::max();
    return static_cast<std::int64_t>(rounded(duration).count());
}

} // namespace detail

/// The limit of a wait: any duration of std::chrono, rounded up to whole milliseconds. A negative one is out_of_range.
class wait_arg {
public:
    template <typename Rep, typename Period>
    wait_arg(std::chrono::duration<Rep, Period> wait)
        : ms_(detail::saturated(wait, [](auto exact) { return std::chrono::ceil<std::chrono::milliseconds>(exact); })) {}

    /// The milliseconds, for C.
    std::int64_t ms() const noexcept { return ms_; }

private:
    std::int64_t ms_;
};

/// An instant: any time point of the system clock, rounded down to milliseconds.
class time_arg {
public:
    template <typename Duration>
    time_arg(std::chrono::time_point<std::chrono::system_clock, Duration> time)
        : unix_ms_(detail::saturated(time.time_since_epoch(), [](auto exact) { return std::chrono::floor<std::chrono::milliseconds>(exact); })) {}

    /// The Unix milliseconds, for C.
    std::int64_t unix_ms() const noexcept { return unix_ms_; }

private:
    std::int64_t unix_ms_;
};

namespace detail {

inline error last_error(frazil_status status, std::size_t written = 0) {
    const std::int64_t ms = frazil_retry_after_ms();
    const auto retry_after = ms < 0 ? std::nullopt : std::optional(std::chrono::milliseconds(ms));
    return error(static_cast<errc>(status), frazil_last_error(), retry_after, written);
}

inline error nul_error(errc code) { return error(code, "a string argument holds a NUL, which would be its end"); }

template <typename T>
outcome<T> fail(error why) {
#ifdef FRAZIL_NO_EXCEPTIONS
    return result<T>(std::move(why));
#else
    throw why;
#endif
}

/// A value that C has written, unless it failed.
template <typename T>
outcome<T> give(frazil_status status, T value) {
    if (status != FRAZIL_OK) return fail<T>(last_error(status));
    return value;
}

inline outcome<void> done(frazil_status status, std::size_t written = 0) {
    if (status != FRAZIL_OK) return fail<void>(last_error(status, written));
    return outcome<void>();
}

/// Checks that the loaded library supports this header.
inline frazil_status version_check() {
    return frazil_version_check(FRAZIL_VERSION_MAJOR, FRAZIL_VERSION_MINOR, FRAZIL_VERSION_PATCH);
}

/// True if a type is a writable, contiguous container of std::int64_t.
template <typename C, typename = void>
constexpr bool is_buffer = false;
template <typename C>
constexpr bool is_buffer<C, std::void_t<decltype(std::data(std::declval<C &>()))>> =
    std::is_same_v<decltype(std::data(std::declval<C &>())), std::int64_t *>;

/// An endless input iterator of next(); where exceptions are off, of result<std::int64_t>.
template <typename Source>
class iterator {
public:
    using iterator_category = std::input_iterator_tag;
    using value_type = outcome<std::int64_t>;
    using difference_type = std::ptrdiff_t;
    using pointer = const value_type *;
    using reference = const value_type &;

    /// The end, which no source reaches.
    iterator() = default;
    explicit iterator(const Source &source) : source_(&source), number_(source.next()) {}

    reference operator*() const { return *number_; }
    pointer operator->() const { return &*number_; }
    iterator &operator++() {
        number_.emplace(source_->next());
        return *this;
    }
    iterator operator++(int) {
        iterator before = *this;
        ++*this;
        return before;
    }
    friend bool operator==(const iterator &a, const iterator &b) { return a.source_ == b.source_; }
    friend bool operator!=(const iterator &a, const iterator &b) { return a.source_ != b.source_; }

private:
    const Source *source_ = nullptr;
    std::optional<value_type> number_;
};

inline time_point instant(std::int64_t unix_ms) { return time_point(std::chrono::milliseconds(unix_ms)); }

} // namespace detail

/// The version of the loaded library.
inline const char *version() { return frazil_version(); }

/// A text format of an ID. All have a fixed width and sort like the numbers. In JSON an ID is std::to_string(id), without leading zeros.
enum class format : std::int32_t {
    /// 19 characters; parsers also accept the number without leading zeros.
    decimal = FRAZIL_DECIMAL,
    /// 11 characters.
    base62 = FRAZIL_BASE62,
    /// 13 characters.
    base32 = FRAZIL_BASE32,
    /// 16 characters.
    hex = FRAZIL_HEX,
    /// 14 characters: those of base32, and a check symbol.
    check = FRAZIL_CHECK,
};

/// An ID as text of a fixed width, which sorts like the number. Errors: id_invalid for a negative number.
inline outcome<std::string> format_id(std::int64_t id, format form = format::decimal) {
    char text[FRAZIL_ID_TEXT_SIZE] = "";
    const frazil_status status = frazil_id_format(id, static_cast<std::int32_t>(form), text, sizeof text);
    return detail::give<std::string>(status, text);
}

/// Parses the text of an ID. A prefix such as "order_" must come before it. Errors: id_invalid.
inline outcome<std::int64_t> parse_id(text_arg text, format form = format::decimal, text_arg prefix = "") {
    if (text.holds_nul() || prefix.holds_nul()) return detail::fail<std::int64_t>(detail::nul_error(errc::id_invalid));
    std::int64_t id = 0;
    const frazil_status status = frazil_id_parse_prefixed(text.c_str(), prefix.c_str(), static_cast<std::int32_t>(form), &id);
    return detail::give(status, id);
}

/// Node fields by name, with a value or a width.
template <typename N>
using named = std::vector<std::pair<std::string, N>>;

/// The parts of an ID.
struct parts {
    std::int64_t id;
    /// The instant at which the ID's tick starts.
    time_point time;
    /// The raw time field: ticks since the layout's epoch.
    std::uint64_t tick;
    /// The node number: all node fields side by side.
    std::uint64_t node;
    /// The node fields, from the most significant.
    named<std::uint64_t> fields;
    /// The counter within the tick.
    std::uint64_t sequence;
    /// True if the ID looks as if JavaScript had rounded it: a hint, not a proof.
    bool looks_rounded;

    /// One node field; empty if the layout has no such field.
    std::optional<std::uint64_t> field(std::string_view name) const {
        for (const auto &field : fields) {
            if (field.first == name) return field.second;
        }
        return std::nullopt;
    }

    /// The parts by name, as text: `id=1541815603606036480 unix_ms=1656432460105 datacenter=11 worker=26 sequence=0`.
    std::string to_string() const {
        std::string text = "id=" + std::to_string(id) + " unix_ms=" + std::to_string(time.time_since_epoch().count());
        for (const auto &field : fields) text += " " + field.first + "=" + std::to_string(field.second);
        return text + " sequence=" + std::to_string(sequence);
    }

    /// Returns whether all parts are equal, also the names of the fields.
    friend bool operator==(const parts &a, const parts &b) {
        return a.id == b.id && a.time == b.time && a.tick == b.tick && a.node == b.node && a.fields == b.fields && a.sequence == b.sequence &&
               a.looks_rounded == b.looks_rounded;
    }
    friend bool operator!=(const parts &a, const parts &b) { return !(a == b); }
};

/// A layout: the split of the 63 bits of an ID, the length of a tick, and the epoch. Immutable; copies share it.
class layout {
public:
    // No moves, which would leave a layout without fields.
    layout(const layout &) = default;
    layout &operator=(const layout &) = default;

#ifndef FRAZIL_NO_EXCEPTIONS
    /// A layout from its text or a preset's name. Throws as parse fails.
    explicit layout(text_arg text) : layout(parse(text).value()) {}
#endif

    /// Parses a layout's text or a preset's name. Errors: layout_invalid, spec, out_of_range.
    static result<layout> parse(text_arg text) {
        if (text.holds_nul()) return detail::nul_error(errc::layout_invalid);
        frazil_layout *handle = nullptr;
        const frazil_status status = frazil_layout_parse(text.c_str(), &handle);
        if (status != FRAZIL_OK) return detail::last_error(status);
        return layout(adopted{handle});
    }

    /// The canonical text, which parses to the same layout.
    std::string text() const {
        const char *text = "";
        (void)frazil_layout_text(handle_.get(), &text);
        return text;
    }

    /// Decodes an ID. Errors: id_invalid.
    outcome<parts> decode(std::int64_t id) const {
        frazil_parts raw{};
        const frazil_status status = frazil_layout_decode(handle_.get(), id, &raw, sizeof raw);
        if (status != FRAZIL_OK) return detail::fail<parts>(detail::last_error(status));
        named<std::uint64_t> values;
        for (const auto &field : field_bits()) {
            std::uint64_t value = 0;
            (void)frazil_layout_decode_field(handle_.get(), id, field.first.c_str(), &value);
            values.emplace_back(field.first, value);
        }
        return parts{raw.id, detail::instant(raw.unix_ms), raw.tick, raw.node, std::move(values), raw.sequence, raw.looks_rounded};
    }

    /// Composes an ID of an instant, a sequence and every node field. For example `compose(time, {{"datacenter", 1},
    /// {"worker", 7}}, 0)`. Nothing is masked. Errors: out_of_range, unknown_key, node_missing, spec, before_epoch,
    /// layout_expired.
    outcome<std::int64_t> compose(time_arg time, const named<std::uint64_t> &fields, std::uint64_t sequence) const {
        std::vector<frazil_field> raw;
        for (const auto &field : fields) {
            if (field.first.find('\0') != std::string::npos) {
                return detail::fail<std::int64_t>(detail::nul_error(errc::unknown_key));
            }
            raw.push_back(frazil_field{field.first.c_str(), field.second});
        }
        std::int64_t id = 0;
        const frazil_status status =
            frazil_layout_compose(handle_.get(), time.unix_ms(), raw.data(), raw.size(), sequence, &id);
        return detail::give(status, id);
    }

    /// The smallest ID of the tick at an instant. Errors: before_epoch, layout_expired.
    outcome<std::int64_t> min_id(time_arg time) const {
        std::int64_t id = 0;
        const frazil_status status = frazil_layout_min_id(handle_.get(), time.unix_ms(), &id);
        return detail::give(status, id);
    }

    /// The largest ID of the tick that holds an instant. Errors: before_epoch, layout_expired.
    outcome<std::int64_t> max_id(time_arg time) const {
        std::int64_t id = 0;
        const frazil_status status = frazil_layout_max_id(handle_.get(), time.unix_ms(), &id);
        return detail::give(status, id);
    }

    /// The node fields and their widths in bits, from the most significant.
    named<std::uint32_t> field_bits() const {
        named<std::uint32_t> fields;
        for (std::size_t index = 0; index < info().field_count; ++index) {
            const char *name = "";
            std::uint32_t bits = 0;
            (void)frazil_layout_field(handle_.get(), index, &name, &bits);
            fields.emplace_back(name, bits);
        }
        return fields;
    }

    /// The instant at which the time field is 0.
    time_point epoch() const { return detail::instant(info().epoch_ms); }

    /// The first instant that cannot be stamped; empty if that is after the year 9999.
    std::optional<time_point> expires_at() const {
        const std::int64_t end = info().expires_at_ms;
        if (end == INT64_MAX) return std::nullopt;
        return detail::instant(end);
    }

    /// The length of a tick.
    std::chrono::milliseconds tick() const { return std::chrono::milliseconds(info().tick_ms); }

    /// The number of node numbers, and so of generators at the same time.
    std::uint64_t nodes() const { return info().nodes; }

    /// The IDs that one generator can mint in a second, sustained.
    double ids_per_second() const { return info().ids_per_second; }

    /// The width of the time field.
    std::uint32_t time_bits() const { return info().time_bits; }

    /// The width of the sequence.
    std::uint32_t sequence_bits() const { return info().sequence_bits; }

    friend bool operator==(const layout &a, const layout &b) {
        bool equal = false;
        (void)frazil_layout_equal(a.handle_.get(), b.handle_.get(), &equal);
        return equal;
    }
    friend bool operator!=(const layout &a, const layout &b) { return !(a == b); }

private:
    template <typename Handle>
    friend class source;
    // Not a bare pointer, because nullptr would select it instead of a text.
    struct adopted {
        frazil_layout *handle;
    };
    explicit layout(adopted raw) : handle_(raw.handle, frazil_layout_free) {}

    frazil_layout_info info() const {
        frazil_layout_info info{};
        (void)frazil_layout_describe(handle_.get(), &info, sizeof info);
        return info;
    }

    std::shared_ptr<frazil_layout> handle_;
};

/// A leased node number and its state.
struct lease {
    /// The node number: all node fields side by side.
    std::uint64_t node;
    /// The last instant whose IDs the lease covers now; empty for a disposable number, which has no end.
    std::optional<time_point> bound;
    /// The store, without its credentials.
    std::string store;
    /// The namespace, which separates applications in the store.
    std::string store_namespace;
    /// True if the last attempt to reach the store succeeded.
    bool healthy;
    /// The error of the last attempt that failed.
    std::optional<error> last_error;
    /// The number of disposable numbers that were left when this one was taken.
    std::optional<std::uint64_t> left;
};

/// Closes every generator of the process that leases its number, and releases the numbers. Call it at the end of a program, as at
/// SIGTERM; from a thread, not from within a signal handler. It also waits for handles that were closed or destroyed before. Errors: would_block if
/// a store was not notified in time.
inline outcome<void> close_all(wait_arg max_wait) { return detail::done(frazil_close_all(max_wait.ms())); }

/// Notifies frazil that the process was restored from a snapshot, or copied with its machine: frazil_restored().
inline outcome<void> restored() { return detail::done(frazil_restored()); }

/// Calls a function with the counts of every open generator and segment of this process: frazil_each_stats(). The texts are valid during the
/// call. An exception ends the calls and is thrown again after the last frame of the library.
template <typename Visitor>
outcome<void> each_stats(Visitor &&visitor) {
    struct visit {
        Visitor &visitor;
#ifndef FRAZIL_NO_EXCEPTIONS
        std::exception_ptr thrown;
#endif
        static void one(const frazil_stats *stats, void *data) {
            auto &self = *static_cast<visit *>(data);
#ifndef FRAZIL_NO_EXCEPTIONS
            if (self.thrown) return;
            try {
#endif
                self.visitor(*stats);
#ifndef FRAZIL_NO_EXCEPTIONS
            } catch (...) {
                self.thrown = std::current_exception();
            }
#endif
        }
    } visiting{visitor
#ifndef FRAZIL_NO_EXCEPTIONS
               , nullptr
#endif
    };
    const frazil_status status = frazil_each_stats(visit::one, &visiting);
#ifndef FRAZIL_NO_EXCEPTIONS
    if (visiting.thrown) std::rethrow_exception(visiting.thrown);
#endif
    return detail::done(status);
}

/// An event of the generators of this process: on_event(). Its texts contain no secret, and are valid during the call of the callback.
struct event {
    /// True if an operator should act.
    bool is_warning;
    /// The name of the event: "lease.taken", "lease.waiting", "lease.failing", "lease.recovered", "lease.lost", "store.changed",
    /// "clock.rollback", "layout.ending" or "node.unguarded". These names stay.
    std::string_view name;
    /// A readable text, whose wording may change.
    std::string_view text;
    /// The parts of the text, for programs: name and value.
    std::vector<std::pair<std::string_view, std::string_view>> fields;

    /// The part with this name; empty if there is none.
    std::optional<std::string_view> field(std::string_view wanted) const {
        for (const auto &part : fields) {
            if (part.first == wanted) return part.second;
        }
        return std::nullopt;
    }
};

/// Keeps a callback of on_event() registered until it is destroyed. Movable.
class [[nodiscard]] event_hook {
public:
    event_hook(event_hook &&) noexcept = default;
    event_hook &operator=(event_hook &&) noexcept = default;

private:
    friend outcome<event_hook> on_event(std::function<void(const event &)> call);

    struct state : std::enable_shared_from_this<state> {
        explicit state(std::function<void(const event &)> hook) : call(std::move(hook)) {}
        std::function<void(const event &)> call;
    };

    /// Removes the callback.
    struct ending {
        std::shared_ptr<state> kept;
        void operator()(state *hook) const noexcept { (void)frazil_on_event(nullptr, hook); }
    };

    explicit event_hook(const std::shared_ptr<state> &hook) : hook_(hook.get(), ending{hook}) {}

    static void forward(const frazil_event *raw, void *data) noexcept {
        // The callback may remove itself, and then lives until it returns.
        const auto hook = static_cast<state *>(data)->shared_from_this();
#ifndef FRAZIL_NO_EXCEPTIONS
        try {
#endif
            event shown{raw->is_warning, raw->name, raw->text, {}};
            for (std::size_t at = 0; at < raw->field_count; ++at) shown.fields.emplace_back(raw->fields[at].name, raw->fields[at].value);
            hook->call(shown);
#ifndef FRAZIL_NO_EXCEPTIONS
        } catch (...) {
            // C cannot pass the exception on.
        }
#endif
    }

    std::unique_ptr<state, ending> hook_;
};

/// Registers a callback for every event of the process. The callback is removed when the returned value is destroyed.
/// It is called under no lock, and may call frazil: on a thread of frazil's own, one event after the other;
/// "lease.waiting", the reason for an opening that takes longer than a second, on the thread that waits. A later callback
/// replaces it. The destructor waits up to 5 s for running calls, except for the one that calls it; after that, the data
/// of the function may be freed. An exception of the function is dropped. Errors: wrong_type for an empty function.
inline outcome<event_hook> on_event(std::function<void(const event &)> call) {
    if (!call) return detail::fail<event_hook>(error(errc::wrong_type, "the function for the events is empty"));
    const auto hook = std::make_shared<event_hook::state>(std::move(call));
    event_hook ending(hook);
    return detail::give(frazil_on_event(event_hook::forward, hook.get()), std::move(ending));
}

namespace detail {

/// The C functions of every handle that hands out numbers.
template <typename Handle>
struct calls;

template <>
struct calls<frazil_snowflake> {
    static constexpr auto next = frazil_snowflake_next;
    static constexpr auto next_for = frazil_snowflake_next_for;
    static constexpr auto batch = frazil_snowflake_batch;
    static constexpr auto fill = frazil_snowflake_fill;
    static constexpr auto fill_for = frazil_snowflake_fill_for;
    static constexpr auto close = frazil_snowflake_close;
    static constexpr auto close_for = frazil_snowflake_close_for;
    static constexpr auto stats = frazil_snowflake_stats;
    static constexpr auto layout = frazil_snowflake_layout;
    static constexpr auto spec = frazil_snowflake_spec;
    static constexpr auto release = frazil_snowflake_free;
};

template <>
struct calls<frazil_numbers> {
    static constexpr auto next = frazil_numbers_next;
    static constexpr auto next_for = frazil_numbers_next_for;
    static constexpr auto batch = frazil_numbers_batch;
    static constexpr auto fill = frazil_numbers_fill;
    static constexpr auto fill_for = frazil_numbers_fill_for;
    static constexpr auto close = frazil_numbers_close;
    static constexpr auto close_for = frazil_numbers_close_for;
    static constexpr auto stats = frazil_numbers_stats;
    static constexpr auto layout = frazil_numbers_layout;
    static constexpr auto spec = frazil_numbers_spec;
    static constexpr auto release = frazil_numbers_free;
};

} // namespace detail

/// A source of numbers: the base of snowflake, segment, tickets and buffered. Movable; the destructor closes it. Calls on a
/// moved-from one are wrong_type.
template <typename Handle>
class source {
    using calls = detail::calls<Handle>;

public:
    /// An endless input iterator of next(); where exceptions are off, of result<std::int64_t>.
    using iterator = detail::iterator<source>;

    /// The next number. A generator waits as its policies say; without prefetched numbers, others wait up to the spec's `wait`, a ring up
    /// to `empty`.
    ///
    /// Errors: a generator's: clock_back, exhausted, layout_expired, before_epoch, clock_not_set, would_block, forked, lease_exhausted;
    /// a ring's: the same; a segment's and tickets': segment_exhausted, tag_missing, segment_mismatch, those of stores; closed.
    [[nodiscard]] outcome<std::int64_t> next() const {
        std::int64_t number = 0;
        const frazil_status status = calls::next(handle_.get(), &number);
        return detail::give(status, number);
    }

    /// The next number, waiting no longer than a limit; would_block if it would wait longer.
    [[nodiscard]] outcome<std::int64_t> next_for(wait_arg max_wait) const {
        std::int64_t number = 0;
        const frazil_status status = calls::next_for(handle_.get(), max_wait.ms(), &number);
        return detail::give(status, number);
    }

    /// `count` numbers, at most FRAZIL_MAX_BATCH: all or nothing. A generator's and a ring's ascend. Errors: as next, and out_of_range.
    outcome<std::vector<std::int64_t>> batch(std::size_t count) const {
        // A count that is too large is refused before the buffer is used.
        std::vector<std::int64_t> taken(count <= FRAZIL_MAX_BATCH ? count : 0);
        const frazil_status status = calls::batch(handle_.get(), taken.data(), count);
        return detail::give(status, std::move(taken));
    }

    /// Fills a buffer, in as many ticks or ranges as that takes. Numbers from one store ascend, and those of a generator and a ring always
    /// do. Errors: as next; error::written() is the number of numbers in the buffer.
    outcome<void> fill(std::int64_t *buffer, std::size_t count) const {
        std::size_t written = 0;
        const frazil_status status = calls::fill(handle_.get(), buffer, count, &written);
        return detail::done(status, written);
    }

    /// Fills a contiguous container of std::int64_t: a vector, an array, a std::span.
    template <typename C>
    outcome<void> fill(C &&buffer) const {
        static_assert(detail::is_buffer<C>, "fill needs a contiguous container of std::int64_t that is not const, such as std::vector<std::int64_t>");
        if constexpr (detail::is_buffer<C>) return fill(std::data(buffer), std::size(buffer));
    }

    /// Fills a buffer, waiting no longer than a limit from the call; would_block otherwise.
    outcome<void> fill_for(std::int64_t *buffer, std::size_t count, wait_arg max_wait) const {
        std::size_t written = 0;
        const frazil_status status = calls::fill_for(handle_.get(), max_wait.ms(), buffer, count, &written);
        return detail::done(status, written);
    }

    /// Fills a contiguous container, waiting no longer than a limit from the call.
    template <typename C>
    outcome<void> fill_for(C &&buffer, wait_arg max_wait) const {
        static_assert(detail::is_buffer<C>, "fill_for needs a contiguous container of std::int64_t that is not const, such as std::vector<std::int64_t>");
        if constexpr (detail::is_buffer<C>) return fill_for(std::data(buffer), std::size(buffer), max_wait);
    }

    /// The begin of `for (auto number : numbers)`, which has no end.
    iterator begin() const { return iterator(*this); }
    iterator end() const { return iterator(); }

    /// Closes the handle: prefetched numbers are lost, and later calls are closed. The last handle of a leased number releases it, and waits
    /// up to 5 s for the store; the destructor, 200 ms. Closing twice is harmless.
    void close() const { (void)calls::close(handle_.get()); }

    /// Closes the handle, and waits for the store no longer than a limit; the release continues in the background. Errors: would_block.
    outcome<void> close_for(wait_arg max_wait) const { return detail::done(calls::close_for(handle_.get(), max_wait.ms())); }

    /// The counts of this process, over all handles. `issued` is exact when no call is in progress, except for the blocks of local handles. Its
    /// `spec` is valid until this thread's next call of stats(). Errors: only wrong_type, of a moved-from one.
    outcome<frazil_stats> stats() const {
        frazil_stats stats{};
        const frazil_status status = calls::stats(handle_.get(), &stats, sizeof stats);
        return detail::give(status, stats);
    }

    /// The canonical spec line. Errors: only wrong_type, of a moved-from one.
    outcome<std::string> spec() const {
        const char *spec = "";
        const frazil_status status = calls::spec(handle_.get(), &spec);
        return detail::give<std::string>(status, spec);
    }

protected:
    struct freeing {
        void operator()(Handle *handle) const noexcept { calls::release(handle); }
    };

    // Not a bare pointer, because nullptr would select it instead of a text.
    struct adopted {
        Handle *handle;
    };
    explicit source(adopted raw) : handle_(raw.handle) {}
    source(source &&) noexcept = default;
    source &operator=(source &&) noexcept = default;
    ~source() = default;

    /// Opens a T with a C function.
    template <typename T, typename Open>
    static result<T> opened(text_arg spec, Open open) {
        if (spec.holds_nul()) return detail::nul_error(errc::spec);
        Handle *handle = nullptr;
        frazil_status status = detail::version_check();
        if (status == FRAZIL_OK) status = open(spec.c_str(), &handle);
        if (status != FRAZIL_OK) return detail::last_error(status);
        return T(adopted{handle});
    }

    /// Opens a T with a C function that has a limit.
    template <typename T, typename Open>
    static result<T> opened(text_arg spec, wait_arg max_wait, Open open) {
        return opened<T>(std::move(spec), [&](const char *line, Handle **handle) { return open(line, max_wait.ms(), handle); });
    }

    outcome<frazil::layout> layout_of_ids() const {
        frazil_layout *layout = nullptr;
        const frazil_status status = calls::layout(handle_.get(), &layout);
        return detail::give(status, frazil::layout(frazil::layout::adopted{layout}));
    }

    std::unique_ptr<Handle, freeing> handle_;
};

/// A handle on a generator for one thread at a time, which claims blocks of up to 64 IDs: snowflake::local(). Its IDs are unique, and ascend
/// within it. Movable; the destructor frees it. Calls on a moved-from one are wrong_type.
class local {
public:
    /// The next ID. Waits and fails as snowflake::next().
    [[nodiscard]] outcome<std::int64_t> next() {
        std::int64_t id = 0;
        const frazil_status status = frazil_local_next(handle_.get(), &id);
        return detail::give(status, id);
    }

private:
    friend class snowflake;
    struct freeing {
        void operator()(frazil_local *handle) const noexcept { frazil_local_free(handle); }
    };
    explicit local(frazil_local *raw) : handle_(raw) {}

    std::unique_ptr<frazil_local, freeing> handle_;
};

/// A generator of IDs: unique, and strictly increasing over all threads and handles. Movable; the destructor closes it.
/// Calls on a moved-from one are wrong_type.
class snowflake : public source<frazil_snowflake> {
public:
#ifndef FRAZIL_NO_EXCEPTIONS
    /// Opens a generator from the environment variable FRAZIL. Throws as open fails.
    snowflake() : snowflake(open(nullptr).value()) {}

    /// Opens a generator from a spec line. Throws as open fails.
    explicit snowflake(text_arg spec) : snowflake(open(spec).value()) {}
#endif

    /// Opens a generator from a spec line. Null reads the environment variable FRAZIL.
    ///
    /// A fixed node number first waits for the next tick, at most 1 s. Errors: as
    /// frazil_snowflake_open().
    static result<snowflake> open(text_arg spec) { return opened<snowflake>(std::move(spec), frazil_snowflake_open); }

    /// Opens a generator, and waits no longer than a limit. Fails with would_block if the next tick is further away.
    static result<snowflake> open_for(text_arg spec, wait_arg max_wait) {
        return opened<snowflake>(std::move(spec), max_wait, frazil_snowflake_open_for);
    }

    /// A handle for one thread that claims blocks of IDs. Faster if threads share a generator. Closing the generator does not end the
    /// handle. Errors: only wrong_type, of a moved-from generator.
    outcome<frazil::local> local() const {
        frazil_local *raw = nullptr;
        const frazil_status status = frazil_snowflake_local(handle_.get(), &raw);
        return detail::give(status, frazil::local(raw));
    }

    /// The next ID as text of a fixed width. Errors: as next.
    outcome<std::string> text(format form = format::decimal) const {
        char text[FRAZIL_ID_TEXT_SIZE] = "";
        const frazil_status status =
            frazil_snowflake_text(handle_.get(), static_cast<std::int32_t>(form), text, sizeof text);
        return detail::give<std::string>(status, text);
    }

    /// The number of IDs that could be minted now with no stamp ahead of the clock. Never waits.
    outcome<std::uint64_t> credit() const {
        std::uint64_t credit = 0;
        const frazil_status status = frazil_snowflake_credit(handle_.get(), &credit);
        return detail::give(status, credit);
    }

    /// Sets the time of `clock=manual`. Backwards is a rollback. Errors: spec, out_of_range, forked, closed.
    outcome<void> set_time(time_arg time) const {
        return detail::done(frazil_snowflake_set_time(handle_.get(), time.unix_ms()));
    }

    /// Prevents IDs at or below this one from now on. Has the effect of `after=` at run time, to take over from another
    /// generator. Every call that begins later, in any thread, gives a larger ID. Errors: out_of_range, id_invalid,
    /// layout_expired, clock_not_set, before_epoch, forked, closed.
    outcome<void> observe(std::int64_t id) const { return detail::done(frazil_snowflake_observe(handle_.get(), id)); }

    /// Releases a leased node number; the next ID leases another. Call it before a machine is cloned. IDs keep
    /// increasing. Errors: spec without a store, closed, store_unreachable, lease_exhausted.
    outcome<void> release_node() const { return detail::done(frazil_snowflake_release_node(handle_.get())); }

    /// Releases a leased node number, and waits for the store no longer than a limit. The number is released in any
    /// case. Errors: also would_block.
    outcome<void> release_node_for(wait_arg max_wait) const {
        return detail::done(frazil_snowflake_release_node_for(handle_.get(), max_wait.ms()));
    }

    /// The layout. Errors: only wrong_type, of a moved-from generator, as for the three below. `node`, `field` and `lease` also fail with
    /// forked, in a forked child before its first ID.
    outcome<frazil::layout> layout() const { return layout_of_ids(); }

    /// The node number: all node fields side by side.
    outcome<std::uint64_t> node() const {
        std::uint64_t node = 0;
        const frazil_status status = frazil_snowflake_node(handle_.get(), &node);
        return detail::give(status, node);
    }

    /// The leased node number and the state of its lease. Empty for a fixed number.
    outcome<std::optional<frazil::lease>> lease() const {
        frazil_lease raw{};
        const frazil_status status = frazil_snowflake_lease(handle_.get(), &raw, sizeof raw);
        if (status != FRAZIL_OK) return detail::fail<std::optional<frazil::lease>>(detail::last_error(status));
        if (!raw.leased) return std::optional<frazil::lease>();
        std::optional<frazil::lease> lease{{raw.node, {}, raw.store, raw.store_namespace, raw.healthy, {}, {}}};
        if (raw.bound_ms != INT64_MAX) lease->bound = detail::instant(raw.bound_ms);
        if (raw.last_status != FRAZIL_OK) lease->last_error.emplace(static_cast<errc>(raw.last_status), raw.last_error);
        if (raw.left >= 0) lease->left = static_cast<std::uint64_t>(raw.left);
        return lease;
    }

    /// The value of one node field. Errors: unknown_key.
    outcome<std::uint64_t> field(text_arg name) const {
        if (name.holds_nul()) return detail::fail<std::uint64_t>(detail::nul_error(errc::unknown_key));
        std::uint64_t value = 0;
        const frazil_status status = frazil_snowflake_field(handle_.get(), name.c_str(), &value);
        return detail::give(status, value);
    }

private:
    friend class source<frazil_snowflake>;
    explicit snowflake(adopted raw) : source(raw) {}
};

/// Prefetched numbers: the base of segment, tickets and buffered. Each is handed out once in a process, over all
/// threads.
class numbers : public source<frazil_numbers> {
public:
    /// The number of prefetched numbers, without those of the current range. Errors: closed.
    outcome<std::uint64_t> prepared() const {
        std::uint64_t prepared = 0;
        const frazil_status status = frazil_numbers_prepared(handle_.get(), &prepared);
        return detail::give(status, prepared);
    }

    /// Drops the prefetched numbers, before a machine is cloned. The next call fetches more. A ring's leased node
    /// number is released. Errors: closed; of a ring store_unreachable, lease_exhausted.
    outcome<void> discard() const { return detail::done(frazil_numbers_discard(handle_.get())); }

    /// Drops the prefetched numbers in any case, and waits for the store of a ring no longer than a limit. Errors: also would_block.
    outcome<void> discard_for(wait_arg max_wait) const {
        return detail::done(frazil_numbers_discard_for(handle_.get(), max_wait.ms()));
    }

    /// The last failure of the prefetch. Empty if there is none. There may be numbers all the same. Errors: closed.
    outcome<std::optional<error>> last_error() const {
        frazil_status last_status = FRAZIL_OK;
        const char *text = "";
        const frazil_status status = frazil_numbers_last_error(handle_.get(), &last_status, &text);
        if (status != FRAZIL_OK) return detail::fail<std::optional<error>>(detail::last_error(status));
        if (last_status == FRAZIL_OK) return std::optional<error>();
        return std::optional<error>(std::in_place, static_cast<errc>(last_status), text);
    }

protected:
    using source::source;
    numbers(numbers &&) noexcept = default;
    numbers &operator=(numbers &&) noexcept = default;
    ~numbers() = default;
};

/// Increasing numbers from ranges of a tag that a store hands out: `segment orders{"orders store=local"}`. The next
/// range is fetched before the current one is used up.
class segment : public numbers {
public:
#ifndef FRAZIL_NO_EXCEPTIONS
    /// Opens a tag. Throws as open fails.
    explicit segment(text_arg spec) : segment(open(spec).value()) {}
#endif

    /// Opens a segment: increasing numbers from ranges of a tag. Waits for the first range up to the spec's `wait`.
    /// Errors: as frazil_segment_open().
    static result<segment> open(text_arg spec) { return opened<segment>(std::move(spec), frazil_segment_open); }

    /// Opens a segment, waiting no longer than a limit. A range that takes longer is fetched in the background.
    static result<segment> open_for(text_arg spec, wait_arg max_wait) {
        return opened<segment>(std::move(spec), max_wait, frazil_segment_open_for);
    }

private:
    friend class source<frazil_numbers>;
    explicit segment(adopted raw) : numbers(raw) {}
};

/// Single numbers of a tag from several stores in turn. One reachable store is enough.
class tickets : public numbers {
public:
#ifndef FRAZIL_NO_EXCEPTIONS
    /// Opens a tag. Throws as open fails.
    explicit tickets(text_arg spec) : tickets(open(spec).value()) {}
#endif

    /// Opens tickets: single numbers of a tag from several stores in turn. The stores are asked when a number is
    /// needed. Errors: as frazil_tickets_open().
    static result<tickets> open(text_arg spec) { return opened<tickets>(std::move(spec), frazil_tickets_open); }

    /// Opens tickets like open, which never waits. For generic code.
    static result<tickets> open_for(text_arg spec, wait_arg max_wait) {
        return opened<tickets>(std::move(spec), max_wait, frazil_tickets_open_for);
    }

private:
    friend class source<frazil_numbers>;
    explicit tickets(adopted raw) : numbers(raw) {}
};

/// A ring of a generator's IDs that a thread fills: `buffered ids{"standard node=7 size=8192"}`.
class buffered : public numbers {
public:
#ifndef FRAZIL_NO_EXCEPTIONS
    /// Opens a generator and its ring. Throws as open fails.
    explicit buffered(text_arg spec) : buffered(open(spec).value()) {}
#endif

    /// Opens a generator and a ring of its prefetched IDs. Fills the ring as far as the spec's `empty` allows. Errors:
    /// as frazil_buffered_open().
    static result<buffered> open(text_arg spec) { return opened<buffered>(std::move(spec), frazil_buffered_open); }

    /// Opens a ring, waiting no longer than a limit; would_block if the generator takes longer.
    static result<buffered> open_for(text_arg spec, wait_arg max_wait) {
        return opened<buffered>(std::move(spec), max_wait, frazil_buffered_open_for);
    }

    /// The layout of a ring's IDs. Errors: only wrong_type, of a moved-from one.
    outcome<frazil::layout> layout() const { return layout_of_ids(); }

private:
    friend class source<frazil_numbers>;
    explicit buffered(adopted raw) : numbers(raw) {}
};

/// MongoDB's ObjectId: 12 bytes, which print as 24 hexadecimal digits and sort like them. A value.
class object_id {
public:
    using bytes_type = std::array<std::uint8_t, FRAZIL_OBJECT_ID_SIZE>;

    /// All zeros.
    object_id() = default;
    explicit object_id(const bytes_type &bytes) : bytes_(bytes) {}

#ifndef FRAZIL_NO_EXCEPTIONS
    /// An ObjectId from its text. Throws as parse fails.
    explicit object_id(text_arg text) : object_id(parse(text).value()) {}
#endif

    /// A new ObjectId of this second. Never the same twice in a process; a forked child has another random part.
    /// Errors: before_epoch, layout_expired.
    static outcome<object_id> make() {
        object_id id;
        const frazil_status status = frazil_object_id_new(id.bytes_.data());
        return detail::give(status, id);
    }

    /// Parses 24 hexadecimal digits of either case. Errors: id_invalid.
    static result<object_id> parse(text_arg text) {
        if (text.holds_nul()) return detail::nul_error(errc::id_invalid);
        object_id id;
        const frazil_status status = frazil_object_id_parse(text.c_str(), id.bytes_.data());
        if (status != FRAZIL_OK) return detail::last_error(status);
        return id;
    }

    /// The smallest ObjectId of the second at an instant. Errors: before_epoch, layout_expired.
    static outcome<object_id> min_id(time_arg time) {
        object_id id;
        const frazil_status status = frazil_object_id_min_id(time.unix_ms(), id.bytes_.data());
        return detail::give(status, id);
    }

    /// The largest one of the second that holds an instant. Errors: before_epoch, layout_expired.
    static outcome<object_id> max_id(time_arg time) {
        object_id id;
        const frazil_status status = frazil_object_id_max_id(time.unix_ms(), id.bytes_.data());
        return detail::give(status, id);
    }

    /// The 12 bytes that MongoDB stores.
    const bytes_type &bytes() const noexcept { return bytes_; }

    /// 24 hexadecimal digits in lower case.
    std::string to_string() const {
        char text[FRAZIL_OBJECT_ID_TEXT_SIZE] = "";
        (void)frazil_object_id_text(bytes_.data(), text);
        return text;
    }

    /// The second in which the ObjectId was made.
    time_point time() const { return detail::instant(decode().unix_ms); }

    /// The 40 random bits of the process.
    std::uint64_t random() const { return decode().random; }

    /// The counter within the process, 24 bits.
    std::uint32_t counter() const { return decode().counter; }

    /// The first 24 bits of random(), where older drivers wrote a number of the machine.
    std::uint32_t machine() const { return decode().machine; }

    /// The last 16 bits of random(), where older drivers wrote the process ID.
    std::uint16_t process() const { return decode().process; }

    friend bool operator==(const object_id &a, const object_id &b) { return a.bytes_ == b.bytes_; }
    friend bool operator!=(const object_id &a, const object_id &b) { return a.bytes_ != b.bytes_; }
    friend bool operator<(const object_id &a, const object_id &b) { return a.bytes_ < b.bytes_; }
    friend bool operator<=(const object_id &a, const object_id &b) { return a.bytes_ <= b.bytes_; }
    friend bool operator>(const object_id &a, const object_id &b) { return a.bytes_ > b.bytes_; }
    friend bool operator>=(const object_id &a, const object_id &b) { return a.bytes_ >= b.bytes_; }

private:
    frazil_object_id_parts decode() const {
        frazil_object_id_parts parts{};
        (void)frazil_object_id_decode(bytes_.data(), &parts, sizeof parts);
        return parts;
    }

    bytes_type bytes_{};
};

/// A UUID: 16 bytes in network order, which print as 36 characters and sort like them. A value.
class uuid {
public:
    using bytes_type = std::array<std::uint8_t, FRAZIL_UUID_SIZE>;

    /// The nil UUID, all zeros.
    uuid() = default;
    explicit uuid(const bytes_type &bytes) : bytes_(bytes) {}

#ifndef FRAZIL_NO_EXCEPTIONS
    /// A UUID from its text. Throws as parse fails.
    explicit uuid(text_arg text) : uuid(parse(text).value()) {}
#endif

    /// Parses 8-4-4-4-12 hexadecimal digits of either case, also in braces or after "urn:uuid:", or from 32 digits
    /// without hyphens. Errors: id_invalid.
    static result<uuid> parse(text_arg text) {
        if (text.holds_nul()) return detail::nul_error(errc::id_invalid);
        bytes_type bytes{};
        const frazil_status status = frazil_uuid_parse(text.c_str(), bytes.data());
        if (status != FRAZIL_OK) return detail::last_error(status);
        return uuid(bytes);
    }

    /// The 16 bytes, in network order.
    const bytes_type &bytes() const noexcept { return bytes_; }

    /// 36 characters in lower case.
    std::string to_string() const {
        char text[FRAZIL_UUID_TEXT_SIZE] = "";
        (void)frazil_uuid_text(bytes_.data(), text);
        return text;
    }

    /// The version, 0 to 15.
    int version() const noexcept { return bytes_[6] >> 4; }

    /// The time in a UUID of version 7, 6 or 1. Errors: id_invalid for another version, which holds none.
    outcome<time_point> time() const {
        std::int64_t unix_ms = 0;
        const frazil_status status = frazil_uuid_time(bytes_.data(), &unix_ms);
        return detail::give(status, detail::instant(unix_ms));
    }

    friend bool operator==(const uuid &a, const uuid &b) { return a.bytes_ == b.bytes_; }
    friend bool operator!=(const uuid &a, const uuid &b) { return a.bytes_ != b.bytes_; }
    friend bool operator<(const uuid &a, const uuid &b) { return a.bytes_ < b.bytes_; }
    friend bool operator<=(const uuid &a, const uuid &b) { return a.bytes_ <= b.bytes_; }
    friend bool operator>(const uuid &a, const uuid &b) { return a.bytes_ > b.bytes_; }
    friend bool operator>=(const uuid &a, const uuid &b) { return a.bytes_ >= b.bytes_; }

private:
    bytes_type bytes_{};
};

/// A new version 4 UUID: 122 random bits from the operating system.
inline outcome<uuid> uuid4() {
    uuid::bytes_type bytes{};
    const frazil_status status = frazil_uuid4(bytes.data());
    return detail::give(status, uuid(bytes));
}

/// A new version 7 UUID: the time in milliseconds, then random bits. Strictly increasing within a process over all
/// threads, also after the clock went back. Errors: before_epoch, layout_expired.
inline outcome<uuid> uuid7() {
    uuid::bytes_type bytes{};
    const frazil_status status = frazil_uuid7(bytes.data());
    return detail::give(status, uuid(bytes));
}

namespace detail {

/// The text of a value that has one.
inline std::string text_of(const layout &value) { return value.text(); }
inline std::string text_of(const parts &value) { return value.to_string(); }
inline std::string text_of(const object_id &value) { return value.to_string(); }
inline std::string text_of(const uuid &value) { return value.to_string(); }

template <typename T>
using if_text = std::enable_if_t<std::is_same_v<T, layout> || std::is_same_v<T, parts> || std::is_same_v<T, object_id> || std::is_same_v<T, uuid>>;

inline std::size_t hash_of(std::string_view bytes) { return std::hash<std::string_view>()(bytes); }

} // namespace detail

/// Writes a layout, parts, an ObjectId, a UUID as its text.
template <typename Traits, typename T, typename = detail::if_text<T>>
std::basic_ostream<char, Traits> &operator<<(std::basic_ostream<char, Traits> &out, const T &value) {
    return out << detail::text_of(value);
}

} // inline namespace
} // namespace frazil

// For unordered containers.
template <>
struct std::hash<frazil::object_id> {
    std::size_t operator()(const frazil::object_id &id) const noexcept {
        return frazil::detail::hash_of({reinterpret_cast<const char *>(id.bytes().data()), id.bytes().size()});
    }
};

template <>
struct std::hash<frazil::uuid> {
    std::size_t operator()(const frazil::uuid &id) const noexcept {
        return frazil::detail::hash_of({reinterpret_cast<const char *>(id.bytes().data()), id.bytes().size()});
    }
};

template <>
struct std::hash<frazil::parts> {
    std::size_t operator()(const frazil::parts &parts) const noexcept { return std::hash<std::int64_t>()(parts.id); }
};

template <>
struct std::hash<frazil::layout> {
    std::size_t operator()(const frazil::layout &layout) const { return frazil::detail::hash_of(layout.text()); }
};

#ifdef __cpp_lib_format
// `std::format("{:>40}", id)`: as a text, with its fill and width.
template <>
struct std::formatter<frazil::errc, char> : std::formatter<std::string, char> {
    template <typename Context>
    auto format(frazil::errc code, Context &context) const {
        const char *name = frazil::name(code);
        const std::string text = name != nullptr ? name : std::to_string(static_cast<std::int32_t>(code));
        return std::formatter<std::string, char>::format(text, context);
    }
};

template <typename T>
    requires requires(const T &value) { typename frazil::detail::if_text<T>; }
struct std::formatter<T, char> : std::formatter<std::string, char> {
    template <typename Context>
    auto format(const T &value, Context &context) const {
        return std::formatter<std::string, char>::format(frazil::detail::text_of(value), context);
    }
};
#endif

#endif // FRAZIL_HPP
