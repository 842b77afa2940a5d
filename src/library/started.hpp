// SPDX-License-Identifier: Apache-2.0
//
// started - what a process makes before it runs trials, in the one order that is right: the process
// that starts trials, and the environment that they begin with, must not know of MPI; signals come
// before MPI, for its threads must not get any.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/error.hpp"
#include "muster/trainable.hpp"

#include "cli/commands.hpp"
#include "process/function.hpp"
#include "process/spawner.hpp"
#include "runtime/run_dir.hpp"
#include "runtime/signals.hpp"
#include "transport/launcher.hpp"
#include "transport/mpi_world.hpp"

namespace muster {

struct StartedProgram {
    std::vector<std::string> environment;
    std::vector<std::string> functions;
    Recovery recovery = Recovery::Unknown;
    std::optional<RunDir> run_dir;
    std::optional<Spawner> spawner;
    std::optional<SignalSource> signals;
    /// Nothing without a launcher.
    std::unique_ptr<MpiWorld> world;

    Surroundings surroundings();
};

/// Says on stderr, at rank 0 of `muster launch`, that it has begun.
/// Errors: as Spawner::start() and MpiWorld::join(), and what is wrong with the trainables.
Result<std::unique_ptr<StartedProgram>> start(const Trainables& trainables);

/// This process's rank by what its launcher says; empty without one.
std::string_view rank_by_launcher();

/// Leaves MPI as the ranks that are left allow, and returns the exit code.
int leave(StartedProgram& started, CommandEnd end);

}  // namespace muster
