// A game server with a fixed loop of 60 ticks a second: monsters fall, players pick their loot up and mail it. Every item has an ID
// that was minted here, with no database asked; the inventory is an SQLite file. The loop owns the clock: what it stamps is the game's
// time, so a replay stamps the same.
//
// usage: server DATABASE SERVER_NUMBER MINUTES
#include <frazil.hpp>
#include <sqlite3.h>

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
    }
    ~database() { sqlite3_close(handle_); }
    database(const database &) = delete;
    database &operator=(const database &) = delete;

    void run(const char *sql) {
        if (sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail();
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
        // A second row with an ID that is there already would be refused here: it is the primary key.
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
    const frazil::snowflake ids{"game clock=manual server=" + number};

    database inventory{argv[1]};
    inventory.run("CREATE TABLE items (id INTEGER PRIMARY KEY, player INTEGER NOT NULL);"
                  "CREATE TABLE mails (number INTEGER PRIMARY KEY, item INTEGER NOT NULL REFERENCES items, sender INTEGER NOT NULL)");
    insertion items{inventory, "INSERT INTO items (id, player) VALUES (?, ?)"};
    insertion mails{inventory, "INSERT INTO mails (item, sender) VALUES (?, ?)"};

    std::mt19937_64 dice{std::random_device{}()};
    std::uniform_int_distribution<int> fallen{0, 2};
    std::uniform_int_distribution<std::int64_t> player{1, 500};
    std::vector<std::int64_t> loot;
    std::uint64_t all = 0;
    for (std::int64_t tick = 0; tick < ticks; ++tick) {
        // A server that serves players waits here for the tick's time; this one plays as fast as it can.
        ids.set_time(OPENING + std::chrono::milliseconds{tick * 1000 / TICKS_PER_SECOND});
        if (tick % TICKS_PER_SECOND == 0) inventory.run(tick == 0 ? "BEGIN" : "COMMIT; BEGIN");
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
    inventory.run("COMMIT");
    std::cout << "server " << number << ": " << ticks << " ticks, " << all << " items\n";
    return 0;
} catch (const std::exception &failure) {
    std::cerr << "server: " << failure.what() << '\n';
    return 1;
}
