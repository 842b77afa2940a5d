// SPDX-License-Identifier: Apache-2.0
//
// muster - the command. Reads the arguments, starts the spawner while the process is still small
// when trials will run, and hands over.

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
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
#include "probe/probe.hpp"
#include "process/environment.hpp"
#include "process/spawner.hpp"
#include "runtime/run_dir.hpp"
#include "runtime/signals.hpp"
#include "transport/launcher.hpp"
#include "transport/mpi_world.hpp"

namespace {

/// This process's rank by what its launcher says; empty without one.
std::string_view own_rank() {
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK"}) {
        const char* rank = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
        if (rank != nullptr) {
            return rank;
        }
    }
    return {};
}

/// Leaves MPI as the ranks that are left allow.
int leave(std::unique_ptr<muster::MpiWorld> world, muster::CommandEnd end) {
    if (world != nullptr && world->rank() == 0) {
        muster::announce_exit_code(end.exit_code);
    }
    if (world != nullptr && end.lost_ranks) {
        muster::MpiWorld::leave_at_once(end.exit_code);
    }
    if (world != nullptr) {
        world->finalize(end.exit_code);
    }
    return end.exit_code;
}

/// Carries out a command that may have other ranks. What must not know of MPI (the process that
/// starts trials, the environment that they begin with) comes before it; so do signals, for its
/// threads must not get any.
template <class Command>
int run(const Command& command) {
    const muster::Result<muster::Launcher> launcher = muster::find_launcher(::environ);
    if (!launcher) {
        return muster::complain(launcher.error());
    }
    muster::Surroundings surroundings{.environment = muster::current_environment()};
    muster::Result<muster::RunDir> run_dir = muster::RunDir::make();
    if (!run_dir) {
        return muster::complain(run_dir.error());
    }
    muster::Result<muster::Spawner> spawner =
        muster::Spawner::start(run_dir->path(), muster::threads_for_trials());
    if (!spawner) {
        return muster::complain(spawner.error());
    }
    muster::Result<muster::SignalSource> signals = muster::SignalSource::open();
    if (!signals) {
        return muster::complain(signals.error());
    }
    surroundings.run_dir = &*run_dir;
    surroundings.spawner = &*spawner;
    surroundings.signals = &*signals;
    if (*launcher == muster::Launcher::None) {
        return muster::carry_out(command, surroundings).exit_code;
    }
    muster::Result<std::unique_ptr<muster::MpiWorld>> joined = muster::MpiWorld::join();
    if (!joined) {
        return muster::complain(joined.error());
    }
    std::unique_ptr<muster::MpiWorld> world = std::move(*joined);
    if (world->rank() == 0) {
        muster::announce_begin();
    }
    surroundings.transport = &world->transport();
    surroundings.recovery = muster::find_recovery(::environ);
    const muster::CommandEnd end = world->rank() == 0 ? muster::carry_out(command, surroundings)
                                                      : muster::serve(command.node, surroundings);
    // Who leaves at once destroys nothing, and the spawner may be gone that would remove it.
    { const muster::RunDir removed = std::move(*run_dir); }
    return leave(std::move(world), end);
}

/// One of several ranks, but not rank 0, of a command that all of them run: what is wrong with it
/// is said by rank 0 alone.
bool is_silent_rank(int argc, const char* const* argv) {
    const std::string_view command = argc > 1 ? argv[1] : "";
    if (command != "run" && command != "nodes") {
        return false;
    }
    return !own_rank().empty() && own_rank() != "0";
}

/// Reads the arguments; a rank whose words nobody wants has its output closed meanwhile.
muster::ParsedCommand parse(int argc, const char* const* argv) {
    if (!is_silent_rank(argc, argv)) {
        return muster::parse_command_line(argc, argv);
    }
    const std::array<int, 2> kept{::dup(STDOUT_FILENO), ::dup(STDERR_FILENO)};
    const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    ::dup2(null, STDOUT_FILENO);
    ::dup2(null, STDERR_FILENO);
    muster::ParsedCommand parsed = muster::parse_command_line(argc, argv);
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

int main(int argc, char** argv) {
    fill_standard_descriptors();
    // A reader that went away is an error of the write, not the end of the run.
    std::signal(SIGPIPE, SIG_IGN);
    const muster::ParsedCommand parsed = parse(argc, argv);
    const int exit_code = std::visit(
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
    if (own_rank() == "0") {
        muster::announce_exit_code(exit_code);
    }
    return exit_code;
}
