// SPDX-License-Identifier: Apache-2.0

#include "sim/simulation.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.hpp"
#include "base/overloaded.hpp"
#include "protocol/commands.hpp"
#include "sim/simulation_events.hpp"
#include "wire/codec.hpp"

namespace muster {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kLogLength = 30;
constexpr std::uint32_t kMostRuns = 200;
constexpr std::uint64_t kMostEvents = 3'000'000;
/// Everything but what is sent to a node is one receiver.
constexpr std::int64_t kNoNode = -1;

struct Item {
    TimePoint at;
    std::uint64_t sequence = 0;
    SimulationEvent event;
};

/// For a heap whose first is the earliest.
bool is_later(const Item& left, const Item& right) {
    return std::pair(left.at, left.sequence) > std::pair(right.at, right.sequence);
}

/// A node and what the network does between it and the head.
struct Place {
    explicit Place(SimulatedNode simulated) : node(std::move(simulated)) {}

    SimulatedNode node;
    std::uint32_t life = 0;
    bool was_up = false;
    /// Starts anew once its agent has left.
    bool comes_back = false;
    TimePoint wake_queued = kNever;
    TimePoint slow_until;
    /// When the last message each way arrives.
    TimePoint last_to_head;
    TimePoint last_to_agent;
    /// Messages of this life that would arrive after `cut_at` died with it.
    std::uint32_t cut_life = 0;
    TimePoint cut_at = kNever;
};

/// The head and all that ends with it.
struct HeadSide {
    Head head;
    BasicSearcher searcher;
    /// The nodes that said Hello and are not lost, with the life that did.
    std::map<NodeId, std::uint32_t> counted;
    /// Commands by receiver, in order; the first may wait for the disk.
    std::map<std::int64_t, std::deque<Command>> waiting;
    TimePoint wake_queued = kNever;
    std::optional<Leave> leave;
};

BasicSearcher make_searcher(const ExperimentSpec& spec) {
    auto made = BasicSearcher::make(spec.space, spec.search, spec.num_samples, spec.seed);
    check(made.ok(), "a simulated space can be sampled");
    return std::move(made).value();
}

}  // namespace

struct Simulation::State {
    explicit State(Scenario what);

    Scenario scenario;
    bool watched;
    RandomStream random;
    SimulatedJournal journal;
    std::vector<Place> places;
    std::optional<HeadSide> side;
    Watch watch;
    SimulationResult result;

    TimePoint now;
    std::vector<Item> heap;
    std::uint64_t next_sequence = 0;
    std::uint32_t run_number = 0;
    std::size_t next_fault = 0;
    bool nodes_were_lost = false;
    /// Since the promises were last checked.
    bool head_stepped = false;
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
    void step(const Event& event);
    void release_commands();
    void carry_out(const Command& command);
    void send(const Send& send);
    void after_head();
    void head_leaves();
    void replace_head();
    Head restored_head();
    bool is_run(std::uint32_t run) const { return side && run == run_number; }

    // The nodes' side.
    Place& place(NodeId id) { return places[id.value]; }
    NodeId id_of(const Place& which) const {
        return NodeId{static_cast<std::uint32_t>(&which - places.data())};
    }
    void after_node(Place& which);
    Duration message_delay(const Place& which);
    bool all_down() const;
    void begin_next_if_down();

    // What goes wrong.
    void strike();
    void strike(FaultKind kind);
    Place* some_node_up();
    void crash_some_trial();
    void check_promises();
};

Simulation::State::State(Scenario what)
    : scenario(std::move(what)),
      watched(!scenario.expected.empty()),
      random(RandomStream::derive(scenario.seed, "simulation")),
      watch(scenario.spec) {
    for (std::size_t index = 0; index < scenario.nodes.size(); ++index) {
        places.emplace_back(SimulatedNode(
            scenario.nodes[index],
            {.run_dir = "/run/muster",
             .socket_path = "/run/muster/socket",
             .heartbeat = Duration{0},
             .reports_per_second = scenario.reports_per_second},
            RandomStream::derive(scenario.seed, "node", index)
        ));
    }
}

// --- the queue ---

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
    Item item = std::move(heap.back());
    heap.pop_back();
    now = item.at;
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
    if (!watched || !side || !is_due) {
        return;
    }
    std::vector<CountedNode> nodes;
    for (const auto& [id, life] : side->counted) {
        const Place& which = place(id);
        if (which.life == life && which.node.is_up()) {
            nodes.push_back({id, &which.node});
        }
    }
    watch.check_now(side->head, nodes, now);
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

