// SPDX-License-Identifier: Apache-2.0

#include "placement/devices.hpp"

#include <algorithm>

namespace muster {
namespace {

using Assignment = std::vector<std::vector<DeviceShare>>;

class Assigner {
  public:
    Assigner(DeviceRoom room, const std::vector<bool>& alone, std::span<const DeviceDemand> bundles)
        : room_(std::move(room)),
          alone_(alone),
          bundles_(bundles),
          assigned_(bundles.size()) {}

    bool assign_from(std::size_t bundle);
    Assignment take() { return std::move(assigned_); }

  private:
    bool assign_whole(std::size_t bundle);
    bool assign_share(std::size_t bundle);
    std::vector<std::uint32_t> devices_for(std::int64_t share) const;

    DeviceRoom room_;
    const std::vector<bool>& alone_;
    std::span<const DeviceDemand> bundles_;
    Assignment assigned_;
    // Other devices are tried so often at most; a node's devices are few.
    int tries_left_ = 1000;
};

bool Assigner::assign_from(std::size_t bundle) {
    if (bundle == bundles_.size()) {
        return true;
    }
    if (bundles_[bundle].devices > 0) {
        return assign_whole(bundle);
    }
    return bundles_[bundle].share > 0 ? assign_share(bundle) : assign_from(bundle + 1);
}

bool Assigner::assign_whole(std::size_t bundle) {
    const std::int64_t wanted = bundles_[bundle].devices;
    std::vector<std::uint32_t> chosen;
    for (std::uint32_t device = 0; device < room_.size(); ++device) {
        const bool usable = wanted == 1 || !alone_[device];
        if (usable && room_[device] == kWholeDevice) {
            chosen.push_back(device);
        }
        if (static_cast<std::int64_t>(chosen.size()) == wanted) {
            break;
        }
    }
    if (static_cast<std::int64_t>(chosen.size()) < wanted) {
        return false;
    }
    for (const std::uint32_t device : chosen) {
        room_[device] = 0;
        assigned_[bundle].push_back({device, Amount::whole(1)});
    }
    if (assign_from(bundle + 1)) {
        return true;
    }
    for (const std::uint32_t device : chosen) {
        room_[device] = kWholeDevice;
    }
    assigned_[bundle].clear();
    return false;
}

/// Best fit first; of devices with the same remainder only the lowest.
std::vector<std::uint32_t> Assigner::devices_for(std::int64_t share) const {
    std::vector<std::uint32_t> devices;
    for (std::uint32_t device = 0; device < room_.size(); ++device) {
        const bool known = std::any_of(devices.begin(), devices.end(), [&](std::uint32_t other) {
            return room_[other] == room_[device];
        });
        if (room_[device] >= share && !known) {
            devices.push_back(device);
        }
    }
    std::sort(devices.begin(), devices.end(), [&](std::uint32_t left, std::uint32_t right) {
        return room_[left] < room_[right];
    });
    return devices;
}

bool Assigner::assign_share(std::size_t bundle) {
    const std::int64_t share = bundles_[bundle].share;
    for (const std::uint32_t device : devices_for(share)) {
        if (--tries_left_ < 0) {
            return false;
        }
        room_[device] -= static_cast<std::int32_t>(share);
        assigned_[bundle] = {{device, Amount::ten_thousandths(share)}};
        if (assign_from(bundle + 1)) {
            return true;
        }
        room_[device] += static_cast<std::int32_t>(share);
        assigned_[bundle].clear();
    }
    return false;
}

}  // namespace

std::optional<std::vector<std::vector<DeviceShare>>> assign_devices(
    const DeviceRoom& room,
    const std::vector<bool>& alone,
    std::span<const DeviceDemand> bundles
) {
    Assigner assigner(room, alone, bundles);
    if (!assigner.assign_from(0)) {
        return std::nullopt;
    }
    return assigner.take();
}

}  // namespace muster
