// SPDX-License-Identifier: Apache-2.0
//
// node_commands - `muster env`, `muster version`: what is here.

#include <filesystem>

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/text_table.hpp"
#include "process/environment.hpp"

namespace muster {
namespace {

/// The folder of this program, which trials get on their PATH.
std::string program_directory() {
    std::error_code failed;
    const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", failed);
    return failed ? "" : self.parent_path().string();
}

std::string shown(const std::optional<std::string>& value) {
    return value ? fit(*value, 60) : "(not set)";
}

}  // namespace

int carry_out(const EnvCommand& command) {
    const EnvironmentList environment = current_environment();
    const EnvironmentOptions options{
        .keep = command.keep, .drop = command.drop, .muster_directory = program_directory()};
    if (!command.diff) {
        for (const std::string& entry : trial_base_environment(environment, options)) {
            print(entry + "\n");
        }
        return kExitOk;
    }
    TextTable table({"variable", "here", "in a trial", "why"});
    const std::vector<EnvironmentChange> changes = environment_changes(environment, options);
    for (const EnvironmentChange& change : changes) {
        table.add_row({change.name, shown(change.was), shown(change.becomes), change.why});
    }
    print(changes.empty() ? "a trial starts from the environment as it is here\n" : table.text());
    print(
        "besides, every trial gets its own MUSTER_* variables, CUDA_VISIBLE_DEVICES and "
        "OMP_NUM_THREADS\n"
    );
    return kExitOk;
}

int carry_out(const VersionCommand& command) {
    static_cast<void>(command);
    print(fmt::format(
        "muster {}\nbuilt with {}; one machine, no MPI in this version\n",
        MUSTER_VERSION,
        MUSTER_COMPILER
    ));
    return kExitOk;
}

}  // namespace muster
