// SPDX-License-Identifier: Apache-2.0
//
// cluster - the head's exact model of what every node has, what is held on it and by whom.
//
// Cluster decides where a group of bundles goes (place), what is taken (reserve, release) and
// whether a request could ever be met (feasible). It performs no I/O and reads no clock; the same
// calls give the same answers. A holder is the trial for which something is reserved; it holds at
// most one placement at a time.
//
// Invariants:
// - no node has promised more than it has, nor has the cluster of what all nodes share;
// - whole-core bundles never share a core with another bundle that asked for CPUs;
// - a device is shared out up to 1, and a whole device is never taken from a shared one.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/error.hpp"
#include "muster/experiment.hpp"
#include "muster/resources.hpp"

#include "base/ids.hpp"
#include "resources/node_inventory.hpp"
#include "resources/placement.hpp"

namespace muster {

struct ClusterOptions {
    /// Kept back on every node.
    ResourceSet reserve;
    /// Custom resources that the whole run shares. Such a name is never looked for on a node.
    std::vector<NamedAmount> cluster_resources;
    NodeChoice node_choice = NodeChoice::Tightest;
};

/// A bundle that somebody holds.
struct BundleRef {
    TrialId holder;
    /// Its place in the holder's Placement.
    std::uint32_t bundle = 0;

    friend auto operator<=>(const BundleRef&, const BundleRef&) = default;
};

/// When room for a group would be made, and where.
struct RoomPlan {
    /// So many of the holders, in the order given, must end first.
    std::size_t endings = 0;
    /// Ascending, each once.
    std::vector<NodeId> nodes;
};

class Cluster {
  public:
    explicit Cluster(ClusterOptions options = {});
    ~Cluster();
    Cluster(Cluster&&) noexcept;
    Cluster& operator=(Cluster&&) noexcept;
    Cluster(const Cluster&) = delete;
    Cluster& operator=(const Cluster&) = delete;

    /// Adds a node, less what is reserved. A node whose cores are fewer than its `cpu` offers only
    /// as many CPUs as it has cores. REQUIRES: the id is new, or its node was removed.
    void add_node(NodeId node, NodeInventory inventory);

    /// Forgets a node and what is held on it; what its holders have elsewhere stays theirs until
    /// release(). Harmless when the node is not there.
    void remove_node(NodeId node);

    /// Places nothing on the node any more, as if it were gone for place(), feasible() and
    /// plan_room(), or takes it back. What is held there stays, and so does its capacity. A node
    /// that is removed is not set aside when it comes back. REQUIRES: has_node(node).
    void set_aside(NodeId node, bool aside);
    /// False for a node that is not there.
    bool is_set_aside(NodeId node) const;

    bool has_node(NodeId node) const;
    /// Ascending.
    std::vector<NodeId> nodes() const;

    /// Picks a node, cores and devices for every bundle of `group`, on none of the nodes in
    /// `avoid`; nothing when it does not fit now. Bundles are placed hardest first, ties go to the
    /// lowest node. REQUIRES: validate(group); `avoid` is ascending.
    std::optional<Placement>
    place(const PlacementGroupSpec& group, std::span<const NodeId> avoid = {}) const;

    /// Ok when `group` would be placed if nothing were held.
    /// Errors: Infeasible, naming the rule, what was asked and the most that there is.
    Status feasible(const PlacementGroupSpec& group) const;

    /// The fewest of `ending`, in that order, whose release would make room for `group`. Nothing
    /// when not even all of them do.
    std::optional<RoomPlan>
    plan_room(const PlacementGroupSpec& group, std::span<const TrialId> ending) const;

    /// Takes what `placement` names. REQUIRES: place() gave it and nothing was taken since; the
    /// holder holds nothing.
    void reserve(TrialId holder, const Placement& placement);

    /// Gives back all that `holder` has. Harmless when it holds nothing, and for bundles whose node
    /// was removed meanwhile, even when it came back.
    void release(TrialId holder);

    /// The cores that the processes of a reserved bundle may use now, ascending, by their place in
    /// the node's inventory: its own; or those that all bundles with a fraction share; or, for one
    /// without CPUs, cores that no whole-core bundle holds, near its devices. An empty bundle 0
    /// of several uses those of bundle 1 when none is left over.
    std::vector<std::uint32_t> cores_of(const Placement& placement, std::size_t bundle) const;

    /// Bundles, reserved earlier, whose cores_of() changed since the last call, ascending. Usually
    /// empty: whole-core bundles never change.
    std::vector<BundleRef> take_remasked();

    /// All nodes together, and what all nodes share.
    const ResourceSet& capacity() const;
    const ResourceSet& in_use() const;
    /// Rises whenever something that did not fit might fit now: a release, a new node.
    std::uint64_t room_version() const;

    // One node. REQUIRES: has_node(node).

    const NodeInventory& inventory(NodeId node) const;
    /// What it offers: the inventory less what is kept back.
    const ResourceSet& capacity(NodeId node) const;
    ResourceSet free(NodeId node) const;
    /// Ascending, each once.
    std::vector<TrialId> holders(NodeId node) const;

    /// What the whole run shares, as given at first.
    const std::vector<NamedAmount>& cluster_resources() const;
    /// What of it nobody holds.
    Amount free_cluster_resource(std::string_view name) const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace muster
