// SPDX-License-Identifier: Apache-2.0
//
// take_over - from the directory of an experiment to the certainty that nobody else works in it:
// waits for an owner on another host that may be dead, and for what a dead run may have left alive:
// agents on other nodes, which go on until their lease is over, and processes of this host.

#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "muster/error.hpp"

#include "runtime/owner_file.hpp"

namespace muster {

/// How this run waits.
struct Waiting {
    /// Gets one line when a wait begins, and then every kCountdown how long it still takes.
    std::function<void(const std::string&)> say;
    /// Called every second or so: whoever watches this run may take it for alive.
    std::function<void()> breathe;
    /// Readable: somebody wants the end. -1: nobody can.
    int stop_fd = -1;

    static constexpr std::chrono::seconds kCountdown{10};
};

/// Takes the owner file. Who lives is told at once; an owner on another host that is silent is
/// waited for, unless `patient` is false; so is one that lives in an earlier incarnation of this
/// Slurm job, for ten minutes. Nothing when `stop_fd` ended the wait. Errors: Conflict, with who
/// holds it and how to end that run; System.
Result<std::optional<OwnerFile>>
take_ownership(const std::string& directory, pid_t spawner, bool patient, const Waiting& waiting);

/// After a run that died: waits until no trial of it can run any more. What lives on this host is
/// ended when it does not end by itself; agents that are neither known to have ended nor on this
/// host are waited for until their lease is over. Touches `owner` meanwhile, and takes the old
/// run's team file away afterwards. False when `stop_fd` ended the wait.
/// Errors: Conflict, when `owner` was lost meanwhile; System, when a process can't be ended.
Result<bool>
outwait_old_run(const std::string& directory, const OwnerFile& owner, const Waiting& waiting);

/// Processes of this host that trials of the experiment in `directory` began.
std::vector<pid_t> trial_processes(const std::string& directory);

}  // namespace muster
