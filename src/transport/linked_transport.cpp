// SPDX-License-Identifier: Apache-2.0

#include "transport/linked_transport.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace muster {
namespace {

/// How long a small acknowledgement waits for a frame that it could travel in.
constexpr Duration kAcknowledgementWait = std::chrono::milliseconds{2};

}  // namespace

void LinkedTransport::send(std::uint32_t to, Lane lane, std::string message) {
    check(to < size() && to != rank_, "a message goes to another rank");
    links_[to].send(lane, std::move(message));
}

std::vector<ReceivedMessage> LinkedTransport::receive(bool with_bulk) {
    move_out();
    fetch();
    std::vector<ReceivedMessage> received;
    const auto take = [&](Lane lane) {
        for (std::uint32_t peer = 0; peer < size(); ++peer) {
            Link& link = links_[peer];
            if (!link.has_arrived(lane)) {
                continue;
            }
            for (std::string& message : link.take(lane)) {
                received.push_back({peer, lane, link.session(), std::move(message)});
            }
        }
    };
    take(Lane::Control);
    if (with_bulk) {
        take(Lane::Bulk);
    }
    return received;
}

void LinkedTransport::move_out() {
    for (std::uint32_t peer = 0; peer < size(); ++peer) {
        Link& link = links_[peer];
        while ((link.can_send() || link.owes()) && ready(peer)) {
            hand_over(peer, link.next_frame());
        }
    }
}

Duration LinkedTransport::links_can_wait() const {
    Duration wait = kLongest;
    for (std::uint32_t peer = 0; peer < size(); ++peer) {
        const Link& link = links_[peer];
        if (blocked(peer)) {
            continue;
        }
        if (link.can_send() || link.owes_much()) {
            return Duration{0};
        }
        if (link.owes()) {
            wait = std::min(wait, kAcknowledgementWait);
        }
    }
    return wait;
}

std::size_t LinkedTransport::unsent(std::uint32_t to) const {
    return links_[to].unsent();
}

void LinkedTransport::abandon(std::uint32_t peer, std::uint32_t session) {
    links_[peer].abandon(session);
}

void LinkedTransport::begin_anew(std::uint32_t peer, std::uint32_t session) {
    links_[peer].begin_anew(session);
}

void LinkedTransport::on_frame(std::uint32_t from, std::string_view frame) {
    const Status status = links_[from].on_frame(frame);
    if (!status.ok()) {
        newly_broken_.push_back({from, status.error().message});
    }
}

void LinkedTransport::break_pair(std::uint32_t peer, std::string why) {
    if (!links_[peer].broken()) {
        links_[peer].break_off();
        newly_broken_.push_back({peer, std::move(why)});
    }
}

std::vector<BrokenPair> LinkedTransport::take_broken() {
    return std::exchange(newly_broken_, {});
}

}  // namespace muster
