// SPDX-License-Identifier: Apache-2.0

#include "journal/files.hpp"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "journal/segments.hpp"

namespace muster {

int JournalFiles::create(const std::string& path) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : fd;
}

long JournalFiles::write(int fd, std::string_view bytes) {
    ssize_t count = -1;
    do {
        count = ::write(fd, bytes.data(), bytes.size());
    } while (count < 0 && errno == EINTR);
    return count > 0 ? count : -(count < 0 ? errno : ENOSPC);
}

int JournalFiles::sync(int fd) {
    struct stat status {};
    if (::fdatasync(fd) != 0 || ::fstat(fd, &status) != 0) {
        return -errno;
    }
    // A file that was removed takes everything, and keeps nothing.
    return status.st_nlink > 0 ? 0 : -ENOENT;
}

int JournalFiles::sync_directory(const std::string& path) {
    return -journal::sync_directory(path);
}

void JournalFiles::remove(const std::string& path) {
    ::unlink(path.c_str());
}

void JournalFiles::close(int fd) {
    ::close(fd);
}

}  // namespace muster
