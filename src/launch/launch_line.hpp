// SPDX-License-Identifier: Apache-2.0
//
// launch_line - the command line of mpirun or srun with which a run survives the loss of a node.
// Pure, but for host_problems().

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/error.hpp"

namespace muster {

enum class LaunchWith : std::uint8_t {
    /// srun inside a Slurm job when nothing names hosts or ranks, else mpirun.
    Automatic,
    Mpirun,
    Srun,
};

struct LaunchOptions {
    LaunchWith with = LaunchWith::Automatic;
    /// 0: one a host; on this machine alone, one.
    std::uint32_t ranks = 0;
    /// In this order; rank 0 is on the first.
    std::vector<std::string> hosts;
    /// Whoever asks for a line has read it into `hosts`, and empties it.
    std::string hostfile;
    /// In place of ssh: "ssh -p 2222", or a program of one's own.
    std::string agent;
    /// The network that ranks talk over: "ib0", "10.1.0.0/16". Empty: all that there are.
    std::string interface;
    /// More words for mpirun or srun.
    std::vector<std::string> more;
    /// What every rank runs, and its arguments.
    std::string program;
    std::vector<std::string> arguments;
};

/// What is known of the surroundings.
struct LaunchPlace {
    /// $SLURM_JOB_ID, and how many nodes the job has.
    bool in_slurm_job = false;
    std::uint32_t slurm_nodes = 0;
    /// Shares of devices differ by node, where srun takes no --overlap (Slurm 22.05).
    bool slurm_gpus_by_job = false;
};

/// The words of the line; the first is "mpirun" or "srun".
/// Errors: InvalidInput, for options that contradict each other.
Result<std::vector<std::string>>
launch_line(const LaunchOptions& options, const LaunchPlace& place);

/// The hosts that a host file names, one a line: a name and perhaps "slots=N".
/// Errors: InvalidInput, naming `path`, the line and what is wrong with it.
Result<std::vector<std::string>> parse_hostfile(std::string_view text, const std::string& path);

/// Ok when every name leads to an address.
/// Errors: InvalidInput, naming the host that does not.
Status look_up(const std::vector<std::string>& hosts);

}  // namespace muster
