// SPDX-License-Identifier: Apache-2.0
//
// mpi_world - this process as a rank of MPI_COMM_WORLD, from MPI_Init to its end. Of all headers
// only those named mpi_* know of MPI, and only the sources include mpi.h.
//
// MPI never tells that a rank died, and MPI_Finalize waits for ever for one that did. So a world in
// which nobody was lost is left by finalize(), by all, and every other by leave_at_once().

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "muster/error.hpp"

#include "base/time.hpp"
#include "transport/transport.hpp"

namespace muster {

struct JoinOptions {
    /// How long MPI_Init may take: it waits for every rank of the job.
    Duration limit = std::chrono::minutes{5};
    /// The exit code of a process whose MPI_Init takes longer; it says so before.
    int exit_code_when_late = 75;
};

class MpiWorld {
  public:
    /// Calls MPI_Init_thread(MPI_THREAD_FUNNELED). Before, sets OMPI_MCA_pml=ob1 and
    /// OMPI_MCA_btl=self,tcp unless they are set, and writes what it set to MUSTER_OWN_VARIABLES.
    /// Once a process, from the thread that will use the transport. REQUIRES: a launcher started
    /// this process (find_launcher).
    ///
    /// Errors: System, when MPI does not start.
    static Result<std::unique_ptr<MpiWorld>> join(const JoinOptions& options = {});

    /// Whether somebody has called MPI_Init in this process.
    static bool is_initialized();

    /// Leaves by finalize() unless that was done.
    ~MpiWorld();
    MpiWorld(const MpiWorld&) = delete;
    MpiWorld& operator=(const MpiWorld&) = delete;

    std::uint32_t rank() const;
    std::uint32_t size() const;
    /// What MPI calls the host; the same for two nodes only where they share a hostname.
    const std::string& processor_name() const;

    /// Lives as long as the world. Agents talk to rank 0 only; any other pair could.
    Transport& transport();

    /// MPI_Finalize, which waits until all ranks call it: a goodbye. When it takes longer than
    /// `limit` the process ends here, with `exit_code`. The transport must not be used any more.
    void finalize(int exit_code, Duration limit = std::chrono::seconds{5});

    /// Ends the process without a goodbye: what is left to do when a rank was lost. Flushes stdio.
    [[noreturn]] static void leave_at_once(int exit_code);

  private:
    struct State;
    explicit MpiWorld(std::unique_ptr<State> state);

    std::unique_ptr<State> state_;
};

}  // namespace muster
