// SPDX-License-Identifier: Apache-2.0
//
// run_experiment - carries an experiment out on this machine: head, agent and journal behind one
// poll() loop. It decides nothing; what it shows goes through an Observer.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/error.hpp"
#include "muster/experiment.hpp"

#include "base/ids.hpp"
#include "base/time.hpp"
#include "head/head.hpp"
#include "protocol/commands.hpp"
#include "protocol/facts.hpp"
#include "resources/node_inventory.hpp"
#include "runtime/end_watch.hpp"
#include "runtime/roles.hpp"

namespace muster {

class RunDir;
class Spawner;
class SignalSource;
class RollCall;
class Transport;

/// Whoever shows a run: the live table, the log lines. Calls come from the run's own thread, and
/// must not block for long.
class Observer {
  public:
    virtual ~Observer() = default;

    /// The state has changed, or a second has passed; at most ten times a second, and once at the
    /// end.
    virtual void on_progress(const Head& head, TimePoint now) = 0;

    /// Something to be said to whoever watches.
    virtual void on_note(NoteLevel level, const std::string& text) = 0;

    /// The trial's end is on disk.
    virtual void on_trial_ended(const Head& head, TrialId trial, TimePoint now) = 0;

    /// The run has not begun: it waits for another that may still live. Every second or so.
    virtual void on_wait() {}
};

/// How to run, besides what the spec says.
struct RunRequest {
    /// Started before anything else. The run takes it: it is empty afterwards, but for
    /// `keep_spawner`.
    Spawner* spawner = nullptr;
    /// What is left of it is given back for another run.
    bool keep_spawner = false;
    /// Made before the spawner, which removes it should this process be killed. Nothing: made here.
    const RunDir* run_dir = nullptr;
    /// Opened before anything else. Nothing: opened here.
    SignalSource* signals = nullptr;
    /// What this machine has for trials; the spec's `reserve` is kept back from it later. With
    /// other ranks, `roles` say it.
    NodeInventory node;
    /// The other ranks, which have enrolled; nothing when there are none.
    Transport* transport = nullptr;
    RollCall* roll_call = nullptr;
    Roles roles;
    /// How long a node may be silent before it is lost, when there are other ranks.
    Duration lease = std::chrono::seconds{60};
    Duration rejoin = std::chrono::minutes{10};
    /// How long to wait for nodes that did not report yet.
    Duration start_timeout = std::chrono::seconds{60};
    /// How long a request that no node can meet any more waits for a node to come back.
    Duration wait_for_nodes{0};
    /// Go on although nothing that was started succeeds.
    bool keep_going = false;
    /// When the time is over. In a Slurm job, which `environment` shows, its end counts as well.
    std::optional<Until> until;
    /// What goes to <experiment>/experiment.yaml; made from the spec when it is empty or when
    /// `fresh` gives the experiment another name.
    std::string resolved_yaml;
    /// The environment that trials start from, before keep_env, drop_env and the launcher's
    /// variables are looked at.
    std::vector<EnvironmentVariable> environment;
    /// Begin anew in <name>-2, <name>-3, … when the experiment is there already.
    bool fresh = false;
    /// Run failed trials again that an earlier run left behind.
    bool retry_failed = false;
    /// … from nothing in place of their latest checkpoints.
    bool restart_failed = false;
    /// An owner of the experiment on another host that gives no sign of life is waited for, until
    /// it is known to live or to be dead.
    bool wait_for_owner = true;
};

/// How it ended.
struct RunOutcome {
    RunEnd end = RunEnd::Finished;
    std::string reason;
    /// Absolute: <storage>/<name>.
    std::string experiment_dir;
    /// Trials by state, and the best, at the end.
    HeadSummary summary;
    /// The experiment was finished before; nothing was run.
    bool was_finished = false;
    /// It continued what an earlier run had begun.
    bool continued = false;
    /// 0 all fine, 1 some trials failed, 2 a formula of the space has no value for the next trial,
    /// 3 infeasible, 4 cancelled, 75 continue me.
    int exit_code = 0;
    /// Processes of the launcher, this one included.
    std::uint32_t ranks = 1;
    /// Some rank was lost: the process must leave without waiting for the others.
    bool lost_ranks = false;
};

/// Runs `spec` to its end. SIGINT, SIGTERM, SIGUSR1 and SIGHUP are handled here from first to
/// last: SIGINT asks the trials to stop, a second one kills them; the others say that the time is
/// nearly up (end_watch.hpp). What it made for the run
/// alone (the run directory, the owner file, the report socket) is gone afterwards on every path.
///
/// REQUIRES: the calling process has no other thread.
/// Errors: Conflict, when another run holds the experiment's directory (naming who), or when what
/// is there was begun with another space, seed, metric or search (naming the key); InvalidInput and
/// System as they come, naming the path; System too when something of the run could not be put on
/// disk to its end.
Result<RunOutcome>
run_experiment(const ExperimentSpec& spec, const RunRequest& request, Observer& observer);

}  // namespace muster
