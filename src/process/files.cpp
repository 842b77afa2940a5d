// SPDX-License-Identifier: Apache-2.0
#include "process/files.hpp"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster {
namespace {

constexpr mode_t kDirectoryMode = 0700;
constexpr mode_t kFileMode = 0600;

std::string parent_of(const std::string& path) {
    const std::size_t slash = path.find_last_of('/');
    return slash == std::string::npos || slash == 0 ? std::string() : path.substr(0, slash);
}

}  // namespace

std::string errno_text(int error_number) {
    return std::error_code(error_number, std::generic_category()).message();
}

Error system_error(const std::string& what, int error_number) {
    return Error{ErrorCode::System, what + ": " + errno_text(error_number)};
}

int make_directories(const std::string& path) {
    if (path.empty() || ::mkdir(path.c_str(), kDirectoryMode) == 0 || errno == EEXIST) {
        return 0;
    }
    if (errno != ENOENT) {
        return errno;
    }
    const std::string parent = parent_of(path);
    if (parent.empty()) {
        return ENOENT;
    }
    if (const int failed = make_directories(parent); failed != 0) {
        return failed;
    }
    return ::mkdir(path.c_str(), kDirectoryMode) == 0 || errno == EEXIST ? 0 : errno;
}

int make_directory(const std::string& path) {
    return ::mkdir(path.c_str(), kDirectoryMode) == 0 || errno == EEXIST ? 0 : errno;
}

int open_making_directory(const std::string& path, int flags) {
    const int fd = ::open(path.c_str(), flags | O_CREAT | O_CLOEXEC, kFileMode);
    if (fd >= 0 || errno != ENOENT) {
        return fd;
    }
    if (const int failed = make_directory(parent_of(path)); failed != 0) {
        errno = failed;
        return -1;
    }
    return ::open(path.c_str(), flags | O_CREAT | O_CLOEXEC, kFileMode);
}

int open_making_directories(const std::string& path, int flags) {
    const int fd = ::open(path.c_str(), flags | O_CREAT | O_CLOEXEC, kFileMode);
    if (fd >= 0 || errno != ENOENT) {
        return fd;
    }
    if (const int failed = make_directories(parent_of(path)); failed != 0) {
        errno = failed;
        return -1;
    }
    return ::open(path.c_str(), flags | O_CREAT | O_CLOEXEC, kFileMode);
}

int write_file(const std::string& path, std::string_view content) {
    const UniqueFd fd(open_making_directories(path, O_WRONLY | O_TRUNC));
    if (!fd) {
        return errno;
    }
    while (!content.empty()) {
        const ssize_t wrote = ::write(fd.get(), content.data(), content.size());
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote <= 0) {
            return wrote < 0 ? errno : ENOSPC;
        }
        content.remove_prefix(static_cast<std::size_t>(wrote));
    }
    return 0;
}

Result<UniqueFd> open_for_append(const std::string& path) {
    UniqueFd fd(open_making_directories(path, O_WRONLY | O_APPEND));
    if (!fd) {
        return system_error("cannot open '" + path + "'", errno);
    }
    return fd;
}

}  // namespace muster
