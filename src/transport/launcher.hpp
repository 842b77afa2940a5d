// SPDX-License-Identifier: Apache-2.0
//
// launcher - who started this process, told by its environment alone: no MPI call is made, so that
// a plain `muster run` never pays for MPI.

#pragma once

#include <cstdint>

#include "muster/error.hpp"

namespace muster {

enum class Launcher : std::uint8_t {
    /// Nobody: one process, this machine alone.
    None,
    /// Open MPI's mpirun, or what stands for it.
    Mpirun,
    /// Slurm's srun --mpi=pmix, or another launcher that serves PMIx.
    Pmix,
};

/// `environment` is what ::environ is.
///
/// Errors: NotSupported: this is one of several copies that can't become one MPI program (srun
/// without --mpi=pmix, the launcher of another MPI), each of which would run the whole experiment.
Result<Launcher> find_launcher(const char* const* environment);

/// Whether the launcher lets the others live on when a rank dies.
enum class Recovery : std::uint8_t { On, Off, Unknown };

/// On or Off under mpirun (--enable-recovery); Unknown elsewhere: srun does not tell its ranks.
Recovery find_recovery(const char* const* environment);

}  // namespace muster
