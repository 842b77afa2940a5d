// SPDX-License-Identifier: Apache-2.0
#include "process/environment.hpp"

#include <algorithm>
#include <array>
#include <map>

#include <unistd.h>

namespace muster {
namespace {

struct Rule {
    std::string_view pattern;
    std::string_view why;
};

constexpr std::string_view kOpenMpi = "set by Open MPI's launcher for muster's own rank";
constexpr std::string_view kPmi = "set by a launcher for muster's own rank (PMI, PMIx)";
constexpr std::string_view kHydra = "set by an MPICH-like launcher for muster's own rank";
constexpr std::string_view kStep = "set by Slurm for muster's own step";
constexpr std::string_view kOuter = "of the trial in which muster itself runs";
constexpr std::string_view kOwn = "set by muster for itself";

constexpr std::array kRemoved = {
    Rule{"OMPI_COMM_WORLD_*", kOpenMpi},
    Rule{"OMPI_MCA_orte_*", kOpenMpi},
    Rule{"OMPI_MCA_ess*", kOpenMpi},
    Rule{"OMPI_MCA_pmix*", kOpenMpi},
    Rule{"OMPI_MCA_schizo_*", kOpenMpi},
    Rule{"OMPI_MCA_plm*", kOpenMpi},
    Rule{"OMPI_MCA_ras*", kOpenMpi},
    Rule{"OMPI_MCA_rmaps_base_mapping_policy", kOpenMpi},
    Rule{"OMPI_MCA_rmaps_ppr_*", kOpenMpi},
    Rule{"OMPI_MCA_mpi_oversubscribe", kOpenMpi},
    Rule{"OMPI_MCA_initial_wdir", kOpenMpi},
    Rule{"OMPI_MCA_shmem_RUNTIME_QUERY_hint", kOpenMpi},
    Rule{"OMPI_UNIVERSE_SIZE", kOpenMpi},
    Rule{"OMPI_FILE_LOCATION", kOpenMpi},
    Rule{"OMPI_APP_CTX_NUM_PROCS", kOpenMpi},
    Rule{"OMPI_NUM_APP_CTX", kOpenMpi},
    Rule{"OMPI_FIRST_RANKS", kOpenMpi},
    Rule{"OMPI_COMMAND", kOpenMpi},
    Rule{"OMPI_ARGV", kOpenMpi},
    Rule{"ORTE_*", kOpenMpi},
    Rule{"IPATH_NO_BACKTRACE", kOpenMpi},
    Rule{"HFI_NO_BACKTRACE", kOpenMpi},
    Rule{"PSM2_DEVICES", kOpenMpi},
    Rule{"PRTE_*", kPmi},
    Rule{"PMIX_*", kPmi},
    Rule{"PMI_*", kPmi},
    Rule{"PMI2_*", kPmi},
    Rule{"JSM_*", kPmi},
    Rule{"PALS_*", kPmi},
    Rule{"HYDRA_*", kHydra},
    Rule{"HYDI_*", kHydra},
    Rule{"MPI_LOCALNRANKS", kHydra},
    Rule{"MPI_LOCALRANKID", kHydra},
    Rule{"MV2_COMM_WORLD_*", kHydra},
    Rule{"SLURM_CPU_BIND*", kStep},
    Rule{"SLURM_MEM_BIND*", kStep},
    Rule{"SLURM_CPUS_PER_TASK", kStep},
    Rule{"SLURM_NTASKS*", kStep},
    Rule{"SLURM_NPROCS", kStep},
    Rule{"SLURM_PROCID", kStep},
    Rule{"SLURM_LOCALID", kStep},
    Rule{"SLURM_NODEID", kStep},
    Rule{"SLURM_STEP*", kStep},
    Rule{"SLURM_GTIDS", kStep},
    Rule{"SLURM_TASK_PID", kStep},
    Rule{"SLURM_DISTRIBUTION", kStep},
    Rule{"SLURM_LAUNCH_NODE_IPADDR", kStep},
    Rule{"SLURM_SRUN_COMM_*", kStep},
    Rule{"SLURM_MPI_TYPE", kStep},
    Rule{"SLURM_PMIX*", kStep},
    Rule{"SLURM_JOB_CPUS_PER_NODE_PACK_GROUP_*", kStep},
    Rule{"SLURM_TRES_PER_TASK", kStep},
    Rule{"SLURM_GPUS_PER_TASK", kStep},
    Rule{"SLURM_GPU_BIND", kStep},
    Rule{"SLURM_OVERCOMMIT", kStep},
    Rule{"SLURM_EXACT", kStep},
    Rule{"SLURM_WHOLE", kStep},
    Rule{"SLURM_KILL_BAD_EXIT", kStep},
    Rule{"SLURM_NO_KILL", kStep},
    Rule{"SLURM_WAIT", kStep},
    Rule{"SLURM_UMASK", kStep},
    Rule{"SLURM_PRIO_PROCESS", kStep},
    Rule{"SLURM_RLIMIT_*", kStep},
    Rule{"SLURM_PTY_*", kStep},
    Rule{"MUSTER_TRIAL_ID", kOuter},
    Rule{"MUSTER_ATTEMPT", kOuter},
    Rule{"MUSTER_EXPERIMENT", kOuter},
    Rule{"MUSTER_TRIAL_DIR", kOuter},
    Rule{"MUSTER_CONFIG", kOuter},
    Rule{"MUSTER_SOCKET", kOuter},
    Rule{"MUSTER_CHECKPOINT", kOuter},
    Rule{"MUSTER_BUNDLES", kOuter},
    Rule{"MUSTER_HOSTFILE", kOuter},
    Rule{kOwnVariables, kOwn},
    Rule{"MUSTER_LAUNCH_TOKEN", kOwn},
    Rule{"MUSTER_MAX_REQUEUES", kOwn},
    Rule{"MUSTER_TERMINAL", kOwn},
};

/// What belongs to a node rather than to the user.
constexpr std::array<std::string_view, 11> kOfTheNode = {
    "TMPDIR",
    "HOSTNAME",
    "SLURMD_NODENAME",
    "SLURM_CPUS_ON_NODE",
    "SLURM_GPUS_ON_NODE",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "ZE_AFFINITY_MASK",
};

/// Lists of the job's nodes, and what each says of this node alone.
enum class NodeFact { Name, One, Cpus };
struct JobList {
    std::string_view name;
    NodeFact here;
};
constexpr std::array kJobLists = {
    JobList{"SLURM_NODELIST", NodeFact::Name},
    JobList{"SLURM_JOB_NODELIST", NodeFact::Name},
    JobList{"SLURM_NNODES", NodeFact::One},
    JobList{"SLURM_JOB_NUM_NODES", NodeFact::One},
    JobList{"SLURM_TASKS_PER_NODE", NodeFact::Cpus},
    JobList{"SLURM_JOB_CPUS_PER_NODE", NodeFact::Cpus},
};
constexpr std::string_view kNarrowed = "this node's part of the job, for launchers within a trial";

/// Set unless it is set here.
struct Default {
    std::string_view name;
    std::string_view value;
    std::string_view why;
};
constexpr std::array kDefaults = {
    // A Python that writes to a pipe holds its output back until it ends; no metric on stdout would
    // ever stop such a trial.
    Default{"PYTHONUNBUFFERED", "1", "so that Python's output comes at once"},
    // Open MPI's mpirun binds its ranks to the node's first cores, whatever cores the trial has.
    Default{
        "OMPI_MCA_hwloc_base_binding_policy",
        "none",
        "so that an mpirun stays on the trial's cores"},
};

bool matches(std::string_view pattern, std::string_view name) {
    if (!pattern.empty() && pattern.back() == '*') {
        pattern.remove_suffix(1);
        return name.substr(0, pattern.size()) == pattern;
    }
    return name == pattern;
}

bool matches_any(const std::vector<std::string>& patterns, std::string_view name) {
    return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
        return matches(pattern, name);
    });
}

