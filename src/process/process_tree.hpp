// SPDX-License-Identifier: Apache-2.0
//
// process_tree - everything that descends from this process, found without looking at any other
// process: by /proc/<pid>/task/*/children from here down.
//
// A list is stale as soon as it is made, so whoever must reach everybody repeats until wait() says
// that nobody is left. Whole process groups are signalled, since the kernel does that atomically
// against fork(): one pass ends a fork bomb.

#pragma once

#include <vector>

#include <sys/types.h>

namespace muster {

/// The direct children of this process, which has one thread.
std::vector<pid_t> children_of_self();

/// `roots` and all that descends from them, parents before children.
std::vector<pid_t> with_descendants(const std::vector<pid_t>& roots);

/// Sends `signal` to every process group that has a member in `roots` or below them. A process in
/// this process's own group is signalled alone.
void signal_all(const std::vector<pid_t>& roots, int signal);

/// The numbers of all threads of a process; empty when it is gone.
std::vector<pid_t> threads_of(pid_t pid);

}  // namespace muster
