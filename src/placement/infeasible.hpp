// SPDX-License-Identifier: Apache-2.0
//
// infeasible - says why not even an idle cluster can place a group.

#pragma once

#include <string>
#include <vector>

#include "muster/error.hpp"
#include "muster/resources.hpp"

#include "placement/node_pool.hpp"

namespace muster {

/// The rule that `group` breaks, what was asked and the most that there is. `names` are those of
/// the nodes by id. REQUIRES: validate(group), and place() does not find room in `idle`.
Error infeasible(
    const NodePool& idle,
    const std::vector<std::string>& names,
    const PlacementGroupSpec& group
);

}  // namespace muster
