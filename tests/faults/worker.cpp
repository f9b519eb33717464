// Mints until FOLDER/stop exists, and writes down every ID at once: worker KIND SPEC FOLDER NAME (see worker.py)
#include <frazil.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <type_traits>
#include <unistd.h>
#include <vector>

namespace {

using steady = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::size_t many = 5000;
constexpr auto polls_for = 1s;
// The pause between two steps.
constexpr auto pause = 4ms;

unsigned setting(const char *name) {
    const char *value = std::getenv(name);
    if (!value) throw std::runtime_error(std::string(name) + " is not set");
    return static_cast<unsigned>(std::atoi(value));
}

// True while a visitor runs in this process. Threads do not survive a fork.
std::atomic<bool> visited{false};

// Continues with another node number, or with another range.
void begin_anew(frazil::throwing::snowflake &ids) { ids.release_node(); }
void begin_anew(frazil::throwing::numbers &numbers) { numbers.discard(); }

/// `Source` is a frazil::snowflake or a frazil::segment.
template <typename Source> class worker {
public:
    worker(std::string spec, std::string folder, std::string name, std::string part = "")
        : spec_(std::move(spec)), folder_(std::move(folder)), name_(std::move(name)), part_(std::move(part)) {
        own_files();
    }

    ~worker() {
        ::close(out_);
        ::close(log_);
    }

    void run(steady::time_point end, bool forks) {
        while (steady::now() < end) {
            const unsigned draw = below(rare_);
            if (draw < 2) ids_.reset();
            if (!ids_) open();
            if (!ids_ || (draw % 16 == 0 && stopped())) break;
            if (draw == 2) try_to([&] { begin_anew(*ids_); });
            if (draw == 3 && forks) branch();
            if (draw == 4) observe();
            if (draw == 5) visit();
            mint(draw < 6 ? many : few_);
            std::this_thread::sleep_for(pause);
        }
        // Half of the children exit without a close, like crashed processes.
        if (forks || below(2)) ids_.reset();
    }

    void note(const std::string &code, const std::string &text) { write_all(log_, code + ' ' + text + '\n'); }

private:
    void own_files() {
        out_ = append_to("ids");
        log_ = append_to("log");
        random_.seed(static_cast<unsigned>(getpid()));
    }

    int append_to(const char *ending) const {
        const std::string path = folder_ + '/' + name_ + '.' + std::to_string(getpid()) + '.' + part_ + ending;
        const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
        if (file < 0) throw std::runtime_error("cannot open " + path);
        return file;
    }

    static void write_all(int file, const void *data, std::size_t size) {
        if (::write(file, data, size) != static_cast<ssize_t>(size)) throw std::runtime_error("cannot write");
    }
    static void write_all(int file, const std::string &text) { write_all(file, text.data(), text.size()); }

    bool stopped() const { return std::filesystem::exists(folder_ + "/stop"); }
    unsigned below(unsigned limit) { return std::uniform_int_distribution<unsigned>(0, limit - 1)(random_); }

    template <typename Call> bool try_to(Call call) {
        try {
            call();
            return true;
        } catch (const frazil::error &error) {
            note(frazil::name(error.code()), error.what());
            return false;
        }
    }

    // Opens, with waits or with polls. A visitor that polls gives up after a while.
    void open(bool waits = true) {
        const auto end = waits ? steady::time_point::max() : steady::now() + polls_for;
        while (!ids_ && steady::now() < end && !stopped()) {
            newest_ = -1;
            const auto once = [&] { ids_.emplace(waits ? Source(spec_) : Source::open_for(spec_, 0ms).value()); };
            if (!try_to(once)) std::this_thread::sleep_for(20ms);
        }
    }

    void mint(std::size_t count) {
        std::size_t written = count;
        bool refused = false;
        std::string code, text;
        try {
            ids_->fill(buffer_.data(), count);
        } catch (const frazil::error &error) {
            written = error.written();
            refused = true;
            code = frazil::name(error.code());
            text = error.what();
        }
        if (written) {
            write_all(out_, buffer_.data(), written * sizeof buffer_[0]);
            if (buffer_[0] <= newest_) note("NOT_ASCENDING", std::to_string(buffer_[0]) + " after " + std::to_string(newest_));
            newest_ = buffer_[written - 1];
        }
        if (refused) {
            note(code, text);
            std::this_thread::sleep_for(20ms);
        }
    }

    // Returns the last ID that one of the processes has written down, or -1.
    std::int64_t somebodys_newest() {
        std::vector<std::filesystem::path> files;
        for (const auto &entry : std::filesystem::directory_iterator(folder_))
            if (entry.path().extension() == ".ids") files.push_back(entry.path());
        std::ifstream file(files.at(below(static_cast<unsigned>(files.size()))), std::ios::binary | std::ios::ate);
        const std::streamoff whole = file.tellg() / 8 * 8;
        std::int64_t newest = -1;
        if (whole && !file.seekg(whole - 8).read(reinterpret_cast<char *>(&newest), sizeof newest)) throw std::runtime_error("cannot read");
        return newest;
    }

    void observe() {
        if constexpr (std::is_same_v<Source, frazil::snowflake>) {
            const std::int64_t theirs = somebodys_newest();
            if (theirs < 0 || !try_to([&] { ids_->observe(theirs); })) return;
            newest_ = std::max(newest_, theirs);
            const int file = append_to("observed");
            write_all(file, ".");
            ::close(file);
        }
    }

    // Starts a visitor, at most one at a time. Visitors wait and poll in turn.
    void visit() {
        if (visited.exchange(true)) return;
        const bool waits = ++visits_ % 2 == 0;
        const std::string part = (waits ? "waits." : "polls.") + std::to_string(visits_) + '.';
        std::thread([spec = spec_, folder = folder_, name = name_, part, waits] {
            worker(spec, folder, name, part).stay(waits);
            visited = false;
        }).detach();
    }

    void stay(bool waits) {
        try {
            open(waits);
            for (const auto end = steady::now() + std::chrono::milliseconds(below(1000)); ids_ && steady::now() < end;) {
                mint(few_);
                std::this_thread::sleep_for(pause);
            }
            ids_.reset();
        } catch (const std::exception &error) {
            note("UNTYPED", error.what());
        }
    }

    // Forks. Both processes continue, the child for a while and with its own files.
    void branch() {
        int status = 0;
        if (child_ && ::waitpid(child_, &status, WNOHANG) != child_) return;
        if (status) note("CHILD", "ended with status " + std::to_string(status));
        child_ = ::fork();
        if (child_ != 0) return;
        ::alarm(setting("FRAZIL_WORKER_CHILD_LIMIT"));
        visited = false;
        try {
            own_files();
            // Before the child leases its own number, another thread may open, and the inherited handle may be closed.
            if (below(2)) visit();
            if (!below(4)) ids_.reset();
            run(steady::now() + 500ms + std::chrono::milliseconds(below(2500)), false);
        } catch (const std::exception &error) {
            note("UNTYPED", error.what());
        }
        ::_exit(0);
    }

    std::string spec_, folder_, name_, part_;
    unsigned rare_ = setting("FRAZIL_WORKER_RARE"), few_ = setting("FRAZIL_WORKER_FEW"), visits_ = 0;
    int out_ = -1, log_ = -1;
    pid_t child_ = 0;
    std::int64_t newest_ = -1;
    std::vector<std::int64_t> buffer_ = std::vector<std::int64_t>(many);
    std::optional<Source> ids_;
    std::mt19937 random_;
};

template <typename Source> int work(char **arguments) {
    worker<Source> self(arguments[0], arguments[1], arguments[2]);
    try {
        self.run(steady::time_point::max(), setting("FRAZIL_WORKER_FORKS") == 1);
        while (visited) std::this_thread::sleep_for(1ms);
    } catch (const std::exception &error) {
        self.note("UNTYPED", error.what());
        return 1;
    }
    return 0;
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    return argv[1] == std::string("Segment") ? work<frazil::segment>(argv + 2) : work<frazil::snowflake>(argv + 2);
}
