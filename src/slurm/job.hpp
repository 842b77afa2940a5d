// SPDX-License-Identifier: Apache-2.0
//
// job - the Slurm job that this process runs in, by its environment and by what `scontrol` prints.
// Nothing here starts anything.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/error.hpp"

#include "base/time.hpp"

namespace muster {

/// What the environment says.
struct SlurmJob {
    std::string id;
    /// How often the job was put back into the queue: with the id it names one incarnation.
    std::uint32_t restarts = 0;
    /// Unix time in seconds, where Slurm says so (23.02 does, 22.05 does not).
    std::optional<std::int64_t> start_time;
    std::optional<std::int64_t> end_time;
};

/// The job of `environment` ("NAME=value"); nothing outside a job.
std::optional<SlurmJob> slurm_job_of(const std::vector<std::string>& environment);

/// What `scontrol --oneliner show job ID` says of a job.
struct JobRecord {
    /// "RUNNING", "PENDING", …
    std::string state;
    std::uint32_t restarts = 0;
    /// May be put back into the queue.
    bool may_requeue = false;
    /// Where its script runs.
    std::string batch_host;
    Duration run_time{0};
    /// Nothing: without end.
    std::optional<Duration> time_limit;
    /// What is left of it, to the second.
    Duration time_left{0};

    friend bool operator==(const JobRecord&, const JobRecord&) = default;
};

/// Reads the first job of the text, which may hold other lines before it.
/// Errors: InvalidInput, when there is no job in it.
Result<JobRecord> parse_job_record(std::string_view text);

/// "90:00" (minutes and seconds), "12:30:00", "2-12:30:00"; nothing for anything else, such as
/// "UNLIMITED".
std::optional<Duration> parse_slurm_time(std::string_view text);

/// How long Slurm waits between SIGTERM and SIGKILL, by `scontrol show config`.
std::optional<Duration> parse_kill_wait(std::string_view config);

/// Whether `scontrol show node NAME` says that it is down, or that nobody reaches it.
bool is_node_down(std::string_view text);

}  // namespace muster
