// SPDX-License-Identifier: Apache-2.0
//
// cluster_file - a YAML file that says what nodes there are, for --cluster and for simulation:
//
//   nodes:
//     - {name: "gpu[01-04]", cpu: 64, gpu: 8, memory: 500GiB, nvme: 4}
//     - {name: login, cpu: 4}

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/error.hpp"

#include "resources/node_inventory.hpp"

namespace muster {

/// The nodes in the order of the file, lists such as "gpu[01-04]" spelt out.
/// Errors: as load_spec().
Result<std::vector<NodeInventory>> load_cluster(const std::string& path);

/// As load_cluster() for a text; `path` is for messages.
Result<std::vector<NodeInventory>> parse_cluster(std::string_view text, const std::string& path);

}  // namespace muster
