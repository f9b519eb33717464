// The C++ API without exceptions: the same calls, as frazil::result<T>.
#include <frazil.hpp>

#include "suite.h"

#include <type_traits>
#include <vector>

using frazil::errc;
using frazil::format;
using frazil::result;
using frazil::snowflake;
using std::chrono::milliseconds;

namespace {

const frazil::time_point NOW{milliseconds(1800000000000)};

template <typename T>
bool refused(const result<T> &result, errc code) {
    return !result && result.error().code() == code;
}

CASE(opening) {
    CHECK(refused(snowflake::open("standard node=x"), errc::spec));
    CHECK(refused(snowflake::open_for("standard", milliseconds(1)), errc::node_missing));
    CHECK(refused(snowflake::open(std::string("standard\0node=1", 15)), errc::spec));
    CHECK(refused(frazil::layout::parse("nonsense"), errc::spec));
    auto ids = snowflake::open("standard node=500");
    CHECK(ids && *ids->node() == 500 && *ids->field("node") == 500 && *ids->spec() == "standard node=500");
    CHECK(refused(ids->field("worker"), errc::unknown_key));
    CHECK(refused(ids->release_node(), errc::spec));
    static_assert(!std::is_default_constructible_v<snowflake> && !std::is_constructible_v<snowflake, const char *>);
}

CASE(listening) {
    CHECK(refused(frazil::on_event({}), errc::wrong_type));
    const auto hook = frazil::on_event([](const frazil::event &) {});
    CHECK(hook);
}

CASE(minting) {
    const auto ids = snowflake::open("standard node=501");
    CHECK(ids);
    const auto id = ids->next(), later = ids->next_for(milliseconds(1000));
    CHECK(id && later && *id < *later);
    const auto batch = ids->batch(1000);
    CHECK(batch && batch->size() == 1000 && batch->front() > *later);
    std::vector<std::int64_t> buffer(1000);
    CHECK(ids->fill(buffer) && buffer.front() > batch->back());
    CHECK(ids->fill_for(buffer.data(), 10, milliseconds(1000)) && buffer[0] < buffer[9]);
    CHECK(refused(ids->fill(nullptr, 1), errc::wrong_type));
    CHECK(refused(ids->batch(FRAZIL_MAX_BATCH + 1), errc::out_of_range));
    const auto text = ids->text(format::base62);
    CHECK(text && text->size() == 11 && *frazil::parse_id(*text, format::base62) > buffer[9]);
    int count = 0;
    std::int64_t before = -1;
    for (const auto &next : *ids) {
        CHECK(next && *next > before);
        before = *next;
        if (++count == 100) break;
    }
    CHECK(ids->observe(before) && *ids->next() > before && refused(ids->observe(-1), errc::id_invalid));
    ids->close();
    CHECK(refused(ids->next(), errc::closed));
}

CASE(leases) {
    const auto fixed = snowflake::open("standard node=502");
    CHECK(fixed && fixed->lease() && !*fixed->lease());
    const auto ids = snowflake::open("standard store=memory namespace=results");
    CHECK(ids);
    const auto lease = ids->lease();
    CHECK(lease && *lease && (*lease)->node == *ids->node() && (*lease)->store == "memory" && (*lease)->store_namespace == "results");
    CHECK((*lease)->healthy && !(*lease)->last_error && (*lease)->bound && !(*lease)->left);
    const auto before = ids->next();
    CHECK(ids->release_node());
    const auto after = ids->next();
    CHECK(before && after && *after > *before);
    auto moved = snowflake::open("standard node=503");
    const snowflake taken = std::move(*moved);
    CHECK(refused(moved->lease(), errc::wrong_type));
}

CASE(taking_apart) {
    const auto twitter = frazil::layout::parse("twitter");
    CHECK(twitter);
    const auto parts = twitter->decode(1541815603606036480);
    CHECK(parts && parts->field("datacenter") == 11u && parts->field("worker") == 26u);
    CHECK(*twitter->compose(parts->time, parts->fields, parts->sequence) == 1541815603606036480);
    CHECK(refused(twitter->compose(NOW, {{"datacenter", 32}, {"worker", 1}}, 0), errc::out_of_range));
    CHECK(refused(twitter->decode(-1), errc::id_invalid));
    CHECK(*twitter->min_id(NOW) < *twitter->max_id(NOW));
    CHECK(refused(twitter->min_id(frazil::time_point()), errc::before_epoch));
    CHECK(refused(frazil::parse_id("x", format::hex), errc::id_invalid));
    CHECK(*frazil::format_id(1, format::hex) == "0000000000000001");
    CHECK(refused(frazil::format_id(-1, format::hex), errc::id_invalid));
}

CASE(clocks) {
    const auto ids = snowflake::open("game server=1 start=zero clock=manual detached=true");
    CHECK(ids && refused(ids->credit(), errc::clock_not_set));
    CHECK(ids->set_time(NOW));
    CHECK(*ids->credit() == 4096);
    std::vector<std::int64_t> buffer(5000);
    const auto filled = ids->fill(buffer);
    CHECK(refused(filled, errc::exhausted) && filled.error().written() > 4000 && filled.error().retry_after() == milliseconds(1000));
    CHECK(ids->layout()->decode(buffer[0])->time == NOW);
}

CASE(interop) {
    const auto id = frazil::object_id::make();
    CHECK(id && *id != frazil::object_id() && *frazil::object_id::parse(id->to_string()) == *id);
    CHECK(refused(frazil::object_id::parse("x"), errc::id_invalid));
    CHECK(refused(frazil::object_id::min_id(frazil::time_point(milliseconds(-1))), errc::before_epoch));
    CHECK(*frazil::object_id::min_id(NOW) < *frazil::object_id::max_id(NOW));
    const auto random = frazil::uuid4(), one = frazil::uuid7(), two = frazil::uuid7();
    CHECK(random && one && two && *one < *two && one->time() && *one->time() <= *two->time());
    CHECK(refused(random->time(), errc::id_invalid));
    CHECK(refused(frazil::uuid::parse("x"), errc::id_invalid) && *frazil::uuid::parse(one->to_string()) == *one);
    static_assert(!std::is_constructible_v<frazil::uuid, const char *> && !std::is_constructible_v<frazil::object_id, const char *>);
}

CASE(numbers) {
    using frazil::segment;
    CHECK(refused(segment::open("orders store=memory step=0"), errc::out_of_range));
    CHECK(refused(segment::open(nullptr), errc::wrong_type));
    CHECK(refused(frazil::tickets::open("photos store=memory"), errc::spec));
    CHECK(refused(frazil::buffered::open_for("standard", milliseconds(1)), errc::node_missing));
    static_assert(!std::is_constructible_v<segment, const char *> && !std::is_constructible_v<frazil::buffered, const char *>);

    auto orders = segment::open_for("results store=memory step=100", milliseconds(5000));
    CHECK(orders && *orders->prepared() == 100 && *orders->spec() == "results step=100 store=memory");
    CHECK(*orders->next() == 1 && *orders->next_for(milliseconds(0)) == 2 && orders->batch(3)->back() == 5);
    std::vector<std::int64_t> buffer(2);
    CHECK(orders->fill(buffer) && buffer[1] == 7);
    CHECK(orders->fill_for(buffer.data(), 2, milliseconds(1000)) && buffer[1] == 9);
    CHECK(orders->last_error() && !*orders->last_error());
    CHECK(orders->discard());
    std::int64_t before = 100;
    for (const auto &number : *orders) {
        CHECK(number && *number > before);
        before = *number;
        if (before > 110) break;
    }
    const segment taken = std::move(*orders);
    CHECK(refused(orders->next(), errc::wrong_type) && refused(orders->last_error(), errc::wrong_type));
    taken.close();
    CHECK(refused(taken.next(), errc::closed) && refused(taken.prepared(), errc::closed) && refused(taken.fill(buffer), errc::closed));

    const auto ring = frazil::buffered::open("standard node=504 size=100");
    CHECK(ring && ring->layout()->decode(*ring->next())->node == 504);
    const auto end = segment::open("results-end store=memory start=9223372036854775807");
    const auto filled = end->fill(buffer);
    CHECK(refused(filled, errc::segment_exhausted) && filled.error().written() == 1);
}

} // namespace

int main(int argc, char **argv) { return run_cases(argc, argv); }
