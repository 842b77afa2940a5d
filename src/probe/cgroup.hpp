// SPDX-License-Identifier: Apache-2.0
//
// cgroup - what the control groups of this process allow it, in either version or both at once.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster {

/// Limits that hold for this process; nothing where there is none.
struct CgroupLimits {
    /// Hardware threads, ascending.
    std::optional<std::vector<std::uint32_t>> cpus;
    /// CPU time in ten-thousandths of a CPU: a quota of 150 ms in 100 ms is 15,000.
    std::optional<std::int64_t> cpu_ten_thousandths;
    std::optional<std::int64_t> memory_bytes;

    friend bool operator==(const CgroupLimits&, const CgroupLimits&) = default;
};

/// Reads /proc/self/cgroup, /proc/self/mountinfo and the files that they lead to, all under `root`.
/// Quotas and memory limits are the least of the process's group and of those above it. What
/// cannot be read limits nothing.
CgroupLimits read_cgroup_limits(const std::string& root);

}  // namespace muster
