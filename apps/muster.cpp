// SPDX-License-Identifier: Apache-2.0
//
// muster - the command. Reads the arguments, starts the spawner while the process is still small
// when trials will run, and hands over.

#include <csignal>
#include <type_traits>
#include <variant>

#include <fcntl.h>
#include <unistd.h>

#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "process/spawner.hpp"
#include "runtime/signals.hpp"

namespace {

/// Carries out a command that may have other ranks.
template <class Command>
int run(const Command& command) {
    muster::Result<muster::Spawner> spawner = muster::Spawner::start();
    if (!spawner) {
        return muster::complain(spawner.error());
    }
    muster::Result<muster::SignalSource> signals = muster::SignalSource::open();
    if (!signals) {
        return muster::complain(signals.error());
    }
    muster::Surroundings surroundings{.spawner = &*spawner, .signals = &*signals};
    return muster::carry_out(command, surroundings).exit_code;
}

/// Where standard input, output or errors are closed, the next socket or file would get their
/// number and everything that is printed.
void fill_standard_descriptors() {
    int fd = 0;
    do {
        fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    } while (fd >= STDIN_FILENO && fd <= STDERR_FILENO);
    ::close(fd);
}

}  // namespace

int main(int argc, char** argv) {
    fill_standard_descriptors();
    // A reader that went away is an error of the write, not the end of the run.
    std::signal(SIGPIPE, SIG_IGN);
    const muster::ParsedCommand parsed = muster::parse_command_line(argc, argv);
    return std::visit(
        [](const auto& command) -> int {
            using Command = std::decay_t<decltype(command)>;
            constexpr bool kHasRanks = std::is_same_v<Command, muster::RunCommand> ||
                                       std::is_same_v<Command, muster::NodesCommand>;
            if constexpr (kHasRanks) {
                return run(command);
            } else if constexpr (std::is_same_v<Command, muster::PrintedCommand>) {
                return command.exit_code;
            } else {
                return muster::carry_out(command);
            }
        },
        parsed
    );
}
