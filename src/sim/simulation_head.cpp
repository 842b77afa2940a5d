// SPDX-License-Identifier: Apache-2.0
//
// simulation_head - the head's side: events go in, facts to the disk, commands out when the facts
// that they wait for are there; and what ends with the head when it goes.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.hpp"
#include "base/overloaded.hpp"
#include "placement/cluster.hpp"
#include "sim/simulation_state.hpp"
#include "wire/codec.hpp"

namespace muster {
namespace {

using std::chrono::milliseconds;

/// Everything but what is sent to a node is one receiver.
constexpr std::int64_t kNoNode = -1;

/// As runtime/held_commands.hpp: a lease must not run out since the disk is slow; a lost node hears
/// nothing any more.
bool is_urgent(const Command& command) {
    const auto* send = std::get_if<Send>(&command.action);
    return std::holds_alternative<Abandon>(command.action) ||
           (send != nullptr && std::holds_alternative<Alive>(send->message));
}

BasicSearcher make_searcher(const ExperimentSpec& spec) {
    auto made = BasicSearcher::make(spec.space, spec.search, spec.num_samples, spec.seed);
    check(made.ok(), "a simulated space can be sampled");
    return std::move(made).value();
}

}  // namespace

void Simulation::State::on(RunBegins& /*event*/) {
    check(!side && all_down(), "a run begins after the one before it");
    ++result.runs;
    side.emplace(SimulatedHead{restored_head(), make_searcher(scenario.spec), {}, {}, {}, false, {}}
    );
    side->searcher.skip(side->head.trial_count());
    watch.run_begins(journal.facts(), head_now());
    journal.begin_run();
    for (std::size_t index = 0; index < places.size(); ++index) {
        const NodeId id{static_cast<std::uint32_t>(index)};
        places[index].hellos.clear();
        push(now + draw(scenario.node_start), NodeStarts{id, run_number});
    }
    step(Reconcile{});
    plan_end();
}

Head Simulation::State::restored_head() {
    const BasicSearcher searcher = make_searcher(scenario.spec);
    Head head(scenario.spec, scenario.options, searcher.total_trials());
    for (const Fact& fact : journal.facts()) {
        if (const Status status = head.restore(fact, head_now()); !status) {
            watch.violate("No fact contradicts those before it.", status.error().message);
        }
    }
    return head;
}

void Simulation::State::step(const Event& event) {
    Step taken = side->head.handle(event, head_now());
    head_stepped = true;
    journal.append(taken.facts);
    for (const Fact& fact : taken.facts) {
        result.facts.push_back({now, fact});
        if (const auto* ended = std::get_if<AttemptEnded>(&fact); ended != nullptr && watched) {
            last_ended[ended->trial] = *ended;
        }
    }
    if (watched) {
        watch.head_stepped(side->head, event, taken, head_now());
    }
    for (Command& command : taken.commands) {
        if (is_urgent(command)) {
            carry_out(command);
            continue;
        }
        side->is_over = side->is_over || std::holds_alternative<Leave>(command.action);
        const auto* to = std::get_if<Send>(&command.action);
        const std::int64_t receiver = to == nullptr ? kNoNode : std::int64_t{to->node.value};
        side->waiting[receiver].push_back(std::move(command));
    }
    release_commands();
    check_abandoned();
    after_head();
}

void Simulation::State::check_abandoned() {
    for (const auto& [node, life] : side->counted) {
        if (!side->is_over && !side->head.cluster().has_node(node)) {
            watch.violate(
                "What the head has lost is abandoned.",
                fmt::format("node {}, life {}, is not", node.value, life)
            );
        }
    }
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
    if (watched) {
        watch.carried_out(command);
    }
    std::visit(
        Overloaded{
            [&](const Send& message) { send_to_agent(message); },
            [&](const Ask& asked) { ask(asked); },
            [&](const Leave& leave) { side->leave = leave; },
            [&](const Abandon& lost) { abandon(lost); },
            [](const Tell&) {},
            [](const Note&) {},
            [](const Announce&) {}},
        command.action
    );
}

void Simulation::State::ask(const Ask& ask) {
    const std::uint64_t left = scenario.most_trials - side->head.trial_count();
    const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(ask.count, left));
    auto suggested = side->searcher.suggest(count);
    Suggestion suggestion;
    if (suggested) {
        suggestion = std::move(suggested).value();
        suggestion.exhausted = suggestion.exhausted || count == left;
    } else {
        result.search_error = suggested.error();
        suggestion.exhausted = true;
    }
    push(now + draw(scenario.searcher_delay), SearcherAnswers{run_number, std::move(suggestion)});
}

