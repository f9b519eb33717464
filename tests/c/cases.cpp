// The cases of tests/vectors/cases.json for the C++ API, in C++17 with exceptions.
#include "helpers.hpp"
#include "vectors_types.h"
#include "vectors.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <type_traits>
#include <unordered_set>
#include <vector>

using frazil::format;
using frazil::layout;
using frazil::object_id;
using frazil::snowflake;
using frazil::uuid;

namespace {

const frazil::time_point NOW{milliseconds(1800000000000)};
/// A process finds out after 1.5 x renew whether another one holds a number.
const std::string QUICK = " window=4s renew=1s rollback=error";
/// A layout with two node numbers; generators do not share one.
const std::string TWO = "layout='time:41@1ms node:1 sequence:12 epoch:2025-01-01' store=memory detached=true"
                        " window=8s renew=2s rollback=error";
const format FORMATS[] = {format::decimal, format::base62, format::base32, format::hex, format::check};

template <std::size_t N>
std::vector<std::string> words(const char *const (&says)[N]) {
    std::vector<std::string> words;
    for (std::size_t i = 0; i < N && says[i] != nullptr; ++i) words.emplace_back(says[i]);
    return words;
}

CASE(known_ids) {
    for (const auto &known : KNOWN_IDS) {
        const layout of(known.layout);
        const frazil::parts parts = of.decode(known.id);
        CHECK(parts.id == known.id && parts.sequence == known.sequence);
        if (known.has_time) CHECK(parts.time == frazil::time_point(milliseconds(known.unix_ms)));
        CHECK(parts.fields.size() == known.field_count);
        for (std::size_t i = 0; i < known.field_count; ++i) CHECK(parts.field(known.fields[i].name) == known.fields[i].value);
        CHECK(!parts.field("no_such_field"));
        std::uint64_t node = 0;
        for (const auto &field : of.field_bits()) node = node << field.second | *parts.field(field.first);
        CHECK(parts.node == node);
        CHECK(of.compose(parts.time, parts.fields, parts.sequence) == known.id);
    }
}

CASE(texts) {
    for (const auto &valid : VALID_TEXTS) {
        for (const format form : FORMATS) {
            CHECK(frazil::format_id(valid.id, form) == valid.forms[static_cast<int>(form)]);
            CHECK(frazil::parse_id(valid.forms[static_cast<int>(form)], form) == valid.id);
        }
        CHECK(frazil::parse_id(std::to_string(valid.id), format::decimal) == valid.id);
    }
    for (const auto &invalid : INVALID_TEXTS) {
        CHECK(refused([&] { (void)frazil::parse_id(invalid.text, static_cast<format>(invalid.format)); }, errc::id_invalid));
    }
    for (const auto &given : SPELLED_TEXTS) {
        CHECK(std::to_string(frazil::parse_id(given.text, static_cast<format>(given.format), given.prefix)) == given.gives);
    }
    for (const auto &given : REFUSED_TEXTS) {
        const auto parse = [&] { (void)frazil::parse_id(given.text, static_cast<format>(given.format), given.prefix); };
        CHECK(refused(parse, errc::id_invalid, {given.gives}));
    }
}

CASE(layouts) {
    for (const auto &valid : VALID_LAYOUTS) {
        const layout of(valid.text);
        CHECK(of.text() == valid.canonical);
        CHECK(of == layout(of.text()) && !(of != layout(valid.canonical)));
        CHECK((of == layout(VALID_LAYOUTS[0].text)) == (of.text() == VALID_LAYOUTS[0].canonical));
        CHECK(of.time_bits() == valid.time_bits && of.sequence_bits() == valid.sequence_bits);
        CHECK(static_cast<std::uint64_t>(of.tick().count()) == valid.tick_ms);
        CHECK(of.epoch() == frazil::time_point(milliseconds(valid.epoch_ms)));
        CHECK(of.nodes() == valid.nodes);
        CHECK(std::abs(of.ids_per_second() - valid.ids_per_second) < 0.001);
        if (valid.expires_at_ms == INT64_MAX) CHECK(!of.expires_at());
        else CHECK(of.expires_at() == frazil::time_point(milliseconds(valid.expires_at_ms)));
        const auto fields = of.field_bits();
        CHECK(fields.size() == valid.field_count);
        for (std::size_t i = 0; i < fields.size(); ++i) {
            CHECK(fields[i].first == valid.fields[i].name && fields[i].second == valid.fields[i].value);
        }
    }
    for (const auto &invalid : INVALID_LAYOUTS) {
        const auto result = layout::parse(invalid.text);
        CHECK(!result && static_cast<std::int32_t>(result.error().code()) == invalid.code);
        CHECK(refused([&] { layout of(invalid.text); }, static_cast<errc>(invalid.code), words(invalid.says)));
    }
    layout copy("leaf");
    const layout other("twitter");
    copy = other;
    CHECK(copy == other);
}

CASE(specs) {
    for (const auto &valid : VALID_SPECS) CHECK(snowflake(valid.spec).spec() == valid.canonical);
    for (const auto &invalid : INVALID_SPECS) {
        CHECK(refused([&] { snowflake ids(invalid.text); }, static_cast<errc>(invalid.code), words(invalid.says)));
        const auto result = snowflake::open(invalid.text);
        CHECK(!result && static_cast<std::int32_t>(result.error().code()) == invalid.code);
    }
}

CASE(mistakes) {
    for (const auto &mistake : MISTAKES) {
        CHECK(refused([&] { snowflake ids(mistake.text); }, static_cast<errc>(mistake.code), words(mistake.says)));
    }
}

/// Runs one step of a vector; returns whether the outcome is the expected one.
bool comes_out(const snowflake &ids, const step &step) {
    switch (step.kind) {
    case STEP_OPEN:
        return false;
    case STEP_SET_TIME:
        ids.set_time(frazil::time_point(milliseconds(step.number)));
        return true;
    case STEP_NEXT:
        return ids.next() == step.first;
    case STEP_BATCH: {
        const auto batch = ids.batch(static_cast<std::size_t>(step.number));
        return ascending(batch) && batch.front() == step.first && batch.back() == step.last;
    }
    case STEP_CREDIT:
        return ids.credit() == static_cast<std::uint64_t>(step.number);
    case STEP_ERROR:
        return thrown([&] { (void)ids.next(); }) == step.number;
    }
    return false;
}

CASE(replays) {
    std::optional<snowflake> ids;
    for (const auto &step : STEPS) {
        if (step.kind == STEP_OPEN) ids.emplace(step.spec);
        else CHECK(comes_out(*ids, step));
    }
}

CASE(takeover) {
    for (const auto &row : TAKEOVERS) {
        const snowflake opened(row.spec + std::string(" after=") + std::to_string(row.last)), observing(row.spec);
        CHECK(opened.layout().text() == row.layout);
        const frazil::parts parts = opened.layout().decode(row.last);
        CHECK(parts.time == frazil::time_point(milliseconds(row.unix_ms)) && parts.sequence == row.sequence);
        for (std::size_t i = 0; i < row.field_count; ++i) CHECK(parts.field(row.fields[i].name) == row.fields[i].value);
        observing.set_time(parts.time);
        observing.observe(row.last);
        for (std::size_t i = 0; i < row.step_count; ++i) {
            CHECK(comes_out(opened, TAKEOVER_STEPS[row.first_step + i]));
            CHECK(comes_out(observing, TAKEOVER_STEPS[row.first_step + i]));
        }
    }
}

CASE(error_table) {
    for (std::size_t i = 0; i < COUNT(ERRORS); ++i) {
        CHECK(static_cast<std::int32_t>(ERRCS[i]) == ERRORS[i].code);
        CHECK(frazil::name(ERRCS[i]) == std::string(ERRORS[i].name));
        CHECK(frazil::meaning(ERRCS[i]) == std::string(ERRORS[i].meaning));
    }
}

CASE(every_error) {
    const auto open = [](const char *spec) { return [spec] { snowflake ids(spec); }; };
    CHECK(refused(open("twitter datacenter=1 7"), errc::spec));
    CHECK(refused(open("twitter datacenter=1 wroker=7"), errc::unknown_key));
    CHECK(refused(open("twitter datacenter=1 worker=32"), errc::out_of_range));
    CHECK(refused(open("layout='time:99@1ms sequence:1 epoch:1970-01-01'"), errc::layout_invalid));
    CHECK(refused(open("baidu worker=1"), errc::layout_expired));
    CHECK(refused(open("twitter"), errc::node_missing));
    CHECK(refused(open("standard store=redis://127.0.0.1:1/0 window=4s renew=1s"), errc::store_unreachable));
    CHECK(refused(open("standard store=redis://127.0.0.1:1/0 lease=disposable"), errc::store_unsuitable));
    CHECK(refused([] { (void)layout("twitter").decode(-1); }, errc::id_invalid));
    CHECK(refused([] { (void)layout("twitter").min_id(frazil::time_point()); }, errc::before_epoch));

    const snowflake ids("twitter datacenter=1 worker=1 clock=manual detached=true");
    CHECK(refused([&] { (void)ids.next(); }, errc::clock_not_set));
    ids.set_time(NOW);
    (void)ids.batch(4096);
    ids.set_time(NOW - milliseconds(7));
    CHECK(refused([&] { (void)ids.next(); }, errc::clock_back, {"7 ms"}));
    ids.set_time(NOW);
    try {
        (void)ids.next();
        CHECK(false);
    } catch (const error &error) {
        CHECK(error.code() == errc::would_block && error.retry_after() == milliseconds(1));
    }
    ids.close();
    try {
        (void)ids.next();
        CHECK(false);
    } catch (const error &error) {
        CHECK(error.code() == errc::closed && !error.retry_after());
    }
    const snowflake game("game16 server=1 clock=manual detached=true lag=0ms");
    game.set_time(NOW);
    CHECK(refused([&] { for (;;) (void)game.next(); }, errc::exhausted));

    const std::string two = TWO + " namespace=cpp-every";
    const snowflake first(two + " node=1");
    CHECK(refused([&] { snowflake again(two + " node=1"); }, errc::node_in_use));
    const snowflake second(two);
    CHECK(refused([&] { snowflake third(two); }, errc::no_free_node));
    CHECK(refused(open("standard store=memory namespace=cpp-every"), errc::layout_mismatch));
    first.release_node();
    const snowflake thief(two);
    CHECK(refused([&] { (void)first.next(); }, errc::lease_exhausted));

    const frazil::segment end("cpp-every store=memory start=9223372036854775807");
    CHECK(end.next() == INT64_MAX);
    CHECK(refused([&] { (void)end.next(); }, errc::segment_exhausted, {"9223372036854775807"}));
    CHECK(refused([] { frazil::segment other("cpp-every store=memory increment=2 offset=1"); }, errc::segment_mismatch, {"increment=1"}));

    const snowflake fixed("standard node=400");
    CHECK(refused(open("standard node=400 rollback=error"), errc::conflict));
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) end_child(refused([&] { (void)fixed.next(); }, errc::forked));
    CHECK(ended_well(child));

