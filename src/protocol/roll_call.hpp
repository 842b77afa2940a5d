// SPDX-License-Identifier: Apache-2.0
//
// roll_call - what ranks and rank 0 tell each other before the run: who is there, who does what.
// After it head and agents speak in messages.hpp alone.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "resources/node_inventory.hpp"

namespace muster {

/// A rank's first word to rank 0.
struct Enrol {
    /// The name of the node that the rank runs on.
    std::string host;
    /// Tells two machines of one name apart; of the kernel's present boot.
    std::string boot_id;
    std::int32_t pid = 0;
    /// What the node has. Meaningless when `problem` says why it could not be found out.
    NodeInventory inventory;
    std::string problem;

    friend bool operator==(const Enrol&, const Enrol&) = default;
};

enum class RankRole : std::uint8_t {
    /// Serves its node.
    Agent,
    /// Another rank serves its node, or nobody needs it: it waits for the end.
    Idle,
    /// There is no run: it leaves at once.
    Dismissed,
};

/// Rank 0's answer.
struct Enlisted {
    RankRole role = RankRole::Idle;
    /// What the agent's Hello is to say.
    NodeInventory inventory;
    /// Rank 0's environment, as "NAME=value": the user's own. A remote daemon has none of his
    /// modules.
    std::vector<std::string> environment;
    /// A file in the experiment's directory, and its content: who sees it shares the storage.
    std::string token_path;
    std::string token;
    /// How long the file may take to be seen: network file systems show a new one late.
    Duration token_patience{0};
    /// For AgentOptions.
    Duration heartbeat{0};
    Duration lease{0};
    Duration rejoin{0};
    /// After this run the rank waits for another word of this kind: the program may run more.
    bool again = false;
    /// How long it waits for that.
    Duration again_patience{0};
    /// Dismissed: no rank was lost, so that all leave together.
    bool orderly = true;

    friend bool operator==(const Enlisted&, const Enlisted&) = default;
};

/// An agent's word before it begins.
struct AgentReady {
    /// Empty, or why it can't: its node does not share the experiment's storage, say.
    std::string problem;

    friend bool operator==(const AgentReady&, const AgentReady&) = default;
};

}  // namespace muster
