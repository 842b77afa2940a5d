// SPDX-License-Identifier: Apache-2.0
//
// trial_records - an experiment's directory to what a ResultGrid holds; private to this folder.

#pragma once

#include <string>
#include <vector>

#include "muster/error.hpp"
#include "muster/result_grid.hpp"

namespace muster {

/// Errors: as open_experiment() and read_results().
Result<std::vector<TrialRecord>> read_trial_records(const std::string& directory);

}  // namespace muster