    snowflake moved("standard node=401");
    const snowflake taken = std::move(moved);
    CHECK(refused([&] { (void)moved.next(); }, errc::wrong_type));
    CHECK(refused([&] { (void)moved.layout(); }, errc::wrong_type));
}

CASE(next_increases) {
    const snowflake ids("twitter datacenter=3 worker=9");
    std::int64_t before = -1;
    for (int i = 0; i < 20000; ++i) {
        const std::int64_t id = ids.next();
        CHECK(id > before);
        before = id;
    }
    CHECK(ids.next_for(milliseconds(1000)) > before);
    const auto parts = ids.layout().decode(ids.next());
    const auto age = std::chrono::system_clock::now() - parts.time;
    CHECK(age >= milliseconds(0) && age < std::chrono::minutes(1));
    CHECK(parts.node == 3 * 32 + 9 && ids.node() == parts.node);
    CHECK(parts.field("datacenter") == 3u && parts.field("worker") == 9u);
    CHECK(ids.field("datacenter") == 3 && ids.field(std::string("worker")) == 9);
    CHECK(refused([&] { ids.field("server"); }, errc::unknown_key, {"server", "worker"}));
}

CASE(batch_and_fill) {
    const snowflake ids("standard node=402");
    std::vector<std::int64_t> all = ids.batch(10000);
    CHECK(all.size() == 10000 && ascending(all));
    ids.fill(all);
    CHECK(ascending(all));
    ids.fill(all.data(), 100);
    std::array<std::int64_t, 1000> array;
    ids.fill(array);
    ids.fill_for(all.data(), 100, milliseconds(1000));
    CHECK(all[0] > array.back());

    const snowflake manual("twitter datacenter=1 worker=1 clock=manual detached=true exhausted=error");
    manual.set_time(NOW);
    CHECK(refused([&] { (void)manual.batch(5000); }, errc::exhausted));
    manual.set_time(NOW + milliseconds(1));
    std::fill(all.begin(), all.end(), -5);
    try {
        manual.fill(all);
        CHECK(false);
    } catch (const error &error) {
        CHECK(error.written() == 4096 && all[4095] > all[0] && all[4096] == -5);
    }
}