void Simulation::State::after_head() {
    if (side->leave) {
        head_leaves();
        return;
    }
    if (journal.begin_flush()) {
        push(now + draw(scenario.disk_delay), FlushEnds{run_number});
    }
    const TimePoint deadline = std::max(real(side->head.next_deadline(), head_stood), now);
    if (is_sooner(deadline, side->wakes_queued)) {
        side->wakes_queued.insert(deadline);
        push(deadline, HeadWakes{run_number, deadline});
    }
}

void Simulation::State::head_leaves() {
    const RunEnd end = side->leave->end;
    result.leave = side->leave;
    over = !watched || end == RunEnd::Finished || end == RunEnd::TimeBudget;
    if (watched) {
        watch.check_facts(side->head, restored_head());
        // A node that was cut off from the begin on is not of this run.
        const bool all_came = side->counted.size() == places.size();
        if (end == RunEnd::Infeasible && !nodes_were_lost && all_came) {
            watch.violate("What fits the idle cluster is feasible.", side->leave->reason);
        }
        if (over) {
            check_end(end);
        }
        if (end == RunEnd::Finished && scenario.retry_failed != RetryFailed::No && !is_retry) {
            over = false;
            is_retry = true;
            scenario.options.retry_failed = scenario.retry_failed;
            watch.failed_run_again(side->head);
        } else if (end == RunEnd::FailFast || end == RunEnd::NothingWorks) {
            // Whoever asked sees that it is of no use.
            scenario.options.retry_failed = RetryFailed::No;
            watch.failed_stay();
        }
    }
    replace_head();
}

void Simulation::State::check_end(RunEnd end) {
    std::vector<Config> configs;
    const std::uint64_t total = side->searcher.total_trials().value_or(0);
    for (std::uint64_t index = 0; index < total; ++index) {
        configs.push_back(side->searcher.config_at(index).value());
    }
    watch.check_end(side->head, end, journal.facts(), configs, scenario.expected);
}

/// The head is gone. Agents notice, and once they are gone too a new run begins.
void Simulation::State::replace_head() {
    const bool is_orderly = side->leave.has_value();
    journal.crash(is_orderly ? 0 : pick(journal.not_durable() + 1));
    side.reset();
    ++run_number;
    nodes_were_lost = false;
    for (NodeSide& which : places) {
        if (which.node.is_up()) {
            // Whoever leaves in order closes its connections after what it has said.
            const TimePoint from = is_orderly ? std::max(now, which.link.last_to_agent) : now;
            const Duration delay = draw(milliseconds{1}, milliseconds{2000});
            push(from + delay, HeadLossNoticed{id_of(which), which.life});
        }
    }
    begin_next_if_down();
}

void Simulation::State::on(HeadWakes& event) {
    if (!is_run(event.run)) {
        return;
    }
    side->wakes_queued.erase(event.at);
    if (side->head.next_deadline() <= head_now()) {
        step(Tick{});
    } else {
        after_head();
    }
}

void Simulation::State::on(FlushEnds& event) {
    if (is_run(event.run)) {
        for (const Fact& fact : journal.end_flush()) {
            watch.checkpoints().durable(fact);
        }
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
    step(NodeLost{id, "it was cut off"});
}

/// The head has lost a node; a newer life of it may have been counted already.
void Simulation::State::abandon(const Abandon& lost) {
    side->waiting.erase(std::int64_t{lost.node.value});
    const auto counted = side->counted.find(lost.node);
    if (counted != side->counted.end() && counted->second == lost.incarnation) {
        nodes_were_lost = true;
        side->counted.erase(counted);
        watch.node_gone(lost.node);
        Link& link = place(lost.node).link;
        link.abandoned_life = lost.incarnation;
        lose_what_is_under_way(link.to_agent_ends, lost.incarnation, link.last_to_agent);
    }
}

void Simulation::State::on(FrameToHead& event) {
    const Link& link = place(event.node).link;
    const bool is_void = event.life < link.heard_life || event.life <= link.abandoned_life ||
                         !arrives(link.to_head_ends, event.life);
    if (!is_run(event.run) || is_void) {
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
    const NodeSide& from = place(id);
    if (const auto* hello = std::get_if<Hello>(&message)) {
        hear_hello(id, life, *hello);
    } else if (const auto* ended = std::get_if<Ended>(&message)) {
        const auto counted = side->counted.find(id);
        const bool counts = counted != side->counted.end() && counted->second == life;
        if (counts && from.life == life && from.node.is_up()) {
            watch.reports_made(ended->key.attempt, from.node.reports_made(ended->key.attempt));
        }
    }
    step(AgentSaid{id, message});
}

void Simulation::State::hear_hello(NodeId id, std::uint32_t life, const Hello& hello) {
    if (side->counted.count(id) != 0) {
        // It came back before it was missed.
        nodes_were_lost = true;
        watch.node_gone(id);
    }
    side->counted[id] = life;
    place(id).link.heard_life = life;
    place(id).hellos.push_back(hello);
}

}  // namespace muster
