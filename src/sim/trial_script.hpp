// SPDX-License-Identifier: Apache-2.0
//
// trial_script - how a simulated trial behaves in one attempt.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/time.hpp"
#include "protocol/launch.hpp"
#include "protocol/outcome.hpp"

namespace muster {

/// A duration drawn evenly between two ends, both included.
struct DurationRange {
    Duration from{0};
    Duration to{0};
};

struct TrialScript {
    /// From its start to its end, unless something ends it before.
    Duration duration = std::chrono::seconds{1};
    /// Spread evenly over the duration; each has the metric "loss", quality + 1 / step.
    std::uint32_t reports = 0;
    /// Reports each time, all at once.
    std::uint32_t burst = 1;
    double quality = 0;
    /// Whether reports say their step; otherwise the agent counts.
    bool says_step = true;
    /// Its reports have no "loss".
    bool without_objective = false;
    /// It sends something that is no report along with each report.
    bool sends_garbage = false;

    /// How it fails halfway, or at once when that is SpawnFailed.
    std::optional<Outcome> failure;
    /// SIGTERM does not end it.
    bool ignores_term = false;
    /// It ends by itself soon after it was told to stop.
    bool ends_when_told = false;
    /// How long children that it left behind stay after its end.
    Duration leftovers{0};
};

/// The behaviour of the attempt that this plan starts. Called once for each attempt.
using TrialModel = std::function<TrialScript(const LaunchPlan& plan)>;

}  // namespace muster
