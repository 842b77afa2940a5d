// SPDX-License-Identifier: Apache-2.0
//
// roles - which ranks serve which nodes: decided once, at rank 0, from what all of them said. Pure.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/error.hpp"
#include "muster/experiment.hpp"
#include "muster/resources.hpp"

#include "protocol/roll_call.hpp"
#include "resources/node_inventory.hpp"

namespace muster {

/// How ranks become nodes.
struct NodeRules {
    /// Every rank is a node of its own, also when several share a host.
    bool rank_is_node = false;
    /// Rank 0's host stays free of trials; with rank_is_node, rank 0 is no node.
    bool dedicated_head = false;
    /// What every node has, in place of what it really has.
    std::optional<ResourceSet> node_resources;
    /// What each node has: by rank with rank_is_node, else by name. Empty: not given.
    std::vector<NodeInventory> cluster;
    /// Custom resources by names of nodes, from the spec.
    std::vector<NodeResources> custom;
};

struct EnrolledRank {
    std::uint32_t rank = 0;
    Enrol enrol;
};

/// An agent to be: its rank and what its node offers. Its place in the list is its NodeId.
struct AgentRank {
    std::uint32_t rank = 0;
    NodeInventory inventory;

    friend bool operator==(const AgentRank&, const AgentRank&) = default;
};

struct Roles {
    /// In order of their ranks.
    std::vector<AgentRank> agents;
    /// Ranks that stay idle, ascending.
    std::vector<std::uint32_t> idle;
    /// What people should know: ranks that share a host, nodes that were left out and why.
    std::vector<std::string> remarks;

    friend bool operator==(const Roles&, const Roles&) = default;
};

/// REQUIRES: ascending ranks, rank 0 among them.
/// Errors: InvalidInput, when the rules don't fit those who came (a cluster file without a host,
/// or with another number of nodes than ranks; several ranks of a host that would each offer all of
/// it) or leave no node for trials.
Result<Roles> assign_roles(const std::vector<EnrolledRank>& ranks, const NodeRules& rules);

/// Adds to `node` the custom resources that `custom` gives nodes of its name.
/// Errors: InvalidInput for a pattern that is none, naming it.
Status give_custom_resources(NodeInventory& node, const std::vector<NodeResources>& custom);

}  // namespace muster
