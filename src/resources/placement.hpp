// SPDX-License-Identifier: Apache-2.0
//
// placement - where a group's bundles are, down to cores and devices.

#pragma once

#include <cstdint>
#include <vector>

#include "muster/resources.hpp"

#include "base/ids.hpp"

namespace muster {

/// A device, by its place in the node's inventory, and how much of it.
struct DeviceShare {
    std::uint32_t device = 0;
    Amount share;

    friend bool operator==(const DeviceShare&, const DeviceShare&) = default;
};

/// One bundle on its node. What it holds is named, so releasing it needs nothing else.
struct BundlePlacement {
    NodeId node;
    Bundle bundle;
    /// Cores of its own, by their place in the node's inventory; ascending. Empty when the bundle
    /// asks for no whole number of CPUs: it then runs on cores that it shares.
    std::vector<std::uint32_t> cores;
    /// Ascending by device.
    std::vector<DeviceShare> devices;

    friend bool operator==(const BundlePlacement&, const BundlePlacement&) = default;
};

/// A whole group; `bundles` are in the order of the request.
struct Placement {
    std::vector<BundlePlacement> bundles;

    friend bool operator==(const Placement&, const Placement&) = default;
};

}  // namespace muster
