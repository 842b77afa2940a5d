// SPDX-License-Identifier: Apache-2.0
//
// launch_command - `muster launch`: mpirun or srun with what a run needs to survive its nodes.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/commands.hpp"
#include "launch/launch_line.hpp"
#include "launch/launcher_process.hpp"
#include "model/placeholder.hpp"
#include "process/environment.hpp"
#include "slurm/job.hpp"
#include "slurm/requeue.hpp"

namespace muster {
namespace {

/// For a controller that is away. Slurm ends the job's script when its time is over.
constexpr std::chrono::seconds kRequeuePatience{120};

std::string variable(const char* name) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
    return value == nullptr ? "" : value;
}

std::vector<std::string> split_words(const std::string& text) {
    std::istringstream words(text);
    return {std::istream_iterator<std::string>(words), std::istream_iterator<std::string>()};
}

bool is_number(const std::string& text) {
    return !text.empty() && text.size() < 10 &&
           text.find_first_not_of("0123456789") == std::string::npos;
}

/// How many nodes a Slurm job has now; 0 when nobody says. Its environment still counts those that
/// it has lost, and srun would wait for them.
std::uint32_t nodes_left(const std::string& job) {
    if (!is_number(job)) {
        return 0;
    }
    // A controller that does not answer keeps squeue waiting for minutes.
    const std::string command =
        fmt::format("timeout 10 squeue --noheader --jobs={} --format=%D 2>/dev/null", job);
    std::FILE* output = ::popen(command.c_str(), "r");  // NOLINT(cert-env33-c)
    if (output == nullptr) {
        return 0;
    }
    std::array<char, 64> text{};
    const std::size_t size = std::fread(text.data(), 1, text.size(), output);
    if (::pclose(output) != 0) {
        return 0;
    }
    // A job of several parts has several lines.
    const std::vector<std::string> words = split_words({text.data(), size});
    return words.size() == 1 && is_number(words.front())
               ? static_cast<std::uint32_t>(std::stoul(words.front()))
               : 0;
}

LaunchPlace place_here() {
    LaunchPlace place;
    const std::string job = variable("SLURM_JOB_ID");
    place.in_slurm_job = !job.empty();
    place.slurm_nodes = nodes_left(job);
    for (const char* name : {"SLURM_JOB_NUM_NODES", "SLURM_NNODES"}) {
        const std::string nodes = variable(name);
        if (place.slurm_nodes == 0 && is_number(nodes)) {
            place.slurm_nodes = static_cast<std::uint32_t>(std::stoul(nodes));
        }
    }
    place.slurm_nodes = std::max<std::uint32_t>(place.slurm_nodes, 1);
    place.slurm_gpus_by_job = !variable("SLURM_GPUS").empty();
    return place;
}

/// The hosts of both forms, which are looked up before anything is started.
Result<std::vector<std::string>> hosts_of(const LaunchOptions& options) {
    if (options.hostfile.empty()) {
        return options.hosts;
    }
    std::ifstream file(options.hostfile);
    if (!file) {
        return Error{
            ErrorCode::NotFound, fmt::format("--hostfile: cannot read {}", options.hostfile)};
    }
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    return parse_hostfile(text, options.hostfile);
}

Status check_root(const std::string& launcher) {
    const bool allowed = variable("OMPI_ALLOW_RUN_AS_ROOT") == "1" &&
                         variable("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM") == "1";
    if (launcher != "mpirun" || ::geteuid() != 0 || allowed) {
        return Ok{};
    }
    return Error{
        ErrorCode::InvalidInput,
        "Open MPI's mpirun does not run as root unless it is told to twice: export "
        "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1, or use another user"};
}

Result<std::vector<std::string>> line_of(const LaunchCommand& command) {
    LaunchOptions options = command.options;
    options.more = split_words(command.more);
    if (options.program.empty()) {
        std::error_code failed;
        options.program = std::filesystem::read_symlink("/proc/self/exe", failed).string();
    }
    if (options.hosts.empty()) {
        Result<std::vector<std::string>> hosts = hosts_of(options);
        if (!hosts) {
            return hosts.error();
        }
        options.hosts = std::move(*hosts);
        options.hostfile.clear();
    }
    Result<std::vector<std::string>> line = launch_line(options, place_here());
    // An agent of one's own may know names that this host does not.
    if (line && options.agent.empty()) {
        if (const Status found = look_up(options.hosts); !found) {
            return found.error();
        }
    }
    return line;
}

/// So that the job's next incarnation goes on by itself. Slurm then ends this one; its exit code is
/// that of the run in any case.
void put_back(std::uint32_t most) {
    const std::optional<SlurmJob> job = slurm_job_of(current_environment());
    const RequeueEnd end = job ? requeue(*job, most, kRequeuePatience)
                               : RequeueEnd{false, "--max-requeues is for Slurm jobs"};
    if (!end.text.empty()) {
        std::fputs(fmt::format("muster: {}\n", end.text).c_str(), stderr);
    }
}

}  // namespace

int carry_out(const LaunchCommand& command) {
    const Result<std::vector<std::string>> line = line_of(command);
    if (!line) {
        return complain(line.error());
    }
    if (command.dry_run) {
        std::string text;
        for (const std::string& word : *line) {
            text += (text.empty() ? "" : " ") + shell_quoted(word);
        }
        print(text + "\n");
        return kExitOk;
    }
    if (const Status allowed = check_root(line->front()); !allowed) {
        return complain(allowed.error());
    }
    if (command.max_requeues > 0) {
        // One thread, before anything reads it.
        const std::string most = std::to_string(command.max_requeues);
        ::setenv(kMaxRequeues.data(), most.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    }
    const Result<int> exit_code = run_launcher(*line, token_for_launch(), command.start_timeout);
    if (!exit_code) {
        return complain(exit_code.error());
    }
    if (*exit_code == kExitContinue && command.max_requeues > 0) {
        put_back(command.max_requeues);
    }
    return *exit_code;
}

}  // namespace muster
