// SPDX-License-Identifier: Apache-2.0
//
// simulation - a whole cluster in one thread and in virtual time: the real head, the real agents,
// the real codec and searcher; simulated messages, disk, processes and faults.
//
// One queue holds everything that will happen, ordered by time and, at the same time, by the order
// in which it was put there. All chance comes from the scenario's seed, so the same scenario gives
// the same run, event for event.

#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/random.hpp"
#include "base/time.hpp"
#include "head/head.hpp"
#include "search/searcher.hpp"
#include "sim/invariants.hpp"
#include "sim/scenario.hpp"
#include "sim/simulated_journal.hpp"
#include "sim/simulated_node.hpp"

namespace muster {

/// A fact and when it came to be.
struct TimedFact {
    TimePoint at;
    Fact fact;
};

struct SimulationResult {
    /// The promise that was broken and how; nothing when all were kept.
    std::optional<std::string> violation;
    /// Why the searcher could give no further config; nothing when it could.
    std::optional<Error> search_error;
    /// The last events, in words, when the scenario asked for them.
    std::vector<std::string> log;
    std::uint64_t events = 0;
    /// Runs that it took: one, and one more for each time that the head was replaced.
    std::uint32_t runs = 0;
    /// Runs that were still there when their time ended.
    std::uint32_t ran_into_end = 0;
    TimePoint end;
    /// How often each kind of fault found something to strike.
    std::map<FaultKind, std::uint32_t> struck;
    /// How the last run ended.
    std::optional<Leave> leave;
    /// Every fact of every head, whether or not it reached the disk.
    std::vector<TimedFact> facts;
};

class Simulation {
  public:
    /// REQUIRES: the scenario's space can be sampled.
    explicit Simulation(Scenario scenario);
    ~Simulation();
    Simulation(const Simulation&) = delete;
    Simulation& operator=(const Simulation&) = delete;

    /// Runs the experiment to its end, or to the first broken promise. Once.
    SimulationResult run();

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// simulate(random_scenario(seed)), with words for the last events when a promise was broken.
SimulationResult simulate_seed(std::uint64_t seed);

}  // namespace muster
