// SPDX-License-Identifier: Apache-2.0
#include "process/file_follower.hpp"

#include <algorithm>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster {

FileFollower::FileFollower(std::string path, LinePatterns patterns)
    : path_(std::move(path)),
      patterns_(std::move(patterns)) {
    struct stat status {};
    if (::stat(path_.c_str(), &status) == 0) {
        inode_ = status.st_ino;
        offset_ = status.st_size;
    }
}

void FileFollower::reopen_if_replaced() {
    struct stat status {};
    if (::stat(path_.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
        return;
    }
    if (status.st_ino != inode_ || status.st_size < offset_) {
        inode_ = status.st_ino;
        offset_ = 0;
        fd_.reset();
    }
    if (!fd_) {
        fd_.reset(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    }
}

void FileFollower::read(std::size_t most_bytes, PatternReports& reports) {
    reopen_if_replaced();
    char buffer[16 * 1024];
    while (fd_ && most_bytes > 0) {
        const std::size_t size = std::min(most_bytes, sizeof buffer);
        const ssize_t got = ::pread(fd_.get(), buffer, size, offset_);
        if (got <= 0) {
            return;
        }
        patterns_.feed({buffer, static_cast<std::size_t>(got)}, reports);
        offset_ += got;
        most_bytes -= static_cast<std::size_t>(got);
    }
}

void FileFollower::finish(std::size_t most_bytes, PatternReports& reports) {
    read(most_bytes, reports);
    patterns_.finish(reports);
}

}  // namespace muster