// --- the head's side ---

void Simulation::State::on(RunBegins& /*event*/) {
    check(!side && all_down(), "a run begins after the one before it");
    ++result.runs;
    side.emplace(HeadSide{restored_head(), make_searcher(scenario.spec), {}, {}, kNever, {}});
    side->searcher.skip(side->head.trial_count());
    watch.run_begins(journal.facts());
    journal.begin_run();
    for (std::size_t index = 0; index < places.size(); ++index) {
        const NodeId id{static_cast<std::uint32_t>(index)};
        push(now + draw(scenario.node_start), NodeStarts{id, run_number});
    }
    step(Reconcile{});
}

Head Simulation::State::restored_head() {
    const BasicSearcher searcher = make_searcher(scenario.spec);
    Head head(scenario.spec, scenario.options, searcher.total_trials());
    for (const Fact& fact : journal.facts()) {
        if (const Status status = head.restore(fact, now); !status) {
            watch.violate("No fact contradicts those before it.", status.error().message);
        }
    }
    return head;
}

void Simulation::State::step(const Event& event) {
    Step taken = side->head.handle(event, now);
    head_stepped = true;
    journal.append(taken.facts);
    for (const Fact& fact : taken.facts) {
        result.facts.push_back({now, fact});
    }
    if (watched) {
        watch.head_stepped(side->head, event, taken);
    }
    for (Command& command : taken.commands) {
        const auto* to = std::get_if<Send>(&command.action);
        const std::int64_t receiver = to == nullptr ? kNoNode : std::int64_t{to->node.value};
        side->waiting[receiver].push_back(std::move(command));
    }
    release_commands();
    after_head();
}

void Simulation::State::release_commands() {
    const std::uint64_t durable = journal.durable_of_run();
    for (auto& [receiver, commands] : side->waiting) {
        while (!commands.empty() && commands.front().after_facts <= durable) {
            const Command command = std::move(commands.front());
            commands.pop_front();
            carry_out(command);
        }
    }
}

void Simulation::State::carry_out(const Command& command) {
    watch.carried_out(command);
    std::visit(
        Overloaded{
            [&](const Send& message) { send(message); },
            [&](const Ask& ask) {
                auto suggestion = side->searcher.suggest(ask.count);
                check(suggestion.ok(), "a simulated space can be sampled");
                push(
                    now + draw(scenario.searcher_delay),
                    SearcherAnswers{run_number, std::move(suggestion).value()}
                );
            },
            [&](const Leave& leave) { side->leave = leave; },
            [](const Tell&) {},
            [](const Note&) {},
            [](const Announce&) {}},
        command.action
    );
}

void Simulation::State::send(const Send& send) {
    const auto counted = side->counted.find(send.node);
    // Nothing is sent to a node that was declared lost.
    if (counted == side->counted.end()) {
        return;
    }
    Place& to = place(send.node);
    to.last_to_agent = std::max(to.last_to_agent, now + message_delay(to));
    push(to.last_to_agent, FrameToAgent{send.node, counted->second, encode(send.message)});
}

void Simulation::State::after_head() {
    if (side->leave) {
        head_leaves();
        return;
    }
    if (journal.begin_flush()) {
        push(now + draw(scenario.disk_delay), FlushEnds{run_number});
    }
    const TimePoint deadline = side->head.next_deadline();
    if (deadline < side->wake_queued) {
        side->wake_queued = std::max(deadline, now);
        push(deadline, HeadWakes{run_number});
    }
}

void Simulation::State::head_leaves() {
    const RunEnd end = side->leave->end;
    result.leave = side->leave;
    over = !watched || end == RunEnd::Finished || end == RunEnd::TimeBudget;
    if (watched) {
        watch.check_facts(side->head, restored_head());
        if (end == RunEnd::Infeasible && !nodes_were_lost) {
            watch.violate("What fits the idle cluster is feasible.", side->leave->reason);
        }
        if (over) {
            std::vector<Config> configs;
            const std::uint64_t total = side->searcher.total_trials().value_or(0);
            for (std::uint64_t index = 0; index < total; ++index) {
                configs.push_back(side->searcher.config_at(index).value());
            }
            watch.check_end(side->head, journal.facts(), configs, scenario.expected);
        }
    }
    replace_head();
}

