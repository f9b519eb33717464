// The guide's fixed tick loop (docs/game-servers.md) in a server that is killed. It saves each ID, and the world's time now and then.
// usage: resume SPEC FOLDER       plays until it is killed
//        resume --repeated FOLDER prints the number of saved IDs, and of those that repeat another one
#include <frazil.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

using namespace std::chrono;

static std::vector<std::int64_t> read_ids(const std::string &path) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    // An incomplete write has saved no ID.
    std::vector<std::int64_t> ids(file ? static_cast<std::size_t>(file.tellg()) / 8 : 0);
    file.seekg(0).read(reinterpret_cast<char *>(ids.data()), static_cast<std::streamsize>(ids.size() * 8));
    return ids;
}

int main(int argc, char **argv) try {
    if (argc != 3) return 2;
    const std::string spec = argv[1], folder = argv[2], table = folder + "/ids", save = folder + "/save";
    auto saved = read_ids(table);
    if (spec == "--repeated") {
        const auto all = saved.size();
        std::sort(saved.begin(), saved.end());
        const auto distinct = static_cast<std::size_t>(std::unique(saved.begin(), saved.end()) - saved.begin());
        std::printf("%zu %zu\n", all, all - distinct);
        return 0;
    }
    long long time_ms = 1767225600000;  // 2026-01-01
    std::ifstream(save) >> time_ms;
    frazil::time_point now{milliseconds{time_ms}};
    const std::int64_t highest = saved.empty() ? 0 : *std::max_element(saved.begin(), saved.end());
    // The control run opens without after=, and continues from the world's time only.
    const bool is_control = spec.find("CONTROL") != std::string::npos;
    const auto ids = is_control ? frazil::snowflake{spec.substr(0, spec.find("CONTROL"))} : frazil::snowflake{spec + " after=" + std::to_string(highest)};
    if (!is_control) now = std::max(now, ids.layout().decode(highest).time + seconds{1});

    const int file = ::open(table.c_str(), O_WRONLY | O_CREAT, 0644);
    if (file < 0 || ::lseek(file, static_cast<off_t>(saved.size() * 8), SEEK_SET) < 0) return 3;
    std::vector<std::int64_t> loot(60);
    auto time = time_point_cast<microseconds>(now);
    for (long frame = 0;; ++frame, time += microseconds{16667}) {
        ids.set_time(time);
        ids.fill(loot);
        if (::write(file, loot.data(), loot.size() * 8) != static_cast<ssize_t>(loot.size() * 8)) return 4;
        if (frame % 600 == 0) {
            std::ofstream(save + ".new") << duration_cast<milliseconds>(time.time_since_epoch()).count();
            if (std::rename((save + ".new").c_str(), save.c_str()) != 0) return 5;
        }
    }
} catch (const std::exception &failure) {
    std::fprintf(stderr, "resume: %s\n", failure.what());
    return 1;
}
