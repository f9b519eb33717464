// The cases of tests/vectors/cases.json on segments, tickets and rings for the C++ API, in C++17 with exceptions.
#include "helpers.hpp"

#include <array>
#include <iterator>
#include <optional>
#include <set>
#include <type_traits>

using frazil::buffered;
using frazil::numbers;
using frazil::segment;
using frazil::snowflake;
using frazil::tickets;

namespace {

const frazil::time_point NOW{milliseconds(1800000000000)};

using many = std::vector<std::int64_t>;

many filled(const numbers &from, std::size_t count) {
    many numbers(count);
    from.fill(numbers);
    return numbers;
}

/// Returns `count` numbers at equal distances.
many spaced(std::int64_t first, std::int64_t stride, std::size_t count) {
    many numbers;
    for (std::size_t i = 0; i < count; ++i) numbers.push_back(first + static_cast<std::int64_t>(i) * stride);
    return numbers;
}

bool all_differ(const many &numbers) { return std::set<std::int64_t>(numbers.begin(), numbers.end()).size() == numbers.size(); }

bool says(const std::optional<error> &error, const std::string &word) {
    return error && std::string(error->what()).find(word) != std::string::npos;
}

/// Replaces the store's folder with a file.
void take_away(const folder &folder) {
    std::ofstream(folder.beside()) << "nothing";
    folder.exchange();
}

CASE(segment) {
    segment orders("cpp-plain store=memory start=100");
    CHECK(filled(orders, 50) == spaced(100, 1, 50));
    CHECK(orders.next() == 150 && orders.next_for(milliseconds(0)) == 151);
    CHECK(orders.batch(2) == spaced(152, 1, 2) && orders.batch(0).empty());
    std::array<std::int64_t, 3> three;
    orders.fill(three);
    CHECK(three[2] == 156);
    orders.fill_for(three.data(), 3, milliseconds(1000));
    CHECK(three[2] == 159);
    orders.fill(nullptr, 0);
    orders.fill_for(nullptr, 0, milliseconds(0));
    CHECK(orders.spec() == "cpp-plain store=memory start=100");
    CHECK(!orders.last_error());
    many some;
    for (const std::int64_t number : orders) {
        some.push_back(number);
        if (some.size() == 10) break;
    }
    std::copy_n(orders.begin(), 10, std::back_inserter(some));
    CHECK(some.front() == 160 && ascending(some) && orders.begin() != orders.end());

    // Another handle draws its own ranges.
    const segment other("cpp-plain store=memory");
    CHECK(other.next() > 1099);
    const segment one("cpp-two store=memory step=7"), two("cpp-two store=memory step=7");
    many both;
    for (int i = 0; i < 5000; ++i) {
        both.push_back(one.next());
        both.push_back(two.next());
    }
    CHECK(all_differ(both));

    CHECK(filled(segment("cpp-parity store=memory namespace=odd increment=2 offset=1 step=3"), 100) == spaced(1, 2, 100));
    CHECK(filled(segment("cpp-parity store=memory namespace=even increment=2 offset=2 start=3"), 3) == spaced(4, 2, 3));
    CHECK(segment("cpp-ready store=memory step=100").prepared() == 100);

    // A segment can be moved; the moved-from handle is empty.
    segment moved = std::move(orders);
    CHECK(moved.next() > some.back());
    CHECK(refused([&] { (void)orders.next(); }, errc::wrong_type));
    CHECK(refused([&] { (void)orders.spec(); }, errc::wrong_type));
    orders = std::move(moved);
    CHECK(orders.next() > some.back());
    static_assert(!std::is_copy_constructible_v<segment> && std::is_nothrow_move_constructible_v<segment>);
    static_assert(!std::is_default_constructible_v<segment> && !std::is_convertible_v<const char *, segment>);
    static_assert(!std::is_constructible_v<tickets, segment> && !std::is_move_constructible_v<numbers> && !std::is_destructible_v<numbers>);
}

CASE(segment_stores) {
    const folder a, b, c;
    const segment orders("orders step=10 store='" + a.store() + " " + b.store() + "'");
    many all = filled(orders, 2000);
    const auto even = std::count_if(all.begin(), all.end(), [](std::int64_t number) { return number % 2 == 0; });
    CHECK(even > 0 && even < 2000 && !orders.last_error());
    take_away(b);
    const many more = filled(orders, 200000);
    CHECK(std::all_of(more.end() - 10000, more.end(), [](std::int64_t number) { return number % 2 == 1; }));
    CHECK(says(orders.last_error(), b.path()) && frazil::name(orders.last_error()->code()) != nullptr);
    all.insert(all.end(), more.begin(), more.end());
    CHECK(all_differ(all));

    const tickets photos("photos store='" + a.store() + " " + c.store() + "'");
    many got = filled(photos, 20);
    for (std::size_t i = 0; i < 20; i += 2) CHECK(got[i] % 2 != got[i + 1] % 2);
    std::sort(got.begin(), got.end());
    CHECK(got == spaced(1, 1, 20));
    take_away(a);
    CHECK(filled(photos, 5) == spaced(22, 2, 5));
    CHECK(says(photos.last_error(), a.path()));
}

CASE(segment_errors) {
    const auto opened = [](const char *spec) { return [spec] { segment orders(spec); }; };
    CHECK(refused(opened(""), errc::spec, {"tag"}));
    CHECK(refused(opened("or/ders store=memory"), errc::spec, {"tag"}));
    CHECK(refused(opened("orders"), errc::spec, {"store"}));
    CHECK(refused(opened("orders store=nowhere"), errc::spec, {"nowhere"}));
    CHECK(refused(opened("orders store=memory step=0"), errc::out_of_range, {"step=0"}));
    CHECK(refused(opened("orders store=memory start=9223372036854775808"), errc::out_of_range, {"start=9223372036854775808"}));
    CHECK(refused(opened("orders store=memory increment=0"), errc::out_of_range, {"increment=0"}));
    CHECK(refused(opened("orders store=memory increment=2 offset=3"), errc::out_of_range, {"offset=3"}));
    CHECK(refused(opened("orders store='memory file:/x' offset='0 2'"), errc::out_of_range, {"two stores"}));
    CHECK(refused(opened("orders store=memory wait=soon"), errc::spec, {"wait"}));
    CHECK(refused(opened("orders store=memory worker=1"), errc::unknown_key, {"worker"}));
    CHECK(refused(opened("orders store=redis://127.0.0.1:1/0 wait=10s"), errc::segment_exhausted, {"127.0.0.1:1"}));
    CHECK(refused([] { tickets photos("photos store=memory"); }, errc::spec, {"two stores"}));
    CHECK(refused([] { buffered ring("standard node=1 size=0"); }, errc::out_of_range, {"size=0"}));
    CHECK(refused([] { buffered ring("standard node=1 empty=block"); }, errc::spec, {"block"}));

    const segment odd("cpp-errors store=memory increment=2 offset=1");
    CHECK(refused(opened("cpp-errors store=memory increment=3 offset=1"), errc::segment_mismatch, {"increment=2", "increment=3"}));
    const segment end("cpp-end store=memory start=9223372036854775805");
    many buffer(5, -5);
    try {
        end.fill(buffer);
        CHECK(false);
    } catch (const error &error) {
        CHECK(error.code() == errc::segment_exhausted && error.written() == 3 && buffer[2] == INT64_MAX && buffer[3] == -5);
    }
    CHECK(refused([&] { (void)end.batch(1); }, errc::segment_exhausted, {"9223372036854775807"}));

    // NULL, NUL in texts, and numbers out of range.
    CHECK(refused([] { segment orders(nullptr); }, errc::wrong_type, {"spec"}));
    CHECK(refused([] { (void)tickets::open(nullptr).value(); }, errc::wrong_type, {"spec"}));
    CHECK(refused([] { buffered ring(static_cast<const char *>(nullptr)); }, errc::wrong_type, {"spec"}));
    CHECK(refused([] { segment orders(std::string("orders\0store=memory", 19)); }, errc::spec, {"NUL"}));
    CHECK(refused([] { (void)buffered::open_for(std::string("a\0b", 3), milliseconds(1)).value(); }, errc::spec, {"NUL"}));
    CHECK(refused([] { (void)segment::open_for("orders store=memory", milliseconds(-1)).value(); }, errc::out_of_range, {"max_wait_ms=-1"}));
    CHECK(refused([&] { (void)odd.next_for(milliseconds(-1)); }, errc::out_of_range, {"max_wait_ms=-1"}));
    CHECK(refused([&] { odd.fill(nullptr, 1); }, errc::wrong_type, {"buffer"}));
    CHECK(refused([&] { (void)odd.batch(FRAZIL_MAX_BATCH + 1); }, errc::out_of_range, {"16777216"}));
    CHECK(refused([&] { (void)odd.batch(static_cast<std::size_t>(-1)); }, errc::out_of_range));
    CHECK(odd.next() == 1);

    // The folder is restored from a backup.
    const folder in;
    const segment orders("orders step=100 wait=10s store=" + in.store());
    std::filesystem::copy(in.path(), in.beside(), std::filesystem::copy_options::recursive);
    const many before = filled(orders, 20);
    // Once the next range is prefetched, the thread is idle, so no write is in progress.
    while (orders.prepared() == 0) {}
    in.exchange();
    CHECK(refused([&] { while (orders.next() > before.back()) {} }, errc::store_changed, {"frazil segment file:"}));
}

CASE(segment_processes) {
    constexpr std::size_t EACH = 20000;
    const folder in;
    const std::string spec = "orders step=50 store=" + in.store();
    const segment orders(spec);
    many all = filled(orders, 6);
    CHECK(all == spaced(1, 1, 6));
    int pipes[3][2];
    pid_t children[3];
    std::fflush(stdout);
    for (int i = 0; i < 3; ++i) {
        CHECK(pipe(pipes[i]) == 0);
        children[i] = fork();
        if (children[i] == 0) {
            // The last child opens the tag itself; the others continue with the inherited handle.
            const many mine = i == 2 ? segment(spec).batch(EACH) : orders.batch(EACH);
            const char *bytes = reinterpret_cast<const char *>(mine.data());
            for (std::size_t left = mine.size() * sizeof mine[0]; left > 0;) {
                const ssize_t sent = write(pipes[i][1], bytes, left);
                if (sent <= 0) end_child(false);
                bytes += sent;
                left -= static_cast<std::size_t>(sent);
            }
            end_child(ascending(mine) && mine.front() > 50);
        }
        close(pipes[i][1]);
    }
    const many ours = orders.batch(EACH);
    CHECK(ascending(ours) && ours.front() == 7);
    all.insert(all.end(), ours.begin(), ours.end());
    for (int i = 0; i < 3; ++i) {
        many theirs(EACH);
        char *bytes = reinterpret_cast<char *>(theirs.data());
        for (std::size_t left = theirs.size() * sizeof theirs[0]; left > 0;) {
            const ssize_t got = read(pipes[i][0], bytes, left);
            CHECK(got > 0);
            bytes += got;
            left -= static_cast<std::size_t>(got);
        }
        close(pipes[i][0]);
        CHECK(ended_well(children[i]));
        all.insert(all.end(), theirs.begin(), theirs.end());
    }
    CHECK(all.size() == 4 * EACH + 6 && all_differ(all));
    CHECK(orders.next() > ours.back());
}

CASE(segment_closed) {
    const segment orders("cpp-closed store=memory"), other("cpp-closed store=memory");
    orders.close();
    orders.close();
    many buffer(3), none;
    CHECK(refused([&] { (void)orders.next(); }, errc::closed));
    CHECK(refused([&] { (void)orders.next_for(milliseconds(0)); }, errc::closed));
    CHECK(refused([&] { (void)orders.batch(1); }, errc::closed));
    CHECK(refused([&] { orders.fill(buffer); }, errc::closed));
    CHECK(refused([&] { orders.fill(none); }, errc::closed));
    CHECK(refused([&] { orders.fill_for(buffer.data(), 1, milliseconds(0)); }, errc::closed));
    CHECK(refused([&] { (void)orders.prepared(); }, errc::closed));
    CHECK(refused([&] { (void)orders.last_error(); }, errc::closed));
    CHECK(refused([&] { orders.discard(); }, errc::closed));
    CHECK(refused([&] { for (const auto number : orders) (void)number; }, errc::closed));
    CHECK(orders.spec() == "cpp-closed store=memory" && other.next() > 0);

    const segment clone("cpp-discard store=memory step=100");
    CHECK(clone.next() == 1);
    clone.discard();
    CHECK(clone.next() > 100);
    const buffered ring("standard node=430 size=100");
    ring.close();
    CHECK(refused([&] { (void)ring.next(); }, errc::closed));
    CHECK(ring.layout() == frazil::layout("standard"));
}

/// Returns the sorted numbers that several threads take, or nothing if one thread's numbers do not ascend.
many taken_by_threads(const numbers &from) {
    std::array<many, 4> taken;
    std::vector<std::thread> threads;
    for (auto &mine : taken) {
        threads.emplace_back([&from, &mine] {
            for (int i = 0; i < 15000; ++i) mine.push_back(from.next());
            const auto batch = from.batch(15000);
            mine.insert(mine.end(), batch.begin(), batch.end());
        });
    }
    for (auto &thread : threads) thread.join();
    many all;
    for (const auto &mine : taken) {
        if (!ascending(mine)) return {};
        all.insert(all.end(), mine.begin(), mine.end());
    }
    std::sort(all.begin(), all.end());
    return all;
}

CASE(segment_threads) { CHECK(taken_by_threads(segment("cpp-threads store=memory step=10")) == spaced(1, 1, 120000)); }

CASE(buffered) {
    const auto node = [](const buffered &ring) { return ring.layout().decode(ring.next()).node; };
    const buffered ring("standard node=431 size=10000 refill=20");
    CHECK(ring.prepared() >= 10000 && !ring.last_error() && ring.spec() == "standard node=431 size=10000 refill=20");
    CHECK(ascending(filled(ring, 30000)) && node(ring) == 431);
    const auto shared = buffered::open_for("standard node=432 size=500 refill=100 empty=wait:60s", std::chrono::seconds(60));
    const many all = taken_by_threads(*shared);
    CHECK(all.size() == 120000 && ascending(all));

    // Under a manual clock the generator has the 8 IDs of one tick, and no more.
    const std::string eight = "layout='time:41@1ms node:10 sequence:3 epoch:2025-01-01' node=433 clock=manual exhausted=error start=zero";
    const snowflake clock(eight);
    clock.set_time(NOW);
    const buffered impatient(eight + " size=4 empty=error");
    many got;
    const auto take = [&] {
        try {
            got.push_back(impatient.next());
        } catch (const error &error) {
            if (error.code() != errc::exhausted) throw;
        }
        return got.size();
    };
    CHECK(in_time([&] { return take() >= 8; }));
    CHECK(ascending(got) && refused([&] { (void)impatient.next(); }, errc::exhausted, {"ring is empty"}));
    const std::size_t eighth = got.size();
    const auto started = std::chrono::steady_clock::now();
    CHECK(refused([&] { buffered patient(eight + " size=4 empty=wait:200ms"); }, errc::exhausted));
    CHECK(std::chrono::steady_clock::now() - started >= milliseconds(200) && eighth == 8);
    clock.set_time(NOW + milliseconds(1));
    CHECK(in_time([&] { return take() > 8; }));

    // If the clock goes back, the ring drops its IDs, and the call returns the generator's error.
    const std::string ahead = "standard node=434 clock=manual rollback=error exhausted=ahead:1h start=zero";
    const snowflake other(ahead);
    other.set_time(NOW);
    const buffered stamped(ahead + " size=20000 empty=wait:200ms");
    (void)stamped.next();
    other.set_time(NOW - std::chrono::seconds(10));
    std::size_t count = 0;
    CHECK(refused([&] { for (; count < 20000; ++count) (void)stamped.next(); }, errc::clock_back) && count < 4096);
    other.set_time(NOW + std::chrono::seconds(100));
    CHECK(stamped.layout().decode(stamped.next()).time == NOW + std::chrono::seconds(100));

    // A child cannot use its parent's fixed number or prepared IDs, and leases a number of its own.
    const folder in;
    std::optional<buffered> leased(std::in_place, in.spec("size=5000"));
    const auto before = node(*leased);
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) end_child(refused([&] { (void)ring.next(); }, errc::forked) && node(*leased) != before);
    CHECK(ended_well(child));
    CHECK(ring.next() > 0 && node(*leased) == before && !in.is_free("default", before));

    // discard(), close() and the destructor release the number.
    leased->discard();
    CHECK(in.is_free("default", before));
    for (int i = 0; i < 5000; ++i) CHECK(node(*leased) != before);
    const auto after = node(*leased);
    leased.reset();
    CHECK(in_time([&] { return in.is_free("default", after); }));
}

CASE(numbers_wrong_buffers) {
    using frazil::detail::is_buffer;
    static_assert(is_buffer<std::vector<std::int64_t>> && is_buffer<std::array<std::int64_t, 2>> && is_buffer<std::int64_t[2]>);
    static_assert(!is_buffer<std::vector<std::uint64_t>> && !is_buffer<const std::vector<std::int64_t>> && !is_buffer<std::string>);
    CHECK(true);
}

} // namespace

int main(int argc, char **argv) { return run_cases(argc, argv); }
