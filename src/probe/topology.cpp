// SPDX-License-Identifier: Apache-2.0

#include "probe/topology.hpp"

#include <cerrno>
#include <memory>
#include <system_error>
#include <type_traits>

#include <fmt/format.h>
#include <hwloc.h>

namespace muster {
namespace {

struct DestroyTopology {
    void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, DestroyTopology>;

struct FreeBitmap {
    void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<std::remove_pointer_t<hwloc_bitmap_t>, FreeBitmap>;

Error hwloc_error(const char* what) {
    const std::string reason = std::generic_category().message(errno);
    return Error{ErrorCode::System, fmt::format("hwloc cannot {}: {}", what, reason)};
}

Result<Topology> load(const std::string& synthetic_topology) {
    hwloc_topology_t raw = nullptr;
    if (hwloc_topology_init(&raw) != 0) {
        return hwloc_error("start");
    }
    Topology topology(raw);
    if (!synthetic_topology.empty() &&
        hwloc_topology_set_synthetic(raw, synthetic_topology.c_str()) != 0) {
        return Error{
            ErrorCode::InvalidInput,
            fmt::format(
                "\"{}\" is no topology for hwloc; \"package:2 core:8 pu:2\" is one",
                synthetic_topology
            )};
    }
    // What is allowed is judged by the caller, so nothing is left out yet.
    if (hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0 ||
        hwloc_topology_load(raw) != 0) {
        return hwloc_error("read this machine's topology");
    }
    return topology;
}

/// The hardware threads of `object` that are in `allowed`, ascending.
std::vector<std::uint32_t> threads_of(hwloc_obj_t object, hwloc_const_bitmap_t allowed) {
    const Bitmap usable(hwloc_bitmap_alloc());
    std::vector<std::uint32_t> threads;
    if (!usable || hwloc_bitmap_and(usable.get(), object->cpuset, allowed) != 0) {
        return threads;
    }
    for (int index = hwloc_bitmap_first(usable.get()); index >= 0;
         index = hwloc_bitmap_next(usable.get(), index)) {
        threads.push_back(static_cast<std::uint32_t>(index));
    }
    return threads;
}

}  // namespace

Result<std::vector<Core>> read_cores(
    const std::string& synthetic_topology,
    CpuUnit unit,
    const std::optional<std::vector<std::uint32_t>>& allowed
) {
    const Result<Topology> topology = load(synthetic_topology);
    if (!topology) {
        return topology.error();
    }
    hwloc_topology_t machine = topology->get();
    const Bitmap usable(hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(machine)));
    if (!usable) {
        return hwloc_error("list hardware threads");
    }
    if (allowed) {
        const Bitmap within(hwloc_bitmap_alloc());
        for (const std::uint32_t thread : *allowed) {
            hwloc_bitmap_set(within.get(), thread);
        }
        hwloc_bitmap_and(usable.get(), usable.get(), within.get());
    }

    // Some virtual machines show hardware threads without cores.
    const bool has_cores = hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_CORE) > 0;
    const hwloc_obj_type_t type =
        unit == CpuUnit::Cores && has_cores ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
    std::vector<Core> cores;
    for (hwloc_obj_t object = hwloc_get_next_obj_by_type(machine, type, nullptr); object != nullptr;
         object = hwloc_get_next_obj_by_type(machine, type, object)) {
        std::vector<std::uint32_t> threads = threads_of(object, usable.get());
        if (threads.empty()) {
            continue;
        }
        const int numa_node = hwloc_bitmap_first(object->nodeset);
        cores.push_back(Core{
            .processing_units = std::move(threads),
            .numa_node = static_cast<std::uint32_t>(numa_node < 0 ? 0 : numa_node)});
    }
    return cores;
}

}  // namespace muster
