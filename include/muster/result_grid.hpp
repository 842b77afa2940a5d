// SPDX-License-Identifier: Apache-2.0
//
// result_grid - what came of an experiment: its trials with all that they reported, and which of
// them is best.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/config.hpp"
#include "muster/result.hpp"

namespace muster {

enum class TrialStatus {
    /// Did not run, or is to run again.
    Pending,
    /// Has a checkpoint to go on from.
    Paused,
    /// Returned, or reached its goal.
    Completed,
    /// Was stopped early by a scheduler.
    Stopped,
    Failed,
    Cancelled,
};

/// "Completed", …
std::string_view to_string(TrialStatus status);

/// One trial at the end of a run.
struct TrialRecord {
    /// From 0, in the order in which they were made.
    std::uint32_t number = 0;
    /// "00042"
    std::string id;
    TrialStatus status = TrialStatus::Pending;
    Config config;
    /// All reports that count, in order.
    std::vector<TrialResult> results;
    /// Why it failed or was cancelled; else empty.
    std::string error;
    /// Its directory, which may not be there.
    std::string directory;

    /// The last report.
    const TrialResult* last() const { return results.empty() ? nullptr : &results.back(); }
};

/// Which of a trial's reports stand for it.
enum class Scope {
    /// The last.
    Last,
    /// The best of all.
    All,
    /// The mean over all.
    Average,
};

/// How trials are compared.
struct BestOptions {
    /// Empty: the experiment's.
    std::string metric;
    /// Nothing: the experiment's.
    std::optional<Mode> mode;
    Scope scope = Scope::All;
    /// Reports that are NaN or infinite do not count, nor trials that have no other (with
    /// Scope::Last: whose last is such). Without it they count, and lose against finite ones.
    bool filter_nonfinite = true;
};

enum class RunEnding {
    /// Every trial is over.
    Finished,
    TimeBudget,
    /// A trial failed, and `failures.fail_fast` is set.
    FailFast,
    /// By SIGINT.
    Cancelled,
    /// By another signal, the end of the wall time, the loss of nodes: run it again to go on.
    Interrupted,
    /// Nothing that was started succeeds.
    NothingWorks,
};

/// An experiment's trials as they stood when a run of it ended. It is a copy: it stays as it is.
class ResultGrid {
  public:
    ResultGrid() = default;

    std::size_t size() const { return trials_.size(); }
    bool empty() const { return trials_.empty(); }
    /// By number.
    const std::vector<TrialRecord>& trials() const { return trials_; }
    std::vector<TrialRecord>::const_iterator begin() const { return trials_.begin(); }
    std::vector<TrialRecord>::const_iterator end() const { return trials_.end(); }
    /// REQUIRES: number < size().
    const TrialRecord& operator[](std::size_t number) const { return trials_[number]; }

    /// The best trial, the earlier of two that are as good; nullptr when none has the metric.
    const TrialRecord* best(const BestOptions& options = {}) const;
    /// What stands for `trial`, by the same rules; nothing when it has no such value.
    std::optional<double> value_of(const TrialRecord& trial, const BestOptions& options = {}) const;

    /// Those that failed.
    std::vector<const TrialRecord*> errors() const;

    /// One line a trial: id, status, reports, the value that stands for it, config.
    std::string table(const BestOptions& options = {}) const;
    /// One line a report (RFC 4180): trial, status, step, each metric, `config/KEY`, …
    std::string csv() const;

    RunEnding ending() const { return ending_; }
    /// How it ended in words, when not Finished.
    const std::string& reason() const { return reason_; }
    /// 0 all fine, 1 some trials failed, 4 cancelled, 75 run it again to go on.
    int exit_code() const { return exit_code_; }
    /// The experiment's directory.
    const std::string& directory() const { return directory_; }

    /// For Tuner and tests.
    ResultGrid(
        std::vector<TrialRecord> trials,
        std::optional<ObjectiveSpec> objective,
        RunEnding ending,
        std::string reason,
        int exit_code,
        std::string directory
    );

  private:
    std::vector<TrialRecord> trials_;
    std::optional<ObjectiveSpec> objective_;
    RunEnding ending_ = RunEnding::Finished;
    std::string reason_;
    int exit_code_ = 0;
    std::string directory_;
};

}  // namespace muster
