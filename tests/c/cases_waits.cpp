// Waits end by time, by close() in another thread, and with the program. Hooks receive events while their handles exist.
#include "helpers.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>

namespace {

const char *const SLOW = "layout='time:31@1s node:20 sequence:4 epoch:2025-01-01' start=zero exhausted=wait:60s ";

CASE(wait_ends_with_close) {
    const auto ids = frazil::snowflake::open(std::string(SLOW) + "node=11");
    std::int32_t status = FRAZIL_OK;
    std::thread batch([&] { status = thrown([&] { ids->batch(1000); }); });
    std::this_thread::sleep_for(milliseconds(300));
    ids->close();
    batch.join();
    CHECK(status == FRAZIL_CLOSED);
}

CASE(wait_bounds) {
    const folder place;
    const auto ids = frazil::snowflake::open(place.spec());
    const auto ring = frazil::buffered::open(place.spec("size=8 namespace=ring"));
    CHECK(refused([&] { ids->release_node_for(milliseconds(-1)); }, errc::out_of_range, {"max_wait_ms=-1"}));
    CHECK(refused([&] { ids->close_for(milliseconds(-1)); }, errc::out_of_range));
    CHECK(refused([&] { ring->discard_for(milliseconds(-1)); }, errc::out_of_range));
    CHECK(refused([&] { ring->close_for(milliseconds(-1)); }, errc::out_of_range));
    ids->release_node_for(milliseconds(60000));
    ring->discard_for(milliseconds(60000));
    ids->close_for(milliseconds(60000));
    ring->close_for(milliseconds(60000));
    CHECK(refused([&] { (void)ids->next(); }, errc::closed) && refused([&] { (void)ring->next(); }, errc::closed));
}

CASE(wait_close_all) {
    const folder place;
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        const auto ids = frazil::snowflake::open(place.spec());
        frazil::close_all(milliseconds(60000));
        end_child(refused([&] { (void)ids->next(); }, errc::closed) && refused([] { frazil::close_all(milliseconds(-1)); }, errc::out_of_range));
    }
    CHECK(ended_well(child));
}

CASE(visitor_of_stats_throws) {
    const auto first = frazil::snowflake::open("standard detached=true node=21");
    const auto second = frazil::snowflake::open("standard detached=true node=22");
    int calls = 0;
    frazil::each_stats([&](const frazil_stats &) { ++calls; });
    CHECK(calls >= 2);
    calls = 0;
    bool caught = false;
    try {
        frazil::each_stats([&](const frazil_stats &) { ++calls; throw std::runtime_error("enough"); });
    } catch (const std::runtime_error &error) {
        caught = std::string(error.what()) == "enough";
    }
    CHECK(caught && calls == 1);
}

/// Opens a generator with `clock=manual`, and sets its clock back.
void go_back(std::uint64_t node) {
    const auto ids = frazil::snowflake::open("standard clock=manual rollback=error detached=true node=" + std::to_string(node));
    ids->set_time(frazil::time_point(milliseconds(1900000000000)));
    (void)ids->next();
    ids->set_time(frazil::time_point(milliseconds(1899999997000)));
    thrown([&] { (void)ids->next(); });
}

CASE(hooks_are_called_while_they_are_held) {
    std::atomic<int> calls{0}, later{0};
    std::string seen;
    {
        const auto hook = frazil::on_event([&](const frazil::event &event) {
            if (event.name != "clock.rollback") return;
            seen = std::string(event.name) + (event.is_warning ? " warning " : " ") + std::string(event.field("back_ms").value_or("")) + " " +
                   std::string(event.field("node").value_or("")) + (event.field("no") ? " no" : "");
            ++calls;
            throw std::runtime_error("it stays on this side of C");
        });
        go_back(21);
        CHECK(in_time([&] { return calls == 1; }));
        go_back(22);
        CHECK(in_time([&] { return calls == 2; }));
    }
    CHECK(seen == "clock.rollback warning 3000 22");
    go_back(23);
    {
        // A later hook replaces an earlier one; the end of the earlier one does not end the later one.
        auto first = std::make_unique<frazil::event_hook>(frazil::on_event([&](const frazil::event &) { calls = -1; }));
        auto second = frazil::on_event([&](const frazil::event &) { ++later; });
        first.reset();
        auto moved = std::move(second);
        go_back(24);
        CHECK(in_time([&] { return later == 1; }));
    }
    CHECK(calls == 2);
    CHECK(refused([] { (void)frazil::on_event(nullptr); }, errc::wrong_type));
}

CASE(hook_may_remove_itself) {
    std::optional<frazil::event_hook> hook;
    std::atomic<bool> set{false}, kept_all{false};
    hook = frazil::on_event([&, kept = std::string(100, 'x')](const frazil::event &) {
        while (!set) std::this_thread::yield();
        hook.reset();
        kept_all = kept.size() == 100;
    });
    set = true;
    go_back(25);
    CHECK(in_time([&] { return kept_all.load(); }));
    CHECK(!hook);
}

} // namespace

int main(int argc, char **argv) { return run_cases(argc, argv); }
