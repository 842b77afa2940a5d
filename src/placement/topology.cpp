// SPDX-License-Identifier: Apache-2.0

#include "placement/topology.hpp"

#include <algorithm>
#include <map>

#include "base/check.hpp"

namespace muster {
namespace {

/// Moves cores of `source` to `taken` until it holds `wanted`, beginning at `start`, then from 0.
void take_cores(const CoreSet& source, std::uint32_t start, std::size_t wanted, CoreSet& taken) {
    const CoreSet cores = source - taken;
    std::size_t have = taken.size();
    const auto take_from = [&](std::uint32_t from) {
        for (auto core = cores.next(from); core && have < wanted; core = cores.next(*core + 1)) {
            have += taken.contains(*core) ? 0U : 1U;
            taken.insert(*core);
        }
    };
    take_from(start);
    take_from(0);
}

std::uint32_t first_core(const CoreSet& cores) {
    return cores.next(0).value_or(0);
}

/// Gives every device a slice of its own: near cores first, then what is left of others.
void slice_cores(Topology& topology) {
    CoreSet unowned = topology.cores;
    for (std::size_t i = 0; i < topology.device_numa.size(); ++i) {
        CoreSet& slice = topology.device_cores.emplace_back(topology.cores - topology.cores);
        const CoreSet near = unowned & topology.numa[topology.device_numa[i]];
        take_cores(near, 0, topology.cores_per_device, slice);
        unowned -= slice;
    }
    for (CoreSet& slice : topology.device_cores) {
        take_cores(unowned, 0, topology.cores_per_device, slice);
        unowned -= slice;
    }
}

/// The NUMA node to take from: the one with the fewest cores of `left` that has `wanted`, else the
/// one with the most.
std::size_t choose_numa(const std::vector<CoreSet>& numa, const CoreSet& left, std::size_t wanted) {
    std::size_t best = 0;
    std::size_t best_has = (left & numa[0]).size();
    for (std::size_t i = 1; i < numa.size(); ++i) {
        const std::size_t has = (left & numa[i]).size();
        const bool suffices = has >= wanted;
        const bool best_suffices = best_has >= wanted;
        if (suffices != best_suffices ? suffices : (suffices ? has < best_has : has > best_has)) {
            best = i;
            best_has = has;
        }
    }
    return best;
}

}  // namespace

Topology make_topology(const NodeInventory& inventory, std::size_t usable) {
    Topology topology;
    const std::size_t cores = inventory.cores.size();
    topology.cores = CoreSet(cores);
    std::map<std::uint32_t, std::uint32_t> numa_index;
    const auto index_of = [&](std::uint32_t numa_node) {
        const auto next = static_cast<std::uint32_t>(numa_index.size());
        const auto [entry, added] = numa_index.try_emplace(numa_node, next);
        if (added) {
            topology.numa.emplace_back(cores);
        }
        return entry->second;
    };
    for (std::uint32_t core = 0; core < usable; ++core) {
        topology.numa[index_of(inventory.cores[core].numa_node)].insert(core);
        topology.cores.insert(core);
    }
    for (const Device& device : inventory.devices) {
        topology.device_numa.push_back(index_of(device.numa_node));
        topology.device_alone.push_back(device.label.starts_with("MIG-"));
    }
    if (!inventory.devices.empty() && usable > 0) {
        topology.cores_per_device = std::max<std::size_t>(1, usable / inventory.devices.size());
    }
    slice_cores(topology);
    return topology;
}

CoreSet choose_cores(
    const Topology& topology,
    const CoreSet& free,
    std::size_t count,
    std::span<const std::uint32_t> devices
) {
    check(free.size() >= count, "a bundle that fits finds its cores");
    CoreSet chosen = free - free;
    for (const std::uint32_t device : devices) {
        take_cores(free & topology.device_cores[device], 0, count, chosen);
    }
    for (const std::uint32_t device : devices) {
        const CoreSet near = free & topology.numa[topology.device_numa[device]];
        take_cores(near, first_core(topology.device_cores[device]), count, chosen);
    }
    for (std::size_t have = chosen.size(); have < count; have = chosen.size()) {
        const CoreSet left = free - chosen;
        const std::size_t numa = choose_numa(topology.numa, left, count - have);
        take_cores(left & topology.numa[numa], 0, count, chosen);
    }
    return chosen;
}

CoreSet floating_cores(
    const Topology& topology,
    const CoreSet& available,
    std::span<const std::uint32_t> devices
) {
    const CoreSet& source = available.empty() ? topology.cores : available;
    if (devices.empty()) {
        return source;
    }
    const std::size_t wanted = topology.cores_per_device * devices.size();
    CoreSet chosen = source - source;
    for (const std::uint32_t device : devices) {
        take_cores(source & topology.device_cores[device], 0, wanted, chosen);
    }
    for (const std::uint32_t device : devices) {
        const CoreSet near = source & topology.numa[topology.device_numa[device]];
        take_cores(near, first_core(topology.device_cores[device]), wanted, chosen);
    }
    take_cores(source, first_core(topology.device_cores[devices.front()]), wanted, chosen);
    return chosen;
}

}  // namespace muster
