// SPDX-License-Identifier: Apache-2.0
//
// link - the flow control between this process and one other: cuts messages into frames, puts them
// together again, and never has more under way than the other side is known to take. Pure.
//
// Why so little may be under way: when a TCP peer dies while Open MPI 4.1 holds a frame that the
// kernel did not take yet, the *survivor* aborts. What is not acknowledged must fit into the
// kernel's buffers, of which a fresh connection has about 76 kB.
//
// - A frame is at most kFrame bytes and holds parts of messages; several small messages share one.
// - Control goes first. Bulk leaves room for it: kControlRoom of the window.
// - What arrives is acknowledged when take() takes it in, not before; acknowledgements are
//   cumulative, lane by lane, travel in every frame, and in one of their own when there is no
//   other.
// - Until the peer was heard of in a session, at most kGreeting is under way: connections are made
//   with a small frame. What older sessions left under way counts on until then.
// - The bytes of a frame are never trusted. One that makes no sense breaks the link for good.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/error.hpp"

#include "transport/transport.hpp"

namespace muster {

class Link {
  public:
    /// The longest frame, header included.
    static constexpr std::size_t kFrame = 16'384;
    /// What may be under way to the peer: bytes of parts, and kFrameCharge for each frame, which
    /// stands for its header and what MPI and the kernel add.
    static constexpr std::size_t kWindow = 48'000;
    static constexpr std::size_t kControlRoom = 8'000;
    static constexpr std::size_t kFrameCharge = 256;
    static constexpr std::size_t kGreeting = 1'024;
    /// What old and new sessions may have under way together.
    static constexpr std::size_t kWindowOfAllSessions = 64'000;

    /// Puts the message into the queue. To a link that is not open: drops it.
    void send(Lane lane, std::string message);

    /// The next frame that may go out now; empty when there is none.
    std::string next_frame();
    /// next_frame() would give one with a message's bytes.
    bool can_send() const;
    /// There is something to acknowledge; next_frame() would give a frame.
    bool owes() const { return open_ && owes_; }
    /// So much of it that the peer may be waiting.
    bool owes_much() const;

    /// Takes in what the peer's next_frame() gave, in its order.
    ///
    /// Errors: Corrupt: the frame makes no sense, and the link is broken now.
    Status on_frame(std::string_view frame);

    /// Messages of a lane that have come in whole, and acknowledges what was taken in for them and
    /// for longer ones.
    std::vector<std::string> take(Lane lane);

    /// take() would take in something.
    bool has_arrived(Lane lane) const { return !in_[index_of(lane)].parts.empty(); }

    /// Bytes in the queue or under way.
    std::size_t unsent() const;

    std::uint32_t session() const { return session_; }
    bool open() const { return open_; }
    /// Ends the session here, unless it is newer than `session`; see Transport.
    void abandon(std::uint32_t session);
    /// Begins a newer one. REQUIRES: higher than the present one.
    void begin_anew(std::uint32_t session);
    /// Nothing goes out and nothing comes in any more. What has come in can still be taken.
    void break_off();
    bool broken() const { return broken_; }

  private:
    static constexpr std::size_t kLanes = 2;
    static constexpr std::size_t index_of(Lane lane) { return lane == Lane::Control ? 0 : 1; }

    struct Outgoing {
        std::deque<std::string> queue;
        std::size_t queued_bytes = 0;
        /// Of the first message in the queue, bytes that went out.
        std::size_t offset = 0;
        /// Charges, as all that follows.
        std::uint64_t sent = 0;
        std::uint64_t acknowledged = 0;
    };
    struct Part {
        std::string bytes;
        std::size_t charge = 0;
        bool last = false;
    };
    struct Incoming {
        std::deque<Part> parts;
        /// Bytes that have arrived of a message whose end has not.
        std::size_t arrived = 0;
        /// What of it was taken.
        std::string begun;
        std::uint64_t waiting_charge = 0;
        std::uint64_t taken_charge = 0;
    };
    struct Header;

    std::uint64_t under_way() const;
    std::uint64_t room(Lane lane) const;
    /// How many bytes of the lane's first message may follow a frame of `size` bytes; nothing when
    /// none.
    std::optional<std::size_t> next_part(Lane lane, std::size_t size) const;
    void append_parts(Lane lane, std::string& frame);
    void clear();
    Status refuse(const std::string& why);
    Status on_header(const Header& header);
    Status on_parts(std::string_view parts);
    Status on_part(std::size_t lane, Part part);

    std::uint32_t session_ = 1;
    bool open_ = true;
    bool broken_ = false;
    bool owes_ = false;
    /// The peer sends no more than a greeting before it gets an acknowledgement.
    bool greeting_to_answer_ = false;
    /// Frames with parts, of this session.
    std::uint64_t frames_sent_ = 0;
    std::uint64_t frames_heard_ = 0;
    bool peer_heard_us_ = false;
    /// Charges of older sessions that may still be under way.
    std::size_t left_behind_ = 0;
    std::uint64_t taken_told_ = 0;
    std::array<Outgoing, kLanes> out_;
    std::array<Incoming, kLanes> in_;
};

}  // namespace muster
