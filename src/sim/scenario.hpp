// SPDX-License-Identifier: Apache-2.0
//
// scenario - everything that a simulated run is made of: the experiment, the cluster, how trials
// behave, how long messages and the disk take, and what goes wrong.

#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "muster/experiment.hpp"

#include "base/time.hpp"
#include "head/head.hpp"
#include "resources/node_inventory.hpp"
#include "sim/invariants.hpp"
#include "sim/trial_script.hpp"

namespace muster {

enum class FaultKind {
    /// A node dies with everything on it; it comes back later, perhaps before anyone noticed.
    NodeDies,
    /// The head takes a node for lost that lives: its messages still come, late, until its agent
    /// notices, ends everything and begins anew.
    NodeCutOff,
    /// A node dies, and nobody says so: its lease tells. It comes back later, perhaps before that.
    /// Only with leases, as the next two.
    NodeFallsSilent,
    /// Nothing gets through between a node and the head for a while, one way or both, perhaps for
    /// longer than both leases; what was on its way comes late, or never.
    LinkCut,
    /// A node stands still for a while with all that runs on it.
    NodeStalls,
    /// A node can't run trials any more, says so, and comes back later.
    NodeBreaks,
    /// Whatever starts on a node fails from now on.
    NodeGoesBad,
    /// A node's messages take up to seconds for a while.
    NodeIsSlow,
    /// The head dies; a new one continues from what is on disk.
    HeadDies,
    /// The head stands still for a while, and so does its clock.
    HeadStalls,
    /// A person cancels the run, with grace or without; it is continued later.
    RunCancelled,
    /// The wall time ends, likewise.
    RunInterrupted,
    /// A trial's process is killed by something.
    TrialCrashes,
    /// The end of an attempt is told again, long after, while its trial runs in another.
    EndComesLate,
    /// The Hello with which a node came once is told again.
    HelloComesLate,
};

/// Strikes after so many events of the simulation.
struct Fault {
    FaultKind kind = FaultKind::NodeDies;
    std::uint64_t after_events = 0;
};

/// How the time of each run ends, as allocations do: with everything on it.
struct EndPlan {
    /// From the run's begin.
    DurationRange length;
    /// When the head hears of it, likewise.
    DurationRange told_after;
    /// It hears of another end first.
    bool changes = false;
    /// It hears that there is none, and of the end again.
    bool is_withdrawn = false;
};

struct Scenario {
    /// Of delays, of the order in which things happen at once, and of what faults strike.
    std::uint64_t seed = 0;
    ExperimentSpec spec;
    RunOptions options;
    std::vector<NodeInventory> nodes;
    /// The agents' share of options.lease, as the runtime gives it; 0 is no lease. A trial that
    /// runs in two places at once is then a broken promise.
    Duration lease{0};
    /// The agents' patience with a head that does not answer their Hello.
    Duration rejoin = std::chrono::minutes{10};
    TrialModel model;
    /// A node on which everything fails, in a cluster that can do without it: the trials that fail
    /// there run again elsewhere.
    std::optional<NodeId> bad_node;
    std::uint32_t reports_per_second = 1000;
    /// Of a message; those of one sender, receiver and lane keep their order.
    DurationRange message_delay;
    /// Of one flush of the journal.
    DurationRange disk_delay;
    /// Of the searcher's answer.
    DurationRange searcher_delay;
    /// From a launch until the process runs, and from SIGKILL until nothing is left.
    DurationRange process_delay;
    /// From the begin of a run until a node's agent says Hello.
    DurationRange node_start;
    std::optional<EndPlan> end;
    std::vector<Fault> faults;
    /// Once all trials have ended, those that failed run again, once.
    RetryFailed retry_failed = RetryFailed::No;
    /// The searcher gives no more configs than these.
    std::uint64_t most_trials = std::numeric_limits<std::uint64_t>::max();
    /// Virtual time after which an experiment that has not ended never will.
    Duration bound = std::chrono::hours{24 * 365};
    /// One for each config of an undisturbed run. Nothing is watched when it is empty.
    std::vector<ExpectedEnd> expected;
    /// Keep words for the last events.
    bool keep_log = false;
};

/// A random experiment on a random cluster with random faults; the same seed gives the same one.
Scenario random_scenario(std::uint64_t seed);

}  // namespace muster
