// SPDX-License-Identifier: Apache-2.0
//
// invariants_promises - "no node has promised more than it has", added up anew from the placements
// of what runs.

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "head/trial.hpp"
#include "placement/cluster.hpp"
#include "sim/invariants.hpp"

namespace muster {
namespace {

constexpr std::string_view kPromise = "No node has promised more than it has.";

/// What the placements that touch one node take there.
struct Tally {
    ResourceSet used;
    std::map<std::uint32_t, Amount> devices;
    std::set<std::uint32_t> own_cores;
    std::set<std::uint32_t> shared_cores;
    bool cores_taken_twice = false;
};

void add(ResourceSet& sum, const ResourceSet& more) {
    sum.cpu += more.cpu;
    sum.gpu += more.gpu;
    sum.memory_bytes += more.memory_bytes;
    for (const NamedAmount& custom : more.custom) {
        sum.set_custom(custom.name, sum.custom_amount(custom.name) + custom.amount);
    }
}

bool exceeds(const ResourceSet& used, const ResourceSet& capacity) {
    return used.cpu > capacity.cpu || used.gpu > capacity.gpu ||
           used.memory_bytes > capacity.memory_bytes;
}

void add_bundle(
    Tally& tally,
    const Cluster& cluster,
    const Placement& placement,
    std::size_t index
) {
    const BundlePlacement& bundle = placement.bundles[index];
    add(tally.used, bundle.bundle);
    for (const DeviceShare& share : bundle.devices) {
        tally.devices[share.device] += share.share;
    }
    for (const std::uint32_t core : bundle.cores) {
        tally.cores_taken_twice |= !tally.own_cores.insert(core).second;
    }
    if (bundle.cores.empty() && !bundle.bundle.cpu.is_zero()) {
        const std::vector<std::uint32_t> shared = cluster.cores_of(placement, index);
        tally.shared_cores.insert(shared.begin(), shared.end());
    }
}

std::string fault_of(const Tally& tally, const Cluster& cluster, NodeId node) {
    const ResourceSet& capacity = cluster.capacity(node);
    const ResourceSet free = cluster.free(node);
    if (exceeds(tally.used, capacity)) {
        return fmt::format("{} of {} is in use", to_string(tally.used), to_string(capacity));
    }
    for (const auto& [device, share] : tally.devices) {
        if (share > Amount::whole(1) || device >= cluster.inventory(node).devices.size()) {
            return fmt::format("{} of device {} is in use", to_string(share), device);
        }
    }
    if (tally.cores_taken_twice) {
        return "a core is two trials' own";
    }
    for (const std::uint32_t core : tally.shared_cores) {
        if (tally.own_cores.count(core) != 0) {
            return fmt::format("core {} is one trial's own and others share it", core);
        }
    }
    if (free.cpu + tally.used.cpu != capacity.cpu || free.gpu + tally.used.gpu != capacity.gpu ||
        free.memory_bytes + tally.used.memory_bytes != capacity.memory_bytes) {
        return fmt::format(
            "{} in use of {} should leave more or less than {}",
            to_string(tally.used),
            to_string(capacity),
            to_string(free)
        );
    }
    return "";
}

}  // namespace

void Watch::check_promises(const Head& head) {
    const Cluster& cluster = head.cluster();
    std::map<NodeId, Tally> tallies;
    ResourceSet everywhere;
    for (const TrialId id : head.active_trials()) {
        const Trial* trial = head.trial(id);
        if (trial->progress == nullptr || !trial->progress->running) {
            continue;
        }
        const RunningAttempt& running = *trial->progress->running;
        for (std::size_t index = 0; index < running.placement.bundles.size(); ++index) {
            const BundlePlacement& bundle = running.placement.bundles[index];
            add(everywhere, bundle.bundle);
            if (is_there(head, running, index)) {
                add_bundle(tallies[bundle.node], cluster, running.placement, index);
            }
        }
    }
    for (const NodeId node : cluster.nodes()) {
        const std::string fault = fault_of(tallies[node], cluster, node);
        if (!fault.empty()) {
            violate(kPromise, fmt::format("on node {} {}", node.value, fault));
        }
    }
    for (const NamedAmount& shared : spec_.cluster_resources) {
        if (everywhere.custom_amount(shared.name) > shared.amount) {
            violate(
                kPromise,
                fmt::format(
                    "{} of {} {} is in use",
                    to_string(everywhere.custom_amount(shared.name)),
                    to_string(shared.amount),
                    shared.name
                )
            );
        }
    }
}

}  // namespace muster
