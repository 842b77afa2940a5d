// SPDX-License-Identifier: Apache-2.0
//
// launcher_child - the process of mpirun or srun: started, signalled, reaped, and swept up after.

#pragma once

#include <csignal>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "muster/error.hpp"

#include "posix/unique_fd.hpp"

namespace muster {

class LauncherChild {
  public:
    /// Starts `line`, whose program is at `path`, in a process group of its own: a terminal's ^C is
    /// for muster, which knows better how to end. It dies with this process.
    ///
    /// `mask`: the signals that are blocked in it. Errors: System.
    static Result<LauncherChild>
    start(const std::vector<std::string>& line, const std::string& path, const sigset_t& mask);

    /// Readable when the process has ended.
    int fd() const { return process_.get(); }
    /// Where its stdout and stderr are read, without waiting; to be closed when they have ended.
    UniqueFd& output() { return output_; }
    UniqueFd& errors() { return errors_; }

    /// Writes to its stdin what fits there now.
    void tell(std::string_view text) const;
    /// Nothing happens when it is gone.
    void signal(int number) const;
    void reap();
    /// As waitpid() says it; nothing while it runs.
    std::optional<int> status() const { return status_; }

    /// Kills what it left running on this machine (ssh to a host that does not answer), which came
    /// to this process. Takes two seconds at most.
    ///
    /// REQUIRES: the process has no other children.
    static void end_orphans();
    /// Removes Open MPI's directory of this process, which only one that was killed leaves behind.
    void remove_session() const;

  private:
    LauncherChild(pid_t pid, UniqueFd process) : pid_(pid), process_(std::move(process)) {}

    pid_t pid_;
    UniqueFd process_;
    /// Its stdin.
    UniqueFd words_;
    UniqueFd output_;
    UniqueFd errors_;
    std::optional<int> status_;
};

}  // namespace muster
