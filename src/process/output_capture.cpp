// SPDX-License-Identifier: Apache-2.0
#include "process/output_capture.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/utf8.hpp"
#include "process/files.hpp"

namespace muster {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kTailBytes = 4096;
constexpr int kTailLines = 10;
constexpr std::size_t kPieceBytes = std::size_t{64} * 1024;
/// Output for a stream waits so long for more, so that a chunk is more than a line.
constexpr milliseconds kStreamDelay{200};
/// Of what may be left in a pipe; a writer outside of the member's processes can't hold us up.
constexpr int kMostPiecesAtTheEnd = 64;

}  // namespace

std::string last_lines(std::string_view bytes) {
    if (bytes.size() >= kTailBytes) {
        // Perhaps the rest of a line, which says little: left out unless nothing follows it.
        bytes.remove_prefix(bytes.size() - kTailBytes);
        const std::size_t end = bytes.find('\n');
        const bool is_all = end == std::string_view::npos || end + 1 == bytes.size();
        bytes.remove_prefix(is_all ? 0 : end + 1);
    }
    while (!bytes.empty() && (bytes.back() == '\n' || bytes.back() == '\r')) {
        bytes.remove_suffix(1);
    }
    std::size_t begin = bytes.size();
    for (int lines = 0; begin > 0; --begin) {
        if (bytes[begin - 1] == '\n' && ++lines == kTailLines) {
            break;
        }
    }
    bytes.remove_prefix(begin);
    std::string text;
    while (!bytes.empty()) {
        const std::size_t good = find_not_utf8(bytes).value_or(bytes.size());
        text += bytes.substr(0, good);
        bytes.remove_prefix(good);
        if (!bytes.empty()) {
            text += "\xEF\xBF\xBD";
            bytes.remove_prefix(1);
        }
    }
    return text;
}

OutputCapture::OutputCapture(const LaunchPlan& plan, std::optional<LinePatterns> patterns)
    : mode_(plan.output),
      path_(plan.output_path),
      patterns_(std::move(patterns)),
      in_kernel_(plan.output == OutputMode::File && !patterns_),
      storing_(plan.output != OutputMode::Discard) {
    if (mode_ == OutputMode::Stream) {
        stream_.emplace(path_, plan.key);
    }
}

Result<OutputCapture>
OutputCapture::open(const LaunchPlan& plan, std::optional<LinePatterns> patterns) {
    OutputCapture capture(plan, std::move(patterns));
    Status opened = plan.output == OutputMode::Pty ? capture.open_terminal() : capture.open_pipe();
    if (!opened) {
        return opened.error();
    }
    return capture;
}

Status OutputCapture::open_pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        return system_error("cannot open a pipe for the output", errno);
    }
    reader_.reset(ends[0]);
    writer_.reset(ends[1]);
    ::fcntl(reader_.get(), F_SETFL, O_NONBLOCK);
    stderr_fd_ = writer_.get();
    // A keeper's own stdin is /dev/null, open for both ways.
    const bool only_errors = mode_ == OutputMode::Discard && !patterns_;
    stdout_fd_ = only_errors ? STDIN_FILENO : writer_.get();
    return Ok{};
}

