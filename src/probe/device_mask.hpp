// SPDX-License-Identifier: Apache-2.0
//
// device_mask - what CUDA_VISIBLE_DEVICES lets a process see, by CUDA's own rules. Pure.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/error.hpp"

#include "resources/node_inventory.hpp"

namespace muster {

/// A GPU as the driver lists it; its place in the list, which is in order of PCI addresses, is its
/// index.
struct NvidiaGpu {
    /// "GPU-8932f937-…"; empty when not known.
    std::string uuid;
    std::string model;
    std::uint32_t numa_node = 0;

    friend bool operator==(const NvidiaGpu&, const NvidiaGpu&) = default;
};

/// The entries of a mask up to the first that ends the list (a negative number, "NoDevFiles", an
/// empty entry), without blanks, each in its own spelling.
/// Errors: InvalidInput for an entry that is neither a number nor a GPU-… or MIG-… name, naming it.
Result<std::vector<std::string>> parse_device_mask(std::string_view mask);

/// The devices of `gpus` that `mask` shows, in its order and spelling; all of them, by index, when
/// there is no mask. An index or a GPU-… name that is not there ends the list. A GPU-… name may be
/// shortened. MIG-… names are taken as they are: only NVML could tell.
/// Errors: as parse_device_mask, and InvalidInput for a device that is named twice.
Result<std::vector<Device>>
visible_devices(std::optional<std::string_view> mask, const std::vector<NvidiaGpu>& gpus);

}  // namespace muster
