// SPDX-License-Identifier: Apache-2.0

#include "head/head.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "base/overloaded.hpp"
#include "base/planted_fault.hpp"
#include "head/head_state.hpp"

namespace muster {
namespace {

/// Facts, and commands, that most steps hold, so that each takes one allocation.
constexpr std::size_t kUsualStep = 4;

ClusterOptions cluster_options(const ExperimentSpec& spec) {
    return {
        .reserve = spec.reserve,
        .cluster_resources = spec.cluster_resources,
        .node_choice = spec.node_choice};
}

QueueOptions queue_options(const ExperimentSpec& spec) {
    return {
        .max_concurrent_trials = spec.max_concurrent_trials,
        .starvation_bound = spec.starvation_bound,
        .time_limit = spec.trial.time_limit};
}

/// The requests that trials may have, by the index of their alternative.
std::vector<PlacementGroupSpec> shapes(const ExperimentSpec& spec) {
    std::vector<PlacementGroupSpec> groups;
    groups.reserve(spec.resources.size());
    for (const ResourceAlternative& alternative : spec.resources) {
        groups.push_back(alternative.group);
    }
    return groups;
}

/// Requests come from the function, where there is one.
ExperimentSpec without_unused_requests(ExperimentSpec spec) {
    if (spec.resources_of) {
        spec.resources.clear();
    }
    return spec;
}

}  // namespace

HeadState::HeadState(
    ExperimentSpec spec_given,
    RunOptions options_given,
    std::optional<std::uint64_t> total
)
    : spec(without_unused_requests(std::move(spec_given))),
      options(std::move(options_given)),
      total_trials(total),
      cluster(cluster_options(spec)),
      queue(shapes(spec), queue_options(spec)),
      trials(spec.objective),
      nodes(options.lease),
      checkpoints(spec.checkpoints),
      durations(spec.resources.size()) {}

std::uint64_t keep(HeadState& head, Fact fact) {
    if (head.step.facts.empty()) {
        head.step.facts.reserve(kUsualStep);
    }
    head.step.facts.push_back(std::move(fact));
    return ++head.facts_emitted;
}

void act(HeadState& head, Action action, std::uint64_t after_facts) {
    if (head.step.commands.empty()) {
        head.step.commands.reserve(kUsualStep);
    }
    const bool waits = !planted(PlantedFault::DurabilityIgnored);
    head.step.commands.push_back({std::move(action), waits ? after_facts : 0});
}

void act(HeadState& head, Action action) {
    act(head, std::move(action), 0);
}

void act_after_facts(HeadState& head, Action action) {
    act(head, std::move(action), head.facts_emitted);
}

void note(HeadState& head, NoteLevel level, std::string text) {
    act(head, Note{level, std::move(text)});
}

Head::Head(ExperimentSpec spec, RunOptions options, std::optional<std::uint64_t> total_trials)
    : state_(std::make_unique<HeadState>(std::move(spec), std::move(options), total_trials)) {}
Head::~Head() = default;
Head::Head(Head&&) noexcept = default;
Head& Head::operator=(Head&&) noexcept = default;

Step Head::handle(const Event& event, TimePoint now) {
    HeadState& head = *state_;
    check(
        (head.phase == RunPhase::Restoring) == std::holds_alternative<Reconcile>(event),
        "Reconcile is the first event and comes once"
    );
    head.step = {};
    if (head.phase == RunPhase::Over) {
        return {};
    }
    std::visit(
        Overloaded{
            [&](const AgentSaid& said) { on_agent_said(head, said, now); },
            [&](const NodeLost& lost) { on_node_lost(head, lost.node, lost.why, now); },
            [&](const Suggested& suggested) { on_suggested(head, suggested, now); },
            [&](const CancelRequested& cancel) { on_cancel(head, cancel, now); },
            [&](const EndKnown& end) { on_end_known(head, end, now); },
            [&](const Tick&) { on_tick(head, now); },
            [&](const Reconcile&) { on_reconcile(head, now); }},
        event
    );
    leave_if_done(head);
    return std::move(head.step);
}

TimePoint Head::next_deadline() const {
    const HeadState& head = *state_;
    if (head.phase == RunPhase::Over) {
        return kNever;
    }
    TimePoint next = std::min({head.start_by, head.give_up_at, head.nodes.next_deadline()});
    if (head.spec.time_budget && head.phase == RunPhase::Going) {
        next = std::min(next, TimePoint{*head.spec.time_budget});
    }
    next = std::min(next, end_deadline(head));
    if (!head.goal_times.empty()) {
        next = std::min(next, head.goal_times.begin()->first);
    }
    return next;
}

HeadSummary Head::summary() const {
    const HeadState& head = *state_;
    return HeadSummary{
        .pending = head.trials.count(TrialState::Pending),
        .running = head.trials.count(TrialState::Running),
        .paused = head.trials.count(TrialState::Paused),
        .stopping = head.trials.count(TrialState::Stopping),
        .completed = head.trials.count(TrialState::Completed),
        .stopped = head.trials.count(TrialState::Stopped),
        .failed = head.trials.count(TrialState::Failed),
        .cancelled = head.trials.count(TrialState::Cancelled),
        .failures = head.trials.failures,
        .total = head.total_trials,
        .in_use = head.cluster.in_use(),
        .capacity = head.cluster.capacity(),
        .best = head.trials.best(),
        .time_ends = head.time_ends.at,
        .nodes = head.nodes.count(),
        .nodes_set_aside = static_cast<std::uint32_t>(head.record.aside().size())};
}

const Trial* Head::trial(TrialId id) const {
    const Trials& trials = state_->trials;
    return trials.find(id);
}

std::uint32_t Head::trial_count() const {
    return state_->trials.size();
}

std::vector<TrialId> Head::active_trials() const {
    const std::set<TrialId>& active = state_->trials.active();
    return {active.begin(), active.end()};
}

std::vector<TrialId> Head::first_waiting() const {
    std::vector<TrialId> firsts;
    for (const std::uint32_t shape : state_->queue.waiting_shapes()) {
        if (const std::optional<TrialId> first = state_->queue.first_waiting(shape)) {
            firsts.push_back(*first);
        }
    }
    return firsts;
}

const Cluster& Head::cluster() const {
    return state_->cluster;
}

std::uint32_t Head::epoch() const {
    return state_->epoch;
}

bool Head::is_going() const {
    return state_->phase == RunPhase::Going;
}

}  // namespace muster
