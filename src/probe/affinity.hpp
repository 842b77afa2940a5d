// SPDX-License-Identifier: Apache-2.0
//
// affinity - the hardware threads that a mask set on purpose leaves to this node's trials.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/error.hpp"

#include "probe/environment.hpp"

namespace muster {

/// Whose mask says what this node's trials may use.
enum class MaskOwner {
    /// This process's: nobody else set it.
    Process,
    /// The launcher's. It may have bound this process to a part of the node, as one rank among
    /// several; a user who restricted the launcher meant all of them.
    Launcher,
    /// Nobody's: Slurm bound this process, and its daemons may be kept to cores of their own.
    Nobody,
};

MaskOwner mask_owner(const probe::Environment& environment);

/// The mask of the closest ancestor that is no rank, ascending. Read under `root`; nothing when it
/// can't be told.
std::optional<std::vector<std::uint32_t>> launcher_affinity(const std::string& root);

/// This process's mask, ascending.
/// Errors: System.
Result<std::vector<std::uint32_t>> own_affinity();

}  // namespace muster
