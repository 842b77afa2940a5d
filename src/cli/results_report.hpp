// SPDX-License-Identifier: Apache-2.0
//
// results_report - the trials of an experiment as a table, CSV or JSON. Pure.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "muster/experiment.hpp"

#include "base/ids.hpp"
#include "cli/experiment_view.hpp"
#include "head/head.hpp"

namespace muster {

enum class ResultsFormat { Table, Csv, Json };

/// All trials by their best result, best first; those without one follow by id.
std::vector<TrialId>
trials_by_rank(const Head& head, const std::optional<ObjectiveSpec>& objective);

/// All trials by id.
std::vector<TrialId> trials_by_id(const Head& head);

/// One row a trial: node (in a table only when there were several), state, reports, the best result
/// (the last one without an objective), config. CSV has a column for each metric and `config/`
/// before each key of the config, and is RFC 4180. JSON is one list of objects. Ends with a
/// newline. A table leaves out keys that have the same value in all of several trials, and is cut
/// to `width` characters when that is not 0.
std::string format_results(
    const ExperimentView& view,
    const std::vector<TrialId>& trials,
    ResultsFormat format,
    std::size_t width = 0
);

/// The best trial in words, over several lines; says so when there is none.
std::string format_best(const Head& head, const ExperimentSpec& spec, const std::string& directory);

}  // namespace muster
