// SPDX-License-Identifier: Apache-2.0
//
// agent_commands - everything that an agent can ask of the loop around it, and nothing else.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "protocol/launch.hpp"
#include "protocol/messages.hpp"

namespace muster {

/// Send a message to the head.
struct TellHead {
    FromAgent message;

    friend bool operator==(const TellHead&, const TellHead&) = default;
};

/// Run a member in a keeper. The answer is MemberStarted, or MemberEnded{SpawnFailed}.
struct Launch {
    LaunchPlan plan;

    friend bool operator==(const Launch&, const Launch&) = default;
};

/// End a member's processes. Graceful: SIGTERM, then SIGKILL after the plan's grace; Kill: SIGKILL
/// at once. GoalReached never gets here: the agent waits and then asks for Graceful.
struct EndMember {
    MemberKey key;
    StopKind kind = StopKind::Graceful;

    friend bool operator==(const EndMember&, const EndMember&) = default;
};

/// Bind a running member to other hardware threads.
struct Rebind {
    MemberKey key;
    std::vector<std::uint32_t> processing_units;

    friend bool operator==(const Rebind&, const Rebind&) = default;
};

/// Tell the member, on its report connections, that it is asked to stop.
struct TellMemberToStop {
    MemberKey key;

    friend bool operator==(const TellMemberToStop&, const TellMemberToStop&) = default;
};

/// Tell the member on its report connections that its checkpoint is safe.
struct AnswerCheckpoint {
    MemberKey key;
    std::uint32_t number = 0;

    friend bool operator==(const AnswerCheckpoint&, const AnswerCheckpoint&) = default;
};

/// Remove the directory of a checkpoint, whenever there is time for it. Not there is fine.
struct RemoveCheckpoint {
    /// The trial's checkpoint directory.
    std::string directory;
    std::uint32_t number = 0;

    friend bool operator==(const RemoveCheckpoint&, const RemoveCheckpoint&) = default;
};

/// Tell the member on its report connections that the time ends in `left`, and send its processes
/// `signal` unless that is 0.
struct WarnMember {
    MemberKey key;
    Duration left{0};
    std::int32_t signal = 0;

    friend bool operator==(const WarnMember&, const WarnMember&) = default;
};

/// What another node's agent said, or that it can't be reached (no content).
struct HandFromPeer {
    NodeId from;
    std::optional<std::string> content;
    /// Where, with node storage, the trials' checkpoint directories lie on this node.
    std::string directory;

    friend bool operator==(const HandFromPeer&, const HandFromPeer&) = default;
};

/// The lease ran out and every member is gone: whatever was said before is void on both sides. The
/// transport begins anew; the Hello with this incarnation comes next.
struct BeginAnew {
    std::uint32_t incarnation = 0;

    friend bool operator==(const BeginAnew&, const BeginAnew&) = default;
};

/// Every member is gone, or could not be killed for so long that nobody waits for it: leave.
struct LeaveNode {
    friend bool operator==(const LeaveNode&, const LeaveNode&) = default;
};

using AgentCommand = std::variant<
    TellHead,
    Launch,
    EndMember,
    Rebind,
    TellMemberToStop,
    AnswerCheckpoint,
    RemoveCheckpoint,
    WarnMember,
    HandFromPeer,
    BeginAnew,
    LeaveNode>;
using AgentCommands = std::vector<AgentCommand>;

}  // namespace muster
