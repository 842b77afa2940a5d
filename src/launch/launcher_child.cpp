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

/// The ends that are read or written here do not block.
void set_nonblocking(const UniqueFd& fd) {
    ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
}

/// The child's stdin, stdout and stderr.
using Streams = std::array<int, 3>;

[[noreturn]] void become(
    const std::string& path,
    char* const* words,
    const Streams& streams,
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
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
        ::dup2(streams.at(static_cast<std::size_t>(fd)), fd);
    }
    ::execv(path.c_str(), words);
    ::_exit(127);
}

std::vector<pid_t> children() {
    std::ifstream file(fmt::format("/proc/self/task/{}/children", ::getpid()));
    return {std::istream_iterator<pid_t>(file), std::istream_iterator<pid_t>()};
}

}  // namespace

Result<LauncherChild> LauncherChild::start(
    const std::vector<std::string>& line,
    const std::string& path,
    const sigset_t& mask
) {
    Result<Pipe> input = make_pipe();
    Result<Pipe> output = make_pipe();
    Result<Pipe> errors = make_pipe();
    if (!input || !output || !errors) {
        return !input ? input.error() : !output ? output.error() : errors.error();
    }
    set_nonblocking(input->writing);
    set_nonblocking(output->reading);
    set_nonblocking(errors->reading);
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
        const Streams streams{input->reading.get(), output->writing.get(), errors->writing.get()};
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
    LauncherChild child(pid, std::move(process));
    child.words_ = std::move(input->writing);
    child.output_ = std::move(output->reading);
    child.errors_ = std::move(errors->reading);
    return child;
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
