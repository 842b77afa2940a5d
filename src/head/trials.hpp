// SPDX-License-Identifier: Apache-2.0
//
// trials - the head's table of trials: states and how many are in each, who holds resources, which
// is best. It keeps its own counts, so that nothing ever scans all trials.

#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>

#include "muster/config.hpp"
#include "muster/result.hpp"

#include "base/ids.hpp"
#include "head/trial.hpp"
#include "protocol/facts.hpp"

namespace muster {

class Trials {
  public:
    explicit Trials(std::optional<ObjectiveSpec> objective);

    /// Adds a Pending trial and returns its id, the next in the row.
    TrialId create(Config config, std::uint32_t alternative);

    std::uint32_t size() const { return static_cast<std::uint32_t>(trials_.size()); }
    /// nullptr for an id that was not given.
    const Trial* find(TrialId id) const;
    Trial* find(TrialId id);
    /// REQUIRES: the id was given.
    Trial& at(TrialId id);

    /// The trial's progress, made when it has none yet.
    TrialProgress& progress(TrialId id);

    void set_state(TrialId id, TrialState state);
    std::uint64_t count(TrialState state) const;
    /// Running and Stopping.
    const std::set<TrialId>& active() const { return active_; }

    /// Takes a result that counts into the trial's last and best, and the experiment's best.
    void record(TrialId id, AttemptId attempt, const TrialResult& result);
    /// Takes in what the end of a trial says of its results.
    void record_end(const TrialEnded& ended);
    /// The trial with the best result, once one has reported a finite objective.
    std::optional<TrialId> best() const;
    /// How good the trial is: less is worse. Negative infinity for one without an objective.
    double worth(TrialId id) const;

    /// So many failures of the trial count no more, and if it has Failed it is Pending again.
    /// REQUIRES: it has so many.
    void forgive(TrialId id, std::uint32_t forgiven);

    /// The trial is Pending as if it had never run, but for its attempts; what it reports counts
    /// from the run `epoch` on. REQUIRES: it holds nothing.
    void restart(TrialId id, std::uint32_t epoch);

    std::uint64_t failures = 0;

  private:
    /// The objective of a result; nothing when there is none to compare.
    std::optional<double> objective_of(const TrialResult& result) const;
    void offer_best(TrialId id, const TrialResult& result) const;

    std::optional<ObjectiveSpec> objective_;
    // A deque, so that pointers handed out stay good while trials are added.
    std::deque<Trial> trials_;
    std::array<std::uint64_t, 8> counts_{};
    std::set<TrialId> active_;
    // What best() gives; found anew once the best trial begins anew.
    mutable std::optional<TrialId> best_;
    mutable double best_value_ = 0;
    mutable bool best_is_void_ = false;
};

}  // namespace muster
