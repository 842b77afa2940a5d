// SPDX-License-Identifier: Apache-2.0
//
// transport - messages between the processes of one run, by their ranks. Rank 0 is the head's.
//
// A message is bytes of any length. Those of one sender, receiver and lane arrive whole, once and
// in the order in which they were sent, or the pair is broken. Nothing here blocks: what can't go
// out yet waits in this process. What a receiver does not take in holds its sender back, lane by
// lane, so that a chatty node can't delay a control message, nor fill the head's memory.
//
// A pair of ranks talks in sessions, counted from 1. abandon() ends the present one on this side:
// all that was under way is void, what still comes in is dropped, and nothing goes out until one
// side begins a newer session with begin_anew(). Who gets word of a newer session drops what was
// under way in the old one, both ways, and goes on in the newer.
//
// A Transport belongs to one thread.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <poll.h>

#include "base/time.hpp"

namespace muster {

/// Control goes first, and has room of its own. Messages of different lanes may overtake each
/// other.
enum class Lane : std::uint8_t { Control, Bulk };

struct ReceivedMessage {
    std::uint32_t from = 0;
    Lane lane = Lane::Control;
    /// The session of the pair in which it was sent.
    std::uint32_t session = 1;
    std::string bytes;
};

/// A pair of ranks that can't talk any more, whatever either side does.
struct BrokenPair {
    std::uint32_t rank = 0;
    /// For people: "its connection was reset", "it sent what is no frame: …".
    std::string why;

    friend bool operator==(const BrokenPair&, const BrokenPair&) = default;
};

class Transport {
  public:
    virtual ~Transport() = default;

    virtual std::uint32_t rank() const = 0;
    /// Ranks in all, this one included.
    virtual std::uint32_t size() const = 0;

    /// Takes the message on its way; it goes out with the next receive(), or later. To an abandoned
    /// or broken rank: dropped. REQUIRES: another rank; at most kLongestMessage bytes.
    virtual void send(std::uint32_t to, Lane lane, std::string message) = 0;
    static constexpr std::size_t kLongestMessage = std::size_t{1} << 30U;

    /// What has come in; of one peer at most about 48 kB at once, and what these complete. Bulk
    /// messages stay where they are, and hold their senders back, unless `with_bulk`. Also moves on
    /// what waits to go out: to be called once a turn of the loop, after the turn's sends.
    virtual std::vector<ReceivedMessage> receive(bool with_bulk) = 0;

    /// Bytes that wait here for `to`: not yet handed to the system, or not taken in by the peer.
    virtual std::size_t unsent(std::uint32_t to) const = 0;

    /// Ends the session with `peer`, unless it is newer than `session`: word of a newer one may
    /// have come already.
    virtual void abandon(std::uint32_t peer, std::uint32_t session) = 0;
    /// Begins a newer session with `peer`. REQUIRES: higher than the present one.
    virtual void begin_anew(std::uint32_t peer, std::uint32_t session) = 0;

    /// Ranks whose connection was seen to end since the last call, for good. Each is told once;
    /// what had come in whole is handed out before, Bulk perhaps after. Not every loss shows so: a
    /// host without power says nothing.
    virtual std::vector<BrokenPair> take_broken() = 0;

    // How a loop waits for what comes in.

    /// Adds what the loop's poll() is to wait for.
    virtual void add_poll_fds(std::vector<pollfd>& fds) = 0;
    /// Looks at what poll() said of those added last. REQUIRES: the same entries, in order.
    virtual void polled(std::span<const pollfd> fds) = 0;
    /// The loop must not wait longer than this before it calls receive() again: not at all when
    /// something can go out now; kLongest when poll() alone will do.
    virtual Duration longest_wait() const = 0;
    static constexpr Duration kLongest = std::chrono::hours{1};
};

}  // namespace muster
