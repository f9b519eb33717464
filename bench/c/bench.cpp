// The cost of an ID in C and C++, with the floors of the same run, the service level, and the rate of a saturated loop.
//
// Every case runs once per round, in turn, so that a slow moment of the machine affects them all; the table shows medians over the rounds,
// in ns per ID.
#include <frazil.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif
#if defined(__linux__)
#include <sys/random.h>
#endif

namespace {

using clock_type = std::chrono::steady_clock;

constexpr int ROUNDS = 21;
constexpr int CALLS = 20'000;
constexpr int BLOCK = 1000;

constexpr const char *FETCH_ADD = "floor: an atomic fetch_add";
constexpr const char *PARTS = "floor: counter of the processor + fetch_add";
constexpr const char *BASE62_PARTS = "floor: the same, and 11 characters of base62";
constexpr const char *DECIMAL_PARTS = "floor: the same, and 19 characters of decimal";
constexpr const char *FILL_PARTS = "floor: a loop that fills 1000, per ID";
constexpr const char *RANDOM = "floor: 16 random bytes of 2,048 that one call of the system gives";
constexpr const char *TWO_FETCH_ADD = "2 threads: floor: an atomic fetch_add";
constexpr const char *TWO_PARTS = "2 threads: floor: counter of the processor + fetch_add";
constexpr const char *NEXT = "**frazil_snowflake_next**";

std::int64_t wall_ms() {
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<std::int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

/// A sketch of Twitter's generator as it is usually written: a mutex and a clock call. Not a library.
class sketch {
public:
    std::int64_t next() {
        const std::lock_guard<std::mutex> guard(mutex_);
        std::int64_t now = wall_ms();
        if (now == last_) {
            sequence_ = (sequence_ + 1) & ((1 << 20) - 1);
            while (sequence_ == 0 && now <= last_) now = wall_ms();
        } else {
            sequence_ = 0;
        }
        last_ = now;
        return (now - 1735689600000) << 22 | 1 << 20 | sequence_;
    }

private:
    std::mutex mutex_;
    std::int64_t last_ = -1;
    std::int64_t sequence_ = 0;
};

/// The processor's counter.
inline std::uint64_t processor_counter() {
#if defined(__x86_64__)
    return __rdtsc();
#elif defined(__aarch64__)
    std::uint64_t count;
    asm volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#else
    return 0;
#endif
}

/// The parts of an ID of this design, without layout, policy or check: the processor's counter shows that the tick lasts, and one atomic
/// step takes a number.
class parts {
public:
    std::int64_t next() {
        const std::uint64_t count = processor_counter();
        if (count >= until_) {
            tick_ = wall_ms();
            // About a tenth of a millisecond: a floor needs no calibration.
            until_ = count + 200'000;
        }
        return tick_ << 20 | (counter_.fetch_add(1, std::memory_order_relaxed) & 0xfffff);
    }

private:
    std::uint64_t until_ = 0;
    std::int64_t tick_ = 0;
    alignas(64) std::atomic<std::uint64_t> counter_{0};
};

/// `WIDTH` digits of a number and a NUL, two at a time.
template <unsigned BASE, int WIDTH>
void write_digits(std::uint64_t number, char *text) {
    static const auto pairs = [] {
        const char *const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        std::array<std::array<char, 2>, BASE * BASE> made{};
        for (unsigned at = 0; at < BASE * BASE; ++at) made[at] = {digits[at / BASE], digits[at % BASE]};
        return made;
    }();
    for (int at = WIDTH - 2; at >= 0; at -= 2, number /= BASE * BASE) std::memcpy(text + at, pairs[number % (BASE * BASE)].data(), 2);
    if (WIDTH % 2) text[0] = pairs[number % (BASE * BASE)][1];
    text[WIDTH] = 0;
}

struct test {
    std::string name;
    /// The test that it is compared with.
    std::string floor;
    /// IDs per run.
    double ids;
    std::function<void()> run;
    std::vector<double> ns{};
};

template <typename T>
void keep(const T &value) {
    asm volatile("" : : "g"(value) : "memory");
}

/// `CALLS` calls on one thread.
template <typename F>
test one(std::string name, std::string floor, F call) {
    return {std::move(name), std::move(floor), CALLS, [call] {
                for (int i = 0; i < CALLS; ++i) call();
            }};
}

/// `CALLS` calls on each of two threads that start together; wall time over all IDs.
template <typename F>
test two(std::string name, std::string floor, F call) {
    return {std::move(name), std::move(floor), 2.0 * CALLS * 10, [call] {
                std::atomic<int> ready{0};
                const auto work = [&] {
                    ready.fetch_add(1);
                    while (ready.load() < 2) {}
                    for (int i = 0; i < CALLS * 10; ++i) call();
                };
                std::thread other(work);
                work();
                other.join();
            }};
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

void measure(std::vector<test> &tests) {
    for (int round = 0; round < ROUNDS; ++round) {
        for (test &test : tests) {
            // A new tick for each test, so that none reaches the end of a tick's sequence.
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
            const auto start = clock_type::now();
            test.run();
            test.ns.push_back(std::chrono::duration<double, std::nano>(clock_type::now() - start).count() / test.ids);
        }
    }
    std::map<std::string, const test *> named;
    for (const test &test : tests) named[test.name] = &test;
    std::FILE *json = nullptr;
    if (const char *path = std::getenv("FRAZIL_BENCH_JSON")) json = std::fopen(path, "w");
    std::printf("| C and C++ | ns per ID | of its floor |\n|---|---:|---:|\n");
    for (const test &test : tests) {
        const double ns = median(test.ns);
        std::printf("| %s | %.2f |", test.name.c_str(), ns);
        if (json) std::fprintf(json, "%s{\"case\": \"%s\", \"ns\": %.3f, \"floor\": ", &test == &tests[0] ? "[\n  " : ",\n  ", test.name.c_str(), ns);
        const auto floor = named.find(test.floor);
        if (floor == named.end()) {
            std::printf(" |\n");
            if (json) std::fprintf(json, "null}");
            continue;
        }
        // A slowdown of a whole round cancels out.
        std::vector<double> ratios;
        for (std::size_t round = 0; round < test.ns.size(); ++round) ratios.push_back(test.ns[round] / floor->second->ns[round]);
        std::printf(" %.2f |\n", median(ratios));
        if (json) std::fprintf(json, "%.3f}", median(floor->second->ns));
    }
    if (json) {
        std::fprintf(json, "\n]\n");
        std::fclose(json);
    }
    std::printf("\nNo third-party peer: we found no snowflake generator for C or C++ packaged in Debian 12, only other kinds of ID "
                "(UUIDs, BSON's ObjectId), and the sketch is ours, not a library.\n");
}

/// Mints for two seconds and times every single call.
bool service_level(const frazil::snowflake &ids) {
    constexpr std::int64_t BUCKET_NS = 8;
    std::vector<std::uint32_t> latencies(1 << 20);
    std::int64_t count = 0, most = 0;
    const auto start = clock_type::now();
    auto before = start;
    while (before - start < std::chrono::seconds(2)) {
        keep(ids.next());
        const auto now = clock_type::now();
        const std::int64_t ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now - before).count();
        most = std::max(most, ns);
        ++latencies[std::min<std::size_t>(ns / BUCKET_NS, latencies.size() - 1)];
        ++count;
        before = now;
    }
    const double seconds = std::chrono::duration<double>(before - start).count();
    const auto quantile = [&](double part) {
        double left = part * count;
        std::size_t bucket = 0;
        while (bucket + 1 < latencies.size() && (left -= latencies[bucket]) > 0) ++bucket;
        return (bucket + 1) * BUCKET_NS / 1e6;
    };
    const double rate = count / seconds, p999 = quantile(0.999);
    const bool held = rate >= 10'000 && p999 <= 2;
    std::printf("\n| service level, C++ | |\n|---|---:|\n");
    std::printf("| IDs per second, one thread | %.0f |\n", rate);
    std::printf("| 50 %% answered within | %.6f ms |\n| 99 %% | %.6f ms |\n| 99.9 %% | %.6f ms |\n| all | %.3f ms |\n", quantile(0.5),
                quantile(0.99), p999, most / 1e6);
    std::printf("| at least 10,000 per second, 99.9 %% within 2 ms | %s |\n", held ? "held" : "**missed**");
    return held;
}

/// Measures a loop around `next()`: its share of the default preset's cap, and of a core; `own_ns` is the cost of a call alone.
void saturate(double own_ns) {
    constexpr double CAP = 4'096'000;
    const frazil::snowflake ids("standard node=5");
    const auto start = clock_type::now();
    const std::clock_t busy = std::clock();
    for (int i = 0; i < static_cast<int>(2 * CAP); ++i) keep(ids.next());
    const double cpu = static_cast<double>(std::clock() - busy) / CLOCKS_PER_SEC;
    const double seconds = std::chrono::duration<double>(clock_type::now() - start).count();
    std::printf("\n| saturated, C++, preset `standard`, one thread | |\n|---|---:|\n");
    std::printf("| of the cap, 4,096,000 a second | %.2f %% |\n", 100 * 2 / seconds);
    std::printf("| of a core | %.1f %% |\n| of a core, the calls' own time | %.1f %% |\n", 100 * cpu / seconds,
                100 * 2 * CAP * own_ns / 1e9 / seconds);
}

} // namespace

int main() {
    const std::string layout = "layout='time:41@1ms node:2 sequence:20 epoch:2025-01-01' ";
    const frazil::snowflake ids(layout + "node=1");
    frazil_snowflake *raw = nullptr;
    if (frazil_snowflake_open((layout + "node=2").c_str(), &raw) != FRAZIL_OK) return 1;

    frazil_numbers *segment = nullptr, *ring = nullptr;
    if (frazil_segment_open("bench store=memory step=1000000", &segment) != FRAZIL_OK) return 1;
    if (frazil_buffered_open((layout + "node=3").c_str(), &ring) != FRAZIL_OK) return 1;

    static std::atomic<std::uint64_t> counter{0};
    static sketch sketch;
    static parts parts;
    static std::int64_t block[BLOCK];
    std::vector<test> tests;
    tests.push_back(one("floor: an empty call into the library", "", [] { keep(frazil_version()); }));
    tests.push_back(one(FETCH_ADD, "", [] { keep(counter.fetch_add(1, std::memory_order_relaxed)); }));
#if defined(__x86_64__)
    tests.push_back(one("floor: rdtsc", "", [] { keep(__rdtsc()); }));
#endif
    tests.push_back(one("floor: clock_gettime", "", [] { keep(wall_ms()); }));
    tests.push_back(one("floor: clock_gettime + fetch_add", "", [] {
        keep(wall_ms());
        keep(counter.fetch_add(1, std::memory_order_relaxed));
    }));
    tests.push_back(one(PARTS, "", [] { keep(parts.next()); }));
    tests.push_back(one(BASE62_PARTS, "", [] {
        char text[12];
        write_digits<62, 11>(parts.next(), text);
        keep(text);
    }));
    tests.push_back(one(DECIMAL_PARTS, "", [] {
        char text[20];
        write_digits<10, 19>(parts.next(), text);
        keep(text);
    }));
    tests.push_back(one("sketch: mutex + clock_gettime", PARTS, [] { keep(sketch.next()); }));
    tests.push_back(one(NEXT, PARTS, [raw] {
        std::int64_t id;
        keep(frazil_snowflake_next(raw, &id));
        keep(id);
    }));
    tests.push_back(one("**C++ ids.next()**", PARTS, [&ids] { keep(ids.next()); }));
    tests.push_back({FILL_PARTS, "", 200.0 * BLOCK, [] {
                         for (std::int64_t i = 0; i < 200; ++i) {
                             for (std::int64_t at = 0; at < BLOCK; ++at) block[at] = (i << 20) + at;
                             keep(block);
                             asm volatile("" : : "r"(block) : "memory");
                         }
                     }});
    tests.push_back({"**fill, 1000 at a time**", FILL_PARTS, 200.0 * BLOCK, [raw] {
                         for (int i = 0; i < 200; ++i) {
                             keep(frazil_snowflake_fill(raw, block, BLOCK, nullptr));
                             keep(block);
                         }
                     }});
    tests.push_back(one("**frazil_snowflake_text**, base62", BASE62_PARTS, [raw] {
        char text[FRAZIL_ID_TEXT_SIZE];
        keep(frazil_snowflake_text(raw, FRAZIL_BASE62, text, sizeof text));
        keep(text);
    }));
    tests.push_back(one("**frazil_snowflake_text**, decimal", DECIMAL_PARTS, [raw] {
        char text[FRAZIL_ID_TEXT_SIZE];
        keep(frazil_snowflake_text(raw, FRAZIL_DECIMAL, text, sizeof text));
        keep(text);
    }));
    const auto number_of = [](frazil_numbers *numbers) {
        return [numbers] {
            std::int64_t number;
            keep(frazil_numbers_next(numbers, &number));
            keep(number);
        };
    };
    tests.push_back(one("**frazil_numbers_next**, a segment", FETCH_ADD, number_of(segment)));
    tests.push_back(one("**frazil_numbers_next**, a ring", FETCH_ADD, number_of(ring)));
    tests.push_back(one("**frazil_uuid7**", PARTS, [] {
        std::uint8_t uuid[FRAZIL_UUID_SIZE];
        keep(frazil_uuid7(uuid));
        keep(uuid);
    }));
#if defined(__linux__)
    tests.push_back({RANDOM, "", 100 * 128, [] {
                         static char bytes[2048];
                         for (int i = 0; i < 100; ++i) {
                             keep(getrandom(bytes, sizeof bytes, 0));
                             keep(bytes);
                         }
                     }});
#endif
    tests.push_back(one("**frazil_uuid4**", RANDOM, [] {
        std::uint8_t uuid[FRAZIL_UUID_SIZE];
        keep(frazil_uuid4(uuid));
        keep(uuid);
    }));
    tests.push_back(one("**frazil_object_id_new**", PARTS, [] {
        std::uint8_t id[FRAZIL_OBJECT_ID_SIZE];
        keep(frazil_object_id_new(id));
        keep(id);
    }));
    tests.push_back(two(TWO_FETCH_ADD, "", [] { keep(counter.fetch_add(1, std::memory_order_relaxed)); }));
    tests.push_back(two(TWO_PARTS, "", [] {
        keep(processor_counter());
        keep(counter.fetch_add(1, std::memory_order_relaxed));
    }));
    tests.push_back(two("2 threads: sketch: mutex + clock_gettime", TWO_PARTS, [] { keep(sketch.next()); }));
    tests.push_back(two("2 threads: **frazil_snowflake_next**", TWO_PARTS, [raw] {
        std::int64_t id;
        keep(frazil_snowflake_next(raw, &id));
        keep(id);
    }));
    tests.push_back(two("2 threads: **frazil_local_next**, one of each", TWO_PARTS, [raw] {
        struct own {
            frazil_local *handle = nullptr;
            explicit own(const frazil_snowflake *ids) { keep(frazil_snowflake_local(ids, &handle)); }
            ~own() { frazil_local_free(handle); }
        };
        thread_local own mine(raw);
        std::int64_t id;
        keep(frazil_local_next(mine.handle, &id));
        keep(id);
    }));
    tests.push_back(two("2 threads: **frazil_numbers_next**, a segment", TWO_FETCH_ADD, number_of(segment)));
    tests.push_back(two("2 threads: **frazil_numbers_next**, a ring", TWO_FETCH_ADD, number_of(ring)));
    measure(tests);
    frazil_snowflake_free(raw);
    frazil_numbers_free(segment);
    frazil_numbers_free(ring);
    const bool held = service_level(ids);
    const auto next = std::find_if(tests.begin(), tests.end(), [](const test &test) { return test.name == NEXT; });
    saturate(median(next->ns));
    return held ? 0 : 1;
}