CASE(zero_length) {
    const snowflake ids("standard node=403");
    CHECK(ids.batch(0).empty());
    std::vector<std::int64_t> empty;
    ids.fill(empty);
    ids.fill(nullptr, 0);
    ids.fill_for(nullptr, 0, milliseconds(0));
}

CASE(iteration) {
    const snowflake ids("standard node=404");
    std::vector<std::int64_t> some;
    for (const std::int64_t id : ids) {
        some.push_back(id);
        if (some.size() == 1000) break;
    }
    std::copy_n(ids.begin(), 1000, std::back_inserter(some));
    CHECK(some.size() == 2000 && ascending(some));
    auto it = ids.begin();
    const std::int64_t first = *it++;
    CHECK(*it > first && it != ids.end() && !(it == ids.end()));
}

CASE(async_forms) {
    const snowflake ids("layout='time:31@1s node:4 sequence:1 epoch:2025-01-01' node=4 exhausted=wait:60s");
    const auto both = ids.batch(2);
    std::int64_t waited = -1;
    std::thread waiter([&] { waited = ids.next(); });
    bool blocked = false;
    for (int i = 0; i < 100 && !blocked; ++i) blocked = refused([&] { (void)ids.next_for(milliseconds(0)); }, errc::would_block);
    waiter.join();
    CHECK(blocked && waited > both[1]);
}

CASE(new_text) {
    const snowflake ids("standard node=405");
    std::int64_t before = -1;
    for (const format form : FORMATS) {
        const std::string text = ids.text(form), next = ids.text(form);
        CHECK(text.size() == next.size() && text < next);
        CHECK(frazil::parse_id(text, form) > before);
        before = frazil::parse_id(next, form);
    }
}

CASE(min_max) {
    const layout twitter("twitter");
    const auto low = twitter.min_id(NOW), high = twitter.max_id(NOW);
    const auto id = twitter.compose(NOW, {{"worker", 7}, {"datacenter", 1}}, 9);
    CHECK(low < id && id < high);
    CHECK(twitter.decode(low).time == NOW && twitter.decode(high).time == NOW);
    CHECK(twitter.decode(low - 1).time < NOW && twitter.decode(high + 1).time > NOW);
    CHECK(refused([&] { (void)twitter.min_id(twitter.epoch() - milliseconds(1)); }, errc::before_epoch));
    CHECK(refused([&] { (void)twitter.max_id(*twitter.expires_at()); }, errc::layout_expired));
}

