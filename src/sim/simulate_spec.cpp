// SPDX-License-Identifier: Apache-2.0

#include "sim/simulate_spec.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <utility>

#include <fmt/format.h>

#include "base/overloaded.hpp"
#include "placement/cluster.hpp"
#include "search/expression.hpp"
#include "search/searcher.hpp"
#include "sim/resource_use.hpp"
#include "sim/simulation.hpp"
#include "spec/scalar.hpp"

namespace muster {
namespace {

/// How long each trial runs.
class Durations {
  public:
    static Result<Durations> make(const ExperimentSpec& spec, const std::string& text);

    Result<Duration> of(const Config& config) const;

  private:
    explicit Durations(Duration constant) : constant_(constant) {}
    explicit Durations(Formula formula) : formula_(std::move(formula)) {}

    Duration constant_{0};
    std::optional<Formula> formula_;
};

Result<Durations> Durations::make(const ExperimentSpec& spec, const std::string& text) {
    if (const Result<Duration> constant = parse_duration(text)) {
        if (*constant > Duration{0}) {
            return Durations(*constant);
        }
        return Error{
            ErrorCode::InvalidInput,
            fmt::format("--duration {}: a trial must run for longer than nothing", text)};
    }
    auto formula = Formula::parse(text);
    if (!formula) {
        return Error{
            ErrorCode::InvalidInput,
            fmt::format(
                "--duration: neither a time such as 60s or 1h30m nor a formula that gives "
                "seconds: {}",
                formula.error().message
            )};
    }
    for (const std::string& key : formula->keys()) {
        const auto& parameters = spec.space.parameters;
        const bool known =
            std::any_of(parameters.begin(), parameters.end(), [&](const Parameter& parameter) {
                return parameter.key == key;
            });
        if (!known) {
            return Error{
                ErrorCode::InvalidInput,
                fmt::format("--duration {}: the space has no key {}", text, key)};
        }
    }
    return Durations(std::move(formula).value());
}

Result<Duration> Durations::of(const Config& config) const {
    if (!formula_) {
        return constant_;
    }
    std::vector<const Value*> values;
    for (const std::string& key : formula_->keys()) {
        values.push_back(config.find(key));
    }
    const Result<Value> value = formula_->evaluate(values);
    if (!value) {
        return Error{value.error().code, "--duration: " + value.error().message};
    }
    constexpr double kMostSeconds = 100.0 * 365 * 86'400;
    const std::optional<double> length = value->number();
    if (!length || !(*length > 0) || *length > kMostSeconds) {
        return Error{
            ErrorCode::InvalidInput,
            fmt::format(
                "--duration {}: gives {} for {}; it must be a number of seconds above 0 and of at "
                "most 100 years",
                formula_->text(),
                to_json(*value),
                to_text(config)
            )};
    }
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*length));
}

/// What the spec says, less all that only a real trial could do.
ExperimentSpec simulated(const ExperimentSpec& spec) {
    ExperimentSpec simulated = spec;
    simulated.trial = TrialSpec{};
    simulated.trial.command = {"simulated"};
    simulated.trial.workdir = "/";
    simulated.trial.time_limit = spec.trial.time_limit;
    simulated.trial.grace = Duration{0};
    // No trial reports anything; only its running time can reach a goal.
    const auto needs_report = [](const StopRule& rule) { return rule.metric != "time_total"; };
    simulated.stop.erase(
        std::remove_if(simulated.stop.begin(), simulated.stop.end(), needs_report),
        simulated.stop.end()
    );
    return simulated;
}

/// Rows of stays that don't overlap; a stay takes the first row that is free.
class Lanes {
  public:
    std::size_t begin(TrialId trial, TimePoint now) {
        if (free_.empty()) {
            free_.push(lanes_.size());
            lanes_.emplace_back();
        }
        const std::size_t lane = free_.top();
        free_.pop();
        lanes_[lane].push_back({trial, now, now});
        return lane;
    }
    void end(std::size_t lane, TimePoint now) {
        lanes_[lane].back().to = now;
        free_.push(lane);
    }
    std::vector<std::vector<SimulatedStay>> take() { return std::move(lanes_); }

  private:
    std::vector<std::vector<SimulatedStay>> lanes_;
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> free_;
};

/// Goes through the facts once and adds up what they say.
class Tally {
  public:
    Tally(const ExperimentSpec& spec, const std::vector<NodeInventory>& nodes);

    void take(const TimedFact& fact);
    SimulationReport report(std::string experiment);

  private:
    struct Attempt {
        TimePoint since;
        Placement placement;
        std::vector<std::size_t> lanes;
    };
    struct Node {
        std::string name;
        UseMeter meter;
        Lanes lanes;
    };

    void begin(const AttemptStarted& started, TimePoint now);
    void end(const AttemptEnded& ended, TimePoint now);

    std::vector<Node> nodes_;
    UseMeter everywhere_;
    std::map<AttemptId, Attempt> running_;
    TimePoint last_;
    Duration serial_{0};
    std::uint64_t ended_ = 0;
    std::size_t most_at_once_ = 0;
};

Cluster make_cluster(const ExperimentSpec& spec, const std::vector<NodeInventory>& nodes) {
    Cluster cluster(
        {.reserve = spec.reserve,
         .cluster_resources = spec.cluster_resources,
         .node_choice = spec.node_choice}
    );
    for (std::size_t index = 0; index < nodes.size(); ++index) {
        cluster.add_node(NodeId{static_cast<std::uint32_t>(index)}, nodes[index]);
    }
    return cluster;
}

