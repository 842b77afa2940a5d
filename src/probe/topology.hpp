// SPDX-License-Identifier: Apache-2.0
//
// topology - cores and their hardware threads, from hwloc.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/error.hpp"

#include "probe/probe.hpp"
#include "resources/node_inventory.hpp"

namespace muster {

/// The cores of this machine, or of an hwloc description when it is not empty, in hwloc's order:
/// neighbours share caches. Hardware threads that `allowed` leaves out are left out, and cores
/// without any with them. NUMA nodes have the operating system's numbers.
/// Errors: InvalidInput for a description that hwloc refuses; System when it cannot look.
Result<std::vector<Core>> read_cores(
    const std::string& synthetic_topology,
    CpuUnit unit,
    const std::optional<std::vector<std::uint32_t>>& allowed
);

}  // namespace muster
