// SPDX-License-Identifier: Apache-2.0
//
// resource_request - what a trial asks for, as one writes it by hand: {.cpu = 2, .gpu = 0.5}.

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "muster/error.hpp"
#include "muster/resources.hpp"

namespace muster {

/// What must sit on one node. Amounts are exact to four decimals.
struct ResourceRequest {
    double cpu = 1;
    /// Below 1 a share of one device; from 1 on a whole number of devices.
    double gpu = 0;
    /// "2GiB", "500MB"; empty is none.
    std::string memory;
    std::vector<std::pair<std::string, double>> custom;
};

/// Bundles placed together or not at all. Bundle 0 is the trial's own process.
struct GroupRequest {
    GroupRequest() = default;
    // Implicit, since most trials sit on one node.
    GroupRequest(ResourceRequest one) : bundles{std::move(one)} {}  // NOLINT
    explicit GroupRequest(
        std::vector<ResourceRequest> several,
        PlacementStrategy how = PlacementStrategy::Pack
    )
        : bundles(std::move(several)),
          strategy(how) {}

    std::vector<ResourceRequest> bundles{ResourceRequest{}};
    PlacementStrategy strategy = PlacementStrategy::Pack;
};

/// Errors: InvalidInput, naming the bundle, the key and the value.
Result<PlacementGroupSpec> to_group(const GroupRequest& request);

}  // namespace muster
