// SPDX-License-Identifier: Apache-2.0
//
// format_nodes - inventories as a table for people and as JSON for programs.

#pragma once

#include <string>
#include <vector>

#include "resources/node_inventory.hpp"

namespace muster {

enum class NodesFormat { Text, Json };

/// One line a node with a heading and, for several nodes, a line of totals; or one JSON document
/// {"nodes": [...], "total": {...}}. Ends with a newline.
std::string format_nodes(const std::vector<NodeInventory>& nodes, NodesFormat format);

}  // namespace muster
