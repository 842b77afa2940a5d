// SPDX-License-Identifier: Apache-2.0

#include "transport/launcher.hpp"

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace muster {
namespace {

std::optional<std::string_view> find(const char* const* environment, std::string_view name) {
    for (; environment != nullptr && *environment != nullptr; ++environment) {
        const std::string_view entry = *environment;
        if (entry.size() > name.size() && entry.substr(0, name.size()) == name &&
            entry[name.size()] == '=') {
            return entry.substr(name.size() + 1);
        }
    }
    return std::nullopt;
}

/// 0 when it is not there or no number.
std::uint32_t find_number(const char* const* environment, std::string_view name) {
    const std::string_view text = find(environment, name).value_or("");
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() ? number : 0;
}

}  // namespace

Result<Launcher> find_launcher(const char* const* environment) {
    if (find(environment, "OMPI_COMM_WORLD_SIZE")) {
        return Launcher::Mpirun;
    }
    if (find(environment, "PMIX_NAMESPACE") && find(environment, "PMIX_RANK")) {
        return Launcher::Pmix;
    }
    // An interactive shell is a step of one task; a batch script is no step.
    const std::uint32_t tasks = find_number(environment, "SLURM_STEP_NUM_TASKS");
    if (find(environment, "SLURM_STEP_ID") && tasks > 1) {
        return Error{
            ErrorCode::NotSupported,
            fmt::format(
                "srun started {} tasks without PMIx, so that they can't find each other and each "
                "would run the whole experiment: add --mpi=pmix to srun, use mpirun, or start one "
                "task",
                tasks
            )};
    }
    // MPICH's mpiexec and its relatives.
    const std::uint32_t ranks = find_number(environment, "PMI_SIZE");
    if (find(environment, "PMI_RANK") && ranks > 1) {
        return Error{
            ErrorCode::NotSupported,
            fmt::format(
                "the launcher of another MPI (PMI_SIZE is {}) started this process, and each of "
                "its {} copies would run the whole experiment: use Open MPI's mpirun, or srun "
                "--mpi=pmix",
                ranks,
                ranks
            )};
    }
    return Launcher::None;
}

Recovery find_recovery(const char* const* environment) {
    if (!find(environment, "OMPI_COMM_WORLD_SIZE")) {
        return Recovery::Unknown;
    }
    const std::string_view value = find(environment, "OMPI_MCA_orte_enable_recovery").value_or("0");
    const bool on = value == "1" || value == "true" || value == "yes" || value == "enabled";
    return on ? Recovery::On : Recovery::Off;
}

}  // namespace muster
