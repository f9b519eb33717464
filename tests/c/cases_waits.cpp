// Waits end: by time, by close() in another thread, with the program.
#include "helpers.hpp"

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
    CHECK(refused([&] { ids->try_renew(milliseconds(-1)); }, errc::out_of_range, {"max_wait_ms=-1"}));
    CHECK(refused([&] { ids->try_close(milliseconds(-1)); }, errc::out_of_range));
    CHECK(refused([&] { ring->try_renew(milliseconds(-1)); }, errc::out_of_range));
    CHECK(refused([&] { ring->try_close(milliseconds(-1)); }, errc::out_of_range));
    ids->try_renew(milliseconds(60000));
    ring->try_renew(milliseconds(60000));
    ids->try_close(milliseconds(60000));
    ring->try_close(milliseconds(60000));
    CHECK(refused([&] { ids->next(); }, errc::closed) && refused([&] { ring->next(); }, errc::closed));
}

CASE(wait_close_all) {
    const folder place;
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        const auto ids = frazil::snowflake::open(place.spec());
        frazil::close_all(milliseconds(60000));
        end_child(refused([&] { ids->next(); }, errc::closed) && refused([] { frazil::close_all(milliseconds(-1)); }, errc::out_of_range));
    }
    CHECK(ended_well(child));
}

} // namespace

int main(int argc, char **argv) { return run_cases(argc, argv); }
