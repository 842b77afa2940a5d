// SPDX-License-Identifier: Apache-2.0
//
// set_values - `--set key=value` over what the file says.

#pragma once

#include <string>
#include <vector>

#include "spec/document.hpp"
#include "spec/problems.hpp"

namespace muster {

/// Puts every value of `sets` into `root`, in order. Keys have dots between sections
/// ("trial.time_limit=10m"); below `space`, `trial.env` and other maps with free keys the rest is
/// one key ("space.augment/flip=true"). A value is YAML; none is null, which means the default.
void apply_sets(const std::vector<std::string>& sets, YamlNode& root, Problems& problems);

}  // namespace muster
