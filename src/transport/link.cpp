// SPDX-License-Identifier: Apache-2.0
//
// A frame: magic u32, session u32, sequence u64, heard u64, taken u64 of either lane; then parts:
// one byte (the lane, +128 for a message's last part), length u16, bytes. All little-endian.
// `sequence` counts the frames with parts that the sender sent before in the session, `heard` those
// that it got; `taken` is in charges.

#include "transport/link.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/check.hpp"

namespace muster {
namespace {

constexpr std::uint32_t kMagic = 0x314b4c4d;  // "MLK1"
constexpr std::size_t kHeader = 40;
constexpr std::size_t kPartHeader = 3;
constexpr std::uint8_t kLast = 0x80;
/// A message is not cut into parts smaller than this.
constexpr std::size_t kSmallestCut = 512;

template <class Integer>
void put(char* to, Integer value) {
    for (std::size_t i = 0; i < sizeof(Integer); ++i) {
        to[i] = static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
    }
}

template <class Integer>
Integer get(std::string_view from, std::size_t offset) {
    Integer value = 0;
    for (std::size_t i = 0; i < sizeof(Integer); ++i) {
        const auto byte = static_cast<unsigned char>(from[offset + i]);
        value = static_cast<Integer>(value | static_cast<Integer>(Integer{byte} << (8 * i)));
    }
    return value;
}

std::uint64_t less(std::uint64_t from, std::uint64_t by) {
    return from > by ? from - by : 0;
}

}  // namespace

struct Link::Header {
    std::uint32_t session = 0;
    std::uint64_t sequence = 0;
    std::uint64_t heard = 0;
    std::array<std::uint64_t, kLanes> taken{};
};

void Link::send(Lane lane, std::string message) {
    check(message.size() <= Transport::kLongestMessage, "a message is not longer than the longest");
    if (!open_) {
        return;
    }
    Outgoing& out = out_[index_of(lane)];
    out.queued_bytes += message.size();
    out.queue.push_back(std::move(message));
}

std::uint64_t Link::under_way() const {
    std::uint64_t charges = 0;
    for (const Outgoing& out : out_) {
        charges += out.sent - out.acknowledged;
    }
    return charges;
}

std::uint64_t Link::room(Lane lane) const {
    std::uint64_t limit = lane == Lane::Control ? kWindow : kWindow - kControlRoom;
    if (!peer_heard_us_) {
        limit = std::min<std::uint64_t>(limit, kGreeting);
    }
    return less(std::min(limit, less(kWindowOfAllSessions, left_behind_)), under_way());
}

std::optional<std::size_t> Link::next_part(Lane lane, std::size_t size) const {
    const Outgoing& out = out_[index_of(lane)];
    if (out.queue.empty()) {
        return std::nullopt;
    }
    const std::size_t rest = out.queue.front().size() - out.offset;
    const std::uint64_t overhead = kPartHeader + (size == kHeader ? kFrameCharge : 0);
    const std::uint64_t affordable = room(lane);
    if (affordable < overhead || kFrame - size < kPartHeader) {
        return std::nullopt;
    }
    const std::size_t fits =
        std::min<std::size_t>(affordable - overhead, kFrame - size - kPartHeader);
    if (rest <= fits) {
        return rest;
    }
    return fits >= kSmallestCut ? std::optional(fits) : std::nullopt;
}

void Link::append_parts(Lane lane, std::string& frame) {
    Outgoing& out = out_[index_of(lane)];
    while (const std::optional<std::size_t> length = next_part(lane, frame.size())) {
        const std::string& message = out.queue.front();
        const bool last = out.offset + *length == message.size();
        out.sent += *length + kPartHeader + (frame.size() == kHeader ? kFrameCharge : 0);

        std::array<char, kPartHeader> head{};
        put(head.data(), static_cast<std::uint8_t>(index_of(lane) | (last ? kLast : 0U)));
        put(head.data() + 1, static_cast<std::uint16_t>(*length));
        frame.append(head.data(), head.size()).append(message, out.offset, *length);

        out.queued_bytes -= *length;
        out.offset += *length;
        if (last) {
            out.queue.pop_front();
            out.offset = 0;
        }
    }
}

bool Link::can_send() const {
    return open_ && (next_part(Lane::Control, kHeader) || next_part(Lane::Bulk, kHeader));
}

std::string Link::next_frame() {
    if (!open_ || !(owes_ || can_send())) {
        return {};
    }
    std::string frame(kHeader, '\0');
    append_parts(Lane::Control, frame);
    append_parts(Lane::Bulk, frame);

    put(frame.data(), kMagic);
    put(frame.data() + 4, session_);
    put(frame.data() + 8, frames_sent_);
    put(frame.data() + 16, frames_heard_);
    put(frame.data() + 24, in_[0].taken_charge);
    put(frame.data() + 32, in_[1].taken_charge);
    if (frame.size() > kHeader) {
        ++frames_sent_;
    }
    taken_told_ = in_[0].taken_charge + in_[1].taken_charge;
    owes_ = false;
    greeting_to_answer_ = false;
    return frame;
}

bool Link::owes_much() const {
    const std::uint64_t untold = in_[0].taken_charge + in_[1].taken_charge - taken_told_;
    return owes() && (greeting_to_answer_ || untold >= kWindow / 4);
}

Status Link::refuse(const std::string& why) {
    break_off();
    return Error{ErrorCode::Corrupt, "it sent what is no frame: " + why};
}

Status Link::on_frame(std::string_view frame) {
    if (broken_) {
        return Ok{};
    }
    if (frame.size() < kHeader || frame.size() > kFrame) {
        return refuse(fmt::format("{} bytes", frame.size()));
    }
    if (get<std::uint32_t>(frame, 0) != kMagic) {
        return refuse(fmt::format("it begins with {:#x}", get<std::uint32_t>(frame, 0)));
    }
    Header header;
    header.session = get<std::uint32_t>(frame, 4);
    header.sequence = get<std::uint64_t>(frame, 8);
    header.heard = get<std::uint64_t>(frame, 16);
    header.taken = {get<std::uint64_t>(frame, 24), get<std::uint64_t>(frame, 32)};
    if (header.session == 0) {
        return refuse("session 0");
    }
    if (header.session < session_ || (header.session == session_ && !open_)) {
        return Ok{};
    }
    if (header.session > session_) {
        begin_anew(header.session);
    }
    if (Status status = on_header(header); !status.ok()) {
        return status;
    }
    return on_parts(frame.substr(kHeader));
}

Status Link::on_header(const Header& header) {
    if (header.sequence != frames_heard_) {
        return refuse(fmt::format("number {} instead of {}", header.sequence, frames_heard_));
    }
    if (header.heard > frames_sent_) {
        return refuse(fmt::format("it got {} frames of {}", header.heard, frames_sent_));
    }
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
        Outgoing& out = out_[lane];
        if (header.taken[lane] > out.sent || header.taken[lane] < out.acknowledged) {
            return refuse(fmt::format(
                "it acknowledges {}, after {}, of {}",
                header.taken[lane],
                out.acknowledged,
                out.sent
            ));
        }
        out.acknowledged = header.taken[lane];
    }
    if (header.heard > 0) {
        // What older sessions sent went before, and has arrived as well.
        peer_heard_us_ = true;
        left_behind_ = 0;
    }
    return Ok{};
}

