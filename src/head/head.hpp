// SPDX-License-Identifier: Apache-2.0
//
// head - decides; never acts.
//
// Head holds the whole state of an experiment and changes it in one place, handle(). It is given
// everything that happened (an Event) and when, and returns what is to be kept (facts) and done
// (commands). It knows nothing of MPI, processes, files, threads or the wall clock, so a test
// drives it with literals and the simulation runs a whole cluster on it.
//
// Invariants, checked after every event in tests and simulation:
// - a Running trial holds its placement on nodes that are up, in exactly one attempt;
// - no node has promised more than it has;
// - nothing that fits waits, within the order of the queue;
// - a message of an attempt that is over changes nothing.
//
// Nodes on which everything fails. A node where at least three trials failed in a row, while others
// worked elsewhere (track_record.hpp has the exact rule), is set aside: nothing new is placed
// there, what runs there goes on, and the trials that failed there, in that row and later, run
// again elsewhere as if they had not. It is taken back when most of them fail elsewhere too, when
// something that waits could run nowhere else, and when it comes anew. What can't be done without,
// the last node among them, is never set aside; nor again, once it was taken back as needed, before
// some node joins. So nothing goes round in circles.
//
// Checkpoints. A checkpoint is complete once its fact is on disk; only then its trial hears of it.
// Of a trial the best, or the last, are kept and always the latest; what is too much for the budget
// of all goes from ended trials first. Files go once the fact that drops their checkpoint is on
// disk. An attempt goes on from the latest checkpoint that can be had.
//
// The end of time. Once it is known when the run's time ends, a trial starts only when it is
// expected to end before, or when trials save checkpoints and enough time is left. Running trials
// are warned, then stopped in time; those with a checkpoint are Paused and go first in the next
// run. A trial that ran for a whole allocation and saved nothing has Failed: it would run for ever.
//
// When nothing works. If nothing ever worked in this experiment, and of the trials started in this
// run the first N have all failed for good, the run ends as NothingWorks, unless it is to keep
// going. N is 8, or twice as many as ran at once if that is more. A trial among these that still
// runs may be about to work, so it is waited for. What waits or runs becomes Pending.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/error.hpp"
#include "muster/experiment.hpp"

#include "base/ids.hpp"
#include "base/time.hpp"
#include "protocol/commands.hpp"
#include "protocol/events.hpp"
#include "protocol/facts.hpp"

namespace muster {

class Cluster;
struct HeadState;
struct Trial;

/// Whether failed trials that an earlier run left behind run again.
enum class RetryFailed : std::uint8_t {
    No,
    /// From their latest checkpoints.
    FromCheckpoint,
    /// From nothing: their checkpoints are dropped, and what they reported counts no more.
    FromNothing,
};

/// What a run adds to its spec.
struct RunOptions {
    /// Absolute: <storage>/<name>.
    std::string experiment_dir;
    /// Nodes that must have said Hello before feasibility is judged and the first trial starts.
    std::uint32_t expected_nodes = 1;
    /// How long to wait for them; then the run goes on with those that came.
    Duration start_timeout = std::chrono::seconds{60};
    /// How long a request that lost nodes made impossible waits for a node to come back.
    Duration wait_for_nodes{0};
    RetryFailed retry_failed = RetryFailed::No;
    /// A node that was silent for so long is lost; 0 is never. Longer than the agents' own lease.
    Duration lease{0};
    /// Go on although nothing that was started succeeds.
    bool keep_going = false;
};

/// Trials by state, and what they hold.
struct HeadSummary {
    /// Created and waiting; most are not created before their turn is near.
    std::uint64_t pending = 0;
    std::uint64_t running = 0;
    std::uint64_t paused = 0;
    std::uint64_t stopping = 0;
    std::uint64_t completed = 0;
    std::uint64_t stopped = 0;
    std::uint64_t failed = 0;
    std::uint64_t cancelled = 0;
    /// Attempts that failed, of all trials.
    std::uint64_t failures = 0;
    /// Trials that there will be in all, once known.
    std::optional<std::uint64_t> total;
    ResourceSet in_use;
    ResourceSet capacity;
    std::optional<TrialId> best;
    /// When the time of this run ends, as far as is known.
    TimePoint time_ends = kNever;
    /// Nodes that are up, and those of them that are set aside since everything fails there.
    std::uint32_t nodes = 0;
    std::uint32_t nodes_set_aside = 0;

    /// In a final state.
    std::uint64_t done() const { return completed + stopped + failed + cancelled; }
    /// Still to be started, created or not, as far as that is known.
    std::uint64_t waiting() const {
        const std::uint64_t begun = done() + running + paused + stopping;
        return total && *total > begun ? *total - begun : pending;
    }
};

class Head {
  public:
    /// `total_trials` is the searcher's count of configs when it has an end.
    Head(ExperimentSpec spec, RunOptions options, std::optional<std::uint64_t> total_trials);
    ~Head();
    Head(Head&&) noexcept;
    Head& operator=(Head&&) noexcept;
    Head(const Head&) = delete;
    Head& operator=(const Head&) = delete;

    /// Takes one fact of an earlier run into the state. The only way in from disk; emits nothing.
    /// REQUIRES: before the first handle(), in the journal's order.
    /// Errors: Corrupt, when the fact contradicts those before it; it is then left out.
    Status restore(const Fact& fact, TimePoint at);

    /// Takes in one event and says what follows from it. `now` never goes back. The first event is
    /// Reconcile.
    Step handle(const Event& event, TimePoint now);

    /// When handle(Tick{}) is next needed; kNever when nothing is awaited.
    TimePoint next_deadline() const;

    // Views, for whoever shows or checks the state.

    HeadSummary summary() const;
    /// Nothing for an id that was not given yet.
    const Trial* trial(TrialId id) const;
    /// Trials created so far; ids are 0 … count - 1.
    std::uint32_t trial_count() const;
    /// Trials that hold resources (Running, Stopping), in order of their ids.
    std::vector<TrialId> active_trials() const;
    /// The first in line of each request that some trial waits for.
    std::vector<TrialId> first_waiting() const;
    const Cluster& cluster() const;
    std::uint32_t epoch() const;
    /// Trials may start: enough nodes came, and the run is not about to end.
    bool is_going() const;
    /// Why the trial is where it is, in a sentence or two: "waits: needs {gpu: 1}, …".
    std::string explain(TrialId id, TimePoint now) const;

  private:
    std::unique_ptr<HeadState> state_;
};

}  // namespace muster
