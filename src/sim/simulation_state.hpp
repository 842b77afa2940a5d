// SPDX-License-Identifier: Apache-2.0
//
// simulation_state - what a simulation is made of; private to its sources. simulation.cpp holds the
// queue, simulation_head.cpp the head's side, simulation_nodes.cpp the nodes' side,
// simulation_network.cpp what is between them and simulation_faults.cpp what goes wrong.
//
// `now` is real time. The head and each node have a clock of their own, which stands still while
// they do.

#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
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

/// When each life of a node is over for whoever takes in what it says, or what it is told.
using EndsOfLives = std::map<std::uint32_t, TimePoint>;

/// What the network does between a node and the head, and what the transport makes of it: messages
/// of one life of the node, one direction and one lane arrive in order; lanes may overtake each
/// other; what was said by or to a life that is over for either side is void.
struct Link {
    TimePoint slow_until;
    /// Nothing gets through before.
    TimePoint to_head_cut_until;
    TimePoint to_agent_cut_until;
    /// When the last message arrives, of each lane.
    std::array<TimePoint, 2> last_to_head;
    TimePoint last_to_agent;
    /// Messages of a life that would arrive later got lost.
    EndsOfLives to_head_ends;
    EndsOfLives to_agent_ends;
    /// At the head: the newest life that it heard of, and the newest that it abandoned.
    std::uint32_t heard_life = 0;
    std::uint32_t abandoned_life = 0;
};

/// Whether something at `when` would come before all that is queued; kNever never does.
inline bool is_sooner(TimePoint when, const std::set<TimePoint>& queued) {
    return when != kNever && (queued.empty() || when < *queued.begin());
}

/// A node and what is between it and the head.
struct NodeSide {
    explicit NodeSide(SimulatedNode simulated) : node(std::move(simulated)) {}

    SimulatedNode node;
    std::uint32_t life = 0;
    bool was_up = false;
    /// Starts anew once its agent has left.
    bool comes_back = false;
    /// When a NodeWakes of its present life comes.
    std::set<TimePoint> wakes_queued;
    /// It stands still from the one to the other, and has stood still for so long before.
    TimePoint still_from;
    TimePoint still_until;
    Duration stood{0};
    Link link;
    /// With which it came in this run.
    std::vector<Hello> hellos;
};

/// The head and all that ends with it.
struct SimulatedHead {
    Head head;
    BasicSearcher searcher;
    /// The nodes that said Hello and are not lost, with the life that did.
    std::map<NodeId, std::uint32_t> counted;
    /// Commands by receiver, in order; the first may wait for the disk.
    std::map<std::int64_t, std::deque<Command>> waiting;
    /// When a HeadWakes comes.
    std::set<TimePoint> wakes_queued;
    /// It has said all that it will: Leave waits for the disk, or was carried out.
    bool is_over = false;
    std::optional<Leave> leave;
};

struct Simulation::State {
    explicit State(Scenario what);

    Scenario scenario;
    bool watched;
    RandomStream random;
    SimulatedJournal journal;
    SimulatedStorage storage;
    std::vector<NodeSide> places;
    std::optional<SimulatedHead> side;
    Watch watch;
    SimulationResult result;

    TimePoint now;
    /// The head stands still until then, and has stood still for so long in all.
    TimePoint head_still_until;
    Duration head_stood{0};
    /// What the head was told last of the end of its time, in real time, and how long it has in
    /// all.
    TimePoint end_told = kNever;
    Duration whole{0};
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
    /// It had finished, and its failed trials run again.
    bool is_retry = false;
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
    void on(NodeGoesOn& event);
    void on(FenceChecked& event);
    void on(HeadLossNoticed& event);
    void on(NodeLossNoticed& event);
    void on(RunBegins& event);
    void on(EndIsTold& event);
    void on(TimeIsUp& event);

    // The head's side.
    void take_message(NodeId id, std::uint32_t life, const FromAgent& message);
    void hear_hello(NodeId id, std::uint32_t life, const Hello& hello);
    void lose_node(NodeId id);
    void abandon(const Abandon& lost);
    void step(const Event& event);
    void release_commands();
    void carry_out(const Command& command);
    void ask(const Ask& ask);
    void check_abandoned();
    void after_head();
    void head_leaves();
    void check_end(RunEnd end);
    void replace_head();
    Head restored_head();
    bool is_run(std::uint32_t run) const { return side && run == run_number; }
    TimePoint head_now() const { return now - head_stood; }
    bool head_stands_still() const { return now < head_still_until; }

    // The nodes' side.
    NodeSide& place(NodeId id) { return places[id.value]; }
    NodeId id_of(const NodeSide& which) const {
        return NodeId{static_cast<std::uint32_t>(&which - places.data())};
    }
    static TimePoint real(TimePoint clock, Duration stood) {
        return clock == kNever ? kNever : clock + stood;
    }
    static TimePoint real_wake(const NodeSide& which) {
        return real(which.node.next_wake(), which.stood);
    }
    TimePoint node_now(const NodeSide& which) const {
        return (stands_still(which) ? which.still_from : now) - which.stood;
    }
    bool stands_still(const NodeSide& which) const { return now < which.still_until; }
    void after_node(NodeSide& which);
    void after_node_left(NodeSide& which);
    void tell_touches(NodeSide& which);
    bool all_down() const;
    void begin_next_if_down();

    // The network.
    Duration message_delay(const Link& link);
    void send_to_agent(const Send& send);
    void send_to_head(NodeSide& from, const FromAgent& message);
    void lose_what_is_under_way(EndsOfLives& ends, std::uint32_t life, TimePoint last);
    bool arrives(const EndsOfLives& ends, std::uint32_t life) const;
    TimePoint held_up_until(const SimulationEvent& event) const;

    // The end of time.
    void plan_end();

    // What goes wrong.
    void strike();
    /// False when there is nothing to strike.
    bool strike(FaultKind kind);
    bool strike_node(FaultKind kind, NodeSide& which);
    bool strike_head(FaultKind kind);
    void cut_off(NodeSide& which);
    void die(NodeSide& which);
    void cut_link(Link& link);
    bool stall(NodeSide& which);
    void stall_head();
    void end_head_stall();
    NodeSide* some_node_up();
    bool crash_some_trial();
    bool tell_some_end_again();
    bool tell_some_hello_again();
    void check_promises();
    void check_fence(const NodeSide& which);
    bool goes_on_just_now(const NodeSide& which) const;
};

}  // namespace muster
