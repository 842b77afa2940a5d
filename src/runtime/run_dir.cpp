// SPDX-License-Identifier: Apache-2.0

#include "runtime/run_dir.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace muster {
namespace {

namespace fs = std::filesystem;

/// So that "/muster-<uid>-<pid>-XXXXXX/report" still fits into a socket's address.
constexpr std::size_t kLongestParent = 60;

/// $TMPDIR when it is short enough, and else /tmp.
std::vector<std::string> parent_directories() {
    // Read once, before any other thread could change the environment.
    const char* wanted = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe)
    const bool usable =
        wanted != nullptr && wanted[0] == '/' && std::string_view(wanted).size() <= kLongestParent;
    return usable ? std::vector<std::string>{wanted, "/tmp"} : std::vector<std::string>{"/tmp"};
}

std::string prefix() {
    return fmt::format("muster-{}-", ::getuid());
}

/// Whether the directory was left behind: its process is gone and nobody holds its lock.
bool is_stale(const std::string& path, std::string_view name) {
    const std::string_view rest = name.substr(prefix().size());
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), pid);
    const bool has_pid = error == std::errc{} && end != rest.data() + rest.size() && *end == '-';
    struct stat status {};
    if (!has_pid || pid <= 0 || ::lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
        status.st_uid != ::getuid()) {
        return false;
    }
    if (::kill(pid, 0) == 0 || errno != ESRCH) {
        return false;
    }
    const UniqueFd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    return directory && ::flock(directory.get(), LOCK_EX | LOCK_NB) == 0;
}

void remove_stale(const std::string& parent) {
    std::error_code error;
    fs::directory_iterator entry(parent, error);
    for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        if (name.rfind(prefix(), 0) == 0 && is_stale(entry->path().string(), name)) {
            std::error_code ignored;
            fs::remove_all(entry->path(), ignored);
        }
    }
}

Error failed_to(std::string_view action) {
    return {
        ErrorCode::System,
        fmt::format("cannot {}: {}", action, std::generic_category().message(errno))};
}

/// The janitor's life: in a session of its own, deaf to what ends a run, with nothing open but the
/// pipe.
[[noreturn]] void wait_and_remove(int lifeline, const std::string& path) {
    ::setsid();
    ::prctl(PR_SET_NAME, "muster-janitor");
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
    constexpr int kPipe = 3;
    ::dup2(lifeline, kPipe);
    ::close_range(kPipe + 1, ~0U, 0);
    const int null = ::open("/dev/null", O_RDWR);
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        ::dup2(null, standard);
    }
    (void)!::chdir("/");
    char byte = 0;
    while (::read(kPipe, &byte, 1) < 0 && errno == EINTR) {
    }
    std::error_code ignored;
    fs::remove_all(path, ignored);
    ::_exit(0);
}

}  // namespace

Result<RunDir> RunDir::make() {
    std::string path;
    for (const std::string& parent : parent_directories()) {
        remove_stale(parent);
        path = fmt::format("{}/{}{}-XXXXXX", parent, prefix(), ::getpid());
        // Whether it may be written to, and has room, is known for sure only now.
        if (::mkdtemp(path.data()) != nullptr) {
            break;
        }
        path.clear();
    }
    if (path.empty()) {
        return failed_to("make a directory for the run in /tmp");
    }
    UniqueFd lock(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    // Where there are no locks the process id alone decides.
    (void)::flock(lock.get(), LOCK_EX | LOCK_NB);
    RunDir directory(std::move(path), std::move(lock));
    if (Status forked = directory.fork_janitor(); !forked.ok()) {
        return forked.error();
    }
    return directory;
}

Status RunDir::fork_janitor() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        return failed_to("make a pipe");
    }
    const UniqueFd reading(ends[0]);
    lifeline_.reset(ends[1]);
    janitor_ = ::fork();
    if (janitor_ == 0) {
        wait_and_remove(reading.get(), path_);
    }
    return janitor_ > 0 ? Status(Ok{})
                        : failed_to("fork the process that clears up (see 'ulimit -u')");
}

RunDir::~RunDir() {
    if (!lock_) {
        return;
    }
    std::error_code ignored;
    fs::remove_all(path_, ignored);
    if (janitor_ > 0) {
        ::kill(janitor_, SIGKILL);
        ::waitpid(janitor_, nullptr, 0);
    }
}

}  // namespace muster