Status Link::on_parts(std::string_view parts) {
    if (parts.empty()) {
        return Ok{};
    }
    if (frames_heard_ == 0) {
        owes_ = true;
        greeting_to_answer_ = true;
    }
    ++frames_heard_;
    std::size_t frame_charge = kFrameCharge;
    while (!parts.empty()) {
        if (parts.size() < kPartHeader) {
            return refuse("a part is cut off");
        }
        const auto kind = get<std::uint8_t>(parts, 0);
        const std::size_t length = get<std::uint16_t>(parts, 1);
        const std::size_t lane = kind & static_cast<std::uint8_t>(~kLast);
        const bool last = (kind & kLast) != 0;
        if (lane >= kLanes || (length == 0 && !last) || length > parts.size() - kPartHeader) {
            return refuse(fmt::format(
                "a part of lane {} and {} bytes, where {} are left",
                lane,
                length,
                parts.size() - kPartHeader
            ));
        }
        const std::size_t charge = kPartHeader + length + std::exchange(frame_charge, 0);
        Part part{std::string(parts.substr(kPartHeader, length)), charge, last};
        if (Status status = on_part(lane, std::move(part)); !status.ok()) {
            return status;
        }
        parts.remove_prefix(kPartHeader + length);
    }
    return Ok{};
}

Status Link::on_part(std::size_t lane, Part part) {
    Incoming& in = in_[lane];
    in.arrived += part.bytes.size();
    if (in.arrived > Transport::kLongestMessage) {
        return refuse(fmt::format("a message of more than {} bytes", Transport::kLongestMessage));
    }
    if (part.last) {
        in.arrived = 0;
    }
    in.waiting_charge += part.charge;
    if (in_[0].waiting_charge + in_[1].waiting_charge > kWindow) {
        return refuse(fmt::format("more than {} bytes without acknowledgement", kWindow));
    }
    in.parts.push_back(std::move(part));
    return Ok{};
}

std::vector<std::string> Link::take(Lane lane) {
    Incoming& in = in_[index_of(lane)];
    std::vector<std::string> messages;
    owes_ = owes_ || !in.parts.empty();
    for (Part& part : in.parts) {
        in.waiting_charge -= part.charge;
        in.taken_charge += part.charge;
        if (in.begun.empty()) {
            in.begun = std::move(part.bytes);
        } else {
            in.begun += part.bytes;
        }
        if (part.last) {
            messages.push_back(std::exchange(in.begun, {}));
        }
    }
    in.parts.clear();
    return messages;
}

std::size_t Link::unsent() const {
    std::size_t bytes = under_way();
    for (const Outgoing& out : out_) {
        bytes += out.queued_bytes;
    }
    return bytes;
}

void Link::clear() {
    left_behind_ += under_way();
    out_ = {};
    in_ = {};
    frames_sent_ = 0;
    frames_heard_ = 0;
    taken_told_ = 0;
    peer_heard_us_ = false;
    owes_ = false;
    greeting_to_answer_ = false;
}

void Link::abandon(std::uint32_t session) {
    if (!broken_ && session >= session_) {
        clear();
        session_ = session;
        open_ = false;
    }
}

void Link::begin_anew(std::uint32_t session) {
    check(session > session_, "a newer session has a higher number");
    if (!broken_) {
        clear();
        session_ = session;
        open_ = true;
    }
}

void Link::break_off() {
    broken_ = true;
    open_ = false;
    out_ = {};
}

}  // namespace muster
