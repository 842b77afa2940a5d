// SPDX-License-Identifier: Apache-2.0
//
// scenario - draws experiments in which as much as possible happens, yet of which is known how
// every trial must end.

#include "sim/scenario.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/random.hpp"
#include "placement/cluster.hpp"

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kSigUsr1 = 10;
constexpr std::int64_t kGibibyte = std::int64_t{1} << 30U;
/// Trials that must end by a limit run so long without it.
constexpr Duration kForEver = std::chrono::hours{1000};

/// Draws, with words for what is drawn.
class Dice {
  public:
    explicit Dice(RandomStream random) : random_(random) {}

    bool chance(double probability) { return random_.uniform() < probability; }
    std::int64_t between(std::int64_t low, std::int64_t high) {
        return low +
               static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(high - low) + 1));
    }
    Duration between(Duration low, Duration high) {
        return Duration{between(low.count(), high.count())};
    }
    template <class T>
    T one_of(const std::vector<T>& choices) {
        return choices[random_.below(choices.size())];
    }
    double uniform() { return random_.uniform(); }

  private:
    RandomStream random_;
};

NodeInventory random_node(Dice& dice, std::size_t index) {
    NodeInventory node;
    node.name = fmt::format("n{}", index);
    const std::int64_t cores = dice.one_of<std::int64_t>({1, 2, 4, 4, 8});
    node.cpu = Amount::whole(cores);
    for (std::int64_t core = 0; core < cores; ++core) {
        node.cores.push_back(
            {{static_cast<std::uint32_t>(core)}, static_cast<std::uint32_t>(core / 4)}
        );
    }
    const std::int64_t devices = dice.one_of<std::int64_t>({0, 0, 1, 2, 4});
    for (std::int64_t device = 0; device < devices; ++device) {
        node.devices.push_back({.label = std::to_string(device), .kind = DeviceKind::Logical});
    }
    node.memory_bytes = dice.between(4, 16) * kGibibyte;
    if (dice.chance(0.3)) {
        node.custom.push_back({"disk", Amount::whole(dice.between(1, 3))});
    }
    return node;
}

Bundle bundle(std::int64_t cpu, std::int64_t gpu, std::int64_t gibibytes = 0) {
    return {
        .cpu = Amount::ten_thousandths(cpu * 100),
        .gpu = Amount::ten_thousandths(gpu * 100),
        .memory_bytes = gibibytes * kGibibyte,
        .custom = {}};
}

Bundle with(Bundle to, const char* custom) {
    to.set_custom(custom, Amount::whole(1));
    return to;
}

PlacementGroupSpec random_group(Dice& dice) {
    // Hundredths.
    const std::vector<Bundle> bundles{
        bundle(100, 0),
        bundle(100, 0),
        bundle(200, 0),
        bundle(50, 0),
        bundle(75, 0),
        bundle(25, 50),
        bundle(0, 30),
        bundle(0, 100),
        bundle(100, 100),
        bundle(100, 200),
        bundle(100, 0, 3),
        bundle(0, 0),
        with(bundle(100, 0), "licence"),
        with(bundle(100, 0), "disk"),
    };
    PlacementGroupSpec group;
    group.bundles = {dice.one_of(bundles)};
    if (dice.chance(0.25)) {
        group.strategy = dice.one_of<PlacementStrategy>(
            {PlacementStrategy::Pack,
             PlacementStrategy::Spread,
             PlacementStrategy::StrictPack,
             PlacementStrategy::StrictSpread}
        );
        const std::int64_t more = dice.between(1, 3);
        for (std::int64_t i = 0; i < more; ++i) {
            Bundle next = dice.one_of(bundles);
            group.bundles.push_back(next.is_zero() ? bundle(100, 0) : next);
        }
    }
    return group;
}

/// A few requests that the idle cluster can meet, each for one value of the key "kind".
std::vector<ResourceAlternative> random_requests(Dice& dice, const Scenario& scenario) {
    Cluster cluster(
        {.reserve = scenario.spec.reserve,
         .cluster_resources = scenario.spec.cluster_resources,
         .node_choice = scenario.spec.node_choice}
    );
    for (std::size_t index = 0; index < scenario.nodes.size(); ++index) {
        cluster.add_node(NodeId{static_cast<std::uint32_t>(index)}, scenario.nodes[index]);
    }
    std::vector<ResourceAlternative> requests;
    const std::int64_t count = dice.between(1, 3);
    for (std::int64_t kind = 0; kind < count; ++kind) {
        PlacementGroupSpec group;
        group.bundles = {bundle(25, 0)};
        for (int attempt = 0; attempt < 20; ++attempt) {
            const PlacementGroupSpec drawn = random_group(dice);
            if (validate(drawn) && cluster.feasible(drawn)) {
                group = drawn;
                break;
            }
        }
        requests.push_back({{{"kind", {Value(kind)}}}, group});
    }
    return requests;
}

