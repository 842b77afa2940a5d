// SPDX-License-Identifier: Apache-2.0
//
// place - chooses nodes, devices and cores for every bundle of a group. Pure: the same inputs give
// the same result.

#pragma once

#include <optional>
#include <span>

#include "muster/resources.hpp"

#include "placement/node_pool.hpp"
#include "resources/placement.hpp"

namespace muster {

/// Nothing when the group does not fit in what `pool` has left, without the nodes in `avoid`.
/// REQUIRES: validate(group); `avoid` is ascending.
std::optional<Placement>
place(const NodePool& pool, const PlacementGroupSpec& group, std::span<const NodeId> avoid);

/// The nodes alone, ascending, each once: what place() would use.
std::optional<std::vector<NodeId>>
place_nodes(const NodePool& pool, const PlacementGroupSpec& group);

}  // namespace muster
