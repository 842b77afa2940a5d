// SPDX-License-Identifier: Apache-2.0

#include "placement/group.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace muster {
namespace {

/// Nothing when no node ever had one of the custom resources.
std::optional<Demand> to_demand(const NodePool& pool, const Bundle& bundle) {
    Demand demand;
    demand.cpu = bundle.cpu.ten_thousandths();
    demand.memory = bundle.memory_bytes;
    if (bundle.gpu >= Amount::whole(1)) {
        demand.devices = bundle.gpu.floor();
        demand.most_devices = demand.devices;
    } else {
        demand.share = bundle.gpu.ten_thousandths();
        demand.shares = demand.share > 0 ? 1 : 0;
    }
    demand.nothing = bundle.is_zero() ? 1 : 0;
    for (const NamedAmount& entry : bundle.custom) {
        if (pool.is_cluster_resource(entry.name)) {
            continue;
        }
        const std::optional<Kind> kind = pool.kinds().find(entry.name);
        if (!kind) {
            return std::nullopt;
        }
        demand.custom.push_back({*kind, entry.amount.ten_thousandths()});
    }
    std::sort(
        demand.custom.begin(),
        demand.custom.end(),
        [](const KindAmount& left, const KindAmount& right) { return left.kind < right.kind; }
    );
    return demand;
}

bool cluster_resources_suffice(const NodePool& pool, const PlacementGroupSpec& group) {
    ResourceSet asked;
    for (const Bundle& bundle : group.bundles) {
        for (const NamedAmount& entry : bundle.custom) {
            if (pool.is_cluster_resource(entry.name)) {
                asked.set_custom(entry.name, asked.custom_amount(entry.name) + entry.amount);
            }
        }
    }
    return std::all_of(asked.custom.begin(), asked.custom.end(), [&](const NamedAmount& entry) {
        return entry.amount <= pool.cluster_resource(entry.name);
    });
}

auto hardness(const Demand& demand) {
    std::int64_t custom = 0;
    for (const KindAmount& entry : demand.custom) {
        custom += entry.amount;
    }
    return std::make_tuple(
        demand.devices * kWholeDevice + demand.share,
        demand.custom.size(),
        custom,
        demand.memory,
        demand.cpu
    );
}

void number_shapes(std::vector<GroupItem>& items) {
    std::uint32_t shapes = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
        // Equal demands are mostly neighbours, so looking back is short.
        std::size_t same = i;
        while (same > 0 && !(items[same - 1].demand == items[i].demand)) {
            --same;
        }
        items[i].shape = same > 0 ? items[same - 1].shape : shapes++;
    }
}

}  // namespace

std::optional<std::vector<GroupItem>>
group_items(const NodePool& pool, const PlacementGroupSpec& group) {
    if (!cluster_resources_suffice(pool, group)) {
        return std::nullopt;
    }
    std::vector<GroupItem> items;
    items.reserve(group.bundles.size());
    for (std::uint32_t i = 0; i < group.bundles.size(); ++i) {
        const Bundle& bundle = group.bundles[i];
        if (bundle.is_zero() && group.bundles.size() > 1) {
            continue;
        }
        std::optional<Demand> demand = to_demand(pool, bundle);
        if (!demand) {
            return std::nullopt;
        }
        items.push_back({std::move(*demand), i, 0});
    }
    std::stable_sort(items.begin(), items.end(), [](const GroupItem& left, const GroupItem& right) {
        return hardness(left.demand) > hardness(right.demand);
    });
    number_shapes(items);
    return items;
}

std::uint32_t shape_count(const std::vector<GroupItem>& items) {
    std::uint32_t count = 0;
    for (const GroupItem& item : items) {
        count = std::max(count, item.shape + 1);
    }
    return count;
}

std::optional<std::uint32_t> find_node_for(
    const GroupSearch& search,
    std::span<const std::uint32_t> chosen,
    std::span<const NodeId> avoid
) {
    Demand sum;
    std::vector<const Demand*> together;
    together.reserve(chosen.size());
    for (const std::uint32_t item : chosen) {
        sum.add(search.items[item].demand);
        together.push_back(&search.items[item].demand);
    }
    const NodeQuery query{&sum, together.size() > 1 ? &together : nullptr, avoid};
    const std::vector<std::uint32_t> found = search.pool.find(query, 1);
    if (found.empty()) {
        return std::nullopt;
    }
    return found.front();
}

std::vector<std::vector<std::uint32_t>> candidates_by_shape(const GroupSearch& search) {
    std::vector<std::vector<std::uint32_t>> candidates(shape_count(search.items));
    std::vector<bool> known(candidates.size());
    for (const GroupItem& item : search.items) {
        if (!known[item.shape]) {
            known[item.shape] = true;
            candidates[item.shape] =
                search.pool.find({&item.demand, nullptr, search.avoid}, search.items.size());
        }
    }
    return candidates;
}

}  // namespace muster