Tally::Tally(const ExperimentSpec& spec, const std::vector<NodeInventory>& nodes)
    : everywhere_(ResourceSet{}) {
    const Cluster cluster = make_cluster(spec, nodes);
    everywhere_ = UseMeter(cluster.capacity());
    for (std::size_t index = 0; index < nodes.size(); ++index) {
        const NodeId id{static_cast<std::uint32_t>(index)};
        nodes_.push_back({nodes[index].name, UseMeter(cluster.capacity(id)), {}});
    }
}

void Tally::take(const TimedFact& fact) {
    if (const auto* started = std::get_if<AttemptStarted>(&fact.fact)) {
        begin(*started, fact.at);
    } else if (const auto* ended = std::get_if<AttemptEnded>(&fact.fact)) {
        end(*ended, fact.at);
    } else if (std::holds_alternative<TrialEnded>(fact.fact)) {
        ++ended_;
    }
}

void Tally::begin(const AttemptStarted& started, TimePoint now) {
    Attempt attempt{now, started.placement, {}};
    for (const BundlePlacement& bundle : started.placement.bundles) {
        Node& node = nodes_[bundle.node.value];
        node.meter.add(bundle.bundle, now);
        everywhere_.add(bundle.bundle, now);
        attempt.lanes.push_back(node.lanes.begin(started.trial, now));
    }
    running_.emplace(started.attempt, std::move(attempt));
    most_at_once_ = std::max(most_at_once_, running_.size());
}

void Tally::end(const AttemptEnded& ended, TimePoint now) {
    const auto found = running_.find(ended.attempt);
    if (found == running_.end()) {
        return;
    }
    const Attempt& attempt = found->second;
    for (std::size_t index = 0; index < attempt.placement.bundles.size(); ++index) {
        const BundlePlacement& bundle = attempt.placement.bundles[index];
        Node& node = nodes_[bundle.node.value];
        node.meter.remove(bundle.bundle, now);
        everywhere_.remove(bundle.bundle, now);
        node.lanes.end(attempt.lanes[index], now);
    }
    serial_ += now - attempt.since;
    last_ = now;
    running_.erase(found);
}

SimulationReport Tally::report(std::string experiment) {
    SimulationReport report;
    report.experiment = std::move(experiment);
    report.trials = ended_;
    report.makespan = last_.since_start;
    report.serial = serial_;
    report.most_at_once = most_at_once_;
    const double length = seconds(report.makespan);
    report.mean_at_once = length > 0 ? seconds(serial_) / length : 0;
    report.resources = everywhere_.result(last_);
    for (Node& node : nodes_) {
        report.nodes.push_back({node.name, node.meter.result(last_), node.lanes.take()});
    }
    return report;
}

Scenario make_scenario(
    const ExperimentSpec& spec,
    const std::vector<NodeInventory>& nodes,
    const SimulateOptions& options
) {
    Scenario scenario;
    scenario.seed = spec.seed;
    scenario.spec = simulated(spec);
    scenario.options.experiment_dir = "/simulated";
    scenario.options.expected_nodes = static_cast<std::uint32_t>(nodes.size());
    scenario.nodes = nodes;
    scenario.bound = Duration::max();
    if (options.trials) {
        scenario.most_trials = *options.trials;
    }
    return scenario;
}

}  // namespace

Result<SimulationReport> simulate_spec(
    const ExperimentSpec& spec,
    const std::vector<NodeInventory>& nodes,
    const SimulateOptions& options
) {
    if (nodes.empty()) {
        return Error{ErrorCode::InvalidInput, "there is no node to simulate"};
    }
    if (spec.num_samples < 0 && !options.trials) {
        return Error{
            ErrorCode::InvalidInput,
            "num_samples: -1 never ends; say how many trials to simulate (--trials)"};
    }
    auto searcher = BasicSearcher::make(spec.space, spec.search, spec.num_samples, spec.seed);
    if (!searcher) {
        return searcher.error();
    }
    const auto durations = Durations::make(spec, options.duration);
    if (!durations) {
        return durations.error();
    }
    std::optional<Error> problem;
    Scenario scenario = make_scenario(spec, nodes, options);
    scenario.model = [&](const LaunchPlan& plan) {
        TrialScript script;
        const auto config = searcher->config_at(plan.key.trial.value);
        const Result<Duration> duration =
            config ? durations->of(*config) : Result<Duration>(config.error());
        if (duration) {
            script.duration = *duration;
        } else if (!problem) {
            problem = duration.error();
        }
        return script;
    };
    SimulationResult result = Simulation(std::move(scenario)).run();
    if (result.search_error) {
        return *result.search_error;
    }
    if (problem) {
        return *problem;
    }
    if (result.leave && result.leave->end == RunEnd::Infeasible) {
        return Error{ErrorCode::Infeasible, result.leave->reason};
    }
    if (result.violation) {
        return Error{ErrorCode::InvalidInput, "the simulated run has no end: " + *result.violation};
    }
    Tally tally(spec, nodes);
    for (const TimedFact& fact : result.facts) {
        tally.take(fact);
    }
    return tally.report(spec.name);
}

}  // namespace muster
