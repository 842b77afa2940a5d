// SPDX-License-Identifier: Apache-2.0
//
// simulation - the queue, and one event after the other until the experiment has ended.

#include "sim/simulation.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "sim/simulation_state.hpp"

namespace muster {
namespace {

constexpr std::size_t kLogLength = 3000;
constexpr std::uint32_t kMostRuns = 200;
constexpr std::uint64_t kMostEvents = 3'000'000;

/// For a heap whose first is the earliest.
bool is_later(const QueuedEvent& left, const QueuedEvent& right) {
    return std::pair(left.at, left.sequence) > std::pair(right.at, right.sequence);
}

/// After this the head knows that a node does not hear it: by silence, or since an agent that never
/// got its Setup has left.
Duration longest_silence(const Scenario& scenario) {
    const bool has_lease = scenario.lease > Duration{0};
    return scenario.options.lease + (has_lease ? scenario.rejoin : Duration{0});
}

}  // namespace

Simulation::State::State(Scenario what)
    : scenario(std::move(what)),
      watched(!scenario.expected.empty()),
      random(RandomStream::derive(scenario.seed, "simulation")),
      watch(scenario.spec, longest_silence(scenario), scenario.options.start_timeout) {
    for (std::size_t index = 0; index < scenario.nodes.size(); ++index) {
        places.emplace_back(SimulatedNode(
            scenario.nodes[index],
            {.run_dir = "/run/muster",
             .socket_path = "/run/muster/socket",
             .heartbeat = scenario.options.lease / 12,
             .lease = scenario.lease,
             .rejoin = scenario.rejoin,
             .reports_per_second = scenario.reports_per_second},
            scenario.process_delay,
            storage,
            RandomStream::derive(scenario.seed, "node", index)
        ));
    }
}

void Simulation::State::push(TimePoint at, SimulationEvent event) {
    heap.push_back({std::max(at, now), next_sequence++, std::move(event)});
    std::push_heap(heap.begin(), heap.end(), is_later);
}

Duration Simulation::State::draw(DurationRange range) {
    const auto width = static_cast<std::uint64_t>((range.to - range.from).count());
    return width == 0 ? range.from
                      : range.from + Duration{static_cast<std::int64_t>(random.below(width + 1))};
}

void Simulation::State::remember(const std::string& text) {
    log.push_back(fmt::format("{:>12.6f}s  {}", seconds(now.since_start), text));
    if (log.size() > kLogLength) {
        log.pop_front();
    }
}

void Simulation::State::run_one() {
    std::pop_heap(heap.begin(), heap.end(), is_later);
    QueuedEvent item = std::move(heap.back());
    heap.pop_back();
    now = item.at;
    if (const TimePoint until = held_up_until(item.event); until > now) {
        push(until, std::move(item.event));
        return;
    }
    ++result.events;
    if (scenario.keep_log) {
        remember(to_text(item.event));
    }
    std::visit([&](auto& event) { on(event); }, item.event);
    strike();
    check_promises();
}

void Simulation::State::check_promises() {
    // Between two steps of the head only time goes on.
    const bool is_due = head_stepped || result.events % 16 == 0;
    head_stepped = false;
    if (!watched || !side || !is_due || head_stands_still()) {
        return;
    }
    std::vector<CountedNode> nodes;
    for (const auto& [id, life] : side->counted) {
        const NodeSide& which = place(id);
        if (which.life == life && which.node.is_up()) {
            nodes.push_back({id, &which.node, node_now(which)});
        }
    }
    watch.check_now(side->head, nodes, head_now());
}

void Simulation::State::fail_if_stuck() {
    constexpr std::string_view kSentence = "The experiment ends.";
    if (now.since_start > scenario.bound) {
        watch.violate(kSentence, "it goes on for longer than anything explains");
    } else if (result.runs > kMostRuns) {
        watch.violate(kSentence, "it is begun again and again");
    } else if (watched && result.events > kMostEvents) {
        watch.violate(kSentence, "there is no end of events");
    } else if (heap.empty() && !(over && all_down())) {
        watch.violate(kSentence, "nothing will ever happen again");
    }
}

Simulation::Simulation(Scenario scenario) : state_(std::make_unique<State>(std::move(scenario))) {}
Simulation::~Simulation() = default;

SimulationResult Simulation::run() {
    State& state = *state_;
    state.push(state.now, RunBegins{});
    while (!state.watch.violation() && !(state.over && state.all_down())) {
        state.fail_if_stuck();
        if (!state.watch.violation()) {
            state.run_one();
        }
    }
    if (state.watched && !state.watch.violation()) {
        const bool undisturbed = state.scenario.faults.empty() && !state.scenario.end;
        state.watch.checkpoints().check_end(state.storage, undisturbed);
    }
    state.result.violation = state.watch.violation();
    state.result.log.assign(state.log.begin(), state.log.end());
    state.result.end = state.now;
    return std::move(state.result);
}

SimulationResult simulate_seed(std::uint64_t seed) {
    SimulationResult result = Simulation(random_scenario(seed)).run();
    if (result.violation) {
        // The same again, event for event, but with words.
        Scenario scenario = random_scenario(seed);
        scenario.keep_log = true;
        result = Simulation(std::move(scenario)).run();
    }
    return result;
}

}  // namespace muster
