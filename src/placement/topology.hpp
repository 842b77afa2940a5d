// SPDX-License-Identifier: Apache-2.0
//
// topology - how a node's cores and devices lie to each other, and which cores a bundle gets.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "placement/core_set.hpp"
#include "resources/node_inventory.hpp"

namespace muster {

/// What never changes of a node. Nodes that are alike share one.
struct Topology {
    /// All cores that trials may use.
    CoreSet cores;
    /// Those of each NUMA node.
    std::vector<CoreSet> numa;
    /// Per device: its NUMA node, an index into `numa`.
    std::vector<std::uint32_t> device_numa;
    /// Per device: the cores that its trials use when they ask for none; near it as far as there
    /// are such, and as many for every device. The devices' slices do not overlap.
    std::vector<CoreSet> device_cores;
    /// Per device: a process can never open it together with another one.
    std::vector<bool> device_alone;
    /// At least 1 when there are cores.
    std::size_t cores_per_device = 0;

    friend bool operator==(const Topology&, const Topology&) = default;
};

/// The topology of a node of whose cores the first `usable` serve.
Topology make_topology(const NodeInventory& inventory, std::size_t usable);

/// `count` of the `free` cores, near `devices` when there are any, on as few NUMA nodes as
/// possible, and tightest there. REQUIRES: free has that many.
CoreSet choose_cores(
    const Topology& topology,
    const CoreSet& free,
    std::size_t count,
    std::span<const std::uint32_t> devices
);

/// Where a bundle that asked for no CPUs runs, given the cores that no whole-core bundle holds:
/// without devices on all of them; with devices on those nearest, cores_per_device for each while
/// there are any. When `available` is empty, as if all were.
CoreSet floating_cores(
    const Topology& topology,
    const CoreSet& available,
    std::span<const std::uint32_t> devices
);

}  // namespace muster
