// SPDX-License-Identifier: Apache-2.0
//
// in_process - head and agent in one process: two queues that keep their order and lose nothing.

#pragma once

#include <deque>
#include <optional>
#include <utility>

#include "protocol/messages.hpp"

namespace muster {

class InProcessTransport {
  public:
    void send(ToAgent message) { to_agent_.push_back(std::move(message)); }
    void send(FromAgent message) { from_agent_.push_back(std::move(message)); }

    /// The oldest message that was not taken yet.
    std::optional<ToAgent> receive_for_agent() { return take(to_agent_); }
    std::optional<FromAgent> receive_for_head() { return take(from_agent_); }

    bool idle() const { return to_agent_.empty() && from_agent_.empty(); }

  private:
    template <class Message>
    static std::optional<Message> take(std::deque<Message>& queue) {
        if (queue.empty()) {
            return std::nullopt;
        }
        std::optional<Message> message(std::move(queue.front()));
        queue.pop_front();
        return message;
    }

    std::deque<ToAgent> to_agent_;
    std::deque<FromAgent> from_agent_;
};

}  // namespace muster
