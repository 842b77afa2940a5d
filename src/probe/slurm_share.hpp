// SPDX-License-Identifier: Apache-2.0
//
// slurm_share - what Slurm gave the job on this node, by the variables that tell the truth there.
//
// SLURM_JOB_GPUS names the GPUs of the job's first node on every node, and a variable that Slurm
// does not set for a step is inherited from that node's batch script: CUDA_VISIBLE_DEVICES on a
// node without GPUs names those of another. Under mpirun SLURM_NODEID and SLURM_PROCID are not this
// process's either. None of these is believed here.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "muster/error.hpp"

#include "probe/environment.hpp"

namespace muster {

/// Nothing where Slurm says nothing, or 0, its word for all.
struct SlurmShare {
    std::optional<std::int64_t> cpus;
    std::optional<std::int64_t> memory_per_node_mib;
    std::optional<std::int64_t> memory_per_cpu_mib;
};

/// Empty outside a job.
/// Errors: InvalidInput for a variable that is no number, naming it.
Result<SlurmShare> slurm_share(const probe::Environment& environment);

/// The mask of devices that holds for this node: CUDA_VISIBLE_DEVICES, unless Slurm knows better.
/// Nothing when all devices are visible.
std::optional<std::string_view> device_mask(const probe::Environment& environment);

}  // namespace muster