std::string_view name_of(std::string_view entry) {
    return entry.substr(0, entry.find('='));
}

std::string_view value_of(std::string_view entry) {
    const std::size_t sign = entry.find('=');
    return sign == std::string_view::npos ? std::string_view() : entry.substr(sign + 1);
}

bool list_has(std::string_view list, std::string_view item) {
    while (true) {
        const std::size_t colon = list.find(':');
        if (list.substr(0, colon) == item) {
            return true;
        }
        if (colon == std::string_view::npos) {
            return false;
        }
        list.remove_prefix(colon + 1);
    }
}

std::string_view find_value(const EnvironmentList& environment, std::string_view name) {
    for (const std::string& entry : environment) {
        if (name_of(entry) == name) {
            return value_of(entry);
        }
    }
    return {};
}

/// Why `name` goes; nothing when it stays.
std::optional<std::string> why_removed(
    std::string_view name,
    const EnvironmentOptions& options,
    std::string_view own_variables
) {
    if (matches_any(options.drop, name)) {
        return "drop_env";
    }
    if (matches_any(options.keep, name)) {
        return std::nullopt;
    }
    if (!own_variables.empty() && list_has(own_variables, name)) {
        return std::string(kOwn);
    }
    for (const Rule& rule : kRemoved) {
        if (matches(rule.pattern, name)) {
            return std::string(rule.why);
        }
    }
    return std::nullopt;
}

/// What the list says of the node whose environment this is; nothing when that can't be told.
std::string_view value_here(const JobList& list, const EnvironmentList& environment) {
    switch (list.here) {
        case NodeFact::Name:
            return find_value(environment, "SLURMD_NODENAME");
        case NodeFact::One:
            return "1";
        case NodeFact::Cpus:
            return find_value(environment, "SLURM_CPUS_ON_NODE");
    }
    return {};
}

void set_value(EnvironmentList& environment, std::string_view name, std::string_view value) {
    std::string entry = std::string(name) + "=" + std::string(value);
    for (std::string& other : environment) {
        if (name_of(other) == name) {
            other = std::move(entry);
            return;
        }
    }
    environment.push_back(std::move(entry));
}

