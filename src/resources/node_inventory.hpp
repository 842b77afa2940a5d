// SPDX-License-Identifier: Apache-2.0
//
// node_inventory - what one node has, as its agent's probe or the command line says.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/resources.hpp"

namespace muster {

/// One core that trials may get. `processing_units` are the operating system's numbers of its
/// hardware threads; empty on a logical node, whose trials are not bound.
struct Core {
    std::vector<std::uint32_t> processing_units;
    std::uint32_t numa_node = 0;

    friend bool operator==(const Core&, const Core&) = default;
};

enum class DeviceKind {
    /// Masked by CUDA_VISIBLE_DEVICES.
    Cuda,
    /// Masked by ROCR_VISIBLE_DEVICES.
    Rocm,
    /// Counted and masked like Cuda, with no device behind it.
    Logical,
};

/// One GPU.
struct Device {
    /// As the mask spells it: "0", "GPU-8932f937-…", "MIG-…".
    std::string label;
    DeviceKind kind = DeviceKind::Cuda;
    std::uint32_t numa_node = 0;
    std::int64_t memory_bytes = 0;
    /// A name for people: "NVIDIA H200".
    std::string model;

    friend bool operator==(const Device&, const Device&) = default;
};

/// What one node offers to trials, after everything that is kept back.
struct NodeInventory {
    std::string name;
    /// The pool of CPUs. Usually the number of cores; a logical node may say less.
    Amount cpu;
    std::vector<Core> cores;
    std::vector<Device> devices;
    std::int64_t memory_bytes = 0;
    /// Sorted by name.
    std::vector<NamedAmount> custom;

    /// All of it as one request would be written.
    ResourceSet total() const;

    friend bool operator==(const NodeInventory&, const NodeInventory&) = default;
};

}  // namespace muster
