// SPDX-License-Identifier: Apache-2.0
//
// host - what is asked of the machine about itself and its processes.

#pragma once

#include <cstdint>
#include <string>

#include <sys/types.h>

#include "base/time.hpp"

namespace muster {

std::string host_name();

/// As the cluster calls this node: $SLURMD_NODENAME, else the host's name.
std::string node_name();

/// When the process began, in the kernel's ticks since boot: with the pid it names one process for
/// good. 0 when there is none, or only its unreaped remains.
std::int64_t process_start_time(pid_t pid);

/// This node's own place for files that need not outlive it: $TMPDIR, else /tmp.
std::string scratch_directory();

/// The number of the user that this process acts as.
std::string user_number();

/// The monotonic clock.
Duration monotonic_now();

/// The directory of the running program; empty when it can't be told.
std::string program_directory();

}  // namespace muster
