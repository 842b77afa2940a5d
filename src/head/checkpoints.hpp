// SPDX-License-Identifier: Apache-2.0
//
// checkpoints - the head's table of checkpoints: which of them there are, which are too many, and
// what to give up when all of them together take too much. It keeps its own orders, so that nothing
// ever looks at all trials.

#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "muster/experiment.hpp"

#include "base/ids.hpp"

namespace muster {

/// A checkpoint that is kept.
struct Checkpoint {
    std::uint32_t number = 0;
    double step = 0;
    std::int64_t bytes = 0;
    std::optional<double> score;
    /// The name of the node where it lies; empty where all nodes see it.
    std::string node;
};

struct TrialCheckpoints {
    /// By number, ascending.
    std::vector<Checkpoint> kept;
    /// The number of the next.
    std::uint32_t next = 1;
    /// The trial won't run any more, as far as is known, and how good it is then: less is worse.
    bool ended = false;
    double worth = 0;

    const Checkpoint* find(std::uint32_t number) const;
    const Checkpoint* latest() const { return kept.empty() ? nullptr : &kept.back(); }
};

/// Names one checkpoint.
struct CheckpointRef {
    TrialId trial;
    std::uint32_t number = 0;

    friend bool operator==(const CheckpointRef&, const CheckpointRef&) = default;
};

class Checkpoints {
  public:
    explicit Checkpoints(CheckpointOptions options) : options_(std::move(options)) {}

    /// nullptr when the trial never had one.
    const TrialCheckpoints* find(TrialId trial) const;

    /// Adds a checkpoint, or puts it in the place of the one that has its number.
    void keep(TrialId trial, Checkpoint checkpoint);
    /// False when there is none such.
    bool drop(TrialId trial, std::uint32_t number);
    /// The numbers of all later checkpoints are higher. For those that only facts tell of.
    void used_number(TrialId trial, std::uint32_t number);

    /// The trial has reached a final state; `worth` as in TrialCheckpoints.
    void set_ended(TrialId trial, double worth);
    /// The trial may run on.
    void set_open(TrialId trial);

    /// Checkpoints of the trial that `keep` and `score` don't keep. Never the latest.
    std::vector<std::uint32_t> surplus(TrialId trial) const;
    /// What to give up next for the budget: of ended trials first, the worst first; then what is
    /// not the latest of others, the oldest first. Nothing when all is well, or nothing can go.
    std::optional<CheckpointRef> excess() const;

    bool is_over_budget() const {
        return options_.budget_bytes > 0 && bytes_ > options_.budget_bytes;
    }
    /// Of all that are kept.
    std::int64_t bytes() const { return bytes_; }
    /// Some trial of the experiment has saved one.
    bool any() const { return any_; }

  private:
    struct Entry {
        TrialCheckpoints of_trial;
        /// When its oldest was kept.
        std::uint64_t since = 0;
    };

    /// Whether `left` is to be kept rather than `right`.
    bool is_better(const Checkpoint& left, const Checkpoint& right) const;
    /// The one of the trial that is the least loss. REQUIRES: it has one.
    const Checkpoint& least(const TrialCheckpoints& of_trial) const;
    /// Takes the trial out of the orders, and puts it back in after it was changed.
    void take_out(TrialId trial, const Entry& entry);
    void put_in(TrialId trial, const Entry& entry);

    CheckpointOptions options_;
    std::unordered_map<TrialId, Entry> trials_;
    // Ended trials that have one.
    std::set<std::pair<double, TrialId>> ended_;
    // Others that have more than one.
    std::set<std::pair<std::uint64_t, TrialId>> spare_;
    std::int64_t bytes_ = 0;
    std::uint64_t kept_so_far_ = 0;
    bool any_ = false;
};

}  // namespace muster
