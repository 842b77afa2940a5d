// SPDX-License-Identifier: Apache-2.0
//
// node_pool - what all nodes and the run as a whole have left, with the index over it. It counts;
// who holds what is Cluster's business.

#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "muster/resources.hpp"

#include "placement/demand.hpp"
#include "placement/node_index.hpp"
#include "placement/node_state.hpp"
#include "resources/placement.hpp"

namespace muster {

class NodePool {
  public:
    explicit NodePool(NodeChoice choice) : index_(choice) {}

    /// What the whole run shares.
    void add_cluster_resource(const NamedAmount& resource);
    bool is_cluster_resource(std::string_view name) const;
    Amount cluster_resource(std::string_view name) const;

    /// `offered` is what trials may have; the cores are the first ceil(cpu).
    void add(std::uint32_t node, const NodeInventory& inventory, const ResourceSet& offered);
    void remove(std::uint32_t node);
    /// A hidden node is there, and what is held on it can be given back, but nothing is placed
    /// there. REQUIRES: has(node).
    void hide(std::uint32_t node, bool hidden);
    bool has(std::uint32_t node) const {
        return node < states_.size() && states_[node].topology != nullptr;
    }
    const NodeState& state(std::uint32_t node) const { return states_[node]; }
    const std::vector<NodeState>& states() const { return states_; }
    /// One past the highest id.
    std::uint32_t size() const { return static_cast<std::uint32_t>(states_.size()); }
    const KindTable& kinds() const { return kinds_; }

    /// Takes what the bundle names from its node. REQUIRES: it is there.
    void take(const BundlePlacement& bundle, bool counts_as_nothing);
    /// Puts it back.
    void give(const BundlePlacement& bundle, bool counts_as_nothing);
    void take_cluster_resources(const Bundle& bundle);
    void give_cluster_resources(const Bundle& bundle);
    /// Cores that move between the free ones and the shared set of their node.
    void take_core(std::uint32_t node, std::uint32_t core) { states_[node].free_cores.erase(core); }
    void give_core(std::uint32_t node, std::uint32_t core) {
        states_[node].free_cores.insert(core);
    }

    std::vector<std::uint32_t> find(const NodeQuery& query, std::size_t count) const {
        return index_.find(query, count, states_);
    }

  private:
    void change(const BundlePlacement& bundle, bool counts_as_nothing, std::int64_t sign);
    void change_cluster_resources(const Bundle& bundle, std::int64_t sign);
    std::shared_ptr<const Topology> share_topology(Topology topology);
    std::uint32_t signature_of(const NodeState& state);

    KindTable kinds_;
    std::vector<NamedAmount> cluster_;
    // A node that is not there has no topology.
    std::vector<NodeState> states_;
    NodeIndex index_;
    std::vector<std::vector<Kind>> signatures_;
    std::map<std::vector<Kind>, std::uint32_t> signature_ids_;
    std::shared_ptr<const Topology> last_topology_;
};

}  // namespace muster
