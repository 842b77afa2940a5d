// SPDX-License-Identifier: Apache-2.0
//
// lease - how long this node may go on without the head, and the heartbeats that it lives on.
//
// The head declares a node lost some time after it heard of it last, and then starts its trials
// elsewhere. So that nothing ever runs twice, the agent counts from when it *sent* the last message
// that was answered, in real time, and for less long than the head does. Hello is heartbeat 0,
// answered by Setup.

#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "base/time.hpp"
#include "protocol/messages.hpp"

namespace muster {

class Lease {
  public:
    /// As AgentOptions::heartbeat and lease. Without heartbeats nothing is answered, and so there
    /// is no lease either.
    Lease(Duration interval, Duration length);

    bool has_length() const { return length_ > Duration{0}; }

    /// Hello is said: heartbeats follow it, also while Setup is awaited, since that waits for the
    /// head's disk. Nothing runs out before Setup has come: nothing can run here.
    void hello(TimePoint now);
    /// Hello was answered: the lease runs.
    void begin();
    /// A heartbeat was answered; numbers of before hello() mean nothing.
    void answered(std::uint64_t number);
    /// Real time in which `now` did not move.
    void stood_still(Duration gap) { stood_ += gap; }
    /// No heartbeat any more, and nothing runs out.
    void end();

    /// The heartbeat to say now, if it is time for one.
    std::optional<Heartbeat> next(TimePoint now);
    bool has_run_out(TimePoint now) const;
    /// When one of the two is next to be asked; kNever when neither.
    TimePoint next_deadline() const;

  private:
    struct Sent {
        std::uint64_t number = 0;
        /// In real time, as all that is kept here but `next_`.
        TimePoint at;
    };

    TimePoint real(TimePoint now) const { return now + stood_; }

    Duration interval_;
    Duration length_;
    Duration stood_{0};
    TimePoint next_ = kNever;
    std::uint64_t last_number_ = 0;
    /// Not answered yet.
    std::deque<Sent> sent_;
    /// When the last message that was answered was sent.
    TimePoint answered_;
    bool runs_ = false;
};

}  // namespace muster