void remove(EnvironmentList& environment, std::string_view name) {
    environment.erase(
        std::remove_if(
            environment.begin(),
            environment.end(),
            [&](const std::string& entry) { return name_of(entry) == name; }
        ),
        environment.end()
    );
}

void narrow_job_lists(EnvironmentList& base, const EnvironmentOptions& options) {
    // Elsewhere than on one of the job's nodes, as in salloc's shell, they mean what they say.
    if (find_value(base, "SLURM_JOB_ID").empty() || find_value(base, "SLURMD_NODENAME").empty()) {
        return;
    }
    for (const JobList& list : kJobLists) {
        if (matches_any(options.drop, list.name) || matches_any(options.keep, list.name)) {
            continue;
        }
        const std::string value(value_here(list, base));
        if (value.empty()) {
            remove(base, list.name);
        } else {
            set_value(base, list.name, value);
        }
    }
}

void set_path(EnvironmentList& environment, const std::string& directory) {
    if (directory.empty()) {
        return;
    }
    for (std::string& entry : environment) {
        if (name_of(entry) != "PATH") {
            continue;
        }
        if (!list_has(value_of(entry), directory)) {
            entry += value_of(entry).empty() ? directory : ":" + directory;
        }
        return;
    }
    environment.push_back("PATH=/usr/local/bin:/usr/bin:/bin:" + directory);
}

bool has(const EnvironmentList& environment, std::string_view name) {
    return std::any_of(environment.begin(), environment.end(), [&](const std::string& entry) {
        return name_of(entry) == name;
    });
}

bool is_job_list(std::string_view name) {
    return std::any_of(kJobLists.begin(), kJobLists.end(), [&](const JobList& list) {
        return list.name == name;
    });
}

/// Why a variable has another value than here.
std::string_view why_set(std::string_view name) {
    if (is_job_list(name)) {
        return kNarrowed;
    }
    for (const Default& value : kDefaults) {
        if (value.name == name) {
            return value.why;
        }
    }
    return "so that trials find muster";
}

std::map<std::string, std::string> as_map(const EnvironmentList& environment) {
    std::map<std::string, std::string> map;
    for (const std::string& entry : environment) {
        map.emplace(name_of(entry), value_of(entry));
    }
    return map;
}

}  // namespace

EnvironmentList
trial_base_environment(const EnvironmentList& environment, const EnvironmentOptions& options) {
    const std::string own(find_value(environment, kOwnVariables));
    EnvironmentList base;
    base.reserve(environment.size() + 2);
    for (const std::string& entry : environment) {
        if (!why_removed(name_of(entry), options, own)) {
            base.push_back(entry);
        }
    }
    narrow_job_lists(base, options);
    set_path(base, options.muster_directory);
    for (const Default& value : kDefaults) {
        if (!has(environment, value.name) && !matches_any(options.drop, value.name)) {
            set_value(base, value.name, value.value);
        }
    }
    return base;
}

std::vector<EnvironmentChange>
environment_changes(const EnvironmentList& environment, const EnvironmentOptions& options) {
    const std::string own(find_value(environment, kOwnVariables));
    const std::map<std::string, std::string> before = as_map(environment);
    const std::map<std::string, std::string> after =
        as_map(trial_base_environment(environment, options));
    std::vector<EnvironmentChange> changes;
    for (const auto& [name, value] : before) {
        const auto kept = after.find(name);
        if (kept == after.end()) {
            const std::optional<std::string> why = why_removed(name, options, own);
            changes.push_back({name, value, std::nullopt, why.value_or(std::string(why_set(name)))}
            );
        } else if (kept->second != value) {
            changes.push_back({name, value, kept->second, std::string(why_set(name))});
        }
    }
    for (const auto& [name, value] : after) {
        if (before.count(name) == 0) {
            changes.push_back({name, std::nullopt, value, std::string(why_set(name))});
        }
    }
    std::sort(changes.begin(), changes.end(), [](const auto& left, const auto& right) {
        return left.name < right.name;
    });
    return changes;
}

EnvironmentList with_node_values(const EnvironmentList& base, const EnvironmentList& node) {
    const auto of_the_node = [](const std::string& entry) {
        return std::find(kOfTheNode.begin(), kOfTheNode.end(), name_of(entry)) != kOfTheNode.end();
    };
    EnvironmentList result;
    std::copy_if(base.begin(), base.end(), std::back_inserter(result), [&](const std::string& e) {
        return !of_the_node(e);
    });
    std::copy_if(node.begin(), node.end(), std::back_inserter(result), of_the_node);
    for (const JobList& list : kJobLists) {
        const std::string_view said = find_value(base, list.name);
        if (said.empty() || said != value_here(list, base)) {
            continue;
        }
        const std::string value(value_here(list, node));
        if (value.empty()) {
            remove(result, list.name);
        } else {
            set_value(result, list.name, value);
        }
    }
    return result;
}

EnvironmentList current_environment() {
    EnvironmentList environment;
    for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
        environment.emplace_back(*entry);
    }
    return environment;
}

}  // namespace muster
