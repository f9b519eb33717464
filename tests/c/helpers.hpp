// Helpers of the cases in C++.
#include <frazil.hpp>

#include "suite.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <vector>

using frazil::errc;
using frazil::error;
using std::chrono::milliseconds;

/// Returns the error that a call throws, or OK.
template <typename F>
std::int32_t thrown(F call) {
    try {
        call();
    } catch (const error &error) {
        return static_cast<std::int32_t>(error.code());
    }
    return FRAZIL_OK;
}

/// Returns whether a call throws this error, with a message that contains all of these texts.
template <typename F>
bool refused(F call, errc code, std::vector<std::string> says = {}) {
    try {
        call();
    } catch (const error &error) {
        const std::string what = error.what();
        const auto said = [&](const std::string &word) { return what.find(word) != std::string::npos; };
        return error.code() == code && !what.empty() && std::all_of(says.begin(), says.end(), said);
    }
    return false;
}

inline bool ascending(const std::vector<std::int64_t> &ids) {
    return std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>()) == ids.end();
}

/// Ends a forked child by a signal that shows its outcome. An exit status would not do: valgrind makes each a failure, because memory
/// that only the stacks of the parent's threads refer to is leaked in the child.
[[noreturn]] inline void end_child(bool well) {
    kill(getpid(), well ? SIGUSR1 : SIGTERM);
    for (;;) pause();
}

/// Waits for a child, and returns whether it succeeded.
inline bool ended_well(pid_t child) {
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1;
}

template <typename F>
bool in_time(F condition) {
    for (int i = 0; i < 6000 && !condition(); ++i) std::this_thread::sleep_for(milliseconds(10));
    return condition();
}

/// A barrier for processes. It is made before the forks, and each process waits at it once.
class barrier {
public:
    barrier() {
        if (pipe(ends_) != 0) std::abort();
    }

    /// Waits until each process has come here or has ended. The read returns when no process has the pipe's writing end open.
    void meet() const {
        char none = 0;
        close(ends_[1]);
        while (read(ends_[0], &none, 1) < 0) {}
        close(ends_[0]);
    }

private:
    int ends_[2];
};

/// A folder for the `store=file:` of one case.
class folder {
public:
    folder() : path_((std::filesystem::temp_directory_path() / "frazil-cpp-XXXXXX").string()) {
        if (mkdtemp(path_.data()) == nullptr) std::abort();
    }
    /// Removes the folder. Retries, because the thread of a freed handle may write once more.
    ~folder() {
        const auto removed = [](const std::string &path) {
            std::error_code failed;
            std::filesystem::remove_all(path, failed);
            return !failed;
        };
        if (!in_time([&] { return removed(path_) && removed(beside()); })) std::abort();
    }
    folder(const folder &) = delete;
    folder &operator=(const folder &) = delete;

    const std::string &path() const { return path_; }
    std::string store() const { return "file:" + path_; }
    /// Returns a spec of this folder's store.
    std::string spec(const std::string &rest = "") const { return "standard store=" + store() + " " + rest; }

    /// Returns the path of a folder or file beside this folder.
    std::string beside() const { return path_ + "-beside"; }

    /// Atomically exchanges the folder with the one beside it. After a plain rename, a thread that writes just then would recreate it.
    void exchange() const {
        if (renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, beside().c_str(), RENAME_EXCHANGE) != 0) std::abort();
    }

    /// Returns whether a number is free in the store. The newer half of its record then begins with "1 free".
    bool is_free(const std::string &in, std::uint64_t node) const {
        std::ifstream file(path_ + "/" + in + "/" + std::to_string(node), std::ios::binary);
        const std::string bytes((std::istreambuf_iterator<char>(file)), {});
        if (bytes.size() != 8192) return false;
        const auto sequence = [&](std::size_t half) {
            std::uint64_t number = 0;
            for (std::size_t i = 8; i-- > 0;) number = number << 8 | static_cast<unsigned char>(bytes[half * 4096 + 24 + i]);
            return number;
        };
        return bytes.compare((sequence(1) > sequence(0) ? 4096 : 0) + 36, 7, "1 free ") == 0;
    }

private:
    std::string path_;
};
