// Mints until told to stop, and writes down every ID before anything else happens: worker KIND SPEC FOLDER NAME (see worker.py)
#include <frazil.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using steady = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::size_t many = 5000;
constexpr unsigned child_limit_s = 30;

/// `Source` is a frazil::snowflake or a frazil::segment.
template <typename Source> class worker {
public:
    worker(std::string spec, std::string folder, std::string name, unsigned rare, unsigned few)
        : spec_(std::move(spec)), folder_(std::move(folder)), name_(std::move(name)), rare_(rare), few_(few) {
        own_files();
    }

    void run(steady::time_point end, bool forks) {
        while (steady::now() < end) {
            const unsigned draw = below(rare_);
            if (draw < 2) ids_.reset();
            if (!ids_) open();
            if (!ids_ || (draw % 16 == 0 && stopped())) break;
            if (draw == 2) try_to([&] { ids_->renew(); });
            if (draw == 3 && forks) branch();
            mint(draw < 6 ? many : few_);
            std::this_thread::sleep_for(1ms);
        }
        // Half of the children just vanish, as crashed processes do.
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
        const std::string path = folder_ + '/' + name_ + '.' + std::to_string(getpid()) + '.' + ending;
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

    void open() {
        while (!ids_ && !stopped()) {
            newest_ = -1;
            if (!try_to([&] { ids_.emplace(spec_); })) std::this_thread::sleep_for(20ms);
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

    // Both go on: the child for a while, with files of its own.
    void branch() {
        if (child_ && ::waitpid(child_, nullptr, WNOHANG) == child_) child_ = 0;
        if (child_) return;
        child_ = ::fork();
        if (child_ != 0) return;
        ::alarm(child_limit_s);
        try {
            own_files();
            run(steady::now() + 500ms + std::chrono::milliseconds(below(2500)), false);
        } catch (const std::exception &error) {
            note("UNTYPED", error.what());
        }
        ::_exit(0);
    }

    std::string spec_, folder_, name_;
    unsigned rare_, few_;
    int out_ = -1, log_ = -1;
    pid_t child_ = 0;
    std::int64_t newest_ = -1;
    std::vector<std::int64_t> buffer_ = std::vector<std::int64_t>(many);
    std::optional<Source> ids_;
    std::mt19937 random_;
};

unsigned setting(const char *name) {
    const char *value = std::getenv(name);
    if (!value) throw std::runtime_error(std::string(name) + " is not set");
    return static_cast<unsigned>(std::atoi(value));
}

template <typename Source> int work(char **arguments) {
    worker<Source> self(arguments[0], arguments[1], arguments[2], setting("FRAZIL_WORKER_RARE"), setting("FRAZIL_WORKER_FEW"));
    try {
        self.run(steady::time_point::max(), setting("FRAZIL_WORKER_FORKS") == 1);
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
