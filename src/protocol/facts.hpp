// SPDX-License-Identifier: Apache-2.0
//
// facts - what happened and is kept: the journal's content. Facts are never decisions to be taken
// again, so a newer version can continue an older journal. Changing one changes docs/journal.md.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "muster/config.hpp"
#include "muster/result.hpp"

#include "base/ids.hpp"
#include "base/time.hpp"
#include "protocol/outcome.hpp"
#include "resources/placement.hpp"

namespace muster {

enum class TrialState : std::uint8_t {
    Pending,
    Running,
    Paused,
    /// Asked to end, still holding its resources.
    Stopping,
    Completed,
    /// Ended by a trial scheduler, a stopper or a limit.
    Stopped,
    Failed,
    Cancelled,
};

/// "Pending", …
std::string_view to_string(TrialState state);

/// Completed, Stopped, Failed, Cancelled.
bool is_final(TrialState state);

/// A run of the experiment begins. Epochs rise by one.
struct RunStarted {
    std::uint32_t epoch = 0;

    friend bool operator==(const RunStarted&, const RunStarted&) = default;
};

/// A node's agent said Hello. Later facts name the node by its number, in this run alone.
struct NodeJoined {
    NodeId node;
    std::string name;
    std::uint32_t incarnation = 0;

    friend bool operator==(const NodeJoined&, const NodeJoined&) = default;
};

struct TrialCreated {
    TrialId trial;
    Config config;

    friend bool operator==(const TrialCreated&, const TrialCreated&) = default;
};

struct AttemptStarted {
    TrialId trial;
    AttemptId attempt;
    Placement placement;

    friend bool operator==(const AttemptStarted&, const AttemptStarted&) = default;
};

/// A report that counts. Kept in the results, apart from the state.
struct ResultReported {
    TrialId trial;
    AttemptId attempt;
    TrialResult result;
    /// It came after the trial was asked to end: kept, told to nobody.
    bool overrun = false;
    std::uint64_t coalesced = 0;

    friend bool operator==(const ResultReported&, const ResultReported&) = default;
};

struct AttemptEnded {
    TrialId trial;
    AttemptId attempt;
    Outcome outcome;
    Usage usage;
    /// Whether it counts against max_failures.
    bool is_failure = false;

    friend bool operator==(const AttemptEnded&, const AttemptEnded&) = default;
};

/// The trial has reached a final state. `last` and `best` are its results that count.
struct TrialEnded {
    TrialId trial;
    TrialState state = TrialState::Completed;
    /// For people: why. Empty for a trial that just completed.
    std::string reason;
    std::uint64_t results = 0;
    std::optional<TrialResult> last;
    std::optional<TrialResult> best;

    friend bool operator==(const TrialEnded&, const TrialEnded&) = default;
};

/// Failures of the trial turned out to be its node's: `forgiven` of them count no more, and a trial
/// that had Failed is Pending again.
struct TrialReopened {
    TrialId trial;
    std::uint32_t forgiven = 0;

    friend bool operator==(const TrialReopened&, const TrialReopened&) = default;
};

/// A checkpoint of the trial is whole and on disk. The same number again: it lies on another node
/// from now on, which has fetched it.
struct CheckpointKept {
    TrialId trial;
    AttemptId attempt;
    std::uint32_t number = 0;
    double step = 0;
    std::int64_t bytes = 0;
    /// The metric that `checkpoints.score` names, as it was reported last before.
    std::optional<double> score;
    /// The name of the node where it lies, with node storage; empty where all nodes see it.
    std::string node;

    friend bool operator==(const CheckpointKept&, const CheckpointKept&) = default;
};

/// The checkpoint is not the trial's any more; only then is its directory removed.
struct CheckpointDropped {
    TrialId trial;
    std::uint32_t number = 0;

    friend bool operator==(const CheckpointDropped&, const CheckpointDropped&) = default;
};

/// The trial holds nothing and goes on in a later run, from its latest checkpoint.
struct TrialPaused {
    TrialId trial;
    /// For people: why.
    std::string reason;

    friend bool operator==(const TrialPaused&, const TrialPaused&) = default;
};

/// A person wants the trial run from nothing: its results, failures and checkpoints count no more,
/// that is, those of runs before `epoch`.
struct TrialRestarted {
    TrialId trial;
    std::uint32_t epoch = 0;

    friend bool operator==(const TrialRestarted&, const TrialRestarted&) = default;
};

enum class RunEnd : std::uint8_t {
    /// Every trial reached a final state and there will be no other.
    Finished,
    /// The time budget of the experiment is spent.
    TimeBudget,
    /// A failed trial ended it (`fail_fast`).
    FailFast,
    /// A person cancelled it.
    Cancelled,
    /// It can go on: nodes were lost, the wall time ended.
    Interrupted,
    /// A request could not be met even by the idle cluster: nothing was started.
    Infeasible,
    /// Nothing that was started came to anything: the program or its surroundings are broken.
    NothingWorks,
};

/// The run is over. Cancelled, FailFast and NothingWorks leave an experiment that can be continued.
struct RunEnded {
    RunEnd end = RunEnd::Finished;
    std::string reason;

    friend bool operator==(const RunEnded&, const RunEnded&) = default;
};

/// Several facts of one trial in one, each stretch of an old journal's in its own: the sums of its
/// attempts and the latest of the rest. Nothing emits it; the journal puts it in their place.
struct TrialCondensed {
    TrialId trial;
    /// When it was created in this stretch.
    std::optional<Config> config;
    /// Attempts that began, and what is known of the last of them.
    std::uint32_t attempts = 0;
    AttemptId attempt;
    Placement placement;
    /// Attempts that ended, the last outcome, and what they used in all (of memory: the most).
    std::uint32_t attempts_ended = 0;
    std::uint32_t failures = 0;
    Outcome outcome;
    Usage usage;
    /// The last end of the trial, and when. `runs_again`: an attempt began after it.
    std::optional<TrialEnded> ended;
    TimePoint ended_at;
    bool runs_again = false;
    /// Set when it was paused and no attempt began after that: why.
    std::optional<std::string> paused;
    /// Checkpoints that were kept in this stretch, and not dropped; and those of before that were
    /// dropped.
    std::vector<CheckpointKept> checkpoints;
    std::vector<std::uint32_t> dropped;
    /// The highest number of all in this stretch; 0 is none.
    std::uint32_t last_checkpoint = 0;

    friend bool operator==(const TrialCondensed&, const TrialCondensed&) = default;
};

using Fact = std::variant<
    RunStarted,
    NodeJoined,
    TrialCreated,
    AttemptStarted,
    ResultReported,
    AttemptEnded,
    TrialEnded,
    RunEnded,
    TrialReopened,
    TrialCondensed,
    CheckpointKept,
    CheckpointDropped,
    TrialRestarted,
    TrialPaused>;

}  // namespace muster
