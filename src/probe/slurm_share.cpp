// SPDX-License-Identifier: Apache-2.0

#include "probe/slurm_share.hpp"

#include <array>

#include <fmt/format.h>

#include "probe/text.hpp"

namespace muster {
namespace {

using probe::Environment;
using probe::find;

/// A positive whole number in a variable.
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

bool is_job_step(const Environment& environment) {
    return find(environment, "SLURM_JOB_ID") &&
           (find(environment, "SLURM_STEP_ID") || find(environment, "SLURM_STEPID"));
}

}  // namespace

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

std::optional<std::string_view> device_mask(const Environment& environment) {
    const auto mask = find(environment, "CUDA_VISIBLE_DEVICES");
    if (!is_job_step(environment)) {
        return mask;
    }
    const auto of_step = find(environment, "SLURM_STEP_GPUS");
    if (of_step && !of_step->empty()) {
        return mask ? mask : of_step;
    }
    const bool has_some = find(environment, "SLURM_GPUS_ON_NODE").value_or("0") != "0";
    const bool job_has_some = find(environment, "SLURM_JOB_GPUS").has_value();
    // Where the job has none at all, GPUs are not Slurm's business.
    return has_some || !job_has_some ? mask : std::string_view();
}

}  // namespace muster
