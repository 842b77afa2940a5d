// SPDX-License-Identifier: Apache-2.0

#include "report/connection.hpp"

#include <algorithm>
#include <cerrno>

#include <sys/socket.h>

#include "report/report_line.hpp"

namespace muster {
namespace {

/// A buffer that grew for one long line is given back.
constexpr std::size_t kKeptCapacity = std::size_t{256} << 10U;

}  // namespace

bool Connection::has_line() {
    if (skipping_) {
        return false;
    }
    const std::size_t newline = in_.find('\n', std::max(scanned_, taken_));
    scanned_ = newline == std::string::npos ? in_.size() : newline;
    return newline != std::string::npos || in_.size() - taken_ > kMaxReportLine ||
           (ended_ && taken_ < in_.size());
}

Connection::Take Connection::take_line(std::string_view& line) {
    if (!has_line()) {
        return Take::Nothing;
    }
    // Where has_line() stopped: at a newline, or at the end of what there is.
    const bool whole = scanned_ < in_.size();
    line = std::string_view(in_).substr(taken_, scanned_ - taken_);
    ++lines_taken_;
    taken_ = whole ? scanned_ + 1 : in_.size();
    if (line.size() <= kMaxReportLine) {
        return Take::Line;
    }
    skipping_ = !whole && !ended_;
    return Take::TooLong;
}

bool Connection::read_some(char* scratch, std::size_t size) {
    readable = false;
    if (ended_) {
        return false;
    }
    const ssize_t got = ::recv(fd_.get(), scratch, size, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return false;
    }
    if (got <= 0) {
        ended_ = true;
        return false;
    }
    in_.erase(0, taken_);
    scanned_ -= std::min(scanned_, taken_);
    taken_ = 0;
    if (in_.empty() && in_.capacity() > kKeptCapacity) {
        in_.shrink_to_fit();
    }
    std::string_view fresh(scratch, static_cast<std::size_t>(got));
    if (skipping_) {
        const std::size_t newline = fresh.find('\n');
        fresh.remove_prefix(newline == std::string_view::npos ? fresh.size() : newline + 1);
        skipping_ = newline == std::string_view::npos;
    }
    in_.append(fresh);
    return true;
}

void Connection::send(std::string_view line) {
    out_.append(line);
    flush();
}

void Connection::send_if_read(std::string_view line) {
    constexpr std::size_t kMuch = kMaxUnread / 4;
    if (out_.size() <= kMuch) {
        send(line);
    }
}

void Connection::flush() {
    std::size_t sent = 0;
    while (sent < out_.size()) {
        const ssize_t count =
            ::send(fd_.get(), out_.data() + sent, out_.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0 && errno != EAGAIN) {
            // Nobody will read it; what the client sent before is still of use.
            sent = out_.size();
            break;
        }
        if (count < 0) {
            break;
        }
        sent += static_cast<std::size_t>(count);
    }
    out_.erase(0, sent);
}

void Connection::drop_answers() {
    out_.clear();
    owes_decision = false;
    owes_checkpoint = false;
}

bool Connection::is_over() {
    return ended_ && !owes_decision && !owes_checkpoint && out_.empty() && !has_line();
}

}  // namespace muster
