// SPDX-License-Identifier: Apache-2.0
//
// events - everything that can happen to the head, and nothing else.

#pragma once

#include <string>
#include <variant>
#include <vector>

#include "muster/config.hpp"

#include "base/ids.hpp"
#include "base/time.hpp"
#include "protocol/facts.hpp"
#include "protocol/messages.hpp"

namespace muster {

/// An agent's message came in. The first one of a node is its Hello.
struct AgentSaid {
    NodeId node;
    FromAgent message;

    friend bool operator==(const AgentSaid&, const AgentSaid&) = default;
};

/// The node is gone with everything on it: its connection was reset, say. The head finds out by
/// itself, later, when a node's lease runs out.
struct NodeLost {
    NodeId node;
    /// For people: "its connection was reset".
    std::string why;

    friend bool operator==(const NodeLost&, const NodeLost&) = default;
};

/// The searcher's answer to Ask: at most as many configs as were asked for. `exhausted`: there
/// will never be another.
struct Suggested {
    std::vector<Config> configs;
    bool exhausted = false;

    friend bool operator==(const Suggested&, const Suggested&) = default;
};

/// The run is to end early. Cancelled (a person, SIGINT): running trials become Cancelled.
/// Interrupted (SIGTERM, wall time): they go back to Pending. Either way the experiment can be
/// continued. Asking again with `at_once` ends what is left without grace.
struct CancelRequested {
    RunEnd end = RunEnd::Cancelled;
    bool at_once = false;
    std::string reason;

    friend bool operator==(const CancelRequested&, const CancelRequested&) = default;
};

/// When this run's time ends, by the experiment's clock; the latest word counts. kNever takes back
/// what was said before.
struct EndKnown {
    TimePoint at = kNever;
    /// How long such an allocation lasts in all; 0 is unknown.
    Duration whole{0};
    /// For people: "the Slurm job's time limit".
    std::string why;

    friend bool operator==(const EndKnown&, const EndKnown&) = default;
};

/// Time has passed: Head::next_deadline() was reached.
struct Tick {
    friend bool operator==(const Tick&, const Tick&) = default;
};

/// All facts were restored (or there are none): begin. The first event of every run.
struct Reconcile {
    friend bool operator==(const Reconcile&, const Reconcile&) = default;
};

using Event =
    std::variant<AgentSaid, NodeLost, Suggested, CancelRequested, EndKnown, Tick, Reconcile>;

}  // namespace muster