Status OutputCapture::open_terminal() {
    reader_.reset(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
    std::array<char, 64> name{};
    if (!reader_ || ::grantpt(reader_.get()) != 0 || ::unlockpt(reader_.get()) != 0 ||
        ::ptsname_r(reader_.get(), name.data(), name.size()) != 0) {
        return system_error("cannot open a terminal for the output (output: pty)", errno);
    }
    writer_.reset(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (!writer_) {
        return system_error("cannot open a terminal for the output (output: pty)", errno);
    }
    termios settings{};
    if (::tcgetattr(writer_.get(), &settings) == 0) {
        // Output as it was written: no carriage returns in the file.
        settings.c_oflag &= ~static_cast<tcflag_t>(OPOST);
        settings.c_lflag &= ~static_cast<tcflag_t>(ECHO);
        ::tcsetattr(writer_.get(), TCSANOW, &settings);
    }
    const winsize size{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
    ::ioctl(writer_.get(), TIOCSWINSZ, &size);
    stdout_fd_ = writer_.get();
    stderr_fd_ = writer_.get();
    return Ok{};
}

bool OutputCapture::read(PatternReports& reports, Clock::time_point now) {
    return in_kernel_ ? splice_some() : copy_some(reports, now);
}

bool OutputCapture::open_file() {
    if (file_) {
        return true;
    }
    // Not O_APPEND: splice refuses it. Attempts of a trial write one after the other.
    file_.reset(open_making_directory(path_, O_RDWR));
    if (!file_) {
        give_up_storing(errno_text(errno));
        return false;
    }
    begin_ = std::max<std::int64_t>(::lseek(file_.get(), 0, SEEK_END), 0);
    return true;
}

bool OutputCapture::splice_some() {
    int waiting = 0;
    if (!file_ && (::ioctl(reader_.get(), FIONREAD, &waiting) != 0 || waiting == 0)) {
        return false;
    }
    if (!open_file()) {
        return true;
    }
    const ssize_t moved = ::splice(
        reader_.get(), nullptr, file_.get(), nullptr, kPieceBytes, SPLICE_F_MOVE | SPLICE_F_NONBLOCK
    );
    if (moved > 0) {
        return true;
    }
    if (moved == 0 || errno == EAGAIN) {
        return false;
    }
    if (errno == EINVAL) {
        // A file system that can't: by way of our memory then.
        in_kernel_ = false;
        return true;
    }
    if (errno != EINTR) {
        give_up_storing(errno_text(errno));
    }
    return true;
}

bool OutputCapture::copy_some(PatternReports& reports, Clock::time_point now) {
    // A keeper has one thread and one member, so one buffer serves.
    static std::array<char, kPieceBytes> buffer;
    const ssize_t got = ::read(reader_.get(), buffer.data(), buffer.size());
    if (got <= 0) {
        return got < 0 && errno == EINTR;
    }
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
    if (patterns_) {
        patterns_->feed(bytes, reports);
    }
    keep_tail(bytes);
    store(bytes, now);
    return true;
}

void OutputCapture::store(std::string_view bytes, Clock::time_point now) {
    if (!storing_) {
        return;
    }
    if (!stream_) {
        write_to_file(bytes);
        return;
    }
    if (pending_.empty()) {
        flush_due_ = now + kStreamDelay;
    }
    pending_ += bytes;
    if (pending_.size() >= kPieceBytes) {
        flush();
    }
}

void OutputCapture::write_to_file(std::string_view bytes) {
    if (!open_file()) {
        return;
    }
    while (!bytes.empty()) {
        const ssize_t wrote = ::write(file_.get(), bytes.data(), bytes.size());
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote <= 0) {
            give_up_storing(errno_text(wrote < 0 ? errno : ENOSPC));
            return;
        }
        bytes.remove_prefix(static_cast<std::size_t>(wrote));
    }
}

void OutputCapture::flush() {
    flush_due_ = Clock::time_point::max();
    if (!pending_.empty() && storing_) {
        if (const Status appended = stream_->append(pending_); !appended) {
            storing_ = false;
            remark_ = appended.error().message + "; output from here on is lost";
        }
    }
    pending_.clear();
}

void OutputCapture::give_up_storing(const std::string& problem) {
    // What is already in the file stays the end that we know.
    tail_ = tail();
    in_kernel_ = false;
    storing_ = false;
    remark_ = "cannot write '" + path_ + "': " + problem + "; output from here on is lost";
}

void OutputCapture::keep_tail(std::string_view bytes) {
    if (bytes.size() >= kTailBytes) {
        tail_.assign(bytes.substr(bytes.size() - kTailBytes));
        return;
    }
    tail_ += bytes;
    // Cut seldom: moving the rest costs more than holding it.
    if (tail_.size() > 2 * kTailBytes) {
        tail_.erase(0, tail_.size() - kTailBytes);
    }
}

void OutputCapture::finish(PatternReports& reports) {
    int pieces = 0;
    while (pieces < kMostPiecesAtTheEnd && read(reports, Clock::time_point{})) {
        ++pieces;
    }
    if (patterns_) {
        patterns_->finish(reports);
    }
    flush();
}

std::optional<std::string> OutputCapture::take_remark() {
    return std::exchange(remark_, std::nullopt);
}

std::string OutputCapture::tail() const {
    if (!in_kernel_ || !file_) {
        return last_lines(tail_);
    }
    const std::int64_t end = ::lseek(file_.get(), 0, SEEK_CUR);
    const std::int64_t begin = std::max(begin_, end - static_cast<std::int64_t>(kTailBytes));
    std::string bytes(static_cast<std::size_t>(std::max<std::int64_t>(end - begin, 0)), '\0');
    const ssize_t got = ::pread(file_.get(), bytes.data(), bytes.size(), begin);
    bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return last_lines(bytes);
}

}  // namespace muster
