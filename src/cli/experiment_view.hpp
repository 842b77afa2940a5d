// SPDX-License-Identifier: Apache-2.0
//
// experiment_view - an experiment's directory read back for whoever asks about it: its spec, and
// its trials as the journal tells them. Only reads; works while a run writes.

#pragma once

#include <memory>
#include <string>

#include "muster/error.hpp"
#include "muster/experiment.hpp"

#include "base/time.hpp"
#include "head/head.hpp"
#include "runtime/restore_head.hpp"

namespace muster {

struct ExperimentView {
    /// Absolute.
    std::string directory;
    ExperimentSpec spec;
    /// Restored from the facts, never run.
    std::unique_ptr<Head> head;
    NodesOfTrials nodes;
    /// The experiment's time at its last fact.
    TimePoint last;
    /// What was damaged, if anything; to be told.
    std::vector<std::string> problems;
};

/// Opens `directory`; a plain name is also looked for under ./results.
/// Errors: NotFound, saying what was looked for; Corrupt; System.
Result<ExperimentView> open_experiment(const std::string& directory);

/// "00042" or "42".
/// Errors: InvalidInput for text that is no trial; NotFound when the experiment has no such trial.
Result<TrialId> find_trial(const ExperimentView& view, const std::string& text);

}  // namespace muster
