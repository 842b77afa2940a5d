// SPDX-License-Identifier: Apache-2.0
//
// child - starts one program so that this process's memory is never copied and no descriptor but
// 0, 1 and 2 gets there.
//
// The new process shares our memory until it has called exec (CLONE_VM | CLONE_VFORK: we stand
// still meanwhile), hence it only makes system calls on what was prepared before.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

namespace muster {

struct ChildRequest {
    std::vector<std::string> argv;
    /// Null-terminated array of "NAME=value".
    const char* const* environment = nullptr;
    /// Empty stays where we are.
    std::string workdir;
    int stdout_fd = -1;
    int stderr_fd = -1;
    /// stdout_fd is a terminal: make it the controlling one of a new session.
    bool is_terminal = false;
    /// Hardware threads to run on; empty binds to nothing.
    std::vector<std::uint32_t> processing_units;
};

struct ChildStart {
    pid_t pid = -1;
    /// When pid is -1: errno, and what could not be done, with what would help.
    int error_number = 0;
    std::string error;
    /// Empty, or why the child does not run where it should.
    std::string binding_problem;
};

/// Starts `request.argv` in a process group of its own, killed when this process dies, with no
/// signal blocked, all at their defaults (they must be so here) and stdin as it is here.
ChildStart start_child(const ChildRequest& request);

/// Makes the kernel take this process before others when memory runs out.
void raise_oom_score();

/// This process runs on other hardware threads for as long as this lives, and so does what it
/// forks meanwhile for good. Empty is where it was.
class BoundMeanwhile {
  public:
    explicit BoundMeanwhile(const std::vector<std::uint32_t>& processing_units);
    ~BoundMeanwhile();
    BoundMeanwhile(const BoundMeanwhile&) = delete;
    BoundMeanwhile& operator=(const BoundMeanwhile&) = delete;

    /// Empty, or why it does not run there.
    const std::string& problem() const { return problem_; }

  private:
    std::vector<std::uint32_t> before_;
    std::string problem_;
};

/// Moves every thread of `pids` to `processing_units`. Empty, or why it was not done.
std::string
bind_processes(const std::vector<pid_t>& pids, const std::vector<std::uint32_t>& processing_units);

}  // namespace muster