/// The head is gone. Agents notice, and once they are gone too a new run begins.
void Simulation::State::replace_head() {
    journal.crash(side->leave ? 0 : pick(journal.not_durable() + 1));
    side.reset();
    ++run_number;
    nodes_were_lost = false;
    for (Place& which : places) {
        if (which.node.is_up()) {
            const Duration delay = draw(milliseconds{0}, milliseconds{2000});
            push(now + delay, HeadLossNoticed{id_of(which), which.life});
        }
    }
    begin_next_if_down();
}

void Simulation::State::on(HeadWakes& event) {
    if (!is_run(event.run)) {
        return;
    }
    side->wake_queued = kNever;
    if (side->head.next_deadline() <= now) {
        step(Tick{});
    } else {
        after_head();
    }
}

void Simulation::State::on(FlushEnds& event) {
    if (is_run(event.run)) {
        journal.end_flush();
        release_commands();
        after_head();
    }
}

void Simulation::State::on(SearcherAnswers& event) {
    if (is_run(event.run)) {
        step(Suggested{std::move(event.suggestion.configs), event.suggestion.exhausted});
    }
}

void Simulation::State::on(NodeLossNoticed& event) {
    const bool counts =
        side && side->counted.count(event.node) != 0 && side->counted[event.node] == event.life;
    if (counts) {
        lose_node(event.node);
    }
}

void Simulation::State::lose_node(NodeId id) {
    nodes_were_lost = true;
    side->counted.erase(id);
    side->waiting.erase(std::int64_t{id.value});
    watch.node_gone(id);
    step(NodeLost{id});
}

void Simulation::State::on(FrameToHead& event) {
    const Place& from = place(event.node);
    const bool is_cut = event.life == from.cut_life && now > from.cut_at;
    if (!is_run(event.run) || is_cut) {
        return;
    }
    auto messages = decode_from_agent(event.bytes);
    if (!messages) {
        watch.violate("What was encoded is decoded.", messages.error().message);
        return;
    }
    for (const FromAgent& message : *messages) {
        if (is_run(event.run)) {
            take_message(event.node, event.life, message);
        }
    }
}

void Simulation::State::take_message(NodeId id, std::uint32_t life, const FromAgent& message) {
    const Place& from = place(id);
    if (std::holds_alternative<Hello>(message)) {
        const auto known = side->counted.find(id);
        if (known != side->counted.end()) {
            // It came back before it was missed.
            nodes_were_lost = true;
            watch.node_gone(id);
        }
        side->waiting.erase(std::int64_t{id.value});
        side->counted[id] = life;
    } else if (const auto* ended = std::get_if<Ended>(&message)) {
        const auto counted = side->counted.find(id);
        const bool counts = counted != side->counted.end() && counted->second == life;
        if (counts && from.life == life && from.node.is_up()) {
            watch.reports_made(ended->key.attempt, from.node.reports_made(ended->key.attempt));
        }
    }
    step(AgentSaid{id, message});
}

// --- the nodes' side ---

void Simulation::State::on(FrameToAgent& event) {
    Place& to = place(event.node);
    if (to.life != event.life || !to.node.is_up()) {
        return;
    }
    auto messages = decode_to_agent(event.bytes);
    if (!messages) {
        watch.violate("What was encoded is decoded.", messages.error().message);
        return;
    }
    for (const ToAgent& message : *messages) {
        to.node.head_said(message, scenario.model, now);
    }
    after_node(to);
}

void Simulation::State::on(NodeWakes& event) {
    Place& which = place(event.node);
    if (which.life != event.life) {
        return;
    }
    which.wake_queued = kNever;
    if (which.node.next_wake() <= now) {
        which.node.wake(scenario.model, now);
    }
    after_node(which);
}

void Simulation::State::on(NodeStarts& event) {
    Place& which = place(event.node);
    if (!is_run(event.run) || which.node.is_up()) {
        return;
    }
    ++which.life;
    which.was_up = true;
    which.comes_back = false;
    which.wake_queued = kNever;
    which.node.start(which.life, now);
    after_node(which);
}

