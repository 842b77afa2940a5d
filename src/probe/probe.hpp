// SPDX-License-Identifier: Apache-2.0
//
// probe - what this node offers to trials: cores, memory and GPUs, after everything that somebody
// else has already limited (cgroups, Slurm, a mask set on purpose). The only folder with hwloc.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/error.hpp"
#include "muster/experiment.hpp"

#include "resources/node_inventory.hpp"

namespace muster {

/// What counts as one CPU.
enum class CpuUnit {
    /// A physical core with all of its hardware threads.
    Cores,
    /// A hardware thread.
    Threads,
};

/// The defaults look at the node that the process runs on; tests describe another one.
struct ProbeOptions {
    CpuUnit cpu_unit = CpuUnit::Cores;
    /// Empty: $SLURMD_NODENAME, else the host's name.
    std::string name;
    /// Put before every path under /proc, /sys and /dev that is read.
    std::string root;
    /// An hwloc description ("package:2 numa:4 core:16 pu:2") in place of the machine's topology.
    std::string synthetic_topology;
    /// Nothing: the process's own.
    std::optional<std::vector<EnvironmentVariable>> environment;
    /// The hardware threads that the process may run on. Nothing: as the kernel says, or every one
    /// of a synthetic topology. Those of a launcher are read under `root`.
    std::optional<std::vector<std::uint32_t>> affinity;
};

/// Looks at the node.
///
/// Cores: those of the cgroup's cpuset, within the affinity mask. A mask that a launcher put on
/// this process says nothing about what the node's trials may use: under mpirun its own counts
/// (that of the closest ancestor that is no rank), under srun none. A core whose hardware threads
/// are only partly allowed counts, with those that are.
///
/// The pool of CPUs is the number of cores, or less where a cgroup's quota or SLURM_CPUS_ON_NODE
/// says so: a quota of 1.5 is a pool of 1.5. It is never below 1, so that a plain trial always
/// fits.
///
/// Memory is the least of what the machine has, the limits of the cgroup and of those above it,
/// and SLURM_MEM_PER_NODE or SLURM_MEM_PER_CPU.
///
/// Devices: the NVIDIA GPUs that the driver lists, within CUDA_VISIBLE_DEVICES and in its spelling.
/// In a step of a Slurm job SLURM_STEP_GPUS stands for a mask that is not set; where the job has
/// GPUs and the step none on this node, there are none, and a mask is a leak from another node.
///
/// Errors: InvalidInput for a variable that means nothing, naming it; System when the topology
/// cannot be read or no core is left.
Result<NodeInventory> probe_node(const ProbeOptions& options = {});

/// The hardware threads that trials may run on where a launcher has bound this process to some of
/// them, ascending. Empty when nobody did, so that its own mask counts; and when it can't be told.
std::vector<std::uint32_t> threads_for_trials(const ProbeOptions& options = {});

}  // namespace muster
