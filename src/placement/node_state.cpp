// SPDX-License-Identifier: Apache-2.0

#include "placement/node_state.hpp"

#include <algorithm>

namespace muster {

std::int64_t NodeState::unshared() const {
    return std::count(devices.begin(), devices.end(), kWholeDevice);
}

std::int64_t NodeState::unshared_together() const {
    std::int64_t count = 0;
    for (std::size_t i = 0; i < devices.size(); ++i) {
        count += devices[i] == kWholeDevice && !topology->device_alone[i] ? 1 : 0;
    }
    return count;
}

std::int64_t NodeState::shared_room() const {
    std::int32_t most = 0;
    for (const std::int32_t room : devices) {
        most = room < kWholeDevice ? std::max(most, room) : most;
    }
    return most;
}

std::optional<std::vector<std::vector<DeviceShare>>>
devices_for(const NodeState& node, const std::vector<const Demand*>& demands) {
    std::vector<DeviceDemand> wanted;
    wanted.reserve(demands.size());
    for (const Demand* demand : demands) {
        wanted.push_back({demand->devices, demand->share});
    }
    return assign_devices(node.devices, node.topology->device_alone, wanted);
}

bool holds(const NodeState& node, const std::vector<const Demand*>& demands) {
    Demand sum;
    for (const Demand* demand : demands) {
        sum.add(*demand);
    }
    if (sum.cpu > node.cpu || sum.memory > node.memory || sum.nothing > node.nothing) {
        return false;
    }
    for (const KindAmount& wanted : sum.custom) {
        if (wanted.amount > node.custom_amount(wanted.kind)) {
            return false;
        }
    }
    return !sum.wants_devices() || devices_for(node, demands).has_value();
}

}  // namespace muster
