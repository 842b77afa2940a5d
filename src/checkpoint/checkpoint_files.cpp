// SPDX-License-Identifier: Apache-2.0

#include "checkpoint/checkpoint_files.hpp"

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "posix/unique_fd.hpp"

namespace muster {
namespace {

/// More numbers than a crash can have left taken.
constexpr std::uint32_t kNumbersTried = 1000;
/// The last part of a trial's checkpoint directory where all nodes see it.
constexpr std::string_view kSharedName = "checkpoints";

std::string parent_of(const std::string& path) {
    return path.substr(0, path.find_last_of('/'));
}

/// Names in a directory; nothing when it can't be read (errno).
std::optional<std::vector<std::string>> names_in(const std::string& directory) {
    DIR* stream = ::opendir(directory.c_str());
    if (stream == nullptr) {
        return std::nullopt;
    }
    std::vector<std::string> names;
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is ours
    while (const dirent* entry = ::readdir(stream)) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") {
            names.emplace_back(name);
        }
    }
    ::closedir(stream);
    return names;
}

std::int64_t bytes_in(const std::string& directory) {
    std::int64_t bytes = 0;
    std::error_code failed;
    std::filesystem::recursive_directory_iterator entry(directory, failed);
    const std::filesystem::recursive_directory_iterator end;
    while (!failed && entry != end) {
        struct stat status {};
        if (::lstat(entry->path().c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
            bytes += status.st_size;
        }
        entry.increment(failed);
    }
    return bytes;
}

/// A name that nothing has.
std::string gone_name(const std::string& directory, const std::string& name) {
    static std::atomic<unsigned> count{0};
    return fmt::format("{}/.gone-{}-{}-{}", directory, name, ::getpid(), count++);
}

/// Empty when `path` is a directory that only this user can change; else what is wrong.
std::string not_ours(const std::string& path) {
    constexpr mode_t kOthersWrite = 022;
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) {
        return errno == ENOENT ? "" : std::generic_category().message(errno);
    }
    if (!S_ISDIR(status.st_mode)) {
        return "it is no directory";
    }
    if (status.st_uid != ::geteuid()) {
        return fmt::format("it belongs to user {}", status.st_uid);
    }
    return (status.st_mode & kOthersWrite) != 0 ? "others may write to it" : "";
}

}  // namespace

Error file_error(const std::string& what, const std::string& path, int error_number) {
    return Error{
        ErrorCode::System,
        fmt::format(
            "cannot {} '{}': {}", what, path, std::generic_category().message(error_number)
        )};
}

Status sync_directory(const std::string& directory) {
    const UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd) {
        return file_error("open", directory, errno);
    }
    // Some file systems sync no directories, and need not.
    if (::fsync(fd.get()) != 0 && errno != EINVAL && errno != EROFS && errno != ENOTSUP) {
        return file_error("sync", directory, errno);
    }
    return Ok{};
}

Status check_own_directory(const std::string& directory) {
    const std::string top = fmt::format("/muster-{}/", ::geteuid());
    const std::size_t begin = directory.find(top);
    const std::size_t last = directory.find_last_of('/');
    if (begin == std::string::npos || directory.substr(last + 1) == kSharedName) {
        return Ok{};
    }
    for (std::size_t end = begin + top.size() - 1;; end = directory.find('/', end + 1)) {
        const std::string part = directory.substr(0, end);
        if (const std::string problem = not_ours(part); !problem.empty()) {
            return Error{
                ErrorCode::System,
                fmt::format(
                    "checkpoints can't be kept in {}: {}; name another directory with "
                    "checkpoints.path",
                    part,
                    problem
                )};
        }
        if (end == std::string::npos) {
            return Ok{};
        }
    }
}

Result<KeptDirectory>
keep_checkpoint(const std::string& directory, const std::string& fresh, std::uint32_t next) {
    if (const Status ours = check_own_directory(directory); !ours) {
        return ours.error();
    }
    const std::string from = directory + "/" + fresh;
    struct stat status {};
    if (::lstat(from.c_str(), &status) != 0) {
        return file_error("keep", from, errno);
    }
    if (!S_ISDIR(status.st_mode)) {
        return file_error("keep", from, ENOTDIR);
    }
    KeptDirectory kept{next, bytes_in(from)};
    // A number may be taken by what nobody knows of: an empty directory would be replaced.
    while (true) {
        const std::string to = directory + "/" + checkpoint_name(kept.number);
        const bool taken = ::lstat(to.c_str(), &status) == 0;
        if (!taken && ::rename(from.c_str(), to.c_str()) == 0) {
            break;
        }
        const bool try_next = taken || errno == EEXIST || errno == ENOTEMPTY;
        if (!try_next || ++kept.number == next + kNumbersTried) {
            return file_error("rename to " + checkpoint_name(kept.number), from, errno);
        }
    }
    Status synced = sync_directory(directory);
    // The directory itself, and the trial's, may be new.
    const std::string above = parent_of(directory);
    for (const std::string& path : {above, parent_of(above)}) {
        synced = synced ? sync_directory(path) : synced;
    }
    if (!synced) {
        return synced.error();
    }
    return kept;
}

Presence find_checkpoint(const std::string& directory, std::uint32_t number) {
    if (!check_own_directory(directory)) {
        return Presence::Unknown;
    }
    // Opening a directory is what makes NFS ask its server for what is new.
    if (!names_in(directory)) {
        return errno == ENOENT || errno == ENOTDIR ? Presence::NotThere : Presence::Unknown;
    }
    struct stat status {};
    const std::string path = directory + "/" + checkpoint_name(number);
    if (::lstat(path.c_str(), &status) == 0) {
        return S_ISDIR(status.st_mode) ? Presence::There : Presence::NotThere;
    }
    return errno == ENOENT ? Presence::NotThere : Presence::Unknown;
}

std::string retire_checkpoint(const std::string& directory, std::uint32_t number) {
    if (!check_own_directory(directory)) {
        return "";
    }
    const std::string name = checkpoint_name(number);
    std::string gone = gone_name(directory, name);
    return ::rename((directory + "/" + name).c_str(), gone.c_str()) == 0 ? gone : "";
}

void remove_whole(const std::string& path) {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
}

void remove_leftovers(const CheckpointPlan& plan) {
    const std::optional<std::vector<std::string>> names = names_in(plan.directory);
    if (!names || names->empty() || !check_own_directory(plan.directory)) {
        return;
    }
    for (const std::string& name : *names) {
        bool kept = false;
        for (const std::uint32_t number : plan.kept) {
            kept = kept || name == checkpoint_name(number);
        }
        if (kept) {
            continue;
        }
        const std::string gone = gone_name(plan.directory, "left");
        const std::string path = plan.directory + "/" + name;
        remove_whole(::rename(path.c_str(), gone.c_str()) == 0 ? gone : path);
    }
}

}  // namespace muster