SearchSpace random_space(std::size_t kinds) {
    Choice choice;
    for (std::size_t kind = 0; kind < kinds; ++kind) {
        choice.values.emplace_back(static_cast<std::int64_t>(kind));
    }
    return {
        {{"x", RealDomain{0, 1, 0, false}, {}},
         {"kind", choice, {}},
         {"batch", IntDomain{1, 100, 0, true}, {}}}};
}

ExperimentSpec random_spec(Dice& dice) {
    ExperimentSpec spec;
    spec.name = "simulated";
    spec.objective = ObjectiveSpec{"loss", dice.chance(0.5) ? Mode::Min : Mode::Max};
    spec.num_samples = dice.between(5, 60);
    spec.trial.command = {"train", "{x}"};
    spec.trial.workdir = "/work";
    spec.trial.grace = dice.between(seconds{1}, seconds{5});
    spec.cluster_resources = {{"licence", Amount::whole(dice.between(1, 3))}};
    if (dice.chance(0.2)) {
        spec.reserve = bundle(50, 0, 1);
    }
    spec.node_choice = dice.chance(0.5) ? NodeChoice::Tightest : NodeChoice::Balance;
    spec.max_concurrent_trials = dice.chance(0.5) ? 0 : dice.between(1, 6);
    spec.starvation_bound = dice.between(seconds{5}, seconds{60});
    spec.failures.max_failures = dice.between(-1, 2);
    spec.failures.fail_fast = dice.chance(0.05);
    if (dice.chance(0.5)) {
        spec.checkpoints.storage = CheckpointStorage::Node;
        spec.checkpoints.path = "/scratch";
    }
    spec.checkpoints.keep = static_cast<std::uint32_t>(dice.between(0, 3));
    if (dice.chance(0.4)) {
        spec.checkpoints.score = "loss";
        spec.checkpoints.mode = dice.chance(0.5) ? Mode::Min : Mode::Max;
    }
    if (dice.chance(0.3)) {
        spec.checkpoints.budget_bytes = dice.between(1000, 10'000);
    }
    if (dice.chance(0.05)) {
        spec.time_budget = dice.between(seconds{5}, seconds{120});
    }
    if (dice.chance(0.4)) {
        spec.trial.time_limit = seconds{45};
    }
    if (dice.chance(0.4)) {
        spec.trial.report_timeout = seconds{20};
    }
    if (dice.chance(0.2)) {
        spec.stop.push_back({"step", Comparison::AtLeast, static_cast<double>(dice.between(1, 8))});
    }
    if (dice.chance(0.05)) {
        spec.stop.push_back({"time_total", Comparison::AtLeast, 10});
    }
    return spec;
}

/// A trial's behaviour in all its attempts.
struct Behaviour {
    TrialScript script;
    /// So many attempts fail as the script says; -1 is every one.
    std::int64_t failures = 0;
    ExpectedEnd expected = ExpectedEnd::Completes;
};

Outcome random_failure(Dice& dice) {
    return dice.one_of<Outcome>(
        {{EndCause::Exited, 1, "boom"},
         {EndCause::Signalled, 11, ""},
         {EndCause::MemoryLimit, 9, "asked 1GiB, used 2GiB"},
         {EndCause::SpawnFailed, 2, "train: not found"}}
    );
}

/// One that reports often enough and ends in time, if nothing makes it fail.
TrialScript ordinary_script(Dice& dice, const TrialSpec& spec) {
    TrialScript script;
    script.duration = dice.chance(0.3) ? dice.between(milliseconds{20}, seconds{1})
                                       : dice.between(seconds{1}, seconds{30});
    script.reports = static_cast<std::uint32_t>(dice.between(0, 10));
    if (spec.report_timeout) {
        const auto least = script.duration / (*spec.report_timeout / 2);
        script.reports = std::max(script.reports, static_cast<std::uint32_t>(least));
    }
    script.burst = dice.chance(0.1) ? 8 : 1;
    script.quality = dice.uniform();
    script.says_step = dice.chance(0.7);
    script.without_objective = dice.chance(0.05);
    script.sends_garbage = dice.chance(0.05);
    script.ignores_term = dice.chance(0.2);
    script.ends_when_told = dice.chance(0.3);
    if (dice.chance(0.5)) {
        script.save_every = static_cast<std::uint32_t>(dice.between(1, 3));
        script.checkpoint_bytes = dice.between(100, 1000);
        // Waiting for the disk must not bring it to a limit.
        const bool is_limited = spec.time_limit || spec.report_timeout;
        script.saves_aside = is_limited || dice.chance(0.2);
        script.saves_at_term = dice.chance(0.5);
        script.when_warned = dice.one_of<WhenWarned>(
            {WhenWarned::GoesOn,
             WhenWarned::Saves,
             is_limited ? WhenWarned::Saves : WhenWarned::SavesAndLeaves}
        );
    }
    script.leftovers = dice.chance(0.1) ? dice.between(milliseconds{1}, seconds{3}) : Duration{0};
    return script;
}

Behaviour random_behaviour(Dice& dice, const ExperimentSpec& spec) {
    Behaviour behaviour{ordinary_script(dice, spec.trial)};
    TrialScript& script = behaviour.script;
    const std::int64_t allowed = spec.failures.max_failures;
    const double fate = dice.uniform();
    if (fate < 0.15) {
        script.failure = random_failure(dice);
        behaviour.failures = dice.between(1, 2);
        const bool survives = allowed < 0 || behaviour.failures <= allowed;
        behaviour.expected = survives ? ExpectedEnd::Completes : ExpectedEnd::CompletesOrFails;
    } else if (fate < 0.2 && allowed >= 0) {
        script.failure = random_failure(dice);
        behaviour.failures = -1;
        behaviour.expected = ExpectedEnd::Fails;
    } else if (fate < 0.25 && spec.trial.time_limit) {
        script.duration = kForEver;
        script.save_every = 0;
        script.reports = static_cast<std::uint32_t>(kForEver / seconds{5});
        behaviour.expected = ExpectedEnd::Stops;
    } else if (fate < 0.3 && spec.trial.report_timeout && allowed >= 0) {
        script.duration = kForEver;
        script.save_every = 0;
        script.reports = 0;
        behaviour.expected = ExpectedEnd::Fails;
    }
    // It may reach its goal before it does anything else.
    if (!spec.stop.empty() && behaviour.expected != ExpectedEnd::Completes) {
        behaviour.expected = ExpectedEnd::Any;
    }
    return behaviour;
}

/// Gives out the behaviours, and counts the failures of each trial down.
TrialModel model_of(std::vector<Behaviour> behaviours) {
    const auto shared = std::make_shared<std::vector<Behaviour>>(std::move(behaviours));
    return [shared](const LaunchPlan& plan) {
        Behaviour& behaviour = shared->at(plan.key.trial.value);
        TrialScript script = behaviour.script;
        if (behaviour.failures == 0) {
            script.failure.reset();
        } else if (behaviour.failures > 0) {
            --behaviour.failures;
        }
        return script;
    };
}

std::vector<Fault> random_faults(Dice& dice, const ExperimentSpec& spec) {
    std::vector<Fault> faults;
    if (dice.chance(0.3)) {
        return faults;
    }
    const std::int64_t count = dice.chance(0.3) ? dice.between(6, 20) : dice.between(1, 5);
    const std::int64_t events = spec.num_samples * 10;
    for (std::int64_t i = 0; i < count; ++i) {
        auto kind = dice.one_of<FaultKind>(
            {FaultKind::NodeDies,
             FaultKind::NodeDies,
             FaultKind::NodeCutOff,
             FaultKind::NodeCutOff,
             FaultKind::NodeIsSlow,
             FaultKind::NodeBreaks,
             FaultKind::NodeGoesBad,
             FaultKind::HeadDies,
             FaultKind::HeadDies,
             FaultKind::HeadDies,
             FaultKind::HeadStalls,
             FaultKind::RunCancelled,
             FaultKind::RunInterrupted,
             FaultKind::TrialCrashes,
             FaultKind::EndComesLate,
             FaultKind::EndComesLate,
             FaultKind::HelloComesLate}
        );
        if (kind == FaultKind::NodeGoesBad && spec.failures.max_failures < 0) {
            // The last node would fail for ever.
            kind = FaultKind::NodeIsSlow;
        }
        faults.push_back({kind, static_cast<std::uint64_t>(dice.between(1, events))});
    }
    std::sort(faults.begin(), faults.end(), [](const Fault& left, const Fault& right) {
        return left.after_events < right.after_events;
    });
    return faults;
}

/// Long enough for every trial that ends by itself or by a limit.
EndPlan random_end(Dice& dice) {
    EndPlan plan;
    const Duration least = dice.between(seconds{100}, seconds{400});
    plan.length = {least, least * 3 / 2};
    plan.told_after = dice.chance(0.7) ? DurationRange{} : DurationRange{Duration{0}, least / 2};
    plan.changes = dice.chance(0.3);
    plan.is_withdrawn = dice.chance(0.2);
    return plan;
}

/// Losses that only leases tell of, in place of those that are told at once.
void add_leases(Dice& dice, Scenario& scenario) {
    scenario.options.lease = dice.between(seconds{8}, seconds{60});
    scenario.lease = scenario.options.lease * 3 / 4;
    scenario.rejoin = scenario.options.lease * dice.between(1, 4);
    for (Fault& fault : scenario.faults) {
        if (fault.kind == FaultKind::NodeCutOff) {
            fault.kind = dice.chance(0.6) ? FaultKind::LinkCut : FaultKind::NodeStalls;
        } else if (fault.kind == FaultKind::NodeDies && dice.chance(0.5)) {
            fault.kind = FaultKind::NodeFallsSilent;
        }
    }
}

}  // namespace

