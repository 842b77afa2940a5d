// SPDX-License-Identifier: Apache-2.0
//
// environment - what a trial inherits: the user's environment without what a launcher put there
// for muster's own rank. Pure.
//
// A program that thinks it is a rank of muster's job fails in MPI_Init and takes the job with it;
// one that thinks it is muster's Slurm step counts tasks and cores wrongly. So exactly what
// launchers set is removed, by a list; what the site and the user set stays.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// A process's environment, each entry "NAME=value".
using EnvironmentList = std::vector<std::string>;

struct EnvironmentOptions {
    /// Names that stay though the list removes them; a trailing '*' matches a prefix.
    std::vector<std::string> keep;
    /// Names that go; stronger than `keep`.
    std::vector<std::string> drop;
    /// Where the muster binary is: put at the end of PATH unless it is there. Empty: PATH stays.
    std::string muster_directory;
};

/// One difference between muster's environment and a trial's.
struct EnvironmentChange {
    std::string name;
    std::optional<std::string> was;
    std::optional<std::string> becomes;
    /// For people: "for muster's own rank (Open MPI)", "drop_env", …
    std::string why;

    friend bool operator==(const EnvironmentChange&, const EnvironmentChange&) = default;
};

/// The environment that trials start from. Order is kept; what is new comes last.
///
/// On a node of a Slurm job the variables that list the job's nodes (SLURM_NODELIST,
/// SLURM_TASKS_PER_NODE, …) say this node alone: an mpirun within a trial takes them for what it
/// may use, and fails without.
EnvironmentList
trial_base_environment(const EnvironmentList& environment, const EnvironmentOptions& options);

/// What trial_base_environment() changes and why, by name.
std::vector<EnvironmentChange>
environment_changes(const EnvironmentList& environment, const EnvironmentOptions& options);

/// `base`, which came from another node, with this node's own values of what belongs to a node:
/// TMPDIR, HOSTNAME, SLURMD_NODENAME, Slurm's word on the node's CPUs and GPUs, and the masks of
/// devices. What this node lacks is removed. Lists of nodes that say one node say this one.
EnvironmentList with_node_values(const EnvironmentList& base, const EnvironmentList& node);

/// This process's environment as a list.
EnvironmentList current_environment();

/// A variable that names, separated by ':', those which muster set for itself (OMPI_MCA_pml, …);
/// they are removed along with it.
inline constexpr std::string_view kOwnVariables = "MUSTER_OWN_VARIABLES";

}  // namespace muster
