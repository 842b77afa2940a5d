// SPDX-License-Identifier: Apache-2.0
//
// agent - decides for one node; never acts.
//
// Agent has the head's shape: handle(event, now) returns commands. It knows which members run on
// its node, turns the head's Start into a launch plan, holds every member to its time limit and
// its report timeout, gives steps to reports and thins out those that come too fast, and tells the
// head once nothing of a member is left.
//
// Without word from the head for the length of its lease it kills its members and, once none is
// left, comes anew: with a new incarnation, knowing nothing. What happened in between is not told.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "protocol/agent_commands.hpp"
#include "protocol/agent_events.hpp"

namespace muster {

/// What the agent's process knows about itself.
struct AgentOptions {
    /// Node-local directory of this run (mode 0700), for params.json files.
    std::string run_dir;
    /// The report socket of this node.
    std::string socket_path;
    /// Node-local storage for checkpoints when the spec names none: TMPDIR, say.
    std::string scratch_dir = "/tmp";
    /// Told apart in shared scratch directories: the number of the user.
    std::string user = "0";
    /// How often to say Heartbeat, from Hello on; 0 is never (one process: nobody listens).
    Duration heartbeat{0};
    /// Members are killed when no heartbeat that was sent within this time was answered: the head
    /// may then start their trials elsewhere. Shorter than the head's lease by what killing takes;
    /// 0 is no lease.
    Duration lease{0};
    /// How long the agent waits for the head to take it in (Setup), at first and whenever it has
    /// lost its lease; then it leaves. Without a lease it waits for as long as it takes.
    Duration rejoin = std::chrono::minutes{10};
    /// Reports of one trial in a second that are passed on one by one.
    std::uint32_t reports_per_second = 1000;
};

class Agent {
  public:
    explicit Agent(AgentOptions options);
    ~Agent();
    Agent(Agent&&) noexcept;
    Agent& operator=(Agent&&) noexcept;
    Agent(const Agent&) = delete;
    Agent& operator=(const Agent&) = delete;

    /// Takes in one event and says what follows from it. `now` never goes back.
    AgentCommands handle(const AgentEvent& event, TimePoint now);

    /// When handle(AgentTick{}) is next needed; kNever when nothing is awaited.
    TimePoint next_deadline() const;

    /// Members that have not ended.
    std::size_t member_count() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace muster
