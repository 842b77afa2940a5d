// SPDX-License-Identifier: Apache-2.0
//
// queue_state - what PlacementQueue keeps; private to its sources.

#pragma once

#include <unordered_map>

#include "base/planted_fault.hpp"
#include "placement/queue.hpp"
#include "placement/waiting_line.hpp"

namespace muster {

/// A trial that next() has started.
struct Running {
    TrialId trial;
    TimePoint started;
    /// kNever when it has no limit.
    TimePoint ends;
};

/// Nodes kept for a trial that has waited too long.
struct Hold {
    TrialId trial;
    std::uint32_t shape = 0;
    /// Ascending.
    std::vector<NodeId> nodes;
    /// When the trial will have its room at the latest.
    TimePoint ready = kNever;
};

/// A shape that did not fit, and when that was: it is not tried again until something changed.
struct Refused {
    std::uint64_t room_version = 0;
    std::uint64_t hold_version = 0;
    bool any = false;
};

struct PlacementQueue::State {
    bool at_limit() const {
        const std::size_t too_many = planted(PlantedFault::OneTooMany) ? 1 : 0;
        return options.max_concurrent_trials > 0 &&
               running.size() >= static_cast<std::size_t>(options.max_concurrent_trials) + too_many;
    }
    bool refused_now(std::uint32_t shape, const Cluster& cluster) const {
        const Refused& last = refused[shape];
        return last.any && last.room_version == cluster.room_version() &&
               last.hold_version == hold_version;
    }
    bool has_waited_long(const WaitingTrial& trial, TimePoint now) const {
        return now - trial.since >= options.starvation_bound;
    }
    std::optional<std::uint32_t> next_shape(const Cluster& cluster) const;
    std::vector<TrialId> by_end() const;
    void make_hold(const Cluster& cluster, TimePoint now);
    bool hold_for(const Cluster& cluster, std::uint32_t shape);
    void check_hold(const Cluster& cluster);
    void drop_hold();
    bool may_use_held(std::uint32_t shape, TimePoint now) const;
    bool leaves_shared_for_hold(const Cluster& cluster, std::uint32_t shape) const;
    std::optional<Placement> try_place(const Cluster& cluster, std::uint32_t shape, TimePoint now)
        const;
    WaitExplanation why_first(std::uint32_t shape, const Cluster& cluster, TimePoint now) const;
    std::string shortage(std::uint32_t shape, const Cluster& cluster) const;

    std::vector<PlacementGroupSpec> shapes;
    QueueOptions options;
    WaitingLines waiting;
    std::unordered_map<TrialId, Running> running;
    std::vector<Refused> refused;
    std::vector<bool> closed;
    std::optional<Hold> hold;
    std::uint64_t hold_version = 0;
    /// Shapes for which there is nothing to hold: not even all endings would make room.
    std::vector<Refused> unholdable;
};

}  // namespace muster
