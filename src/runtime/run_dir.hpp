// SPDX-License-Identifier: Apache-2.0
//
// run_dir - the node-local directory of one run: the report socket and the trials' params.json
// files. Nobody else can look into it, its path is short, and it is gone after the run: should the
// run be killed, its spawner takes it away (see Spawner::start), and else the next run.

#pragma once

#include <string>
#include <utility>

#include "muster/error.hpp"

#include "posix/unique_fd.hpp"

namespace muster {

class RunDir {
  public:
    /// Makes a directory under $TMPDIR, or under /tmp when that is unset, missing or too long for a
    /// socket's path. Takes away those that runs of this user left there when they were killed.
    /// Errors: System.
    static Result<RunDir> make();

    /// Removes it with all that is in it.
    ~RunDir();
    RunDir(RunDir&& other) noexcept = default;
    RunDir& operator=(RunDir&&) = delete;
    RunDir(const RunDir&) = delete;
    RunDir& operator=(const RunDir&) = delete;

    const std::string& path() const { return path_; }

  private:
    RunDir(std::string path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

    std::string path_;
    /// Held on the directory, on this node's own file system: tells the living from the dead even
    /// across containers that share /tmp.
    UniqueFd lock_;
};

}  // namespace muster