CASE(manual_clock) {
    const snowflake ids("standard node=5 clock=manual detached=true");
    CHECK(refused([&] { ids.credit(); }, errc::clock_not_set));
    ids.set_time(NOW);
    CHECK(ids.layout().decode(ids.next()).time == NOW);
    ids.set_time(NOW + milliseconds(12345));
    CHECK(ids.layout().decode(ids.next()).time == NOW + milliseconds(12345));
    const snowflake real("standard node=406");
    CHECK(refused([&] { real.set_time(NOW); }, errc::spec, {"clock=manual"}));
}

CASE(observe) {
    const snowflake ids("standard node=1 start=zero clock=manual detached=true");
    CHECK(refused([&] { ids.observe(std::int64_t{1} << 40); }, errc::clock_not_set));
    ids.set_time(NOW);
    const std::int64_t first = ids.next();
    ids.observe(0);
    CHECK(ids.next() == first + 1);
    const std::int64_t theirs = ids.layout().max_id(NOW + milliseconds(1000));
    ids.observe(theirs);
    ids.set_time(NOW + milliseconds(1001));
    CHECK(ids.next() > theirs);
    const std::int64_t far = ids.layout().min_id(NOW + milliseconds(2002));
    CHECK(refused([&] { ids.observe(far); }, errc::out_of_range, {"id=", "1001 ms ahead of the clock", "allow 1s"}));
    CHECK(refused([&] { ids.observe(-1); }, errc::id_invalid));
    ids.set_time(*ids.layout().expires_at() - milliseconds(1));
    CHECK(refused([&] { ids.observe(INT64_MAX); }, errc::layout_expired));
    const snowflake small("js53 node=1 clock=manual detached=true");
    small.set_time(NOW);
    CHECK(refused([&] { small.observe(std::int64_t{1} << 53); }, errc::id_invalid, {"53"}));
}

CASE(burst_credit) {
    const snowflake ids("game server=4711 start=zero clock=manual detached=true");
    ids.set_time(NOW);
    CHECK(ids.credit() == 4096);
    ids.set_time(NOW + std::chrono::seconds(15));
    CHECK(ids.credit() == 65536);
    const auto loot = ids.batch(65536);
    CHECK(ascending(loot) && ids.layout().decode(loot.back()).time <= NOW + std::chrono::seconds(15));
    CHECK(ids.credit() == 0);
    CHECK(refused([&] { (void)ids.next(); }, errc::exhausted));
}

CASE(registry) {
    std::int64_t before = -1;
    for (int i = 0; i < 2000; ++i) {
        const std::int64_t id = snowflake("standard node=407").next();
        CHECK(id > before);
        before = id;
    }
    const snowflake ids("standard node=407");
    CHECK(refused([] { snowflake other("standard node=407 exhausted=error"); }, errc::conflict));
}

CASE(local_threads) {
    const snowflake ids("standard node=418 exhausted=wait:60s");
    std::vector<std::vector<std::int64_t>> minted(4);
    std::vector<std::thread> threads;
    for (auto &mine : minted) {
        threads.emplace_back([&ids, &mine] {
            frazil::local own = ids.local();
            for (int i = 0; i < 50000; ++i) mine.push_back(own.next());
        });
    }
    for (auto &thread : threads) thread.join();
    std::vector<std::int64_t> all;
    for (const auto &mine : minted) {
        CHECK(ascending(mine));
        all.insert(all.end(), mine.begin(), mine.end());
    }
    std::sort(all.begin(), all.end());
    CHECK(all.size() == 200000 && ascending(all));
}

CASE(local_handles) {
    snowflake ids("standard node=419");
    frazil::local own = ids.local();
    const std::int64_t before = own.next();
    ids.close();
    frazil::local moved = std::move(own);
    CHECK(moved.next() > before);
    CHECK(refused([&] { (void)own.next(); }, errc::wrong_type, {"local is NULL"}));
    CHECK(refused([&] { (void)ids.local().next(); }, errc::closed));
    const snowflake other = std::move(ids);
    CHECK(refused([&] { ids.local(); }, errc::wrong_type, {"ids is NULL"}));
}

CASE(threads) {
    const snowflake ids("standard node=408 exhausted=wait:60s");
    std::vector<std::vector<std::int64_t>> minted(4);
    std::vector<std::thread> threads;
    for (auto &mine : minted) {
        threads.emplace_back([&ids, &mine] {
            for (int i = 0; i < 25000; ++i) mine.push_back(ids.next());
            const auto batch = ids.batch(25000);
            mine.insert(mine.end(), batch.begin(), batch.end());
        });
    }
    for (auto &thread : threads) thread.join();
    std::vector<std::int64_t> all;
    for (const auto &mine : minted) {
        CHECK(ascending(mine));
        all.insert(all.end(), mine.begin(), mine.end());
    }
    std::sort(all.begin(), all.end());
    CHECK(all.size() == 200000 && ascending(all));
}

CASE(fork) {
    const snowflake ids("standard node=416");
    const std::int64_t before = ids.next();
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        const bool own = refused([&] { (void)ids.next(); }, errc::forked);
        const bool anew = refused([] { snowflake again("standard node=416"); }, errc::forked);
        const bool other = snowflake("standard node=417").next() > 0;
        end_child(own && anew && other);
    }
    CHECK(ended_well(child));
    CHECK(ids.next() > before);
}

