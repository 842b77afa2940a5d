// SPDX-License-Identifier: Apache-2.0
//
// queue - trials that wait for room, and which of them starts next.
//
// Trials with the same request (the same shape) wait in one line, so that an event costs O(shapes)
// however many trials wait. The order is the queue's; nothing that fits waits behind something that
// does not. A trial that has waited longer than the starvation bound gets the nodes that free
// soonest held for it: then only what ends before, or does not touch them, goes ahead.
//
// next() reserves in the cluster and ended() releases, so the queue knows everything that runs.
// max_concurrent_trials is enforced here and nowhere else.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/resources.hpp"

#include "base/ids.hpp"
#include "base/time.hpp"
#include "placement/cluster.hpp"
#include "resources/placement.hpp"

namespace muster {

struct QueueOptions {
    /// 0 is as many as fit.
    std::int64_t max_concurrent_trials = 0;
    Duration starvation_bound = std::chrono::seconds{60};
    /// Of one attempt: how it is known when a running trial ends at the latest.
    std::optional<Duration> time_limit;
};

enum class WaitReason {
    /// It does not wait in this queue.
    NotWaiting,
    /// Trials with its request are not to start any more.
    Closed,
    /// Others that ask for the same are before it.
    BehindOthers,
    /// Too much of what it asks for is in use.
    DoesNotFit,
    /// max_concurrent_trials are running.
    ConcurrencyLimit,
    /// It would fit, on nodes that are held for a trial that waited longer.
    NodesHeld,
    /// Not even an idle cluster could meet it now: nodes were lost.
    Infeasible,
    /// It fits: the next call of next() starts it.
    Startable,
};

struct WaitExplanation {
    WaitReason reason = WaitReason::NotWaiting;
    /// A sentence or two for people.
    std::string text;
};

/// A trial that may start, with its resources already reserved.
struct QueueStart {
    TrialId trial;
    Placement placement;
};

class PlacementQueue {
  public:
    /// `shapes` are the requests, by the index that push() names.
    PlacementQueue(std::vector<PlacementGroupSpec> shapes, QueueOptions options);
    ~PlacementQueue();
    PlacementQueue(PlacementQueue&&) noexcept;
    PlacementQueue& operator=(PlacementQueue&&) noexcept;
    PlacementQueue(const PlacementQueue&) = delete;
    PlacementQueue& operator=(const PlacementQueue&) = delete;

    /// One more request; its index is how many there were.
    void add_shape(PlacementGroupSpec shape);

    /// To the end of the queue. REQUIRES: the trial neither waits nor runs.
    void push(TrialId trial, std::uint32_t shape, TimePoint now);

    /// Takes a waiting trial out. False when it does not wait.
    bool remove(TrialId trial);

    /// The next trial that starts now, reserved in `cluster` under its id; nothing when none does.
    /// To be called after every event until nothing comes: the queue needs no Tick of its own.
    std::optional<QueueStart> next(Cluster& cluster, TimePoint now);

    /// Nothing of the trial's attempt is left (or its node was lost): gives back what it holds.
    /// Harmless when it does not run.
    void ended(Cluster& cluster, TrialId trial);

    /// Whether trials of a shape may start at all; at first they may.
    void set_closed(std::uint32_t shape, bool closed);
    bool is_closed(std::uint32_t shape) const;

    /// The attempt will end by then: it was asked to stop.
    void expect_end(TrialId trial, TimePoint by);

    bool is_waiting(TrialId trial) const;
    std::size_t waiting() const;
    std::size_t running() const;

    /// Shapes that some trial waits for, ascending.
    std::vector<std::uint32_t> waiting_shapes() const;
    const PlacementGroupSpec& shape(std::uint32_t index) const;
    /// The first in line of a shape; nothing when none waits.
    std::optional<TrialId> first_waiting(std::uint32_t shape) const;

    /// Why a trial waits, as next() would decide now.
    WaitExplanation why(TrialId trial, const Cluster& cluster, TimePoint now) const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace muster
