// A game server with a fixed loop of 60 ticks a second: monsters fall, players pick their loot up and mail it. Every item's ID is minted
// here, without a request to a database; the inventory is an SQLite file. The loop sets the clock, so IDs have the game's time. A server
// that crashed resumes from its last save, after the highest ID that is saved.
//
// usage: server DATABASE SERVER_NUMBER MINUTES
#include <frazil.hpp>
#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

constexpr std::int64_t TICKS_PER_SECOND = 60;
/// When the game world opened: 2026-01-01.
constexpr std::chrono::system_clock::time_point OPENING{std::chrono::milliseconds{1'767'225'600'000}};

/// An SQLite database, whose errors are exceptions.
class database {
public:
    explicit database(const char *path) {
        if (sqlite3_open(path, &handle_) != SQLITE_OK) fail();
        // Another program may be reading the inventory.
        sqlite3_busy_timeout(handle_, 10'000);
    }
    ~database() { sqlite3_close(handle_); }
    database(const database &) = delete;
    database &operator=(const database &) = delete;

    void run(const char *sql) {
        if (sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail();
    }

    /// The number that a query gives.
    std::int64_t number(const char *sql) {
        sqlite3_stmt *statement = nullptr;
        if (sqlite3_prepare_v2(handle_, sql, -1, &statement, nullptr) != SQLITE_OK) fail();
        if (sqlite3_step(statement) != SQLITE_ROW) fail();
        const std::int64_t number = sqlite3_column_int64(statement, 0);
        sqlite3_finalize(statement);
        return number;
    }

    sqlite3 *handle() const { return handle_; }
    [[noreturn]] void fail() const { throw std::runtime_error(sqlite3_errmsg(handle_)); }

private:
    sqlite3 *handle_ = nullptr;
};

/// An INSERT of two integers, prepared once.
class insertion {
public:
    insertion(database &into, const char *sql) : into_(into) {
        if (sqlite3_prepare_v2(into.handle(), sql, -1, &statement_, nullptr) != SQLITE_OK) into.fail();
    }
    ~insertion() { sqlite3_finalize(statement_); }
    insertion(const insertion &) = delete;
    insertion &operator=(const insertion &) = delete;

    void add(std::int64_t first, std::int64_t second) {
        sqlite3_bind_int64(statement_, 1, first);
        sqlite3_bind_int64(statement_, 2, second);
        // A second row with the same ID would be refused here, because the ID is the primary key.
        if (sqlite3_step(statement_) != SQLITE_DONE) into_.fail();
        sqlite3_reset(statement_);
    }

private:
    database &into_;
    sqlite3_stmt *statement_ = nullptr;
};

int main(int argc, char **argv) try {
    if (argc != 4) {
        std::cerr << "usage: server DATABASE SERVER_NUMBER MINUTES\n";
        return 2;
    }
    const std::string number = argv[2];
    const std::int64_t ticks = std::atoll(argv[3]) * 60 * TICKS_PER_SECOND;

    database inventory{argv[1]};
    inventory.run("CREATE TABLE IF NOT EXISTS items (id INTEGER PRIMARY KEY, player INTEGER NOT NULL);"
                  "CREATE TABLE IF NOT EXISTS mails (number INTEGER PRIMARY KEY, item INTEGER NOT NULL REFERENCES items, sender INTEGER NOT NULL);"
                  "CREATE TABLE IF NOT EXISTS world (tick INTEGER NOT NULL);"
                  "INSERT INTO world SELECT 0 WHERE NOT EXISTS (SELECT * FROM world)");
    // A manual clock does not know what an earlier run has issued, but the inventory does. A second server is refused with NODE_IN_USE.
    const std::int64_t highest = inventory.number("SELECT ifnull(max(id), 0) FROM items");
    const frazil::snowflake ids{"game clock=manual server=" + number + " after=" + std::to_string(highest)};
    insertion items{inventory, "INSERT INTO items (id, player) VALUES (?, ?)"};
    insertion mails{inventory, "INSERT INTO mails (item, sender) VALUES (?, ?)"};

    std::mt19937_64 dice{std::random_device{}()};
    std::uniform_int_distribution<int> fallen{0, 2};
    std::uniform_int_distribution<std::int64_t> player{1, 500};
    std::vector<std::int64_t> loot;
    std::uint64_t all = 0;
    const std::int64_t first = inventory.number("SELECT tick FROM world");
    const auto save = [&](std::int64_t tick) { inventory.run(("UPDATE world SET tick = " + std::to_string(tick) + "; COMMIT").c_str()); };
    for (std::int64_t tick = first; tick < ticks; ++tick) {
        // A server that serves players waits here for the tick's time; this one plays as fast as it can.
        ids.set_time(OPENING + std::chrono::milliseconds{tick * 1000 / TICKS_PER_SECOND});
        // The world's time and its items are saved together, so that a resumed world is later than all of them.
        if (tick % TICKS_PER_SECOND == 0 && tick > first) save(tick);
        if (tick % TICKS_PER_SECOND == 0) inventory.run("BEGIN");
        // All of a frame's items at once.
        loot.resize(static_cast<std::size_t>(fallen(dice)));
        ids.fill(loot);
        for (const std::int64_t item : loot) {
            const std::int64_t finder = player(dice);
            items.add(item, finder);
            if (finder % 10 == 0) mails.add(item, finder);
        }
        all += loot.size();
    }
    if (first < ticks) save(ticks);
    std::cout << "server " << number << ": " << std::max<std::int64_t>(ticks - first, 0) << " ticks, " << all << " items\n";
    return 0;
} catch (const std::exception &failure) {
    std::cerr << "server: " << failure.what() << '\n';
    return 1;
}