CASE(memory_store) {
    const std::string spec = "standard store=memory namespace=cpp-memory detached=true" + QUICK;
    const snowflake one(spec);
    std::optional<snowflake> two(std::in_place, spec);
    CHECK(one.node() != two->node());
    const auto id = one.next();
    one.release_node();
    CHECK(one.next() > id && one.node() != two->node());
    const std::string same = spec + " node=" + std::to_string(two->node());
    CHECK(refused([&] { snowflake again(same); }, errc::node_in_use));
    const auto last = two->next();
    two.reset();
    CHECK(snowflake(same).next() > last);
}

CASE(lease_info) {
    CHECK(!snowflake("standard node=420").lease());
    const folder in;
    const snowflake ids(in.spec("namespace=eu-items_2.1"));
    const auto lease = ids.lease();
    CHECK(lease && lease->node == ids.node() && lease->store == in.store() && lease->store_namespace == "eu-items_2.1");
    CHECK(lease->healthy && !lease->last_error && !lease->left);
    const auto ahead = *lease->bound - std::chrono::system_clock::now();
    CHECK(ahead > std::chrono::seconds(1) && ahead < std::chrono::seconds(5));
    CHECK(in_time([&] { return ids.lease()->bound > lease->bound; }));
    ids.close();
    CHECK(ids.lease()->store_namespace == "eu-items_2.1");

    const snowflake counted("layout='time:41@1ms node:1 sequence:12 epoch:2025-01-01' store=memory lease=disposable namespace=cpp-counted");
    CHECK(counted.lease()->node == 0 && !counted.lease()->bound && counted.lease()->left == 1u);
    snowflake moved("standard node=421");
    const snowflake taken = std::move(moved);
    CHECK(refused([&] { (void)moved.lease(); }, errc::wrong_type));
}

CASE(lease_close_releases) {
    const folder in;
    const snowflake one(in.spec()), two(in.spec());
    const auto node = one.node();
    one.close();
    CHECK(!in.is_free("default", node) && two.next() > 0);
    two.close();
    CHECK(in.is_free("default", node));

    std::optional<snowflake> ids(std::in_place, in.spec("namespace=scope"));
    const auto scoped = ids->node();
    ids.reset();
    CHECK(in_time([&] { return in.is_free("scope", scoped); }));

    const snowflake released(in.spec("namespace=release"));
    const auto before = released.node();
    const auto id = released.next();
    released.release_node();
    CHECK(in.is_free("release", before));
    CHECK(released.next() > id && !in.is_free("release", released.node()));

    // exit() destroys a generator of static storage.
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        static const folder &its = in;
        // This runs after the destructor of `kept`, which may return before the release.
        std::atexit([] { end_child(in_time([] { return its.is_free("static", 7); })); });
        static const snowflake kept(in.spec("namespace=static node=7"));
        (void)kept.next();
        std::exit(0);
    }
    CHECK(ended_well(child));
}

CASE(lease_named_slot) {
    const folder in;
    const std::string spec = in.spec("node=7" + QUICK);
    int up[2], down[2];
    CHECK(pipe(up) == 0 && pipe(down) == 0);
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        close(down[1]);
        std::int64_t id = 0;
        {
            const snowflake ids(spec);
            id = ids.next();
            if (write(up[1], &id, sizeof id) != sizeof id || read(down[0], &id, sizeof id) != 0) end_child(false);
        }
        end_child(true);
    }
    close(up[1]);
    std::int64_t last = 0;
    CHECK(read(up[0], &last, sizeof last) == sizeof last);
    const std::string holder = ":" + std::to_string(child) + " until";
    CHECK(refused([&] { snowflake again(spec); }, errc::node_in_use, {"node number 7 is held by", holder, in.path()}));
    CHECK(snowflake(in.spec("node=8" + QUICK)).node() == 8);
    close(down[1]);
    CHECK(ended_well(child));
    CHECK(snowflake(spec).next() > last);
    for (const int end : {down[0], up[0]}) close(end);
}

CASE(lease_file_store) {
    const folder in;
    const barrier all_have_theirs;
    int pipes[2][2];
    pid_t children[2];
    constexpr std::size_t EACH = 20000;
    std::fflush(stdout);
    for (int i = 0; i < 2; ++i) {
        CHECK(pipe(pipes[i]) == 0);
        children[i] = fork();
        if (children[i] == 0) {
            const snowflake ids(in.spec());
            auto mine = ids.batch(EACH);
            mine.push_back(static_cast<std::int64_t>(ids.node()));
            const char *bytes = reinterpret_cast<const char *>(mine.data());
            for (std::size_t left = mine.size() * sizeof mine[0]; left > 0;) {
                const ssize_t sent = write(pipes[i][1], bytes, left);
                if (sent <= 0) end_child(false);
                bytes += sent;
                left -= static_cast<std::size_t>(sent);
            }
            all_have_theirs.meet();
            ids.close();
            end_child(true);
        }
        close(pipes[i][1]);
    }
    const snowflake ids(in.spec());
    std::vector<std::int64_t> all = ids.batch(EACH);
    std::set<std::uint64_t> nodes{ids.node()};
    for (int i = 0; i < 2; ++i) {
        std::vector<std::int64_t> theirs(EACH + 1);
        char *bytes = reinterpret_cast<char *>(theirs.data());
        for (std::size_t left = theirs.size() * sizeof theirs[0]; left > 0;) {
            const ssize_t got = read(pipes[i][0], bytes, left);
            CHECK(got > 0);
            bytes += got;
            left -= static_cast<std::size_t>(got);
        }
        close(pipes[i][0]);
        nodes.insert(static_cast<std::uint64_t>(theirs.back()));
        theirs.pop_back();
        CHECK(ascending(theirs));
        all.insert(all.end(), theirs.begin(), theirs.end());
    }
    all_have_theirs.meet();
    for (const pid_t child : children) CHECK(ended_well(child));
    std::sort(all.begin(), all.end());
    CHECK(nodes.size() == 3 && all.size() == 3 * EACH && ascending(all));
}

