// SPDX-License-Identifier: Apache-2.0
//
// agent_state - what an agent knows, and the functions that its events lead to. Private to this
// folder.

#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/agent.hpp"
#include "agent/lease.hpp"
#include "agent/member.hpp"

namespace muster {

enum class AgentPhase {
    /// The head is listened to and told.
    Serving,
    /// The lease ran out: members are killed, and nobody is told.
    Killing,
    /// The run is over here: nothing starts, nobody listens, and the node is left once it is empty.
    Leaving,
    Left,
};

struct Agent::State {
    explicit State(AgentOptions agent_options)
        : options(std::move(agent_options)),
          lease(options.heartbeat, options.lease) {}

    AgentOptions options;
    NodeInventory inventory;
    std::uint32_t incarnation = 0;
    std::optional<Setup> setup;
    std::map<MemberKey, AgentMember> members;
    // Members by when they must be looked at. A member's place may be early, never late, so that
    // a report does not move it.
    std::set<std::pair<TimePoint, MemberKey>> deadlines;
    Lease lease;
    AgentPhase phase = AgentPhase::Serving;
    // When to leave all the same: the head has not answered, or a member does not end.
    TimePoint give_up_at = kNever;
    // The last word, once nothing runs here any more.
    std::optional<Farewell> farewell;
    AgentCommands commands;

    void on(const NodeProbed& event, TimePoint now);
    void on(const HeadSaid& event, TimePoint now);
    void on(const MemberStarted& event, TimePoint now);
    void on(const MemberEnded& event, TimePoint now);
    void on(const ReportArrived& event, TimePoint now);
    void on(const ReportRefused& event, TimePoint now);
    void on(const CheckpointArrived& event, TimePoint now);
    void on(const CheckpointUnusable& event, TimePoint now);
    void on(const PeerWord& event, TimePoint now);
    void on(const HeadLost& event, TimePoint now);
    void on(const StoodStill& event, TimePoint now);
    void on(const NodeBroken& event, TimePoint now);
    void on(const AgentTick& event, TimePoint now);

    void take(const Setup& message, TimePoint now);
    void take(const Start& message, TimePoint now);
    void take(const Stop& message, TimePoint now);
    void take(const SetCores& message, TimePoint now);
    void take(const Alive& message, TimePoint now);
    void take(const Dismiss& message, TimePoint now);
    void take(const CheckpointDurable& message, TimePoint now);
    void take(const DeleteCheckpoint& message, TimePoint now);
    void take(const Warn& message, TimePoint now);
    void take(const FromPeer& message, TimePoint now);
    void take(const PeerUnreachable& message, TimePoint now);

    AgentMember* find(const MemberKey& key);
    void add_member(const Start& start, TimePoint now);
    void refuse(const MemberKey& key, std::string why);
    void tell(FromAgent message);
    void remark(const MemberKey& key, std::string text);
    void schedule(AgentMember& member);
    void look_at(AgentMember& member, TimePoint now);
    void end_by_limit(AgentMember& member, EndCause limit);
    void check_objective(AgentMember& member, const std::vector<ValueMember>& metrics);
    void say_hello(TimePoint now);
    void lose_lease(TimePoint now);
    void kill_members();
    void leave(TimePoint now);
    void go_on_if_empty(TimePoint now);
};

}  // namespace muster
