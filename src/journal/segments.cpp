// SPDX-License-Identifier: Apache-2.0

#include "journal/segments.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "journal/record.hpp"

namespace muster::journal {
namespace {

constexpr std::string_view kEnding = ".log";
constexpr std::size_t kDigits = 6;

/// The number in "<stem>-000012.log", or 0 when the name is another.
std::uint64_t number_in(std::string_view name, std::string_view stem) {
    if (name.size() < stem.size() + 1 + kDigits + kEnding.size() ||
        name.substr(0, stem.size()) != stem || name[stem.size()] != '-' ||
        name.substr(name.size() - kEnding.size()) != kEnding) {
        return 0;
    }
    const char* begin = name.data() + stem.size() + 1;
    const char* end = name.data() + name.size() - kEnding.size();
    std::uint64_t number = 0;
    const auto [stop, error] = std::from_chars(begin, end, number);
    return error == std::errc{} && stop == end ? number : 0;
}

}  // namespace

int sync_directory(const std::string& directory) {
    const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return errno;
    }
    const int error = ::fsync(fd) == 0 ? 0 : errno;
    ::close(fd);
    // Some network file systems can't sync a directory; there is nothing better to do on them.
    return error == EINVAL || error == EROFS ? 0 : error;
}

Error system_error(std::string_view action, std::string_view path, int error) {
    const std::string reason = std::generic_category().message(error);
    return {ErrorCode::System, fmt::format("cannot {} {}: {}", action, path, reason)};
}

std::string segment_name(std::string_view stem, std::uint64_t number) {
    return fmt::format("{}-{:06}{}", stem, number, kEnding);
}

Result<std::vector<SegmentFile>>
list_segments(const std::string& directory, std::string_view stem) {
    std::vector<SegmentFile> segments;
    std::error_code error;
    std::filesystem::directory_iterator entry(directory, error);
    if (error == std::errc::no_such_file_or_directory) {
        return segments;
    }
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        if (const std::uint64_t number = number_in(name, stem); number > 0) {
            segments.push_back({number, name});
        }
    }
    if (error) {
        return system_error("read the directory", directory, error.value());
    }
    std::sort(segments.begin(), segments.end(), [](const auto& left, const auto& right) {
        return left.number < right.number;
    });
    return segments;
}

std::string_view UtcClock::text() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    const auto milliseconds = static_cast<unsigned>(now.tv_nsec / 1'000'000);
    if (now.tv_sec != second_) {
        second_ = now.tv_sec;
        std::tm parts{};
        ::gmtime_r(&now.tv_sec, &parts);
        text_ = fmt::format(
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.000Z",
            parts.tm_year + 1900,
            parts.tm_mon + 1,
            parts.tm_mday,
            parts.tm_hour,
            parts.tm_min,
            parts.tm_sec
        );
    }
    const std::size_t at = text_.size() - 4;
    text_[at] = static_cast<char>('0' + milliseconds / 100);
    text_[at + 1] = static_cast<char>('0' + milliseconds / 10 % 10);
    text_[at + 2] = static_cast<char>('0' + milliseconds % 10);
    return text_;
}

SegmentAppender::SegmentAppender(Options options) : options_(std::move(options)) {}

SegmentAppender::~SegmentAppender() {
    abandon();
}

void SegmentAppender::abandon() {
    if (fd_ >= 0) {
        options_.files->close(fd_);
        fd_ = -1;
    }
    size_ = 0;
    written_ = 0;
}

Status SegmentAppender::open_next() {
    path_ = options_.directory + "/" + segment_name(options_.stem, options_.number);
    fd_ = options_.files->create(path_);
    if (fd_ < 0) {
        const int error = -fd_;
        options_.number += error == EEXIST ? 1 : 0;
        return system_error("make", path_, error);
    }
    ++options_.number;
    std::string header;
    append_record(Header{kFormat, MUSTER_VERSION, options_.experiment}, UtcClock().text(), header);
    int error = write_out(header);
    error = error == 0 ? -options_.files->sync_directory(options_.directory) : error;
    if (error == 0) {
        return Ok{};
    }
    // Nothing of worth is in it; on a full disk a new one would be left every second.
    options_.files->remove(path_);
    --options_.number;
    abandon();
    return system_error("begin", path_, error);
}

int SegmentAppender::write_out(std::string_view bytes) {
    while (!bytes.empty()) {
        const long count = options_.files->write(fd_, bytes);
        if (count < 0) {
            return static_cast<int>(-count);
        }
        bytes.remove_prefix(static_cast<std::size_t>(count));
        size_ += static_cast<std::uint64_t>(count);
    }
    return 0;
}

Status SegmentAppender::write() {
    if (fd_ >= 0 && written_ == 0 && size_ >= options_.segment_bytes) {
        abandon();
    }
    if (fd_ < 0) {
        if (Status opened = open_next(); !opened.ok()) {
            return opened;
        }
    }
    const std::uint64_t before = size_;
    const int error = write_out(std::string_view(pending_).substr(written_));
    written_ += static_cast<std::size_t>(size_ - before);
    if (error == 0) {
        return Ok{};
    }
    const Error problem = system_error("write", path_, error);
    if (error != ENOSPC && error != EDQUOT) {
        abandon();
    }
    return problem;
}

Status SegmentAppender::sync() {
    if (Status written = write(); !written.ok()) {
        return written;
    }
    if (const int error = -options_.files->sync(fd_); error != 0) {
        const Error problem = system_error("sync", path_, error);
        // The system may have dropped what it could not write and would call the next sync a
        // success: only a new segment with all of it is safe. Readers know doubles by their number.
        abandon();
        return problem;
    }
    pending_.clear();
    written_ = 0;
    return Ok{};
}

}  // namespace muster::journal