void Simulation::State::on(HeadLossNoticed& event) {
    Place& which = place(event.node);
    if (which.life == event.life && which.node.is_up()) {
        which.node.head_lost(scenario.model, now);
        after_node(which);
    }
}

void Simulation::State::after_node(Place& which) {
    const NodeId id = id_of(which);
    for (const FromAgent& message : which.node.take_messages()) {
        which.last_to_head = std::max(which.last_to_head, now + message_delay(which));
        push(which.last_to_head, FrameToHead{id, which.life, run_number, encode(message)});
    }
    const TimePoint wake = which.node.next_wake();
    if (wake < which.wake_queued) {
        which.wake_queued = wake;
        push(wake, NodeWakes{id, which.life});
    }
    if (which.was_up && !which.node.is_up()) {
        which.was_up = false;
        if (which.comes_back) {
            const Duration delay = draw(milliseconds{0}, milliseconds{3000});
            push(now + delay, NodeStarts{id, run_number});
        }
        begin_next_if_down();
    }
}

Duration Simulation::State::message_delay(const Place& which) {
    const Duration delay = draw(scenario.message_delay);
    return now < which.slow_until ? delay + draw(milliseconds{0}, milliseconds{2000}) : delay;
}

bool Simulation::State::all_down() const {
    return std::none_of(places.begin(), places.end(), [](const Place& which) {
        return which.node.is_up();
    });
}

void Simulation::State::begin_next_if_down() {
    if (!side && !over && all_down()) {
        push(now + draw(milliseconds{0}, milliseconds{1000}), RunBegins{});
    }
}

// --- what goes wrong ---

void Simulation::State::strike() {
    while (next_fault < scenario.faults.size() &&
           scenario.faults[next_fault].after_events <= result.events && !watch.violation()) {
        if (side) {
            const FaultKind kind = scenario.faults[next_fault].kind;
            strike(kind);
        }
        ++next_fault;
    }
}

void Simulation::State::strike(FaultKind kind) {
    if (scenario.keep_log) {
        remember(fmt::format("fault {}", static_cast<int>(kind)));
    }
    Place* which = some_node_up();
    switch (kind) {
        case FaultKind::NodeDies:
            if (which != nullptr) {
                const NodeId id = id_of(*which);
                which->node.lose();
                which->was_up = false;
                which->cut_life = which->life;
                which->cut_at = now + draw(milliseconds{0}, milliseconds{500});
                push(
                    now + draw(milliseconds{50}, milliseconds{5000}),
                    NodeLossNoticed{id, which->life}
                );
                push(
                    now + draw(milliseconds{10}, milliseconds{10'000}), NodeStarts{id, run_number}
                );
            }
            return;
        case FaultKind::NodeCutOff:
            if (which != nullptr && side->counted.count(id_of(*which)) != 0) {
                which->comes_back = true;
                push(
                    now + draw(milliseconds{0}, milliseconds{3000}),
                    HeadLossNoticed{id_of(*which), which->life}
                );
                lose_node(id_of(*which));
            }
            return;
        case FaultKind::NodeIsSlow:
            if (which != nullptr) {
                which->slow_until = now + draw(milliseconds{1000}, milliseconds{20'000});
            }
            return;
        case FaultKind::HeadDies:
            watch.check_facts(side->head, restored_head());
            replace_head();
            return;
        case FaultKind::RunCancelled:
            step(CancelRequested{RunEnd::Cancelled, pick(2) == 0, "cancelled by a person"});
            return;
        case FaultKind::RunInterrupted:
            step(CancelRequested{RunEnd::Interrupted, pick(2) == 0, "the wall time ends"});
            return;
        case FaultKind::TrialCrashes:
            crash_some_trial();
            return;
    }
}

Place* Simulation::State::some_node_up() {
    std::vector<Place*> up;
    for (Place& which : places) {
        if (which.node.is_up()) {
            up.push_back(&which);
        }
    }
    return up.empty() ? nullptr : up[pick(up.size())];
}

void Simulation::State::crash_some_trial() {
    std::vector<std::pair<Place*, MemberKey>> running;
    for (Place& which : places) {
        for (const auto& [key, member] : which.node.members()) {
            running.emplace_back(&which, key);
        }
    }
    if (running.empty()) {
        return;
    }
    const auto& [which, key] = running[pick(running.size())];
    if (which->node.crash_member(key, now)) {
        watch.trial_crashed(key.trial);
        after_node(*which);
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
