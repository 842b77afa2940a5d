// SPDX-License-Identifier: Apache-2.0
//
// probe - puts together what the machine has and what everybody else has already limited.

#include "probe/probe.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include "probe/cgroup.hpp"
#include "probe/device_mask.hpp"
#include "probe/nvidia.hpp"
#include "probe/text.hpp"
#include "probe/topology.hpp"

// Declared by POSIX, in no header.
extern char** environ;

namespace muster {
namespace {

constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;

using Environment = std::vector<EnvironmentVariable>;

Environment own_environment() {
    Environment environment;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view text(*entry);
        const std::size_t equals = text.find('=');
        if (equals != std::string_view::npos) {
            environment.push_back(
                {.name = std::string(text.substr(0, equals)),
                 .value = std::string(text.substr(equals + 1))}
            );
        }
    }
    return environment;
}

std::optional<std::string_view> find(const Environment& environment, std::string_view name) {
    for (const EnvironmentVariable& variable : environment) {
        if (variable.name == name) {
            return variable.value;
        }
    }
    return std::nullopt;
}

/// A positive whole number in a variable; nothing when it is unset or 0, Slurm's word for "all".
Result<std::optional<std::int64_t>>
find_count(const Environment& environment, std::string_view name) {
    const auto text = find(environment, name);
    if (!text) {
        return std::optional<std::int64_t>{};
    }
    constexpr std::int64_t kHighest = std::int64_t{1} << 40;
    const auto count = probe::parse_whole(*text);
    if (!count || *count < 0 || *count > kHighest) {
        return Error{
            ErrorCode::InvalidInput,
            fmt::format("{}=\"{}\": Slurm sets it to a whole number", name, *text)};
    }
    return *count == 0 ? std::optional<std::int64_t>{} : count;
}

/// What Slurm gave the job on this node; nothing outside a job.
struct SlurmShare {
    std::optional<std::int64_t> cpus;
    std::optional<std::int64_t> memory_per_node_mib;
    std::optional<std::int64_t> memory_per_cpu_mib;
};

Result<SlurmShare> slurm_share(const Environment& environment) {
    SlurmShare share;
    if (!find(environment, "SLURM_JOB_ID")) {
        return share;
    }
    struct Wanted {
        const char* name;
        std::optional<std::int64_t>* into;
    };
    const std::array<Wanted, 3> all{
        Wanted{"SLURM_CPUS_ON_NODE", &share.cpus},
        Wanted{"SLURM_MEM_PER_NODE", &share.memory_per_node_mib},
        Wanted{"SLURM_MEM_PER_CPU", &share.memory_per_cpu_mib}};
    for (const Wanted& wanted : all) {
        const auto count = find_count(environment, wanted.name);
        if (!count) {
            return count.error();
        }
        *wanted.into = *count;
    }
    return share;
}

/// Whether a launcher may have bound this very process: its mask then is that of one rank among
/// several and says nothing about what the node's trials may use.
bool bound_by_launcher(const Environment& environment) {
    for (const char* rank : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
        if (find(environment, rank)) {
            return true;
        }
    }
    const auto binding = find(environment, "SLURM_CPU_BIND_TYPE");
    return binding && !binding->empty() && binding->substr(0, 4) != "none";
}

std::vector<std::uint32_t> members_of(const std::vector<cpu_set_t>& sets) {
    const std::size_t bytes = sets.size() * sizeof(cpu_set_t);
    std::vector<std::uint32_t> threads;
    for (std::size_t thread = 0; thread < bytes * 8; ++thread) {
        if (CPU_ISSET_S(thread, bytes, sets.data())) {
            threads.push_back(static_cast<std::uint32_t>(thread));
        }
    }
    return threads;
}

/// The process's mask, ascending.
Result<std::vector<std::uint32_t>> own_affinity() {
    // The kernel refuses a mask that is smaller than its own, which nobody can ask it for.
    constexpr std::size_t kMost = 65'536;
    for (std::size_t count = CPU_SETSIZE; count <= kMost; count *= 2) {
        std::vector<cpu_set_t> sets(count / CPU_SETSIZE);
        if (sched_getaffinity(0, sets.size() * sizeof(cpu_set_t), sets.data()) == 0) {
            return members_of(sets);
        }
        if (errno != EINVAL) {
            break;
        }
    }
    return Error{
        ErrorCode::System, "sched_getaffinity failed: " + std::generic_category().message(errno)};
}

/// The hardware threads that trials may use; nothing when all of them may be.
Result<std::optional<std::vector<std::uint32_t>>> allowed_threads(
    const ProbeOptions& options,
    const Environment& environment,
    const CgroupLimits& limits
) {
    std::optional<std::vector<std::uint32_t>> allowed = limits.cpus;
    if (bound_by_launcher(environment)) {
        return allowed;
    }
    std::optional<std::vector<std::uint32_t>> mask = options.affinity;
    if (!mask && options.synthetic_topology.empty()) {
        Result<std::vector<std::uint32_t>> own = own_affinity();
        if (!own) {
            return own.error();
        }
        mask = *std::move(own);
    }
    if (mask) {
        std::sort(mask->begin(), mask->end());
        allowed = allowed ? probe::intersection(*allowed, *mask) : std::move(mask);
    }
    return allowed;
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

std::string host_name() {
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
    const Environment environment = options.environment ? *options.environment : own_environment();
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
        gpus.empty() ? std::vector<Device>{}
                     : visible_devices(find(environment, "CUDA_VISIBLE_DEVICES"), gpus);
    if (!devices) {
        return devices.error();
    }
    NodeInventory node;
    node.name = options.name.empty() ? host_name() : options.name;
    node.cpu = cpu_pool(cores->size(), limits, *slurm);
    node.cores = *std::move(cores);
    node.devices = *std::move(devices);
    node.memory_bytes = memory_of(options.root, limits, *slurm, node.cpu);
    return node;
}

}  // namespace muster
