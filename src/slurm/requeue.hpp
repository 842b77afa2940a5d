// SPDX-License-Identifier: Apache-2.0
//
// requeue - puts the job that this process runs in back into Slurm's queue, so that what is not
// finished goes on there by itself.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "slurm/job.hpp"

namespace muster {

/// The environment variable by which `muster launch` tells its ranks how often the job may be put
/// back: they do it when nobody else is left to. It must not reach trials.
inline constexpr std::string_view kMaxRequeues = "MUSTER_MAX_REQUEUES";

/// Whether this incarnation still runs by `record`: it was neither put back, nor cancelled, nor is
/// it at its end.
bool is_this_incarnation(const JobRecord& record, const SlurmJob& job);

/// Whether this incarnation is over by `record`, whoever ended it, though some of its processes may
/// live on a node that Slurm can't reach.
bool is_over(const JobRecord& record, const SlurmJob& job);

/// The command lines.
std::vector<std::string> show_job_command(const SlurmJob& job);
std::vector<std::string> requeue_command(const SlurmJob& job);

struct RequeueEnd {
    bool is_queued = false;
    /// For people: what was done, or why not and what to do.
    std::string text;
};

/// Puts it back unless that was done `most` times already, or somebody else has ended or put back
/// this incarnation. Waits for a controller that is away, at most `patience`.
RequeueEnd requeue(const SlurmJob& job, std::uint32_t most, Duration patience);

}  // namespace muster
