// SPDX-License-Identifier: Apache-2.0

#include "placement/node_use.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace muster {
namespace {

std::vector<std::uint32_t> devices_of(const BundlePlacement& bundle) {
    std::vector<std::uint32_t> devices;
    devices.reserve(bundle.devices.size());
    for (const DeviceShare& share : bundle.devices) {
        devices.push_back(share.device);
    }
    return devices;
}

}  // namespace

CoreUse core_use(const Bundle& bundle) {
    if (bundle.cpu.is_zero()) {
        return CoreUse::Floating;
    }
    return bundle.cpu.is_whole() ? CoreUse::Own : CoreUse::Shared;
}

void NodeUse::add(Holding holding) {
    const CoreUse use = core_use(holding.bundle.bundle);
    shared_sum_ += use == CoreUse::Shared ? holding.bundle.bundle.cpu : Amount{};
    floating_ += use == CoreUse::Floating ? 1 : 0;
    holdings_.push_back(std::move(holding));
}

const Holding* NodeUse::find(const BundleRef& ref) const {
    const auto entry = std::find_if(holdings_.begin(), holdings_.end(), [&](const Holding& other) {
        return other.ref == ref;
    });
    return entry == holdings_.end() ? nullptr : &*entry;
}

void NodeUse::remove(const BundleRef& ref) {
    const Holding* entry = find(ref);
    check(entry != nullptr, "what is removed from a node is there");
    const CoreUse use = core_use(entry->bundle.bundle);
    shared_sum_ -= use == CoreUse::Shared ? entry->bundle.bundle.cpu : Amount{};
    floating_ -= use == CoreUse::Floating ? 1 : 0;
    const auto place = static_cast<std::size_t>(entry - holdings_.data());
    if (place + 1 < holdings_.size()) {
        holdings_[place] = std::move(holdings_.back());
    }
    holdings_.pop_back();
}

bool NodeUse::resize_shared(std::uint32_t node, NodePool& pool) {
    const auto wanted = static_cast<std::size_t>(shared_sum_.ceil());
    if (wanted == shared_.size()) {
        return false;
    }
    while (shared_.size() > wanted) {
        pool.give_core(node, shared_.back());
        shared_.pop_back();
    }
    if (shared_.size() < wanted) {
        const NodeState& state = pool.state(node);
        const CoreSet added =
            choose_cores(*state.topology, state.free_cores, wanted - shared_.size(), {});
        for (const std::uint32_t core : added.list()) {
            pool.take_core(node, core);
            shared_.push_back(core);
        }
        std::sort(shared_.begin(), shared_.end());
    }
    return true;
}

/// The cores that no whole-core bundle holds.
CoreSet NodeUse::available(const NodeState& state) const {
    CoreSet cores = state.free_cores;
    for (const std::uint32_t core : shared_) {
        cores.insert(core);
    }
    return cores;
}

void NodeUse::settle(
    std::uint32_t node,
    NodePool& pool,
    TrialId newcomer,
    std::vector<BundleRef>& remasked
) {
    const bool shared_changed = resize_shared(node, pool);
    if (!shared_changed && floating_ == 0) {
        return;
    }
    for (Holding& holding : holdings_) {
        const CoreUse use = core_use(holding.bundle.bundle);
        bool changed = use == CoreUse::Shared && shared_changed;
        if (use == CoreUse::Floating) {
            auto cores = cores_of(pool.state(node), holding.bundle, holding.fallback);
            changed = cores != holding.floats_on;
            holding.floats_on = std::move(cores);
        }
        if (changed && holding.ref.holder != newcomer) {
            remasked.push_back(holding.ref);
        }
    }
}

std::vector<std::uint32_t> NodeUse::cores_of(
    const NodeState& state,
    const BundlePlacement& bundle,
    const std::vector<std::uint32_t>& fallback
) const {
    switch (core_use(bundle.bundle)) {
        case CoreUse::Own:
            return bundle.cores;
        case CoreUse::Shared:
            return shared_;
        case CoreUse::Floating:
            break;
    }
    const CoreSet cores = available(state);
    if (cores.empty() && !fallback.empty()) {
        return fallback;
    }
    return floating_cores(*state.topology, cores, devices_of(bundle)).list();
}

std::vector<std::uint32_t> fallback_cores(const Placement& placement, std::size_t bundle) {
    const bool leads = bundle == 0 && placement.bundles.size() > 1;
    if (!leads || !placement.bundles[0].bundle.is_zero()) {
        return {};
    }
    return placement.bundles[1].cores;
}

}  // namespace muster
