// SPDX-License-Identifier: Apache-2.0
//
// logical_node - a node made from amounts alone, for --node-resources, tests and simulation. Its
// trials are counted and see device masks, but are not bound to cores.

#pragma once

#include <string>
#include <string_view>

#include "muster/error.hpp"
#include "muster/resources.hpp"

#include "resources/node_inventory.hpp"

namespace muster {

/// Reads "cpu=4,gpu=2,memory=8GiB,licence=3". What is not named is 0.
/// Errors: InvalidInput, naming the part and what would be right: an amount that is none, a gpu
/// that is not whole, a name given twice or that cannot be one.
Result<ResourceSet> parse_node_resources(std::string_view text);

/// A node that offers `resources`: ceil(cpu) cores without processing units on one NUMA node, and
/// devices labelled "0", "1", …. REQUIRES: gpu is whole.
NodeInventory logical_node(std::string name, const ResourceSet& resources);

}  // namespace muster
