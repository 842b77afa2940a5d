// SPDX-License-Identifier: Apache-2.0
//
// trial - what the head knows of one trial.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "muster/config.hpp"
#include "muster/result.hpp"

#include "base/ids.hpp"
#include "base/time.hpp"
#include "head/trial_steps.hpp"
#include "protocol/facts.hpp"
#include "protocol/messages.hpp"
#include "resources/placement.hpp"

namespace muster {

/// Why an attempt was asked to end: it decides the trial's state once nothing of it is left.
struct StopReason {
    /// The trial's state once the attempt has ended: Completed (goal reached), Stopped, Cancelled,
    /// or Pending to run again.
    TrialState becomes = TrialState::Stopped;
    StopKind kind = StopKind::Graceful;
    std::string text;
};

/// A trial while it holds resources.
struct RunningAttempt {
    AttemptId attempt;
    Placement placement;
    TimePoint started;
    /// Members that have not ended yet.
    std::uint32_t members_left = 1;
    std::optional<StopReason> stop;
    /// TrackRecord::moment() when it last counted as one that works; 0 is never.
    std::uint64_t worked_at = 0;
    /// The checkpoint that it goes on from, and the node that has it, while that is another.
    std::optional<std::uint32_t> resume_from;
    std::optional<NodeId> fetch_from;
    /// It has saved a checkpoint of its own.
    bool has_saved = false;
    /// It was told that the time ends.
    bool warned = false;
    /// What it was to go on from is not there: its end says nothing of it or its node.
    bool could_not_resume = false;
};

/// What only trials that have run or reported need; a waiting trial does without.
struct TrialProgress {
    std::uint64_t results = 0;
    double last_step = 0;
    std::optional<TrialResult> last;
    std::optional<TrialResult> best;
    std::uint32_t failures = 0;
    std::uint32_t attempts = 0;
    /// Attempts in a row that were lost although their node stayed up.
    std::uint32_t losses = 0;
    /// Time that ended attempts have run.
    Duration ran{0};
    /// Results of runs before it count no more.
    std::uint32_t first_epoch = 0;
    TimePoint ended;
    std::string reason;
    /// Once it has reported, until it ends.
    std::unique_ptr<TrialSteps> steps;
    /// Only while it holds resources; most trials of a long experiment do not any more.
    std::unique_ptr<RunningAttempt> running;
};

struct Trial {
    TrialState state = TrialState::Pending;
    Config config;
    /// Index into the spec's resource alternatives.
    std::uint32_t alternative = 0;
    /// How many facts of this run must be on disk before its first start; 0 when restored, which
    /// leaves the run's own.
    std::uint64_t created_fact = 0;
    std::unique_ptr<TrialProgress> progress;
};

}  // namespace muster
