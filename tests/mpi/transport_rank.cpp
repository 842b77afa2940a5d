// SPDX-License-Identifier: Apache-2.0
//
// One rank of mpirun that plays the transport's suite. mpirun's exit code says nothing once a rank
// has died, so what counts is the last line of rank 0: "played: NAMES".
//
//   transport_rank all | SCENARIO

#include <csignal>
#include <cstdio>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "support/transport_suite.hpp"
#include "transport/launcher.hpp"
#include "transport/mpi_world.hpp"

namespace muster {
namespace {

constexpr int kFailed = 1;

/// Rank 0 ends the others by their pids: all run on one machine.
class Pids {
  public:
    void exchange(Rank& rank) {
        if (rank.number() == 0) {
            for (const std::uint32_t other : rank.others()) {
                pids_[other] = std::stoi(rank.next(other, Lane::Control).bytes);
            }
        } else {
            rank.send(0, Lane::Control, std::to_string(::getpid()));
        }
        pids_[rank.number()] = ::getpid();
        rank.meet();
    }

    void kill(std::uint32_t rank) const { ::kill(pids_.at(rank), SIGKILL); }

  private:
    std::map<std::uint32_t, pid_t> pids_;
};

/// The names of what was played.
std::string play(Rank& rank, std::string_view name) {
    std::string played;
    for (const Scenario& scenario : transport_scenarios()) {
        const bool chosen = name == "all" ? !scenario.lethal : name == scenario.name;
        if (!chosen) {
            continue;
        }
        const std::string problem = rank.play(scenario);
        if (!problem.empty()) {
            std::cerr << "failed: " << problem << std::endl;
            MpiWorld::leave_at_once(kFailed);
        }
        played += " " + scenario.name;
    }
    return played;
}

int run(std::string_view name) {
    const Result<Launcher> launcher = find_launcher(::environ);
    if (!launcher.ok() || *launcher == Launcher::None) {
        std::cerr << "failed: no launcher\n";
        return kFailed;
    }
    Result<std::unique_ptr<MpiWorld>> world = MpiWorld::join();
    if (!world.ok()) {
        std::cerr << "failed: " << world.error().message << "\n";
        return kFailed;
    }
    Pids pids;
    Rank rank(
        (*world)->transport(),
        {[&](std::uint32_t victim) { pids.kill(victim); },
         [] { ::raise(SIGSTOP); },
         [] { return false; }}
    );
    pids.exchange(rank);
    const std::string played = play(rank, name);
    if (rank.number() == 0) {
        std::cout << "played:" << played << std::endl;
    }
    if (name != "all") {
        MpiWorld::leave_at_once(0);
    }
    if (!rank.broken().empty()) {
        std::cerr << "failed: " << rank.broken().front().why << std::endl;
    }
    (*world)->finalize(kFailed);
    return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
    return muster::run(argc > 1 ? argv[1] : "all");
}
