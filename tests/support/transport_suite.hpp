// SPDX-License-Identifier: Apache-2.0
//
// transport_suite - what every form of Transport must do, written once. Each scenario is run by all
// ranks at the same time, each with its own end, as threads of one process or as ranks of mpirun.

#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "transport/transport.hpp"

namespace muster {

struct Scenario;

/// One rank's part: its transport, and a loop around it as runtime/ has it. What goes wrong is
/// thrown as std::runtime_error.
class Rank {
  public:
    /// How the processes of a form are ended and held up.
    struct Powers {
        /// Ends the process of a rank; returns at once.
        std::function<void(std::uint32_t rank)> kill;
        /// The calling rank does nothing more until it is killed.
        std::function<void()> play_dead;
        /// The calling rank was killed: its thread is to end.
        std::function<bool()> is_dead;
    };

    Rank(Transport& transport, Powers powers) : transport_(transport), powers_(std::move(powers)) {}

    std::uint32_t number() const { return transport_.rank(); }
    std::uint32_t size() const { return transport_.size(); }
    std::vector<std::uint32_t> others() const;
    Transport& transport() { return transport_; }
    const Powers& powers() const { return powers_; }

    void send(std::uint32_t to, Lane lane, std::string message);

    /// Takes in what has come, then waits for more, for at most `longest`.
    void turn(bool with_bulk = true, Duration longest = std::chrono::milliseconds{20});
    /// Turns until `condition` holds; throws with `what` when that takes too long.
    void turn_until(const std::string& what, const std::function<bool()>& condition);
    /// As it, without taking bulk.
    void turn_without_bulk_until(const std::string& what, const std::function<bool()>& condition);

    /// The next message of that rank and lane. REQUIRES nothing of other lanes and ranks.
    ReceivedMessage next(std::uint32_t from, Lane lane, bool with_bulk = true);
    /// Those that came in and were not taken by next().
    std::size_t waiting(std::uint32_t from, Lane lane) const;
    /// Every pair that was told broken.
    const std::vector<BrokenPair>& broken() const { return broken_; }
    bool is_broken(std::uint32_t rank) const;

    /// Waits until all of `ranks` (all but those lost) have come here, taking bulk or not.
    void meet(bool with_bulk = true);
    /// Takes part in the scenario; after one that is not lethal all meet. Returns what went wrong,
    /// or nothing.
    std::string play(const Scenario& scenario);

  private:
    using Key = std::pair<std::uint32_t, Lane>;

    void
    turn_until(const std::string& what, const std::function<bool()>& condition, bool with_bulk);

    Transport& transport_;
    Powers powers_;
    std::map<Key, std::deque<ReceivedMessage>> inbox_;
    std::map<std::uint32_t, std::uint64_t> met_;
    std::uint64_t meetings_ = 0;
    std::vector<BrokenPair> broken_;
};

struct Scenario {
    std::string name;
    void (*run)(Rank& rank) = nullptr;
    /// Ranks die in it: nothing can follow.
    bool lethal = false;
    std::uint32_t fewest_ranks = 1;
};

const std::vector<Scenario>& transport_scenarios();

}  // namespace muster
