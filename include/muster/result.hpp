// SPDX-License-Identifier: Apache-2.0
//
// result - one report from a trial.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "muster/value.hpp"

namespace muster {

enum class Mode { Min, Max };

/// The number that is optimised.
struct ObjectiveSpec {
    std::string metric;
    Mode mode = Mode::Max;

    friend bool operator==(const ObjectiveSpec&, const ObjectiveSpec&) = default;
};

/// One report: how far the trial is, by its own count, and what it measured there.
struct TrialResult {
    /// In the trial's own steps; may be fractional.
    double step = 0;
    /// Metrics in the order in which they were reported; `step` is not among them.
    std::vector<ValueMember> metrics;

    /// The metric as a number, if it is one.
    std::optional<double> metric(std::string_view name) const;

    friend bool operator==(const TrialResult&, const TrialResult&) = default;
};

/// Whether `left` is better than `right`. NaN and infinities lose against every finite number and
/// are never better than anything.
bool better(double left, double right, Mode mode);

}  // namespace muster
