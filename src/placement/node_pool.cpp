// SPDX-License-Identifier: Apache-2.0

#include "placement/node_pool.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "base/planted_fault.hpp"

namespace muster {
namespace {

template <class Resources>
auto find_named(Resources& resources, std::string_view name) {
    return std::find_if(resources.begin(), resources.end(), [&](const NamedAmount& entry) {
        return entry.name == name;
    });
}

}  // namespace

void NodePool::add_cluster_resource(const NamedAmount& resource) {
    cluster_.push_back(resource);
}

bool NodePool::is_cluster_resource(std::string_view name) const {
    return find_named(cluster_, name) != cluster_.end();
}

Amount NodePool::cluster_resource(std::string_view name) const {
    const auto entry = find_named(cluster_, name);
    return entry == cluster_.end() ? Amount{} : entry->amount;
}

std::shared_ptr<const Topology> NodePool::share_topology(Topology topology) {
    if (last_topology_ == nullptr || !(*last_topology_ == topology)) {
        last_topology_ = std::make_shared<const Topology>(std::move(topology));
    }
    return last_topology_;
}

std::uint32_t NodePool::signature_of(const NodeState& state) {
    std::vector<Kind> offered;
    for (Kind kind = 0; kind < state.custom.size(); ++kind) {
        if (state.custom[kind] > 0) {
            offered.push_back(kind);
        }
    }
    const auto next = static_cast<std::uint32_t>(signatures_.size());
    const auto [entry, added] = signature_ids_.try_emplace(offered, next);
    if (added) {
        signatures_.push_back(std::move(offered));
    }
    return entry->second;
}

void NodePool::add(std::uint32_t node, const NodeInventory& inventory, const ResourceSet& offered) {
    check(!has(node), "a node is added once");
    NodeState state;
    const auto cores = static_cast<std::size_t>(offered.cpu.ceil());
    state.topology = share_topology(make_topology(inventory, cores));
    state.cpu = offered.cpu.ten_thousandths();
    state.memory = offered.memory_bytes;
    state.nothing = static_cast<std::int64_t>(cores);
    for (const NamedAmount& entry : offered.custom) {
        const Kind kind = kinds_.find_or_add(entry.name);
        state.custom.resize(std::max<std::size_t>(state.custom.size(), kind + 1));
        state.custom[kind] = entry.amount.ten_thousandths();
    }
    state.devices.assign(static_cast<std::size_t>(offered.gpu.floor()), kWholeDevice);
    state.free_cores = state.topology->cores;
    state.signature = signature_of(state);
    if (node >= states_.size()) {
        states_.resize(node + 1);
    }
    states_[node] = std::move(state);
    index_.insert(node, states_, signatures_[states_[node].signature]);
}

void NodePool::remove(std::uint32_t node) {
    hide(node, true);
    states_[node] = NodeState{};
}

void NodePool::hide(std::uint32_t node, bool hidden) {
    NodeState& state = states_[node];
    if (hidden && !state.hidden) {
        index_.erase(node, states_);
    } else if (!hidden && state.hidden) {
        index_.insert(node, states_, signatures_[state.signature]);
    }
    state.hidden = hidden;
}

void NodePool::change(const BundlePlacement& bundle, bool counts_as_nothing, std::int64_t sign) {
    const std::uint32_t node = bundle.node.value;
    NodeState& state = states_[node];
    if (!state.hidden) {
        index_.erase(node, states_);
    }
    state.cpu += sign * bundle.bundle.cpu.ten_thousandths();
    state.memory += sign * bundle.bundle.memory_bytes;
    state.nothing += counts_as_nothing ? sign : 0;
    check(state.cpu >= 0 && state.memory >= 0, "a node promises only CPUs and memory that it has");
    for (const NamedAmount& entry : bundle.bundle.custom) {
        if (is_cluster_resource(entry.name)) {
            continue;
        }
        const auto kind = kinds_.find(entry.name);
        check(kind && *kind < state.custom.size(), "a custom resource is taken where it is");
        state.custom[*kind] += sign * entry.amount.ten_thousandths();
        check(state.custom[*kind] >= 0, "a node promises only custom resources that it has");
    }
    for (const DeviceShare& share : bundle.devices) {
        if (planted(PlantedFault::DeviceShareIgnored) && !share.share.is_whole()) {
            continue;
        }
        std::int32_t& room = state.devices[share.device];
        room += static_cast<std::int32_t>(sign * share.share.ten_thousandths());
        check(room >= 0 && room <= kWholeDevice, "a device is shared out up to 1");
    }
    for (const std::uint32_t core : bundle.cores) {
        check(state.free_cores.contains(core) == (sign < 0), "a core has one owner");
        if (sign < 0) {
            state.free_cores.erase(core);
        } else {
            state.free_cores.insert(core);
        }
    }
    if (!state.hidden) {
        index_.insert(node, states_, signatures_[state.signature]);
    }
}

void NodePool::take(const BundlePlacement& bundle, bool counts_as_nothing) {
    change(bundle, counts_as_nothing, -1);
}

void NodePool::give(const BundlePlacement& bundle, bool counts_as_nothing) {
    change(bundle, counts_as_nothing, 1);
}

void NodePool::change_cluster_resources(const Bundle& bundle, std::int64_t sign) {
    for (const NamedAmount& entry : bundle.custom) {
        const auto resource = find_named(cluster_, entry.name);
        if (resource != cluster_.end()) {
            resource->amount += Amount::ten_thousandths(sign * entry.amount.ten_thousandths());
            check(resource->amount >= Amount{}, "the run promises only what it has");
        }
    }
}

void NodePool::take_cluster_resources(const Bundle& bundle) {
    change_cluster_resources(bundle, -1);
}

void NodePool::give_cluster_resources(const Bundle& bundle) {
    change_cluster_resources(bundle, 1);
}

}  // namespace muster
