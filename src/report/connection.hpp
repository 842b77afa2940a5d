// SPDX-License-Identifier: Apache-2.0
//
// connection - one client of the report socket: bytes to lines, answers to bytes, both bounded.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <sys/types.h>

#include "posix/unique_fd.hpp"
#include "protocol/messages.hpp"

namespace muster {

class Connection {
  public:
    /// Answers that may wait unread before the client is no longer listened to.
    static constexpr std::size_t kMaxUnread = std::size_t{64} << 10U;

    Connection(UniqueFd fd, pid_t pid) : fd_(std::move(fd)), pid_(pid) {}

    enum class Take {
        /// `line` is whole; it is valid until the next call.
        Line,
        /// A line was longer than the protocol allows; its bytes are thrown away as they come.
        TooLong,
        /// Read more first.
        Nothing,
    };

    /// The next line of what was read.
    Take take_line(std::string_view& line);

    /// Lines that take_line() gave so far, too long ones among them.
    std::uint64_t lines_taken() const { return lines_taken_; }

    /// Whether take_line() has a line without reading. May be wrong about a last line without end.
    bool has_line();

    /// Reads once, at most `size` bytes of scratch. False when there was nothing, for now or for
    /// ever (ended()).
    bool read_some(char* scratch, std::size_t size);

    /// Sends, or keeps what the socket does not take now.
    void send(std::string_view line);
    /// As send(), but leaves the line out when much is unread already.
    void send_if_read(std::string_view line);
    void flush();
    /// Nobody is there to read any more: what is unsent or owed is dropped.
    void drop_answers();

    bool wants_flush() const { return !out_.empty(); }
    bool is_slow() const { return out_.size() > kMaxUnread; }
    /// Whether its lines have to wait: for it to read, or for an answer that is owed.
    bool is_blocked() const { return is_slow() || owes_decision || owes_checkpoint; }
    /// The client will send nothing more.
    bool ended() const { return ended_; }
    /// Nothing more will come, and nothing is left to be done.
    bool is_over();

    int fd() const { return fd_.get(); }
    pid_t pid() const { return pid_; }

    /// Who it is, once it has said so.
    std::optional<MemberKey> member;
    /// A report waits for its decision; nothing further is taken until it has it, so that answers
    /// keep their order.
    bool owes_decision = false;
    /// So does a checkpoint for being safe.
    bool owes_checkpoint = false;
    /// In the server's queue of connections with work.
    bool queued = false;
    /// The kernel has something to read.
    bool readable = false;
    /// What epoll was last told to watch.
    std::uint32_t watched = 0;
    /// To be closed as soon as the caller is done with it.
    bool doomed = false;

  private:
    UniqueFd fd_;
    pid_t pid_ = 0;
    std::string in_;
    /// The first byte of in_ that is not taken.
    std::size_t taken_ = 0;
    /// No newline is before this byte of in_, from taken_ on.
    std::size_t scanned_ = 0;
    std::uint64_t lines_taken_ = 0;
    std::string out_;
    bool skipping_ = false;
    bool ended_ = false;
};

}  // namespace muster
