// SPDX-License-Identifier: Apache-2.0

#include "transport/mpi_transport.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace muster {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// Without sockets MPI takes several calls to carry what has come to where a probe sees it.
constexpr int kMisses = 3;
/// A socket that MPI accepts while nobody looks is found by a scan only. While connections are
/// being made there are many scans, then few.
constexpr Duration kYouth = std::chrono::seconds{60};
constexpr Duration kScanWhenYoung = milliseconds{20};
constexpr Duration kScan = std::chrono::seconds{1};
constexpr Duration kTellAgain = milliseconds{200};
/// An unfinished send, which no socket tells of; and one that seems to be stuck.
constexpr Duration kUnfinished = milliseconds{1};
constexpr Duration kPatience = std::chrono::seconds{1};
constexpr Duration kStuck = milliseconds{50};
/// Without sockets.
constexpr Duration kSpin = microseconds{100};
constexpr Duration kShortestSleep = microseconds{50};
constexpr Duration kLongestSleep = milliseconds{1};

}  // namespace

MpiTransport::MpiTransport(MpiTransportOptions options)
    : LinkedTransport(options.rank, options.size),
      wire_(options.size, Link::kFrame, options.tcp_only),
      sockets_(std::move(options.sockets_before)),
      tcp_only_(options.tcp_only),
      peers_(options.size),
      began_(Clock::now()),
      scanned_(began_),
      active_(began_) {
    sockets_.scan();
    tcp_only_ = tcp_only_ && sockets_.listening();
}

bool MpiTransport::ready(std::uint32_t to) {
    // Nothing is sent into a connection that ended: MPI would try to make a new one, for ever.
    return !wire_.busy(to) && sockets_.sound(to);
}

bool MpiTransport::blocked(std::uint32_t to) const {
    return wire_.unfinished(to);
}

void MpiTransport::hand_over(std::uint32_t to, std::string frame) {
    active_ = Clock::now();
    if (const Status status = wire_.send(to, std::move(frame)); !status.ok()) {
        break_pair(to, status.error().message);
    }
}

void MpiTransport::fetch() {
    if (size() == 1) {
        return;
    }
    drain();
    const Clock::time_point now = Clock::now();
    if (sockets_.dirty() || now - scanned_ >= (young_ ? kScanWhenYoung : kScan)) {
        scanned_ = now;
        sockets_.scan();
        look_for_ends();
        introduce();
        young_ = young_ && still_young();
        // To send is to move MPI on, which may have read what poll() would wait for in vain.
        drain();
    }
}

void MpiTransport::drain() {
    bool read = false;
    for (int misses = 0; misses < (tcp_only_ ? 1 : kMisses);) {
        const std::optional<MpiWire::Arrival> arrival = wire_.next();
        if (!arrival) {
            ++misses;
            continue;
        }
        read = true;
        const std::uint32_t from = arrival->from;
        if (link(from).broken()) {
            continue;
        }
        if (!peers_[from].heard) {
            peers_[from].heard = true;
            sockets_.set_dirty();
        }
        if (arrival->too_long) {
            break_pair(from, "it sent a frame that is too long");
        } else if (is_introduction(arrival->bytes)) {
            on_introduction(from, arrival->bytes);
        } else {
            on_frame(from, arrival->bytes);
        }
    }
    if (read) {
        active_ = Clock::now();
        sockets_.count_as_read();
    }
}

void MpiTransport::on_introduction(std::uint32_t from, std::string_view bytes) {
    const Result<Introduction> theirs = decode_introduction(bytes);
    if (!theirs.ok()) {
        break_pair(from, theirs.error().message);
        return;
    }
    Introduction mine = sockets_.claim(from, *theirs);
    if (mine.ends.empty() && !sockets_.has_claimed(from)) {
        // It may have come through a socket that no scan has seen.
        sockets_.scan();
        mine = sockets_.claim(from, *theirs);
    }
    // The higher rank speaks first, with all that it has: it has few. The lower one answers.
    if (!mine.ends.empty() && rank() < from && ready(from)) {
        hand_over(from, encode(mine));
    }
}

void MpiTransport::introduce() {
    std::optional<Introduction> introduction;
    const Clock::time_point now = Clock::now();
    for (std::uint32_t to = 0; to < rank(); ++to) {
        Peer& peer = peers_[to];
        if (!peer.heard || link(to).broken()) {
            continue;
        }
        if (!introduction) {
            introduction = sockets_.unclaimed();
        }
        const std::vector<SocketEnds>& ends = introduction->ends;
        const bool news = std::any_of(ends.begin(), ends.end(), [&peer](const SocketEnds& end) {
            return std::find(peer.told.begin(), peer.told.end(), end) == peer.told.end();
        });
        const bool again = !ends.empty() && young_ && !sockets_.has_claimed(to) &&
                           now - peer.told_at >= kTellAgain;
        if ((news || again) && ready(to)) {
            peer.told = ends;
            peer.told_at = now;
            hand_over(to, encode(*introduction));
        }
    }
}

void MpiTransport::look_for_ends() {
    const std::vector<std::uint32_t> ended = sockets_.take_ended();
    if (ended.empty()) {
        return;
    }
    // Its last words, which MPI has read before the end.
    drain();
    for (const std::uint32_t rank : ended) {
        wire_.give_up(rank);
        break_pair(rank, "its connection ended");
    }
}

bool MpiTransport::still_young() const {
    if (Clock::now() - began_ >= kYouth) {
        return false;
    }
    // Rank 0 is spoken to by all.
    for (std::uint32_t peer = 0; peer < size(); ++peer) {
        const bool expected = peer != rank() && (rank() == 0 || peer == 0 || peers_[peer].heard);
        if (expected && !sockets_.has_claimed(peer) && !link(peer).broken()) {
            return true;
        }
    }
    return false;
}

void MpiTransport::close() {
    move_out();
    wire_.close();
}

void MpiTransport::add_poll_fds(std::vector<pollfd>& fds) {
    sockets_.add_poll_fds(fds, wire_.sending());
}

void MpiTransport::polled(std::span<const pollfd> fds) {
    sockets_.polled(fds);
}

Duration MpiTransport::longest_wait() const {
    if (size() == 1) {
        return kLongest;
    }
    Duration wait = std::min(links_can_wait(), young_ ? kScanWhenYoung : kScan);
    if (const std::optional<Duration> unfinished = wire_.oldest_unfinished()) {
        wait = std::min(wait, *unfinished < kPatience ? kUnfinished : kStuck);
    }
    if (sockets_.dirty()) {
        wait = std::min(wait, kUnfinished);
    }
    if (!tcp_only_) {
        const Duration idle = Clock::now() - active_;
        wait = std::min(
            wait, idle < kSpin ? Duration{0} : std::clamp(idle / 8, kShortestSleep, kLongestSleep)
        );
    }
    return wait;
}

}  // namespace muster
