// SPDX-License-Identifier: Apache-2.0
//
// events - everything that can happen to the head, and nothing else.

#pragma once

#include <variant>
#include <vector>

#include "muster/config.hpp"

#include "base/ids.hpp"
#include "protocol/messages.hpp"

namespace muster {

/// An agent's message came in. The first one of a node is its Hello.
struct AgentSaid {
    NodeId node;
    FromAgent message;

    friend bool operator==(const AgentSaid&, const AgentSaid&) = default;
};

/// The node is gone with everything on it.
struct NodeLost {
    NodeId node;

    friend bool operator==(const NodeLost&, const NodeLost&) = default;
};

/// The searcher's answer to Ask: at most as many configs as were asked for. `exhausted`: there
/// will never be another.
struct Suggested {
    std::vector<Config> configs;
    bool exhausted = false;

    friend bool operator==(const Suggested&, const Suggested&) = default;
};

/// Somebody wants the run to end. `at_once`: without grace. The experiment can be continued.
struct CancelRequested {
    bool at_once = false;

    friend bool operator==(const CancelRequested&, const CancelRequested&) = default;
};

/// Time has passed: Head::next_deadline() was reached.
struct Tick {
    friend bool operator==(const Tick&, const Tick&) = default;
};

/// All facts were restored (or there are none): begin. The first event of every run.
struct Reconcile {
    friend bool operator==(const Reconcile&, const Reconcile&) = default;
};

using Event = std::variant<AgentSaid, NodeLost, Suggested, CancelRequested, Tick, Reconcile>;

}  // namespace muster
