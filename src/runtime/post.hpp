// SPDX-License-Identifier: Apache-2.0
//
// post - typed messages over a Transport: gathers what one turn of a loop says to one rank into few
// archives, and unpacks what comes in.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "protocol/messages.hpp"
#include "transport/transport.hpp"
#include "wire/codec.hpp"

namespace muster {

/// To an agent all is control. What an agent says of its trials keeps its order among itself and
/// may be much; what it says of itself must never wait behind that.
inline Lane lane_of(const ToAgent& /*message*/) {
    return Lane::Control;
}
inline Lane lane_of(const FromAgent& message) {
    const bool of_itself = std::holds_alternative<Hello>(message) ||
                           std::holds_alternative<Heartbeat>(message) ||
                           std::holds_alternative<Farewell>(message);
    return of_itself ? Lane::Control : Lane::Bulk;
}

template <class Out, class In>
class Post {
  public:
    struct Heard {
        std::uint32_t from = 0;
        std::uint32_t session = 1;
        In message;
    };
    /// A rank whose messages can't be read.
    struct Unreadable {
        std::uint32_t from = 0;
        std::string problem;
    };
    struct Inbox {
        std::vector<Heard> heard;
        std::vector<Unreadable> unreadable;
    };

    explicit Post(Transport& transport) : transport_(transport) {}

    /// Goes out with the next flush(), or earlier.
    void send(std::uint32_t to, Out message) {
        const Lane lane = lane_of(message);
        std::vector<Out>& batch = batches_[{to, lane}];
        batch.push_back(std::move(message));
        if (batch.size() >= kLargestBatch) {
            send_batch(to, lane, batch);
        }
    }

    void flush() {
        for (auto& [key, batch] : batches_) {
            send_batch(key.first, key.second, batch);
        }
    }

    /// What was said to `rank` and did not go out yet is void.
    void forget(std::uint32_t rank) {
        batches_.erase({rank, Lane::Control});
        batches_.erase({rank, Lane::Bulk});
    }

    /// Unpacks what somebody else received, with the next receive().
    void put_back(std::vector<ReceivedMessage> messages) { early_ = std::move(messages); }

    /// Flushes, and takes in what has come.
    Inbox receive(bool with_bulk) {
        flush();
        Inbox inbox;
        for (const ReceivedMessage& received : std::exchange(early_, {})) {
            unpack(received, inbox);
        }
        for (const ReceivedMessage& received : transport_.receive(with_bulk)) {
            unpack(received, inbox);
        }
        return inbox;
    }

  private:
    static constexpr std::size_t kLargestBatch = 128;

    void send_batch(std::uint32_t to, Lane lane, std::vector<Out>& batch) {
        if (!batch.empty()) {
            transport_.send(to, lane, encode(std::span<const Out>(batch)));
            batch.clear();
        }
    }

    static void unpack(const ReceivedMessage& received, Inbox& inbox) {
        Result<std::vector<In>> messages = [&] {
            if constexpr (std::is_same_v<In, ToAgent>) {
                return decode_to_agent(received.bytes);
            } else {
                return decode_from_agent(received.bytes);
            }
        }();
        if (!messages.ok()) {
            inbox.unreadable.push_back({received.from, messages.error().message});
            return;
        }
        for (In& message : *messages) {
            inbox.heard.push_back({received.from, received.session, std::move(message)});
        }
    }

    Transport& transport_;
    std::vector<ReceivedMessage> early_;
    std::map<std::pair<std::uint32_t, Lane>, std::vector<Out>> batches_;
};

/// Rank 0's end, and that of every other rank.
using HeadPost = Post<ToAgent, FromAgent>;
using AgentPost = Post<FromAgent, ToAgent>;

}  // namespace muster
