// SPDX-License-Identifier: Apache-2.0

#include "launch/launcher_child.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace muster {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kOrphanPatience{2};

Error failed_to(const std::string& what) {
    return {
        ErrorCode::System,
        fmt::format("cannot {}: {}", what, std::generic_category().message(errno))};
}

struct Pipe {
    UniqueFd reading;
    UniqueFd writing;
};

Result<Pipe> make_pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        return failed_to("make a pipe");
    }
    return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

struct Streams {
    int words;
    int errors;
};

[[noreturn]] void become(
    const std::string& path,
    char* const* words,
    Streams streams,
    pid_t parent,
    const sigset_t& mask
) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) {
        ::_exit(1);
    }
    std::signal(SIGPIPE, SIG_DFL);
    // Not in the terminal's foreground, it may write there all the same.
    std::signal(SIGTTOU, SIG_IGN);
    ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
    ::dup2(streams.words, STDIN_FILENO);
    ::dup2(streams.errors, STDERR_FILENO);
    ::execv(path.c_str(), words);
    ::_exit(127);
}

std::vector<pid_t> children() {
    std::ifstream file(fmt::format("/proc/self/task/{}/children", ::getpid()));
    return {std::istream_iterator<pid_t>(file), std::istream_iterator<pid_t>()};
}

}  // namespace

LauncherChild::LauncherChild(pid_t pid, UniqueFd process, UniqueFd errors, UniqueFd words)
    : pid_(pid),
      process_(std::move(process)),
      errors_(std::move(errors)),
      words_(std::move(words)) {}

Result<LauncherChild> LauncherChild::start(
    const std::vector<std::string>& line,
    const std::string& path,
    const sigset_t& mask
) {
    Result<Pipe> errors = make_pipe();
    Result<Pipe> stdin_words = make_pipe();
    if (!errors || !stdin_words) {
        return errors ? stdin_words.error() : errors.error();
    }
    ::fcntl(errors->reading.get(), F_SETFL, O_NONBLOCK);
    ::fcntl(stdin_words->writing.get(), F_SETFL, O_NONBLOCK);
    std::vector<char*> words;
    words.reserve(line.size() + 1);
    for (const std::string& word : line) {
        words.push_back(const_cast<char*>(word.c_str()));  // NOLINT: what execv wants
    }
    words.push_back(nullptr);
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) {
        return failed_to("start " + line.front());
    }
    if (pid == 0) {
        const Streams streams{stdin_words->reading.get(), errors->writing.get()};
        become(path, words.data(), streams, parent, mask);
    }
    // Both sides, so that it is done whoever comes first.
    ::setpgid(pid, pid);
    UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!process) {
        const Error error = failed_to("watch " + line.front());
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
        return error;
    }
    return LauncherChild(
        pid, std::move(process), std::move(errors->reading), std::move(stdin_words->writing)
    );
}

void LauncherChild::tell(std::string_view text) const {
    (void)!::write(words_.get(), text.data(), text.size());
}

void LauncherChild::signal(int number) const {
    if (!status_) {
        ::kill(pid_, number);
    }
}

void LauncherChild::reap() {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
        status_ = status;
    }
}

void LauncherChild::end_orphans() {
    const Clock::time_point end = Clock::now() + kOrphanPatience;
    for (std::vector<pid_t> left = children(); !left.empty() && Clock::now() < end;
         left = children()) {
        for (const pid_t child : left) {
            ::kill(child, SIGKILL);
        }
        while (::waitpid(-1, nullptr, WNOHANG) > 0) {
        }
        ::poll(nullptr, 0, 10);
    }
}

void LauncherChild::remove_session() const {
    std::array<char, 256> host{};
    ::gethostname(host.data(), host.size() - 1);
    const std::string name(host.data(), std::strcspn(host.data(), "."));
    std::error_code ignored;
    std::filesystem::remove_all(
        std::filesystem::temp_directory_path(ignored) /
            fmt::format("ompi.{}.{}/pid.{}", name, ::getuid(), pid_),
        ignored
    );
}

}  // namespace muster
