// SPDX-License-Identifier: Apache-2.0
//
// reaper - what spawner and keepers have in common at their birth.

#pragma once

#include <sys/types.h>

#include "posix/unique_fd.hpp"

namespace muster {

/// Makes this process a reaper: a session of its own, to which orphaned descendants come, and
/// which is told (SIGTERM) when `parent` dies. Returns a signalfd for SIGCHLD and SIGTERM, which
/// the caller has blocked; nothing when `parent` is gone already.
UniqueFd become_reaper(const char* name, pid_t parent);

}  // namespace muster
