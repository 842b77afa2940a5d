// SPDX-License-Identifier: Apache-2.0
//
// experiment - everything that a spec file says, as typed options with their defaults.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/config.hpp"
#include "muster/error.hpp"
#include "muster/resources.hpp"
#include "muster/result.hpp"
#include "muster/search_space.hpp"

namespace muster {

/// A variable that trials see.
struct EnvironmentVariable {
    std::string name;
    std::string value;

    friend bool operator==(const EnvironmentVariable&, const EnvironmentVariable&) = default;
};

/// An input deck: `source` is a template, filled in and written to `target` in the trial's
/// directory.
struct TemplateFile {
    std::string target;
    std::string source;
    /// The template's text, read when the spec was loaded.
    std::string content;

    friend bool operator==(const TemplateFile&, const TemplateFile&) = default;
};

/// When a trial's directory is made.
enum class TrialDir {
    /// When something is written there by muster, or a template names it.
    Auto,
    Always,
    Never,
};

/// Where a trial's stdout and stderr go.
enum class OutputMode {
    /// `output` in the trial's directory.
    File,
    /// One file a node with an index: few files however many trials.
    Stream,
    /// As File, but the trial sees a terminal.
    Pty,
    Discard,
};

enum class MetricSource {
    Stdout,
    /// A file that the trial appends to.
    File,
};

/// Metrics taken from lines of text, besides those that arrive at the report socket.
struct MetricPattern {
    MetricSource from = MetricSource::Stdout;
    /// For File: relative to the trial's working directory; may hold placeholders.
    std::string path;
    /// An RE2 expression with named groups: each is a metric, `step` is the step.
    std::string pattern;

    friend bool operator==(const MetricPattern&, const MetricPattern&) = default;
};

/// What one trial runs. Exactly one of `command`, `shell` and `function` is set.
struct TrialSpec {
    /// An argument vector. Placeholders are filled in; no shell sees it.
    std::vector<std::string> command;
    /// A line for /bin/sh; values are quoted for it.
    std::string shell;
    /// The name of a function of the program itself (see muster/trainable.hpp).
    std::string function;
    std::vector<EnvironmentVariable> env;
    std::vector<TemplateFile> files;
    /// Absolute after loading; "trial" in the spec is the trial's own directory.
    std::string workdir;
    bool workdir_is_trial_dir = false;
    TrialDir trial_dir = TrialDir::Auto;
    OutputMode output = OutputMode::File;
    /// Of one attempt; nothing is no limit.
    std::optional<std::chrono::nanoseconds> time_limit;
    /// The longest time without a report; nothing is no limit.
    std::optional<std::chrono::nanoseconds> report_timeout;
    /// Between SIGTERM and SIGKILL.
    std::chrono::nanoseconds grace = std::chrono::seconds{10};
    std::vector<MetricPattern> metrics;
    /// The step's name in reports.
    std::string time_attr = "step";
    /// Variables of the launcher that a trial keeps all the same; a trailing '*' matches a prefix.
    std::vector<std::string> keep_env;
    /// Variables that a trial must not see.
    std::vector<std::string> drop_env;

    friend bool operator==(const TrialSpec&, const TrialSpec&) = default;
};

/// A request and when it applies; the first whose `when` holds is taken.
struct ResourceAlternative {
    Conditions when;
    PlacementGroupSpec group;

    friend bool operator==(const ResourceAlternative&, const ResourceAlternative&) = default;
};

enum class NodeChoice {
    /// The fit that wastes the least of what is scarce.
    Tightest,
    /// The emptiest node.
    Balance,
};

/// Custom resources that some nodes have. `nodes` is a name or a bracket list: "gpu[01-04]".
struct NodeResources {
    std::string nodes;
    std::vector<NamedAmount> resources;

    friend bool operator==(const NodeResources&, const NodeResources&) = default;
};

enum class SearchAlgorithm {
    Random,
    Grid,
};

/// Where configs come from.
struct SearchOptions {
    SearchAlgorithm algorithm = SearchAlgorithm::Random;
    /// Configs to try first; missing keys are drawn.
    std::vector<std::vector<ValueMember>> points;

