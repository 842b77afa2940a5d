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

enum class WhenWarned {
    GoesOn,
    Saves,
    /// It saves, and ends with exit code 75 once that is safe.
    SavesAndLeaves,
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
    /// It saves a checkpoint after each so many reports; 0 is never.
    std::uint32_t save_every = 0;
    std::int64_t checkpoint_bytes = 1000;
    /// It goes on while its checkpoint is not in the journal yet.
    bool saves_aside = false;
    /// It saves one at SIGTERM, before it ends.
    bool saves_at_term = false;
    WhenWarned when_warned = WhenWarned::GoesOn;
    /// It ends by itself soon after it was told to stop.
    bool ends_when_told = false;
    /// How long children that it left behind stay after its end.
    Duration leftovers{0};
};

/// The behaviour of the attempt that this plan starts. Called once for each attempt.
using TrialModel = std::function<TrialScript(const LaunchPlan& plan)>;

}  // namespace muster
