// SPDX-License-Identifier: Apache-2.0
//
// spawner - the small process that all keepers, and so all trials, descend from.
//
// It is forked while the program is still small and has one thread, so that forking a keeper is
// cheap and nothing of MPI is in it. It lives in a session of its own, forks keepers on demand and
// is their subreaper: when a keeper dies, whatever it held is killed here. It starts no trial
// itself. When the agent is gone (end of file on the socket, or the parent-death signal) it sees
// all keepers out and leaves.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include "muster/error.hpp"

#include "posix/unique_fd.hpp"
#include "process/function.hpp"

namespace muster {

/// The agent's hold on its spawner. Giving it up (destroying it) ends the spawner and all below it.
class Spawner {
  public:
    /// Forks the spawner. Returns in the caller only. Call it first thing in main(): what is open
    /// or allocated then costs a little memory in every keeper; descriptors are closed there.
    ///
    /// When all is over, the agent gone and no process of a trial left, it removes the directory
    /// `remove_at_end` with all that is in it.
    ///
    /// Trials whose plan binds them to nothing run on `processing_units`; where these are none, or
    /// the system refuses them, on those that this process may run on.
    ///
    /// `functions` are those that LaunchPlan::function may name. What stdio had not written yet is
    /// written before the fork.
    ///
    /// Errors: InvalidInput when the process has other threads already; System.
    static Result<Spawner> start(
        const std::string& remove_at_end = "",
        const std::vector<std::uint32_t>& processing_units = {},
        const TrialFunctions& functions = {}
    );

    Spawner(Spawner&&) noexcept = default;
    Spawner& operator=(Spawner&&) noexcept = default;
    ~Spawner() = default;

    pid_t pid() const { return pid_; }

    /// The socket to the spawner: for Processes alone.
    int socket() const { return socket_.get(); }
    void close_socket() { socket_.reset(); }

  private:
    Spawner(pid_t pid, UniqueFd socket) : pid_(pid), socket_(std::move(socket)) {}

    pid_t pid_ = -1;
    UniqueFd socket_;
};

}  // namespace muster
