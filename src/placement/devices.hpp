// SPDX-License-Identifier: Apache-2.0
//
// devices - which devices of one node serve which bundle.
//
// A bundle takes whole devices from those that nobody shares, lowest first. A share goes to the
// device with the smallest remainder that suffices, lowest first. Bundles are served in the order
// given; only when the shares of several bundles don't fit so, other devices are tried for them.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "resources/placement.hpp"

namespace muster {

/// What is left of each device, in 1/10000.
using DeviceRoom = std::vector<std::int32_t>;

inline constexpr std::int32_t kWholeDevice = 10'000;

/// What one bundle asks: whole devices or a share of one.
struct DeviceDemand {
    std::int64_t devices = 0;
    std::int64_t share = 0;
};

/// The devices of each bundle; nothing when they don't all fit. `alone` marks devices that a
/// process can't open together with others.
std::optional<std::vector<std::vector<DeviceShare>>> assign_devices(
    const DeviceRoom& room,
    const std::vector<bool>& alone,
    std::span<const DeviceDemand> bundles
);

}  // namespace muster
