// SPDX-License-Identifier: Apache-2.0

#include "placement/place.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "placement/group.hpp"

namespace muster {
namespace {

std::optional<Assignment> assign(const GroupSearch& search, PlacementStrategy strategy) {
    if (search.items.size() == 1) {
        return assign_strict_pack(search);
    }
    switch (strategy) {
        case PlacementStrategy::Pack:
            return assign_pack(search);
        case PlacementStrategy::Spread:
            return assign_spread(search);
        case PlacementStrategy::StrictPack:
            return assign_strict_pack(search);
        case PlacementStrategy::StrictSpread:
            return assign_strict_spread(search);
    }
    check(false, "a placement strategy is one of four");
    return std::nullopt;
}

/// Names devices and cores for the items (indices, hardest first) that go to `node`.
void furnish(
    const GroupSearch& search,
    std::uint32_t node,
    std::span<const std::uint32_t> there,
    Placement& placement
) {
    const NodeState& state = search.pool.state(node);
    std::vector<const Demand*> demands;
    demands.reserve(there.size());
    for (const std::uint32_t item : there) {
        demands.push_back(&search.items[item].demand);
    }
    auto devices = devices_for(state, demands);
    check(devices.has_value(), "bundles that fit on a node find their devices");
    CoreSet free = state.free_cores;
    for (std::size_t i = 0; i < there.size(); ++i) {
        BundlePlacement& bundle = placement.bundles[search.items[there[i]].bundle];
        bundle.node = NodeId{node};
        bundle.devices = std::move((*devices)[i]);
        if (bundle.bundle.cpu.is_zero() || !bundle.bundle.cpu.is_whole()) {
            continue;
        }
        std::vector<std::uint32_t> near;
        for (const DeviceShare& share : bundle.devices) {
            near.push_back(share.device);
        }
        const auto count = static_cast<std::size_t>(bundle.bundle.cpu.floor());
        const CoreSet cores = choose_cores(*state.topology, free, count, near);
        free -= cores;
        bundle.cores = cores.list();
    }
}

Placement
furnish_all(const GroupSearch& search, const PlacementGroupSpec& group, const Assignment& nodes) {
    Placement placement;
    placement.bundles.reserve(group.bundles.size());
    for (const Bundle& bundle : group.bundles) {
        placement.bundles.push_back(BundlePlacement{.bundle = bundle});
    }
    std::vector<std::uint32_t> order(nodes.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) {
        order[i] = i;
    }
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t left, std::uint32_t right) {
        return nodes[left] < nodes[right];
    });
    for (std::size_t begin = 0; begin < order.size();) {
        std::size_t end = begin;
        while (end < order.size() && nodes[order[end]] == nodes[order[begin]]) {
            ++end;
        }
        furnish(
            search, nodes[order[begin]], std::span(order).subspan(begin, end - begin), placement
        );
        begin = end;
    }
    // An empty bundle 0 starts where bundle 1 is.
    if (nodes.size() < group.bundles.size()) {
        placement.bundles[0].node = placement.bundles[1].node;
    }
    return placement;
}

}  // namespace

std::optional<Placement>
place(const NodePool& pool, const PlacementGroupSpec& group, std::span<const NodeId> avoid) {
    const std::optional<std::vector<GroupItem>> items = group_items(pool, group);
    if (!items) {
        return std::nullopt;
    }
    const GroupSearch search{pool, *items, avoid};
    const std::optional<Assignment> nodes = assign(search, group.strategy);
    if (!nodes) {
        return std::nullopt;
    }
    return furnish_all(search, group, *nodes);
}

std::optional<std::vector<NodeId>>
place_nodes(const NodePool& pool, const PlacementGroupSpec& group) {
    const std::optional<std::vector<GroupItem>> items = group_items(pool, group);
    if (!items) {
        return std::nullopt;
    }
    std::optional<Assignment> nodes = assign({pool, *items, {}}, group.strategy);
    if (!nodes) {
        return std::nullopt;
    }
    std::sort(nodes->begin(), nodes->end());
    nodes->erase(std::unique(nodes->begin(), nodes->end()), nodes->end());
    std::vector<NodeId> ids;
    ids.reserve(nodes->size());
    for (const std::uint32_t node : *nodes) {
        ids.push_back(NodeId{node});
    }
    return ids;
}

}  // namespace muster
