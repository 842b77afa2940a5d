// SPDX-License-Identifier: Apache-2.0
//
// node_state - what one node has left.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "placement/core_set.hpp"
#include "placement/demand.hpp"
#include "placement/devices.hpp"
#include "placement/topology.hpp"

namespace muster {

/// Amounts are in 1/10000, memory in bytes.
struct NodeState {
    std::shared_ptr<const Topology> topology;
    std::int64_t cpu = 0;
    std::int64_t memory = 0;
    /// Trials that ask for nothing and would still be taken.
    std::int64_t nothing = 0;
    /// By kind; shorter than the table when the last kinds are not there.
    std::vector<std::int64_t> custom;
    DeviceRoom devices;
    /// Cores that neither a whole-core bundle nor the shared set holds. Never fewer than the whole
    /// CPUs that are left.
    CoreSet free_cores;
    /// The custom kinds that the node offers when idle; an index of the pool.
    std::uint32_t signature = 0;
    /// Not found by any search; what is held on it stays.
    bool hidden = false;

    std::int64_t custom_amount(Kind kind) const { return kind < custom.size() ? custom[kind] : 0; }
    /// Devices that nobody uses, and those among them that may serve together with others.
    std::int64_t unshared() const;
    std::int64_t unshared_together() const;
    /// The largest remainder of a device that is shared; 0 when none is.
    std::int64_t shared_room() const;
};

/// Whether all `demands` fit on the node together. Exact.
bool holds(const NodeState& node, const std::vector<const Demand*>& demands);

/// The devices that each of `demands` gets, in their order; nothing when they don't fit.
std::optional<std::vector<std::vector<DeviceShare>>>
devices_for(const NodeState& node, const std::vector<const Demand*>& demands);

}  // namespace muster
