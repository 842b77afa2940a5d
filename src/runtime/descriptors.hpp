// SPDX-License-Identifier: Apache-2.0
//
// descriptors - how many trials the process can hold by the number of files that it may open.

#pragma once

#include <cstdint>

namespace muster {

struct DescriptorRoom {
    /// Files that may be open at once.
    std::uint64_t files = 0;
    /// Trials that these serve, with their connections for reports. At least 1.
    std::uint32_t trials = 1;
};

/// Raises the limit of this process as far as it may; processes that were forked before, and so
/// all trials, keep theirs. Says what there is then.
DescriptorRoom make_descriptor_room();

}  // namespace muster
