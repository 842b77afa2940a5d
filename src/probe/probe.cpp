// SPDX-License-Identifier: Apache-2.0
//
// probe - puts together what the machine has and what everybody else has already limited.

#include "probe/probe.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

#include <fmt/format.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "probe/affinity.hpp"
#include "probe/cgroup.hpp"
#include "probe/device_mask.hpp"
#include "probe/environment.hpp"
#include "probe/nvidia.hpp"
#include "probe/slurm_share.hpp"
#include "probe/text.hpp"
#include "probe/topology.hpp"

namespace muster {
namespace {

constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;

using probe::Environment;
using probe::find;

/// The hardware threads that trials may use; nothing when all of them may be.
Result<std::optional<std::vector<std::uint32_t>>> allowed_threads(
    const ProbeOptions& options,
    const Environment& environment,
    const CgroupLimits& limits
) {
    const MaskOwner owner = mask_owner(environment);
    // A described node has no processes, unless they are described too.
    const bool is_described = !options.synthetic_topology.empty();
    std::optional<std::vector<std::uint32_t>> mask;
    if (owner == MaskOwner::Launcher && (!is_described || !options.root.empty())) {
        mask = launcher_affinity(options.root);
    } else if (owner == MaskOwner::Process && options.affinity) {
        mask = options.affinity;
    } else if (owner == MaskOwner::Process && !is_described) {
        Result<std::vector<std::uint32_t>> own = own_affinity();
        if (!own) {
            return own.error();
        }
        mask = *std::move(own);
    }
    if (!mask || !limits.cpus) {
        return mask ? mask : limits.cpus;
    }
    std::sort(mask->begin(), mask->end());
    std::vector<std::uint32_t> both = probe::intersection(*limits.cpus, *mask);
    // A launcher elsewhere than in this process's cgroup says nothing about it.
    return both.empty() && owner == MaskOwner::Launcher ? limits.cpus : std::optional(both);
}

Amount cpu_pool(std::size_t cores, const CgroupLimits& limits, const SlurmShare& slurm) {
    Amount pool = Amount::whole(static_cast<std::int64_t>(cores));
    if (limits.cpu_ten_thousandths) {
        pool = std::min(pool, Amount::ten_thousandths(*limits.cpu_ten_thousandths));
    }
    if (slurm.cpus) {
        pool = std::min(pool, Amount::whole(std::min<std::int64_t>(*slurm.cpus, 1 << 20)));
    }
    return std::max(pool, Amount::whole(1));
}

/// What the machine has, by /proc/meminfo; 0 when it does not say.
std::int64_t machine_memory(const std::string& root) {
    const auto content = probe::read_small_file(root + "/proc/meminfo");
    if (!content) {
        return 0;
    }
    constexpr std::string_view kKey = "MemTotal:";
    for (std::string_view line : probe::split(*content, '\n')) {
        if (line.substr(0, kKey.size()) == kKey) {
            line.remove_prefix(kKey.size());
            // "MemTotal:       24535860 kB", in units of 1024.
            const std::size_t unit = line.rfind("kB");
            return probe::parse_whole(line.substr(0, unit)).value_or(0) * 1024;
        }
    }
    return 0;
}

std::int64_t memory_of(
    const std::string& root,
    const CgroupLimits& limits,
    const SlurmShare& slurm,
    Amount cpu
) {
    std::optional<std::int64_t> memory = limits.memory_bytes;
    const auto lower = [&memory](std::int64_t bytes) {
        memory = memory ? std::min(*memory, bytes) : bytes;
    };
    if (const std::int64_t machine = machine_memory(root); machine > 0) {
        lower(machine);
    }
    if (slurm.memory_per_node_mib) {
        lower(*slurm.memory_per_node_mib * kMebibyte);
    } else if (slurm.memory_per_cpu_mib) {
        const std::int64_t cpus = std::min<std::int64_t>(slurm.cpus.value_or(cpu.ceil()), 1 << 20);
        // Kept below 2^62 whatever the two variables say.
        lower(
            std::min(*slurm.memory_per_cpu_mib, (std::int64_t{1} << 42) / cpus) * cpus * kMebibyte
        );
    }
    return memory.value_or(0);
}

/// As the cluster calls this node.
std::string name_of_node(const Environment& environment) {
    const auto slurm = find(environment, "SLURMD_NODENAME");
    if (slurm && !slurm->empty()) {
        return std::string(*slurm);
    }
    std::array<char, 256> name{};
    if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') {
        return "localhost";
    }
    return name.data();
}

Error no_core_left(const CgroupLimits& limits) {
    return Error{
        ErrorCode::System,
        fmt::format(
            "no core is left for trials: the affinity mask of this process leaves none of the "
            "machine's{}; start muster without taskset, or with a mask inside it",
            limits.cpus ? " that its cgroup allows" : ""
        )};
}

}  // namespace

Result<NodeInventory> probe_node(const ProbeOptions& options) {
    const Environment environment =
        options.environment ? *options.environment : probe::own_environment();
    const CgroupLimits limits = read_cgroup_limits(options.root);
    const Result<SlurmShare> slurm = slurm_share(environment);
    if (!slurm) {
        return slurm.error();
    }
    const auto allowed = allowed_threads(options, environment, limits);
    if (!allowed) {
        return allowed.error();
    }
    Result<std::vector<Core>> cores =
        read_cores(options.synthetic_topology, options.cpu_unit, *allowed);
    if (!cores) {
        return cores.error();
    }
    if (cores->empty()) {
        return no_core_left(limits);
    }
    const std::vector<NvidiaGpu> gpus = list_nvidia_gpus(options.root);
    // Without a GPU the variable means nothing, however it is written.
    Result<std::vector<Device>> devices =
        gpus.empty() ? std::vector<Device>{} : visible_devices(device_mask(environment), gpus);
    if (!devices) {
        return devices.error();
    }
    NodeInventory node;
    node.name = options.name.empty() ? name_of_node(environment) : options.name;
    node.cpu = cpu_pool(cores->size(), limits, *slurm);
    node.cores = *std::move(cores);
    node.devices = *std::move(devices);
    node.memory_bytes = memory_of(options.root, limits, *slurm, node.cpu);
    return node;
}

std::vector<std::uint32_t> threads_for_trials(const ProbeOptions& options) {
    const Environment environment =
        options.environment ? *options.environment : probe::own_environment();
    if (mask_owner(environment) == MaskOwner::Process) {
        return {};
    }
    const auto allowed = allowed_threads(options, environment, read_cgroup_limits(options.root));
    if (allowed && *allowed) {
        return **allowed;
    }
    std::vector<std::uint32_t> all(static_cast<std::size_t>(std::max(get_nprocs_conf(), 1)));
    std::iota(all.begin(), all.end(), 0U);
    return all;
}

}  // namespace muster
