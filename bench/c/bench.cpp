// What an ID costs in C and C++, beside the floors of the same run, and the service level.
//
// Every case runs once per round, in turn, so that a slow moment of the machine meets them all; the
// table shows medians over the rounds, in ns per ID.
#include <frazil.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace {

using clock_type = std::chrono::steady_clock;

constexpr int ROUNDS = 21;
constexpr int CALLS = 20'000;
constexpr int BLOCK = 1000;

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

struct test {
    std::string name;
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
test one(std::string name, F call) {
    return {std::move(name), CALLS, [call] {
                for (int i = 0; i < CALLS; ++i) call();
            }};
}

/// `CALLS` calls on each of two threads that start together; wall time over all IDs.
template <typename F>
test two(std::string name, F call) {
    return {std::move(name), 2.0 * CALLS * 10, [call] {
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
            // A new tick for each, so that none meets the end of a tick's sequence.
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
            const auto start = clock_type::now();
            test.run();
            test.ns.push_back(std::chrono::duration<double, std::nano>(clock_type::now() - start).count() / test.ids);
        }
    }
    std::printf("| C and C++ | ns per ID |\n|---|---:|\n");
    for (const test &test : tests) std::printf("| %s | %.2f |\n", test.name.c_str(), median(test.ns));
    std::printf("\nNo third-party peer: we found no snowflake generator for C or C++ packaged in Debian 12, only other kinds of ID "
                "(UUIDs, BSON's ObjectId), and the sketch is ours, not a library.\n");
}

/// Mints for two seconds and looks at every single answer.
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
    static std::int64_t block[BLOCK];
    std::vector<test> tests;
    tests.push_back(one("floor: an empty call into the library", [] { keep(frazil_version()); }));
    tests.push_back(one("floor: an atomic fetch_add", [] { keep(counter.fetch_add(1, std::memory_order_relaxed)); }));
#if defined(__x86_64__)
    tests.push_back(one("floor: rdtsc", [] { keep(__rdtsc()); }));
#endif
    tests.push_back(one("floor: clock_gettime", [] { keep(wall_ms()); }));
    tests.push_back(one("floor: clock_gettime + fetch_add", [] {
        keep(wall_ms());
        keep(counter.fetch_add(1, std::memory_order_relaxed));
    }));
    tests.push_back(one("sketch: mutex + clock_gettime", [] { keep(sketch.next()); }));
    tests.push_back(one("**frazil_snowflake_next**", [raw] {
        std::int64_t id;
        keep(frazil_snowflake_next(raw, &id));
        keep(id);
    }));
    tests.push_back(one("**C++ ids.next()**", [&ids] { keep(ids.next()); }));
    tests.push_back({"**fill, 1000 at a time**", 200.0 * BLOCK, [raw] {
                         for (int i = 0; i < 200; ++i) {
                             keep(frazil_snowflake_fill(raw, block, BLOCK, nullptr));
                             keep(block);
                         }
                     }});
    tests.push_back(one("**frazil_snowflake_text**, base62", [raw] {
        char text[FRAZIL_ID_TEXT_SIZE];
        keep(frazil_snowflake_text(raw, FRAZIL_BASE62, text, sizeof text));
        keep(text);
    }));
    tests.push_back(one("**frazil_snowflake_text**, decimal", [raw] {
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
    tests.push_back(one("**frazil_numbers_next**, a segment", number_of(segment)));
    tests.push_back(one("**frazil_numbers_next**, a ring", number_of(ring)));
    tests.push_back(one("**frazil_uuid7**", [] {
        std::uint8_t uuid[FRAZIL_UUID_SIZE];
        keep(frazil_uuid7(uuid));
        keep(uuid);
    }));
    tests.push_back(one("**frazil_uuid4**", [] {
        std::uint8_t uuid[FRAZIL_UUID_SIZE];
        keep(frazil_uuid4(uuid));
        keep(uuid);
    }));
    tests.push_back(one("**frazil_object_id_new**", [] {
        std::uint8_t id[FRAZIL_OBJECT_ID_SIZE];
        keep(frazil_object_id_new(id));
        keep(id);
    }));
    tests.push_back(two("2 threads: floor: an atomic fetch_add", [] { keep(counter.fetch_add(1, std::memory_order_relaxed)); }));
    tests.push_back(two("2 threads: sketch: mutex + clock_gettime", [] { keep(sketch.next()); }));
    tests.push_back(two("2 threads: **frazil_snowflake_next**", [raw] {
        std::int64_t id;
        keep(frazil_snowflake_next(raw, &id));
        keep(id);
    }));
    tests.push_back(two("2 threads: **frazil_numbers_next**, a segment", number_of(segment)));
    tests.push_back(two("2 threads: **frazil_numbers_next**, a ring", number_of(ring)));
    measure(tests);
    frazil_snowflake_free(raw);
    frazil_numbers_free(segment);
    frazil_numbers_free(ring);
    return service_level(ids) ? 0 : 1;
}
