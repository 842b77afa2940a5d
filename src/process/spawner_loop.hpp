// SPDX-License-Identifier: Apache-2.0
//
// spawner_loop - what the spawner does, and the two messages between it and the agent.
//
// Messages are single packets. To fork a keeper the agent sends a KeeperRequest and, with it, the
// keeper's end of a socket of their own; the spawner answers with notes.

#pragma once

#include <cstdint>

#include <sys/types.h>

#include "process/function.hpp"

namespace muster {

struct KeeperRequest {
    std::uint32_t id = 0;
};

struct SpawnerNote {
    enum class Kind : std::uint32_t {
        /// `value` is the keeper's pid.
        Forked,
        /// `value` is errno.
        ForkFailed,
        /// The keeper has ended, and so has all that it held. `value` is its wait status.
        Gone,
    };
    Kind kind = Kind::Forked;
    std::uint32_t id = 0;
    std::int32_t value = 0;
};

/// Serves the agent (`parent`) at the other end of `socket` until it is gone, then sees everything
/// out and returns. REQUIRES: as for run_keeper().
void run_spawner(int socket, pid_t parent, const TrialFunctions& functions);

}  // namespace muster
