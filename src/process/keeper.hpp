// SPDX-License-Identifier: Apache-2.0
//
// keeper - the small process that holds one running member and reaps all of it.

#pragma once

#include <sys/types.h>

#include "process/function.hpp"

namespace muster {

/// What a process is forked into by the spawner: serves launches from the agent at the other end
/// of `socket`, one at a time, until the agent or the spawner (`parent`) is gone; then kills what
/// it holds and returns once nothing of it is left.
///
/// REQUIRES: one thread; every signal blocked and at its default; descriptors 0, 1 and 2 are
/// /dev/null, every other one but `socket` is closed.
void run_keeper(int socket, pid_t parent, const TrialFunctions& functions);

}  // namespace muster
