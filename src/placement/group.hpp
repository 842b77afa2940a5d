// SPDX-License-Identifier: Apache-2.0
//
// group - a placement group as the search sees it: items, hardest first, and where each may go.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "muster/resources.hpp"

#include "placement/demand.hpp"
#include "placement/node_pool.hpp"

namespace muster {

/// A bundle that asks for something, or the only one.
struct GroupItem {
    Demand demand;
    /// Its place in the request.
    std::uint32_t bundle = 0;
    /// Items with equal demands have equal shapes: 0, 1, … in order of first appearance.
    std::uint32_t shape = 0;
};

/// The items, hardest first: GPU, then custom, then memory, then CPU. An empty bundle 0 before
/// others is left out. Nothing when a custom resource is asked for that no node ever had, or more
/// of what the run shares than is left.
std::optional<std::vector<GroupItem>>
group_items(const NodePool& pool, const PlacementGroupSpec& group);

std::uint32_t shape_count(const std::vector<GroupItem>& items);

/// Where the items go: a node for each.
using Assignment = std::vector<std::uint32_t>;

/// What all searches have in common.
struct GroupSearch {
    const NodePool& pool;
    const std::vector<GroupItem>& items;
    std::span<const NodeId> avoid;
};

/// The preferred node that takes all of `chosen` (indices of items) together, on none of `avoid`.
std::optional<std::uint32_t> find_node_for(
    const GroupSearch& search,
    std::span<const std::uint32_t> chosen,
    std::span<const NodeId> avoid
);

/// Per shape, the preferred nodes that take one such item: as many as there are items. An item
/// placed elsewhere in some solution can move to one of these, so no solution is lost.
std::vector<std::vector<std::uint32_t>> candidates_by_shape(const GroupSearch& search);

// The strategies. Nothing when they find no way.

std::optional<Assignment> assign_strict_pack(const GroupSearch& search);
std::optional<Assignment> assign_pack(const GroupSearch& search);
/// Exact: a matching of items and nodes.
std::optional<Assignment> assign_strict_spread(const GroupSearch& search);
std::optional<Assignment> assign_spread(const GroupSearch& search);

/// Tries other nodes for earlier items when later ones don't fit, for at most 1,000 steps. `spread`
/// prefers fresh nodes; otherwise used ones come first.
std::optional<Assignment> assign_backtracking(const GroupSearch& search, bool spread);

/// Groups of more bundles are placed greedily.
inline constexpr std::size_t kMostBacktracked = 16;

}  // namespace muster
