// SPDX-License-Identifier: Apache-2.0

#include "runtime/run_dir.hpp"

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
#include <sys/stat.h>
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

}  // namespace

Result<RunDir> RunDir::make() {
    for (const std::string& parent : parent_directories()) {
        remove_stale(parent);
        // Under a name that nobody looks at until it is locked: where several nodes share the
        // parent, none of them knows our process.
        std::string hidden = fmt::format("{}/.{}{}-XXXXXX", parent, prefix(), ::getpid());
        // Whether it may be written to, and has room, is known for sure only now.
        if (::mkdtemp(hidden.data()) == nullptr) {
            continue;
        }
        UniqueFd lock(::open(hidden.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        // Where there are no locks nobody takes it for left behind.
        (void)::flock(lock.get(), LOCK_EX | LOCK_NB);
        std::string path = fmt::format("{}/{}", parent, hidden.substr(parent.size() + 2));
        if (::rename(hidden.c_str(), path.c_str()) == 0) {
            return RunDir(std::move(path), std::move(lock));
        }
        ::rmdir(hidden.c_str());
    }
    return failed_to("make a directory for the run in /tmp");
}

RunDir::~RunDir() {
    if (!lock_) {
        return;
    }
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

}  // namespace muster
