// SPDX-License-Identifier: Apache-2.0

#include "library/started.hpp"

#include <cstdlib>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "launch/exit_line.hpp"
#include "probe/probe.hpp"
#include "process/environment.hpp"

namespace muster {
namespace {

Result<TrialFunctions> functions_of(const Trainables& trainables) {
    TrialFunctions functions;
    std::set<std::string> names;
    for (const Trainable& trainable : trainables) {
        if (trainable.name.empty() || trainable.function == nullptr) {
            return Error{
                ErrorCode::InvalidInput,
                fmt::format(
                    "trainable {} ('{}') needs a name and a function",
                    functions.size() + 1,
                    trainable.name
                )};
        }
        if (!names.insert(trainable.name).second) {
            return Error{
                ErrorCode::InvalidInput,
                fmt::format(
                    "two trainables are called '{}'; give each a name of its own", trainable.name
                )};
        }
        functions.push_back({trainable.name, [function = trainable.function] {
                                 TrialContext context;
                                 function(context);
                             }});
    }
    return functions;
}

}  // namespace

std::string_view rank_by_launcher() {
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK"}) {
        const char* rank = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
        if (rank != nullptr) {
            return rank;
        }
    }
    return {};
}

Surroundings StartedProgram::surroundings() {
    return {
        .environment = environment,
        .run_dir = &*run_dir,
        .spawner = &*spawner,
        .signals = signals ? &*signals : nullptr,
        .transport = world ? &world->transport() : nullptr,
        .recovery = recovery,
        .functions = functions};
}

Result<std::unique_ptr<StartedProgram>> start(const Trainables& trainables) {
    const Result<Launcher> launcher = find_launcher(::environ);
    if (!launcher.ok()) {
        return launcher.error();
    }
    const Result<TrialFunctions> functions = functions_of(trainables);
    if (!functions.ok()) {
        return functions.error();
    }
    auto started = std::make_unique<StartedProgram>();
    started->environment = current_environment();
    for (const TrialFunction& function : *functions) {
        started->functions.push_back(function.name);
    }
    Result<RunDir> run_dir = RunDir::make();
    if (!run_dir.ok()) {
        return run_dir.error();
    }
    started->run_dir.emplace(std::move(*run_dir));
    Result<Spawner> spawner =
        Spawner::start(started->run_dir->path(), threads_for_trials(), *functions);
    if (!spawner.ok()) {
        return spawner.error();
    }
    started->spawner.emplace(std::move(*spawner));
    Result<SignalSource> signals = SignalSource::open();
    if (!signals.ok()) {
        return signals.error();
    }
    started->signals.emplace(std::move(*signals));
    if (*launcher == Launcher::None) {
        return started;
    }
    Result<std::unique_ptr<MpiWorld>> joined = MpiWorld::join();
    if (!joined.ok()) {
        return joined.error();
    }
    started->world = std::move(*joined);
    if (started->world->rank() == 0) {
        announce_begin();
        started->recovery = find_recovery(::environ);
    }
    return started;
}

int leave(StartedProgram& started, CommandEnd end) {
    std::unique_ptr<MpiWorld> world = std::move(started.world);
    // Who leaves at once destroys nothing, and the spawner may be gone that would remove it.
    started.run_dir.reset();
    if (world != nullptr && world->rank() == 0) {
        announce_exit_code(end.exit_code);
    }
    if (world != nullptr && end.lost_ranks) {
        MpiWorld::leave_at_once(end.exit_code);
    }
    if (world != nullptr) {
        world->finalize(end.exit_code);
    }
    return end.exit_code;
}

}  // namespace muster