Scenario random_scenario(std::uint64_t seed) {
    using std::chrono::seconds;
    Dice dice(RandomStream::derive(seed, "scenario"));
    Scenario scenario;
    scenario.seed = seed;
    scenario.spec = random_spec(dice);
    scenario.spec.seed = seed;
    const std::int64_t nodes = dice.between(1, 6);
    for (std::int64_t index = 0; index < nodes; ++index) {
        scenario.nodes.push_back(random_node(dice, static_cast<std::size_t>(index)));
    }
    scenario.spec.resources = random_requests(dice, scenario);
    scenario.spec.space = random_space(scenario.spec.resources.size());
    scenario.options.experiment_dir = "/experiments/simulated";
    scenario.options.expected_nodes = static_cast<std::uint32_t>(nodes);
    scenario.options.start_timeout = seconds{30};
    scenario.options.wait_for_nodes = dice.chance(0.5) ? Duration{0} : seconds{20};

    const auto trials = static_cast<std::size_t>(scenario.spec.num_samples);
    std::vector<Behaviour> behaviours;
    for (std::size_t trial = 0; trial < trials; ++trial) {
        behaviours.push_back(random_behaviour(dice, scenario.spec));
        scenario.expected.push_back(behaviours.back().expected);
    }
    scenario.model = model_of(std::move(behaviours));
    scenario.reports_per_second = dice.chance(0.5) ? 1000 : 4;
    scenario.message_delay = {milliseconds{0}, dice.between(milliseconds{1}, milliseconds{300})};
    scenario.disk_delay = {milliseconds{1}, dice.between(milliseconds{5}, milliseconds{2000})};
    const Duration thinking = dice.between(milliseconds{1}, seconds{3});
    scenario.searcher_delay = dice.one_of<DurationRange>(
        {{Duration{0}, Duration{0}}, {thinking, thinking}, {Duration{0}, seconds{5}}}
    );
    // A kill that takes longer than messages do shows who counts on it too early.
    scenario.process_delay = {milliseconds{1}, milliseconds{dice.chance(0.7) ? 5 : 800}};
    scenario.node_start = {milliseconds{0}, seconds{1}};
    scenario.faults = random_faults(dice, scenario.spec);
    scenario.bound = std::chrono::hours{8};
    if (dice.chance(0.2)) {
        scenario.retry_failed =
            dice.chance(0.5) ? RetryFailed::FromCheckpoint : RetryFailed::FromNothing;
    }
    if (dice.chance(0.35)) {
        scenario.end = random_end(dice);
        scenario.spec.end.warning = dice.between(seconds{1}, seconds{40});
        scenario.spec.end.min_slice = dice.between(seconds{5}, seconds{40});
        scenario.spec.end.signal = dice.chance(0.5) ? kSigUsr1 : 0;
    }
    // Where one process is all there is, nobody has a lease.
    if (dice.chance(0.9)) {
        add_leases(dice, scenario);
    }
    return scenario;
}

}  // namespace muster
