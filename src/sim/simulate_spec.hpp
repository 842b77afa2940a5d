// SPDX-License-Identifier: Apache-2.0
//
// simulate_spec - what a run of a spec on a cluster would do, found out in virtual time by the same
// head and agents that would run it: how long it takes, what it uses, which trial is where when.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/error.hpp"
#include "muster/experiment.hpp"

#include "base/ids.hpp"
#include "base/time.hpp"
#include "resources/node_inventory.hpp"

namespace muster {

struct SimulateOptions {
    /// How long one trial runs: "60s", "5m", "1.5h", or a formula over the keys of its config that
    /// gives seconds: "epochs * 2.5". The spec's `time_limit` ends a trial as it would in a run.
    std::string duration = "60s";
    /// Only the first so many trials. Needed when the search has no end.
    std::optional<std::uint64_t> trials;
};

/// A trial on a node. A trial over several nodes has one for each of its bundles.
struct SimulatedStay {
    TrialId trial;
    TimePoint from;
    TimePoint to;

    friend bool operator==(const SimulatedStay&, const SimulatedStay&) = default;
};

/// How much of a resource was in use, in the mean over the makespan and at most.
struct ResourceUse {
    /// "cpu", "gpu", "memory" or a custom resource.
    std::string resource;
    double mean_percent = 0;
    double peak_percent = 0;

    friend bool operator==(const ResourceUse&, const ResourceUse&) = default;
};

struct SimulatedNodeUse {
    std::string name;
    std::vector<ResourceUse> resources;
    /// What was there, in rows in which nothing overlaps; each row ascending.
    std::vector<std::vector<SimulatedStay>> lanes;

    friend bool operator==(const SimulatedNodeUse&, const SimulatedNodeUse&) = default;
};

struct SimulationReport {
    std::string experiment;
    std::uint64_t trials = 0;
    /// From the first event to the end of the last trial.
    Duration makespan{0};
    /// All trials one after the other.
    Duration serial{0};
    std::uint64_t most_at_once = 0;
    double mean_at_once = 0;
    /// The whole cluster, and what the whole run shares.
    std::vector<ResourceUse> resources;
    std::vector<SimulatedNodeUse> nodes;

    friend bool operator==(const SimulationReport&, const SimulationReport&) = default;
};

/// Runs `spec` on `nodes` in virtual time.
/// Errors: InvalidInput for a duration that cannot be read or is not a positive number of seconds
/// for some trial, for an endless search without `trials`, and for a space that cannot be sampled;
/// Infeasible when the nodes could not run one of the requests.
Result<SimulationReport> simulate_spec(
    const ExperimentSpec& spec,
    const std::vector<NodeInventory>& nodes,
    const SimulateOptions& options = {}
);

/// For people: figures, a table of resources, and a time line with a row for each lane, `columns`
/// wide. Ends with a line break.
std::string format(const SimulationReport& report, std::size_t columns = 100);

/// One JSON object on one line; times are seconds.
std::string to_json(const SimulationReport& report);

}  // namespace muster
