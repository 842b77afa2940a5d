// SPDX-License-Identifier: Apache-2.0
//
// read_metrics - `trial.metrics`: patterns that find metrics in lines of text.

#pragma once

#include <string>
#include <vector>

#include "muster/experiment.hpp"

#include "spec/section.hpp"

namespace muster {

/// Reads one map or a list of them from the section `trial`.
void read_metrics(
    const Section& trial,
    const std::vector<std::string>& keys,
    std::vector<MetricPattern>& metrics
);

}  // namespace muster
