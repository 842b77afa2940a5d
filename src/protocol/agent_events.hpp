// SPDX-License-Identifier: Apache-2.0
//
// agent_events - everything that can happen to an agent, and nothing else.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "muster/value.hpp"

#include "protocol/messages.hpp"
#include "protocol/outcome.hpp"

namespace muster {

/// The first event: what this node has.
struct NodeProbed {
    NodeInventory inventory;
    std::uint32_t incarnation = 0;
};

struct HeadSaid {
    ToAgent message;
};

/// The member's keeper has started its process.
struct MemberStarted {
    MemberKey key;
    std::int32_t pid = 0;
    /// Empty, or why the processes are not bound as planned.
    std::string binding_problem;
};

/// Nothing of the member is left. For Stopped the keeper reports how the process ended
/// (Exited, Signalled); the agent knows what was asked.
struct MemberEnded {
    MemberKey key;
    Outcome outcome;
    Usage usage;
    /// As Ended::last_lines.
    std::string last_lines;
};

/// A report came from the member: by its socket, its output or a file. The step's key is still
/// among the metrics.
struct ReportArrived {
    MemberKey key;
    std::vector<ValueMember> metrics;
};

/// Something came that is not a report; `text` says what and why.
struct ReportRefused {
    MemberKey key;
    std::string text;
};

/// The member saved a checkpoint, which lies whole in its checkpoint directory under this number.
/// The member waits for AnswerCheckpoint.
struct CheckpointArrived {
    MemberKey key;
    std::uint32_t number = 0;
    /// Nothing: the step that it reported last.
    std::optional<double> step;
    std::int64_t bytes = 0;
};

/// The checkpoint of the member's plan is not there or could not be fetched. Its end follows.
struct CheckpointUnusable {
    MemberKey key;
    std::uint32_t number = 0;
    std::string why;
};

/// Something for another node's agent.
struct PeerWord {
    NodeId to;
    std::string content;
};

/// The head is gone for good: its connection was reset, or the launcher is ending this process.
struct HeadLost {};

/// The agent's loop itself stood still for so long (a suspended process, a host without a breath).
/// Its clock does not count that, but the head's did: the lease must.
struct StoodStill {
    Duration gap{0};
};

/// The node can't run trials any more (the process that starts them is gone); `reason` for people.
struct NodeBroken {
    std::string reason;
};

/// Agent::next_deadline() was reached.
struct AgentTick {};

using AgentEvent = std::variant<
    NodeProbed,
    HeadSaid,
    MemberStarted,
    MemberEnded,
    ReportArrived,
    ReportRefused,
    CheckpointArrived,
    CheckpointUnusable,
    PeerWord,
    HeadLost,
    StoodStill,
    NodeBroken,
    AgentTick>;

}  // namespace muster
