// SPDX-License-Identifier: Apache-2.0

#include "placement/queue.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.hpp"
#include "base/planted_fault.hpp"
#include "placement/queue_state.hpp"

namespace muster {
/// The shape whose first trial is the earliest of all that may fit.
std::optional<std::uint32_t> PlacementQueue::State::next_shape(const Cluster& cluster) const {
    std::optional<std::uint32_t> best;
    for (std::uint32_t shape = 0; shape < shapes.size(); ++shape) {
        const WaitingTrial* first = waiting.first(shape);
        if (first == nullptr || closed[shape] || refused_now(shape, cluster)) {
            continue;
        }
        if (!best || first->order < waiting.first(*best)->order) {
            best = shape;
        }
    }
    return best;
}

/// What runs, in the order in which it is expected to end; what has no limit, the oldest first.
std::vector<TrialId> PlacementQueue::State::by_end() const {
    std::vector<Running> all;
    all.reserve(running.size());
    for (const auto& entry : running) {
        all.push_back(entry.second);
    }
    std::sort(all.begin(), all.end(), [](const Running& left, const Running& right) {
        return std::tie(left.ends, left.started, left.trial) <
               std::tie(right.ends, right.started, right.trial);
    });
    std::vector<TrialId> trials;
    trials.reserve(all.size());
    for (const Running& one : all) {
        trials.push_back(one.trial);
    }
    return trials;
}

/// Of the trials that don't fit and have waited too long, the first in the queue gets the nodes
/// that free soonest held for it. While all that wait ask for the same there is nothing to hold
/// them against.
void PlacementQueue::State::make_hold(const Cluster& cluster, TimePoint now) {
    if (hold) {
        return;
    }
    std::vector<std::pair<std::uint64_t, std::uint32_t>> starved;
    for (std::uint32_t shape = 0; shape < shapes.size(); ++shape) {
        const WaitingTrial* first = waiting.first(shape);
        if (first != nullptr && !closed[shape] && refused_now(shape, cluster) &&
            has_waited_long(*first, now) && waiting.size() > waiting.size(shape)) {
            starved.emplace_back(first->order, shape);
        }
    }
    std::sort(starved.begin(), starved.end());
    for (const auto& entry : starved) {
        if (hold_for(cluster, entry.second)) {
            return;
        }
    }
}

/// False when not even the end of all that runs would make room for the first trial of `shape`.
bool PlacementQueue::State::hold_for(const Cluster& cluster, std::uint32_t shape) {
    Refused& last = unholdable[shape];
    if (last.any && last.room_version == cluster.room_version()) {
        return false;
    }
    const std::vector<TrialId> ending = by_end();
    const std::optional<RoomPlan> plan = cluster.plan_room(shapes[shape], ending);
    if (!plan || plan->endings == 0) {
        last = {cluster.room_version(), 0, true};
        return false;
    }
    const TimePoint ready = running.at(ending[plan->endings - 1]).ends;
    hold = Hold{waiting.first(shape)->trial, shape, plan->nodes, ready};
    ++hold_version;
    return true;
}

/// A hold ends with its trial's wait, or with one of its nodes.
void PlacementQueue::State::check_hold(const Cluster& cluster) {
    if (!hold) {
        return;
    }
    const WaitingTrial* first = waiting.first(hold->shape);
    const bool waits = first != nullptr && first->trial == hold->trial;
    const bool there = std::all_of(hold->nodes.begin(), hold->nodes.end(), [&](NodeId node) {
        return cluster.has_node(node) && !cluster.is_set_aside(node);
    });
    if (!waits || !there || closed[hold->shape]) {
        drop_hold();
    }
}

void PlacementQueue::State::drop_hold() {
    hold.reset();
    ++hold_version;
}

/// Whether a trial that starts now is over before the held nodes are needed.
bool PlacementQueue::State::may_use_held(std::uint32_t shape, TimePoint now) const {
    if (!hold || shape == hold->shape) {
        return true;
    }
    return options.time_limit && hold->ready != kNever && now + *options.time_limit <= hold->ready;
}

/// Whether the trial would leave enough of what the whole run shares for the one that waits.
bool PlacementQueue::State::leaves_shared_for_hold(const Cluster& cluster, std::uint32_t shape)
    const {
    const auto asked = [](const PlacementGroupSpec& group, const std::string& name) {
        Amount sum;
        for (const Bundle& bundle : group.bundles) {
            sum += bundle.custom_amount(name);
        }
        return sum;
    };
    for (const NamedAmount& entry : cluster.cluster_resources()) {
        const Amount kept = asked(shapes[hold->shape], entry.name);
        const Amount taken = asked(shapes[shape], entry.name);
        const bool wanted_by_both = !kept.is_zero() && !taken.is_zero();
        if (wanted_by_both && taken + kept > cluster.free_cluster_resource(entry.name)) {
            return false;
        }
    }
    return true;
}

std::optional<Placement>
PlacementQueue::State::try_place(const Cluster& cluster, std::uint32_t shape, TimePoint now) const {
    if (may_use_held(shape, now)) {
        return cluster.place(shapes[shape]);
    }
    if (!leaves_shared_for_hold(cluster, shape)) {
        return std::nullopt;
    }
    return cluster.place(shapes[shape], hold->nodes);
}

PlacementQueue::PlacementQueue(std::vector<PlacementGroupSpec> shapes, QueueOptions options)
    : state_(std::make_unique<State>()) {
    state_->options = options;
    for (PlacementGroupSpec& shape : shapes) {
        add_shape(std::move(shape));
    }
}

PlacementQueue::~PlacementQueue() = default;
PlacementQueue::PlacementQueue(PlacementQueue&&) noexcept = default;
PlacementQueue& PlacementQueue::operator=(PlacementQueue&&) noexcept = default;

void PlacementQueue::add_shape(PlacementGroupSpec shape) {
    state_->waiting.add_shape();
    state_->refused.emplace_back();
    state_->unholdable.emplace_back();
    state_->closed.push_back(false);
    state_->shapes.push_back(std::move(shape));
}

void PlacementQueue::push(TrialId trial, std::uint32_t shape, TimePoint now) {
    check(shape < state_->shapes.size(), "a trial waits for one of the known requests");
    check(!state_->running.contains(trial), "a trial that runs does not wait");
    state_->waiting.push(trial, shape, now);
}

bool PlacementQueue::remove(TrialId trial) {
    return state_->waiting.remove(trial);
}

std::optional<QueueStart> PlacementQueue::next(Cluster& cluster, TimePoint now) {
    State& state = *state_;
    state.check_hold(cluster);
    if (state.at_limit()) {
        return std::nullopt;
    }
    state.make_hold(cluster, now);
    while (const std::optional<std::uint32_t> shape = state.next_shape(cluster)) {
        std::optional<Placement> placement = state.try_place(cluster, *shape, now);
        if (!placement) {
            state.refused[*shape] = {cluster.room_version(), state.hold_version, true};
            state.make_hold(cluster, now);
            if (planted(PlantedFault::BackfillLost)) {
                return std::nullopt;
            }
            continue;
        }
        const TrialId trial = state.waiting.first(*shape)->trial;
        cluster.reserve(trial, *placement);
        state.waiting.remove(trial);
        const TimePoint ends = state.options.time_limit ? now + *state.options.time_limit : kNever;
        state.running.emplace(trial, Running{trial, now, ends});
        return QueueStart{trial, std::move(*placement)};
    }
    return std::nullopt;
}

void PlacementQueue::ended(Cluster& cluster, TrialId trial) {
    if (state_->running.erase(trial) > 0) {
        cluster.release(trial);
    }
}

void PlacementQueue::set_closed(std::uint32_t shape, bool closed) {
    check(shape < state_->closed.size(), "only a known request is closed");
    state_->closed[shape] = closed;
}

bool PlacementQueue::is_closed(std::uint32_t shape) const {
    return state_->closed[shape];
}

void PlacementQueue::expect_end(TrialId trial, TimePoint by) {
    const auto entry = state_->running.find(trial);
    if (entry != state_->running.end()) {
        entry->second.ends = std::min(entry->second.ends, by);
    }
}

bool PlacementQueue::is_waiting(TrialId trial) const {
    return state_->waiting.find(trial).has_value();
}

std::size_t PlacementQueue::waiting() const {
    return state_->waiting.size();
}

std::size_t PlacementQueue::running() const {
    return state_->running.size();
}

std::vector<std::uint32_t> PlacementQueue::waiting_shapes() const {
    std::vector<std::uint32_t> shapes;
    for (std::uint32_t shape = 0; shape < state_->shapes.size(); ++shape) {
        if (state_->waiting.first(shape) != nullptr) {
            shapes.push_back(shape);
        }
    }
    return shapes;
}

const PlacementGroupSpec& PlacementQueue::shape(std::uint32_t index) const {
    return state_->shapes[index];
}

std::optional<TrialId> PlacementQueue::first_waiting(std::uint32_t shape) const {
    const WaitingTrial* first = state_->waiting.first(shape);
    return first == nullptr ? std::nullopt : std::optional(first->trial);
}

}  // namespace muster