CASE(lease_errors) {
    const folder in;
    const auto open = [&](const std::string &rest) { return [&, rest] { snowflake ids(in.spec(rest)); }; };
    CHECK(refused(open("namespace='two words'"), errc::spec, {"namespace", "a-z"}));
    CHECK(refused(open("lease=forever"), errc::spec, {"lease", "disposable"}));
    CHECK(refused(open("renew=99ms"), errc::out_of_range, {"renew=99ms", "100ms"}));
    CHECK(refused(open("window=2s renew=1s"), errc::out_of_range, {"window=2s", "4s"}));
    CHECK(refused(open("window=3s lease=disposable"), errc::spec, {"window", "disposable"}));
    CHECK(refused([] { snowflake ids("standard node=1 window=3s"); }, errc::spec, {"window", "store"}));

    // The refusal contacts no server: nothing listens at this address.
    CHECK(refused([] { snowflake ids("standard store=redis://203.0.113.1/0 lease=disposable"); }, errc::store_unsuitable, {"203.0.113.1"}));
    const std::string nobody = "standard store=redis://127.0.0.1:1/0 window=4s renew=1s";
    CHECK(refused([&] { snowflake ids(nobody); }, errc::store_unreachable, {"127.0.0.1:1"}));

    const snowflake one(in.spec());
    CHECK(refused([&] { snowflake ids("twitter store=" + in.store()); }, errc::layout_mismatch));
    CHECK(refused(open("rollback=error"), errc::conflict));

    // While another owner has the released number, calls fail and name the reason. Once the number is free, the next call leases it again.
    const std::string two = TWO + " namespace=cpp-errors";
    const snowflake first(two), second(two);
    first.release_node();
    const snowflake thief(two);
    CHECK(refused([&] { (void)first.next(); }, errc::lease_exhausted, {"all 2 node numbers"}));
    const auto lease = first.lease();
    CHECK(!lease->healthy && lease->last_error && lease->last_error->code() == errc::no_free_node);
    CHECK(std::string(lease->last_error->what()).find("all 2 node numbers") != std::string::npos);
    thief.close();
    CHECK(in_time([&] { return thrown([&] { (void)first.next(); }) == FRAZIL_OK; }));
    CHECK(first.lease()->healthy && !first.lease()->last_error);
}

CASE(environment) {
    unsetenv("FRAZIL");
    CHECK(refused([] { snowflake ids; }, errc::node_missing, {"FRAZIL"}));
    setenv("FRAZIL", "standard node=409", 1);
    CHECK(snowflake().node() == 409);
    CHECK(snowflake::open(nullptr)->node() == 409);
    unsetenv("FRAZIL");
    setenv("CPP_TEST_NODE", "410", 1);
    const snowflake ids("standard node=env:CPP_TEST_NODE");
    CHECK(ids.node() == 410 && ids.spec() == "standard node=env:CPP_TEST_NODE");
}

// In C++, options are the keys of the spec line: in any order, quoted or not, each once.
CASE(options) {
    CHECK(snowflake("twitter datacenter=1 worker=7 detached=true").node() == 39);
    CHECK(snowflake("twitter detached='true' worker=\"7\" datacenter=1").node() == 39);
    CHECK(refused([] { snowflake ids("twitter datacenter=1 worker=7 datacenter=1"); }, errc::spec, {"datacenter", "twice"}));
}

CASE(wrong_types) {
    CHECK(refused([] { frazil::layout layout{nullptr}; }, errc::wrong_type, {"text"}));
    CHECK(refused([] { layout of(static_cast<const char *>(nullptr)); }, errc::wrong_type, {"text"}));
    CHECK(refused([] { (void)frazil::parse_id(nullptr, format::hex); }, errc::wrong_type, {"text"}));
    const snowflake ids("standard node=411");
    CHECK(refused([&] { ids.fill(nullptr, 1); }, errc::wrong_type, {"buffer"}));
    CHECK(refused([&] { ids.field(nullptr); }, errc::wrong_type, {"name"}));
    static_assert(!std::is_copy_constructible_v<snowflake> && std::is_nothrow_move_constructible_v<snowflake>);
    static_assert(!std::is_convertible_v<const char *, snowflake> && !std::is_convertible_v<int, snowflake>);
}

