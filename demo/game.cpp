// A game server that gives every item its players pick up its own ID, at any number of servers,
// without asking anybody. When a raid boss falls, it mints the loot of a whole frame at once.
//
// usage: game --seconds S --out FILE
#include <frazil.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

using clock_type = std::chrono::steady_clock;

constexpr auto FRAME = std::chrono::microseconds(1'000'000 / 60);
constexpr std::size_t RAID_LOOT = 65'536;

struct options {
    double seconds = 12;
    std::string out;
};

options read_options(int argc, char **argv) {
    options options;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string key = argv[i], value = argv[i + 1];
        if (key == "--seconds") options.seconds = std::atof(value.c_str());
        else if (key == "--out") options.out = value;
    }
    if (argc % 2 == 0 || options.out.empty() || !(options.seconds > 0)) {
        std::cerr << "usage: game --seconds S --out FILE\n";
        std::exit(2);
    }
    return options;
}

/// Players pick things up, a few in each frame, until the time is over.
std::vector<std::int64_t> serve(const frazil::snowflake &ids, double seconds) {
    std::vector<std::int64_t> items;
    std::mt19937 dice(std::random_device{}());
    std::uniform_int_distribution<int> picked_up(0, 4);
    auto frame = clock_type::now();
    const auto end = frame + std::chrono::duration_cast<clock_type::duration>(std::chrono::duration<double>(seconds));
    while (frame < end) {
        for (int item = picked_up(dice); item > 0; --item) items.push_back(ids.next());
        std::this_thread::sleep_until(frame += FRAME);
    }
    return items;
}

struct raid {
    std::uint64_t credit;
    std::size_t minted;
    double milliseconds;
    std::string refusal;
};

/// The loot of a whole raid, in one frame: as many IDs as the credit allows, without a wait.
raid drop_loot(const frazil::snowflake &ids, std::vector<std::int64_t> &items) {
    std::vector<std::int64_t> loot(RAID_LOOT);
    raid raid{ids.credit(), loot.size(), 0, ""};
    const auto start = clock_type::now();
    try {
        ids.fill(loot);
    } catch (const frazil::error &error) {
        raid.minted = error.written();
        raid.refusal = error.what();
    }
    raid.milliseconds = std::chrono::duration<double, std::milli>(clock_type::now() - start).count();
    loot.resize(raid.minted);
    items.insert(items.end(), loot.begin(), loot.end());
    return raid;
}

/// The number of items with a time in the future.
std::size_t count_future(const frazil::snowflake &ids, const std::vector<std::int64_t> &items) {
    const frazil::layout layout = ids.layout();
    const auto now = std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
    const std::int64_t newest = layout.max_id(now);
    std::size_t future = 0;
    for (const std::int64_t item : items) future += item > newest;
    return future;
}

int main(int argc, char **argv) try {
    const options options = read_options(argc, argv);
    const frazil::snowflake ids("game store=local namespace=items");
    const auto start = clock_type::now();

    std::vector<std::int64_t> items = serve(ids, options.seconds);
    const std::size_t picked_up = items.size();
    const raid raid = drop_loot(ids, items);
    const std::size_t future = count_future(ids, items);
    const double seconds = std::chrono::duration<double>(clock_type::now() - start).count();

    std::ofstream out(options.out);
    for (const std::int64_t item : items) out << item << '\n';
    if (!out.flush()) throw std::runtime_error("cannot write " + options.out);

    std::cout << "picked up: " << picked_up << " items in " << options.seconds << " s\n"
              << "raid: credit " << raid.credit << ", minted " << raid.minted << " in " << raid.milliseconds << " ms of a "
              << FRAME.count() / 1000.0 << " ms frame\n";
    if (!raid.refusal.empty()) std::cout << "raid: " << raid.refusal << "\n";
    std::cout << "stamped in the future: " << future << "\n";

    char note[160];
    std::snprintf(note, sizeof note, "credit %llu, burst %zu in %.2f ms, %zu in the future",
                  static_cast<unsigned long long>(raid.credit), raid.minted, raid.milliseconds, future);
    char line[400];
    std::snprintf(line, sizeof line,
                  R"({"language":"C++","program":"game","spec":"%s","count":%zu,"seconds":%.3f,"note":"%s"})",
                  ids.spec().c_str(), items.size(), seconds, note);
    std::cout << line << "\n";
    return future == 0 ? 0 : 1;
} catch (const std::exception &error) {
    std::cerr << "game: " << error.what() << "\n";
    return 1;
}