    friend bool operator==(const SearchOptions&, const SearchOptions&) = default;
};

enum class Comparison { AtLeast, AtMost };

/// A trial has reached its goal once `metric` compares so. `metric` may be the step's name or
/// "time_total" (seconds that the trial has run, over all attempts).
struct StopRule {
    std::string metric;
    Comparison comparison = Comparison::AtLeast;
    double bound = 0;

    friend bool operator==(const StopRule&, const StopRule&) = default;
};

/// What follows when an attempt fails.
struct FailureOptions {
    /// Attempts that may fail before the trial has; -1 is for ever.
    std::int64_t max_failures = 0;
    /// The first failed trial ends the experiment.
    bool fail_fast = false;

    friend bool operator==(const FailureOptions&, const FailureOptions&) = default;
};

enum class CheckpointStorage {
    /// In the trial's directory, which every node sees.
    Shared,
    /// In a directory of the node; a trial that moves brings its checkpoint along.
    Node,
};

/// What is kept of the checkpoints that trials save.
struct CheckpointOptions {
    /// The best so many of each trial by `score`, or the last so many without one; the latest is
    /// kept besides. 0 is all.
    std::uint32_t keep = 2;
    /// A metric of the last report before the checkpoint. Empty: the later the better.
    std::string score;
    Mode mode = Mode::Max;
    /// Bytes that all checkpoints of the experiment may take together; 0 is no limit. The latest of
    /// a trial that is not done is never given up for it.
    std::int64_t budget_bytes = 0;
    CheckpointStorage storage = CheckpointStorage::Shared;
    /// For Node: an absolute directory there, by default the node's TMPDIR.
    std::string path;

    friend bool operator==(const CheckpointOptions&, const CheckpointOptions&) = default;
};

/// What happens when the wall time ends.
struct EndOptions {
    /// Running trials are warned so long before.
    std::chrono::nanoseconds warning = std::chrono::minutes{2};
    /// A trial that can't end in time is started all the same when trials save checkpoints and so
    /// much is left.
    std::chrono::nanoseconds min_slice = std::chrono::minutes{10};
    /// The signal that a warned trial's processes get besides the word on the report socket; 0 is
    /// none.
    int signal = 0;

    friend bool operator==(const EndOptions&, const EndOptions&) = default;
};

/// Everything that one spec file says.
struct ExperimentSpec {
    std::string name;
    /// Nothing is optimised when it is absent: all trials run, none is best.
    std::optional<ObjectiveSpec> objective;
    /// Times that the space is sampled, or its grid repeated; -1 is without end.
    std::int64_t num_samples = 1;
    std::uint64_t seed = 0;
    /// 0 is as many as fit.
    std::int64_t max_concurrent_trials = 0;
    std::optional<std::chrono::nanoseconds> time_budget;
    TrialSpec trial;
    SearchSpace space;
    std::vector<ResourceAlternative> resources{ResourceAlternative{}};
    /// In place of `resources`: what a config's trial gets. It depends on the config alone, since
    /// it is asked again when the experiment goes on. An Error fails that trial; so does what it
    /// throws.
    std::function<Result<PlacementGroupSpec>(const Config&)> resources_of;
    /// Custom resources that the whole run shares.
    std::vector<NamedAmount> cluster_resources;
    std::vector<NodeResources> nodes;
    /// Kept back on every node.
    ResourceSet reserve;
    NodeChoice node_choice = NodeChoice::Tightest;
    /// After so long in the queue a trial gets the nodes that free soonest held for it.
    std::chrono::nanoseconds starvation_bound = std::chrono::seconds{60};
    SearchOptions search;
    std::vector<StopRule> stop;
    FailureOptions failures;
    CheckpointOptions checkpoints;
    EndOptions end;
    /// The directory that experiments are made in; absolute after loading.
    std::string storage_path = "results";
};

}  // namespace muster