CASE(out_of_range) {
    const snowflake ids("standard node=412");
    CHECK(refused([&] { (void)ids.next_for(milliseconds(-1)); }, errc::out_of_range, {"max_wait_ms=-1"}));
    CHECK(refused([&] { (void)snowflake::open_for("standard node=412", milliseconds(-1)).value(); }, errc::out_of_range));
    CHECK(snowflake::open_for("standard node=412", milliseconds(5000))->next() > 0);
    CHECK(refused([&] { (void)ids.batch(FRAZIL_MAX_BATCH + 1); }, errc::out_of_range, {"16777216"}));
    CHECK(refused([&] { (void)ids.batch(static_cast<std::size_t>(-1)); }, errc::out_of_range));
    CHECK(refused([&] { (void)ids.text(static_cast<format>(9)); }, errc::out_of_range, {"format=9"}));
    CHECK(refused([] { (void)frazil::format_id(-1, format::hex); }, errc::id_invalid));
    CHECK(refused([] { (void)layout("twitter").compose(NOW, {{"datacenter", 1}, {"worker", 32}}, 0); }, errc::out_of_range, {"worker=32"}));
    CHECK(refused([] { (void)layout("twitter").compose(NOW, {{"datacenter", 1}}, 0); }, errc::node_missing, {"worker"}));
    CHECK(refused([] { (void)layout("twitter").compose(NOW, {{"datacenter", 1}, {"shard", 1}}, 0); }, errc::unknown_key, {"shard"}));
    CHECK(refused([] { (void)layout("twitter").min_id(frazil::time_point::max()); }, errc::layout_expired));
    CHECK(refused([] { (void)layout("twitter").min_id(frazil::time_point::min()); }, errc::before_epoch));
}

CASE(strange_strings) {
    const std::string nul("standard node=4\0" "13", 18), huge(1 << 20, 'x');
    CHECK(refused([&] { snowflake ids(nul); }, errc::spec, {"NUL"}));
    CHECK(refused([&] { (void)snowflake::open_for(nul, milliseconds(1)).value(); }, errc::spec, {"NUL"}));
    CHECK(refused([&] { layout of(nul); }, errc::layout_invalid, {"NUL"}));
    CHECK(refused([&] { (void)frazil::parse_id(nul, format::decimal); }, errc::id_invalid, {"NUL"}));
    CHECK(refused([&] { (void)layout("standard").compose(NOW, {{nul, 1}}, 0); }, errc::unknown_key, {"NUL"}));
    const snowflake ids("standard node=413");
    CHECK(refused([&] { ids.field(nul); }, errc::unknown_key, {"NUL"}));
    CHECK(refused([&] { snowflake other(huge); }, errc::spec));
    CHECK(refused([&] { snowflake other("\xff"); }, errc::spec, {"UTF-8"}));
    CHECK(refused([&] { (void)frazil::parse_id(huge, format::decimal); }, errc::id_invalid));
}

CASE(closed_handle) {
    const snowflake ids("standard node=414");
    ids.close();
    ids.close();
    std::vector<std::int64_t> buffer(3);
    CHECK(refused([&] { (void)ids.next(); }, errc::closed));
    CHECK(refused([&] { (void)ids.next_for(milliseconds(0)); }, errc::closed));
    CHECK(refused([&] { (void)ids.batch(1); }, errc::closed));
    CHECK(refused([&] { ids.fill(buffer); }, errc::closed));
    CHECK(refused([&] { (void)ids.text(format::hex); }, errc::closed));
    CHECK(refused([&] { ids.credit(); }, errc::closed));
    CHECK(refused([&] { ids.set_time(NOW); }, errc::closed));
    CHECK(refused([&] { ids.observe(1); }, errc::closed));
    CHECK(refused([&] { ids.release_node(); }, errc::closed));
    CHECK(refused([&] { for (const auto id : ids) (void)id; }, errc::closed));
    CHECK(ids.node() == 414);
}

CASE(wrong_buffers) {
    using frazil::detail::is_buffer;
    static_assert(is_buffer<std::vector<std::int64_t>> && is_buffer<std::array<std::int64_t, 2>> && is_buffer<std::int64_t[2]>);
    static_assert(!is_buffer<std::vector<std::int32_t>> && !is_buffer<std::vector<std::uint64_t>> && !is_buffer<std::vector<double>>);
    static_assert(!is_buffer<const std::vector<std::int64_t>> && !is_buffer<std::set<std::int64_t>> && !is_buffer<std::string>);
    CHECK(true);
}

/// Returns what four threads make at once, each thread's values in order.
template <typename F>
auto by_threads(F make) {
    std::vector<std::vector<decltype(make())>> made(4);
    std::vector<std::thread> threads;
    for (auto &mine : made) {
        threads.emplace_back([&make, &mine] {
            for (int i = 0; i < 5000; ++i) mine.push_back(make());
        });
    }
    for (auto &thread : threads) thread.join();
    return made;
}

frazil::time_point now() { return std::chrono::time_point_cast<milliseconds>(std::chrono::system_clock::now()); }

