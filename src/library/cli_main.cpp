// SPDX-License-Identifier: Apache-2.0
//
// cli_main - the command `muster`, and every program that is one: reads the arguments, starts the
// spawner while the process is still small when trials will run, and hands over.

#include "muster/cli_main.hpp"

#include <array>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include <fcntl.h>
#include <unistd.h>

#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "launch/exit_line.hpp"
#include "library/started.hpp"

namespace muster {
namespace {

/// Carries out a command that may have other ranks.
template <class Command>
int run(const Command& command, const Trainables& trainables) {
    Result<std::unique_ptr<StartedProgram>> started = start(trainables);
    if (!started.ok()) {
        return complain(started.error());
    }
    const Surroundings surroundings = (*started)->surroundings();
    const bool serves = surroundings.transport != nullptr && surroundings.transport->rank() != 0;
    const CommandEnd end =
        serves ? serve(command.node, surroundings) : carry_out(command, surroundings);
    return leave(**started, end);
}

/// One of several ranks, but not rank 0, of a command that all of them run: what is wrong with it
/// is said by rank 0 alone.
bool is_silent_rank(int argc, const char* const* argv) {
    const std::string_view command = argc > 1 ? argv[1] : "";
    if (command != "run" && command != "nodes") {
        return false;
    }
    return !rank_by_launcher().empty() && rank_by_launcher() != "0";
}

/// Reads the arguments; a rank whose words nobody wants has its output closed meanwhile.
ParsedCommand parse(int argc, const char* const* argv) {
    if (!is_silent_rank(argc, argv)) {
        return parse_command_line(argc, argv);
    }
    const std::array<int, 2> kept{::dup(STDOUT_FILENO), ::dup(STDERR_FILENO)};
    const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    ::dup2(null, STDOUT_FILENO);
    ::dup2(null, STDERR_FILENO);
    ParsedCommand parsed = parse_command_line(argc, argv);
    std::fflush(stdout);
    ::dup2(kept[0], STDOUT_FILENO);
    ::dup2(kept[1], STDERR_FILENO);
    for (const int fd : {kept[0], kept[1], null}) {
        ::close(fd);
    }
    return parsed;
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

int cli_main(int argc, char** argv, Trainables trainables) {
    fill_standard_descriptors();
    // A reader that went away is an error of the write, not the end of the run.
    std::signal(SIGPIPE, SIG_IGN);
    const ParsedCommand parsed = parse(argc, argv);
    const int exit_code = std::visit(
        [&trainables](const auto& command) -> int {
            using Asked = std::decay_t<decltype(command)>;
            constexpr bool kHasRanks =
                std::is_same_v<Asked, RunCommand> || std::is_same_v<Asked, NodesCommand>;
            if constexpr (kHasRanks) {
                return run(command, trainables);
            } else if constexpr (std::is_same_v<Asked, PrintedCommand>) {
                return command.exit_code;
            } else {
                return carry_out(command);
            }
        },
        parsed
    );
    if (rank_by_launcher() == "0") {
        announce_exit_code(exit_code);
    }
    return exit_code;
}

}  // namespace muster
