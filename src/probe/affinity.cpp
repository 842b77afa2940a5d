// SPDX-License-Identifier: Apache-2.0

#include "probe/affinity.hpp"

#include <cerrno>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <sched.h>

#include "probe/text.hpp"

namespace muster {
namespace {

/// The value behind "Name:" in a status file of /proc.
std::string_view field(std::string_view status, std::string_view name) {
    for (const std::string_view line : probe::split(status, '\n')) {
        const std::size_t colon = line.find(':');
        if (colon != std::string_view::npos && line.substr(0, colon) == name) {
            return probe::trim(line.substr(colon + 1));
        }
    }
    return {};
}

bool is_rank(std::string_view environment) {
    for (const std::string_view entry : probe::split(environment, '\0')) {
        const std::string_view name = entry.substr(0, entry.find('='));
        if (name == "OMPI_COMM_WORLD_RANK" || name == "PMIX_RANK" || name == "PMI_RANK") {
            return true;
        }
    }
    return false;
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

}  // namespace

MaskOwner mask_owner(const probe::Environment& environment) {
    const auto is_set = [&](const char* name) {
        return probe::find(environment, name).has_value();
    };
    if (is_set("OMPI_COMM_WORLD_RANK")) {
        return MaskOwner::Launcher;
    }
    if (is_set("SLURM_STEP_ID")) {
        const auto type = probe::find(environment, "SLURM_CPU_BIND_TYPE").value_or("none");
        return type.substr(0, 4) == "none" ? MaskOwner::Process : MaskOwner::Nobody;
    }
    return is_set("PMIX_RANK") || is_set("PMI_RANK") ? MaskOwner::Launcher : MaskOwner::Process;
}

std::optional<std::vector<std::uint32_t>> launcher_affinity(const std::string& root) {
    // A script or two may stand between a launcher and its rank, a thousand do not.
    constexpr int kMostAncestors = 64;
    std::optional<std::string> status = probe::read_small_file(root + "/proc/self/status");
    for (int count = 0; status && count < kMostAncestors; ++count) {
        const std::string parent =
            fmt::format("{}/proc/{}", root, probe::parse_whole(field(*status, "PPid")).value_or(0));
        status = probe::read_small_file(parent + "/status");
        // Another user's process shows no environment, and is no rank of this user's.
        if (status && !is_rank(probe::read_small_file(parent + "/environ").value_or(""))) {
            return probe::parse_cpu_list(field(*status, "Cpus_allowed_list"));
        }
    }
    return std::nullopt;
}

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

}  // namespace muster