CASE(object_id) {
    for (const auto &known : OBJECT_IDS) {
        const object_id id(known.text);
        CHECK(id.to_string() == known.text && object_id(id.bytes()) == id);
        CHECK(id.time() == frazil::time_point(milliseconds(known.unix_ms)) && id.random() == known.random);
        CHECK(id.counter() == known.counter && id.machine() == known.machine && id.process() == known.process);
    }
    for (const auto &bound : OBJECT_ID_BOUNDS) {
        const frazil::time_point time{milliseconds(bound.unix_ms)};
        CHECK(object_id::min_id(time).to_string() == bound.min && object_id::max_id(time).to_string() == bound.max);
    }
    const object_id low = object_id::min_id(NOW), high = object_id::max_id(NOW);
    CHECK(low < high && low <= low && high > low && high >= high && low == low && low != high && !(low == high));
    CHECK(object_id() == object_id("000000000000000000000000"));

    const object_id first = object_id::min_id(now());
    std::unordered_set<object_id> all;
    for (const auto &mine : by_threads([] { return object_id::make(); })) {
        for (const auto &id : mine) {
            CHECK(all.insert(id).second && first <= id && id.random() == all.begin()->random());
        }
    }
    CHECK(all.size() == 20000 && std::all_of(all.begin(), all.end(), [](const auto &id) { return id.time() <= now(); }));
}

CASE(object_id_bad_input) {
    for (const char *bad : OBJECT_IDS_INVALID) CHECK(refused([&] { object_id id(bad); }, errc::id_invalid, {"ObjectId"}));
    CHECK(refused([] { object_id id(std::string("507f1f77\0cf86cd799439011", 24)); }, errc::id_invalid, {"NUL"}));
    CHECK(refused([] { object_id id(nullptr); }, errc::wrong_type, {"text is NULL"}));
    for (const auto &row : OBJECT_ID_OUT_OF_BOUNDS) {
        const frazil::time_point time{milliseconds(row.unix_ms)};
        CHECK(refused([&] { object_id::min_id(time); }, static_cast<errc>(row.code)));
        CHECK(refused([&] { object_id::max_id(time); }, static_cast<errc>(row.code)));
    }
}

CASE(uuid) {
    for (const auto &known : UUIDS) {
        const uuid id(known.text);
        CHECK(id.to_string() == known.canonical && uuid(id.bytes()) == id && id.version() == known.version);
        if (known.has_time) CHECK(id.time() == frazil::time_point(milliseconds(known.unix_ms)));
        else CHECK(refused([&] { id.time(); }, errc::id_invalid, {known.canonical}));
    }
    const uuid low, high("ffffffff-ffff-ffff-ffff-ffffffffffff");
    CHECK(low < high && low <= low && high > low && high >= high && low == low && low != high && !(low == high));

    const auto begun = now();
    std::unordered_set<uuid> all;
    for (const auto &mine : by_threads([] { return frazil::uuid7(); })) {
        CHECK(std::adjacent_find(mine.begin(), mine.end(), std::greater_equal<>()) == mine.end());
        for (const auto &id : mine) {
            CHECK(all.insert(id).second && id.version() == 7 && begun <= id.time() && id.time() <= now());
        }
    }
    for (const auto &mine : by_threads([] { return frazil::uuid4(); })) {
        for (const auto &id : mine) CHECK(all.insert(id).second && id.version() == 4);
    }
    CHECK(all.size() == 40000);
}

CASE(uuid_bad_input) {
    for (const char *bad : UUIDS_INVALID) CHECK(refused([&] { uuid id(bad); }, errc::id_invalid, {"UUID"}));
    CHECK(refused([] { uuid id(std::string("017f22e279b07cc398c4dc0c0c07398\0", 32)); }, errc::id_invalid, {"NUL"}));
    CHECK(refused([] { uuid id(nullptr); }, errc::wrong_type, {"text is NULL"}));
    CHECK(refused([] { frazil::uuid4().time(); }, errc::id_invalid, {"no time"}));
}

CASE(interop_after_fork) {
    const object_id id = object_id::make();
    const uuid before = frazil::uuid7();
    int ends[2];
    CHECK(pipe(ends) == 0);
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        const std::string own = object_id::make().to_string() + frazil::uuid7().to_string();
        end_child(write(ends[1], own.data(), own.size()) == 60);
    }
    close(ends[1]);
    char received[61] = "";
    CHECK(read(ends[0], received, 60) == 60);
    close(ends[0]);
    CHECK(ended_well(child));
    const object_id theirs(std::string(received, 24));
    CHECK(theirs.random() != id.random() && object_id::make().random() == id.random());
    const uuid other(received + 24);
    CHECK(!std::equal(other.bytes().begin() + 8, other.bytes().end(), before.bytes().begin() + 8));
    CHECK(before < frazil::uuid7());
}

CASE(versions) {
    const auto part = [](int number) { return std::to_string(number); };
    CHECK(frazil::version() == part(FRAZIL_VERSION_MAJOR) + "." + part(FRAZIL_VERSION_MINOR) + "." + part(FRAZIL_VERSION_PATCH));
}

CASE(results) {
    auto good = snowflake::open("standard node=415");
    CHECK(good && good.value().node() == 415 && (*good).node() == 415);
    const snowflake taken = std::move(good).value();
    CHECK(taken.node() == 415);
    const auto bad = snowflake::open("standard node=x");
    CHECK(!bad && bad.error().code() == errc::spec);
    CHECK(refused([&] { (void)bad.value(); }, errc::spec));
    CHECK(refused([&] { (void)bad->node(); }, errc::spec));
}

} // namespace

int main(int argc, char **argv) { return run_cases(argc, argv); }
