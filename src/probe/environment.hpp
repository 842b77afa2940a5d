// SPDX-License-Identifier: Apache-2.0
//
// environment - looking up variables of the environment that the probe judges by.

#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "muster/experiment.hpp"

namespace muster::probe {

using Environment = std::vector<EnvironmentVariable>;

/// This process's own.
Environment own_environment();

/// Nothing when it is not set.
std::optional<std::string_view> find(const Environment& environment, std::string_view name);

}  // namespace muster::probe
