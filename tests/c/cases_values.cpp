// Values as C++ programs use them: views, spans, any duration, streams, hashes, std::format. Compiled as C++17 and as C++20.
#include "helpers.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <sstream>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>

using frazil::layout;
using frazil::object_id;
using frazil::parts;
using frazil::snowflake;
using frazil::time_arg;
using frazil::uuid;
using frazil::wait_arg;
using namespace std::chrono_literals;
using namespace std::string_view_literals;

namespace {

constexpr std::int64_t KNOWN = 1541815603606036480;

template <typename T>
std::string streamed(const T &value) {
    std::ostringstream out;
    out << value;
    return out.str();
}

using frazil::detail::is_buffer;
static_assert(is_buffer<std::vector<std::int64_t> &> && !is_buffer<const std::vector<std::int64_t> &> && !is_buffer<std::vector<std::int32_t> &>);

CASE(string_views) {
    // These views have no terminating NUL.
    const std::string_view line = "standard node=601 and more", text = "leaf, and more";
    const snowflake ids(line.substr(0, 17));
    CHECK(ids.spec() == "standard node=601" && ids.field("node, and more"sv.substr(0, 4)) == 601);
    CHECK(layout(text.substr(0, 4)) == layout("leaf"));
    CHECK(frazil::parse_id("12345"sv.substr(0, 3)) == 123);
    CHECK(frazil::parse_id(frazil::format_id(KNOWN)) == KNOWN && frazil::format_id(KNOWN) == "1541815603606036480");
    const parts known = layout("twitter").decode(KNOWN);
    CHECK(known.field("worker, and more"sv.substr(0, 6)) == known.field("worker") && known.field(std::string("worker")) && !known.field(""sv));
    CHECK(refused([] { snowflake none("standard\0node=1"sv); }, errc::spec, {"NUL"}));
    CHECK(refused([] { snowflake none(std::string_view{}); }, errc::node_missing));
    CHECK(refused([] { (void)uuid::parse(""sv).value(); }, errc::id_invalid));
    static_assert(std::is_constructible_v<uuid, std::string_view> && std::is_constructible_v<object_id, std::string_view>);
    // A long text, which is moved and copied.
    const frazil::text_arg one(std::string_view("a text that is too long for what a string keeps in itself")), two = one, three = frazil::text_arg(two);
    CHECK(std::string_view(three.c_str()) == one.c_str() && one.c_str() != two.c_str());
    const frazil::text_arg shorter("ab"sv), copy = shorter;
    CHECK(std::string_view(copy.c_str()) == "ab");
}

CASE(durations) {
    CHECK(wait_arg(5ms).ms() == 5 && wait_arg(2s).ms() == 2000 && wait_arg(1h).ms() == 3600000 && wait_arg(0ns).ms() == 0);
    // Durations are rounded up, so a wait is not shorter than requested.
    CHECK(wait_arg(1ns).ms() == 1 && wait_arg(1001us).ms() == 2 && wait_arg(0.25s).ms() == 250 && wait_arg(-1ns).ms() == 0 && wait_arg(-1ms).ms() == -1);
    CHECK(wait_arg(std::chrono::hours::max()).ms() == INT64_MAX && wait_arg(std::chrono::hours::min()).ms() == INT64_MIN);
    CHECK(wait_arg(milliseconds::max()).ms() == INT64_MAX && wait_arg(std::chrono::nanoseconds::max()).ms() == 9223372036855);
    using seconds = std::chrono::duration<double>;
    CHECK(wait_arg(seconds(1e300)).ms() == INT64_MAX && wait_arg(seconds(-1e300)).ms() == INT64_MIN);
    CHECK(wait_arg(seconds(std::numeric_limits<double>::infinity())).ms() == INT64_MAX && wait_arg(seconds(std::nan(""))).ms() == INT64_MIN);
    const auto at = [](auto time) { return time_arg(std::chrono::time_point<std::chrono::system_clock, decltype(time)>(time)).unix_ms(); };
    CHECK(at(1999us) == 1 && at(-1ns) == -1 && at(-1ms) == -1 && at(3s) == 3000 && at(std::chrono::hours::max()) == INT64_MAX);
    CHECK(at(seconds(std::nan(""))) == INT64_MIN && at(std::chrono::nanoseconds::min()) == -9223372036855);

    const snowflake ids("standard node=602");
    CHECK(ids.next_for(1s) < ids.next_for(1h) && ids.next_for(std::chrono::hours::max()) > 0);
    CHECK(refused([&] { (void)ids.next_for(-1s); }, errc::out_of_range, {"max_wait_ms=-1000"}));
    CHECK(refused([&] { (void)ids.next_for(seconds(std::nan(""))); }, errc::out_of_range));
    CHECK(snowflake::open_for("standard node=603", 1min) && frazil::segment::open_for("orders store=memory", 60s));
    frazil::close_all(1min);
    const auto now = std::chrono::system_clock::now();
    const layout of = ids.layout();
    CHECK(of.min_id(now) <= of.max_id(now) && of.decode(of.min_id(now)).time <= now);
    CHECK(object_id::min_id(now) < object_id::max_id(now));
    CHECK(refused([&] { (void)of.min_id(std::chrono::time_point<std::chrono::system_clock, std::chrono::hours>::max()); }, errc::layout_expired));
    CHECK(of.decode(of.compose(now, {{"node", 5}}, 0)).node == 5);
    const error refusal(errc::would_block, "later", 3ms, 2);
    CHECK(refusal.retry_after() == 3ms && refusal.written() == 2 && !error(errc::spec, "no").retry_after());
}

CASE(buffers) {
    const snowflake ids("standard node=604");
    std::array<std::int64_t, 100> array{};
    std::int64_t raw[10] = {};
    std::vector<std::int64_t> vector(100);
    ids.fill(array);
    ids.fill(raw);
    ids.fill_for(vector, 1min);
    CHECK(array[0] > 0 && array[99] < raw[0] && raw[9] < vector[0] && ascending(vector));
#ifdef __cpp_lib_span
    ids.fill(std::span(vector));
    ids.fill(std::span(vector).subspan(50));
    ids.fill_for(std::span<std::int64_t, 10>(raw), 1min);
    std::span<std::int64_t> named(array);
    ids.fill(named);
    CHECK(vector[49] < vector[50] && vector[99] < raw[0] && raw[9] < array[0]);
    ids.fill(std::span<std::int64_t>());
    static_assert(!is_buffer<std::span<const std::int64_t>> && is_buffer<std::span<std::int64_t>>);
#endif
}

CASE(streams) {
    CHECK(streamed(errc::clock_back) == "CLOCK_BACK" && streamed(errc{}) == "OK" && streamed(static_cast<errc>(7)) == "7");
    const layout of("twitter");
    CHECK(streamed(of) == of.text());
    CHECK(streamed(of.decode(KNOWN)) == "id=1541815603606036480 unix_ms=1656432460105 datacenter=11 worker=26 sequence=0");
    const object_id object("507f1f77bcf86cd799439011");
    const uuid seven("017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
    CHECK(streamed(object) == object.to_string() && streamed(seven) == seven.to_string());
    std::ostringstream out;
    out << "an ID: " << seven << ' ' << 7;
    CHECK(out.str() == "an ID: 017f22e2-79b0-7cc3-98c4-dc0c0c07398f 7");
}

CASE(comparisons) {
    const layout of("twitter"), named("time:41@1ms dc:5 worker:5 sequence:12 epoch:2010-11-04T01:42:54.657Z");
    const parts known = of.decode(KNOWN);
    CHECK(known == of.decode(KNOWN) && !(known != of.decode(KNOWN)));
    CHECK(known != of.decode(KNOWN + 1) && known != named.decode(KNOWN));
    parts other = known;
    other.looks_rounded = !other.looks_rounded;
    CHECK(other != known);
    const std::unordered_set<parts> all{known, of.decode(KNOWN), of.decode(KNOWN + 1), named.decode(KNOWN)};
    CHECK(all.size() == 3 && all.count(known) == 1);
    std::unordered_map<layout, int> layouts{{of, 1}, {layout("leaf"), 2}};
    CHECK(layouts[layout("twitter")] == 1 && layouts[layout(layout("leaf").text())] == 2 && layouts.size() == 2);
    CHECK(std::unordered_set<errc>({errc::spec, errc::closed, errc::spec}).size() == 2);
}

#ifdef __cpp_lib_format
CASE(formats) {
    const uuid seven("017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
    const object_id object("507f1f77bcf86cd799439011");
    const layout of("twitter");
    CHECK(std::format("{}, {}", seven, object) == seven.to_string() + ", " + object.to_string());
    CHECK(std::format("{:>40}|{:.4}", seven, object) == "    " + seven.to_string() + "|507f");
    CHECK(std::format("{}", of) == of.text() && std::format("{}", of.decode(KNOWN)) == of.decode(KNOWN).to_string());
    CHECK(std::format("{} {} {:_<4}", errc::clock_back, static_cast<errc>(7), errc{}) == "CLOCK_BACK 7 OK__");
}
#endif

} // namespace

int main(int argc, char **argv) { return run_cases(argc, argv); }
