// SPDX-License-Identifier: Apache-2.0
//
// simulation_state - what a simulation is made of; private to its sources. simulation.cpp holds the
// queue, simulation_head.cpp the head's side, simulation_nodes.cpp the nodes' side and
// simulation_faults.cpp what goes wrong.

#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "head/head.hpp"
#include "protocol/commands.hpp"
#include "search/searcher.hpp"
#include "sim/invariants.hpp"
#include "sim/scenario.hpp"
#include "sim/simulated_journal.hpp"
#include "sim/simulated_node.hpp"
#include "sim/simulation.hpp"
#include "sim/simulation_events.hpp"

namespace muster {

struct QueuedEvent {
    TimePoint at;
    std::uint64_t sequence = 0;
    SimulationEvent event;
};

/// A node and what the network does between it and the head.
struct NodeSide {
    explicit NodeSide(SimulatedNode simulated) : node(std::move(simulated)) {}

    SimulatedNode node;
    std::uint32_t life = 0;
    bool was_up = false;
    /// Starts anew once its agent has left.
    bool comes_back = false;
    TimePoint wake_queued = kNever;
    TimePoint slow_until;
    /// Nothing gets through before.
    TimePoint cut_until;
    /// When the last message each way arrives.
    TimePoint last_to_head;
    TimePoint last_to_agent;
    /// Messages of this life that would arrive after `cut_at` died with it.
    std::uint32_t cut_life = 0;
    TimePoint cut_at = kNever;
};

/// The head and all that ends with it.
struct SimulatedHead {
    Head head;
    BasicSearcher searcher;
    /// The nodes that said Hello and are not lost, with the life that did.
    std::map<NodeId, std::uint32_t> counted;
    /// Commands by receiver, in order; the first may wait for the disk.
    std::map<std::int64_t, std::deque<Command>> waiting;
    TimePoint wake_queued = kNever;
    std::optional<Leave> leave;
};

struct Simulation::State {
    explicit State(Scenario what);

    Scenario scenario;
    bool watched;
    RandomStream random;
    SimulatedJournal journal;
    std::vector<NodeSide> places;
    std::optional<SimulatedHead> side;
    Watch watch;
    SimulationResult result;

    TimePoint now;
    std::vector<QueuedEvent> heap;
    std::uint64_t next_sequence = 0;
    std::uint32_t run_number = 0;
    std::size_t next_fault = 0;
    bool nodes_were_lost = false;
    /// Since the promises were last checked.
    bool head_stepped = false;
    /// The attempt of each trial that ended last.
    std::map<TrialId, AttemptEnded> last_ended;
    /// The experiment is over; agents are still leaving.
    bool over = false;
    std::deque<std::string> log;

    // The queue.
    void push(TimePoint at, SimulationEvent event);
    void run_one();
    void fail_if_stuck();
    Duration draw(DurationRange range);
    Duration draw(Duration from, Duration to) { return draw(DurationRange{from, to}); }
    std::size_t pick(std::size_t count) { return random.below(count); }
    void remember(const std::string& text);

    // What happens.
    void on(FrameToAgent& event);
    void on(FrameToHead& event);
    void on(NodeWakes& event);
    void on(HeadWakes& event);
    void on(FlushEnds& event);
    void on(SearcherAnswers& event);
    void on(NodeStarts& event);
    void on(HeadLossNoticed& event);
    void on(NodeLossNoticed& event);
    void on(RunBegins& event);

    // The head's side.
    void take_message(NodeId id, std::uint32_t life, const FromAgent& message);
    void lose_node(NodeId id);
    void abandon(const Abandon& lost);
    void step(const Event& event);
    void release_commands();
    void carry_out(const Command& command);
    void ask(const Ask& ask);
    void send(const Send& send);
    void after_head();
    void head_leaves();
    void replace_head();
    Head restored_head();
    bool is_run(std::uint32_t run) const { return side && run == run_number; }

    // The nodes' side.
    NodeSide& place(NodeId id) { return places[id.value]; }
    NodeId id_of(const NodeSide& which) const {
        return NodeId{static_cast<std::uint32_t>(&which - places.data())};
    }
    void after_node(NodeSide& which);
    Duration message_delay(const NodeSide& which);
    bool all_down() const;
    void begin_next_if_down();

    // What goes wrong.
    void strike();
    void strike(FaultKind kind);
    void cut_off(NodeSide& which);
    void die(NodeSide& which);
    NodeSide* some_node_up();
    void crash_some_trial();
    void tell_some_end_again();
    void check_promises();
    void check_fence(const NodeSide& which);
};

}  // namespace muster
