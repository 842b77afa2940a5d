// SPDX-License-Identifier: Apache-2.0

#include "journal/line_file.hpp"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "journal/segments.hpp"

namespace muster::journal {

Result<LineFile> LineFile::open(const std::string& path) {
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) {
        return system_error("open", path, errno);
    }
    return LineFile(std::move(fd), path);
}

Result<bool> LineFile::read_more() {
    constexpr std::size_t kBlock = std::size_t{1} << 18U;
    buffer_.erase(0, start_);
    start_ = 0;
    const std::size_t kept = buffer_.size();
    buffer_.resize(kept + kBlock);
    ssize_t count = -1;
    do {
        count = ::read(fd_.get(), buffer_.data() + kept, kBlock);
    } while (count < 0 && errno == EINTR);
    const int error = errno;
    buffer_.resize(kept + static_cast<std::size_t>(count > 0 ? count : 0));
    if (count < 0) {
        return system_error("read", path_, error);
    }
    return count > 0;
}

Result<std::optional<LineFile::Line>> LineFile::next() {
    std::size_t searched = start_;
    std::size_t end = buffer_.find('\n', searched);
    while (end == std::string::npos && !at_end_ && buffer_.size() - start_ <= kLongestLine) {
        const std::size_t known = buffer_.size() - start_;
        const Result<bool> more = read_more();
        if (!more.ok()) {
            return more.error();
        }
        at_end_ = !*more;
        searched = start_ + known;
        end = buffer_.find('\n', searched);
    }
    const bool whole = end != std::string::npos;
    const std::size_t stop = whole ? end : buffer_.size();
    if (!whole && stop == start_) {
        return std::optional<Line>();
    }
    const Line line{std::string_view(buffer_).substr(start_, stop - start_), ++number_, whole};
    start_ = whole ? stop + 1 : stop;
    bytes_read_ += line.text.size() + (whole ? 1 : 0);
    return std::optional(line);
}

}  // namespace muster::journal
