// SPDX-License-Identifier: Apache-2.0
//
// simulation_faults - what goes wrong, once its time has come.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "sim/simulation_state.hpp"

namespace muster {
namespace {

using std::chrono::milliseconds;

}  // namespace

void Simulation::State::strike() {
    while (next_fault < scenario.faults.size() &&
           scenario.faults[next_fault].after_events <= result.events && !watch.violation()) {
        const FaultKind kind = scenario.faults[next_fault].kind;
        ++next_fault;
        if (side && strike(kind)) {
            ++result.struck[kind];
        }
    }
}

bool Simulation::State::strike(FaultKind kind) {
    if (scenario.keep_log) {
        remember(fmt::format("fault {}", static_cast<int>(kind)));
    }
    switch (kind) {
        case FaultKind::NodeDies:
        case FaultKind::NodeCutOff:
        case FaultKind::NodeFallsSilent:
        case FaultKind::LinkCut:
        case FaultKind::NodeStalls:
        case FaultKind::NodeBreaks:
        case FaultKind::NodeGoesBad:
        case FaultKind::NodeIsSlow: {
            NodeSide* which = some_node_up();
            return which != nullptr && strike_node(kind, *which);
        }
        case FaultKind::TrialCrashes:
            return crash_some_trial();
        case FaultKind::HeadDies:
            end_head_stall();
            watch.check_facts(side->head, restored_head());
            replace_head();
            return true;
        case FaultKind::HeadStalls:
        case FaultKind::RunCancelled:
        case FaultKind::RunInterrupted:
        case FaultKind::EndComesLate:
        case FaultKind::HelloComesLate:
            return !head_stands_still() && strike_head(kind);
    }
    return false;
}

bool Simulation::State::strike_node(FaultKind kind, NodeSide& which) {
    const NodeId id = id_of(which);
    const Duration lease = scenario.options.lease;
    switch (kind) {
        case FaultKind::NodeDies:
            die(which);
            push(now + draw(milliseconds{50}, milliseconds{5000}), NodeLossNoticed{id, which.life});
            push(now + draw(milliseconds{10}, milliseconds{10'000}), NodeStarts{id, run_number});
            return true;
        case FaultKind::NodeFallsSilent:
            die(which);
            push(now + draw(milliseconds{10}, 2 * lease), NodeStarts{id, run_number});
            return true;
        case FaultKind::NodeCutOff:
            if (side->counted.count(id) == 0 || head_stands_still()) {
                return false;
            }
            cut_off(which);
            return true;
        case FaultKind::LinkCut:
            cut_link(which.link);
            return true;
        case FaultKind::NodeStalls:
            return stall(which);
        case FaultKind::NodeBreaks:
            if (stands_still(which)) {
                return false;
            }
            which.comes_back = true;
            which.node.break_down(scenario.model, node_now(which));
            after_node(which);
            return true;
        case FaultKind::NodeGoesBad:
            which.node.go_bad();
            return true;
        case FaultKind::NodeIsSlow:
            which.link.slow_until = now + draw(milliseconds{1000}, milliseconds{20'000});
            return true;
        case FaultKind::HeadDies:
        case FaultKind::HeadStalls:
        case FaultKind::RunCancelled:
        case FaultKind::RunInterrupted:
        case FaultKind::TrialCrashes:
        case FaultKind::EndComesLate:
        case FaultKind::HelloComesLate:
            break;
    }
    return false;
}

bool Simulation::State::strike_head(FaultKind kind) {
    if (kind == FaultKind::HeadStalls) {
        stall_head();
    } else if (kind == FaultKind::RunCancelled) {
        step(CancelRequested{RunEnd::Cancelled, pick(2) == 0, "cancelled by a person"});
    } else if (kind == FaultKind::RunInterrupted) {
        step(CancelRequested{RunEnd::Interrupted, pick(2) == 0, "the wall time ends"});
    } else if (kind == FaultKind::EndComesLate) {
        return tell_some_end_again();
    } else if (kind == FaultKind::HelloComesLate) {
        return tell_some_hello_again();
    }
    return true;
}

void Simulation::State::cut_off(NodeSide& which) {
    which.comes_back = true;
    push(
        now + draw(milliseconds{0}, milliseconds{20'000}), HeadLossNoticed{id_of(which), which.life}
    );
    lose_node(id_of(which));
}

/// With all that is on it; what it sent last may still come.
void Simulation::State::die(NodeSide& which) {
    which.node.lose();
    which.was_up = false;
    which.still_until = now;
    if (scenario.spec.checkpoints.storage == CheckpointStorage::Node && pick(3) == 0) {
        which.node.lose_disk();
        watch.checkpoints().disk_lost(which.node.inventory().name);
    }
    which.link.to_head_ends[which.life] = now + draw(milliseconds{0}, milliseconds{500});
}

void Simulation::State::cut_link(Link& link) {
    const auto until = [&] { return now + draw(milliseconds{100}, 3 * scenario.options.lease); };
    const std::size_t which = pick(4);
    if (which != 0) {
        link.to_head_cut_until = std::max(link.to_head_cut_until, until());
    }
    if (which != 1) {
        link.to_agent_cut_until = std::max(link.to_agent_cut_until, until());
    }
}

bool Simulation::State::stall(NodeSide& which) {
    if (stands_still(which)) {
        return false;
    }
    const Duration gap = draw(milliseconds{1100}, 2 * scenario.options.lease);
    which.still_from = now;
    which.still_until = now + gap;
    push(which.still_until, NodeGoesOn{id_of(which), which.life, gap});
    return true;
}

void Simulation::State::stall_head() {
    const Duration gap = draw(milliseconds{1100}, milliseconds{5000} + 2 * scenario.options.lease);
    head_still_until = now + gap;
    head_stood += gap;
    // Whoever tells it counts by another clock.
    push(head_still_until, EndIsTold{run_number, end_told});
}

/// It dies before it would have gone on.
void Simulation::State::end_head_stall() {
    if (head_stands_still()) {
        head_stood -= head_still_until - now;
        head_still_until = now;
    }
}

NodeSide* Simulation::State::some_node_up() {
    std::vector<NodeSide*> up;
    for (NodeSide& which : places) {
        if (which.node.is_up()) {
            up.push_back(&which);
        }
    }
    return up.empty() ? nullptr : up[pick(up.size())];
}

bool Simulation::State::tell_some_end_again() {
    std::vector<AttemptEnded> late;
    for (const TrialId id : side->head.active_trials()) {
        const auto before = last_ended.find(id);
        if (before != last_ended.end()) {
            late.push_back(before->second);
        }
    }
    if (late.empty() || side->counted.empty()) {
        return false;
    }
    const AttemptEnded& told = late[pick(late.size())];
    const MemberKey key{told.trial, told.attempt, MemberId{0}};
    const NodeId node =
        std::next(side->counted.begin(), static_cast<std::ptrdiff_t>(pick(side->counted.size())))
            ->first;
    step(AgentSaid{node, Ended{key, told.outcome, told.usage}});
    return true;
}

/// As if a session that is over were not.
bool Simulation::State::tell_some_hello_again() {
    const std::size_t first = pick(places.size());
    for (std::size_t offset = 0; offset < places.size(); ++offset) {
        const NodeSide& which = places[(first + offset) % places.size()];
        if (!which.hellos.empty()) {
            step(AgentSaid{id_of(which), which.hellos[pick(which.hellos.size())]});
            return true;
        }
    }
    return false;
}

bool Simulation::State::crash_some_trial() {
    std::vector<std::pair<NodeSide*, MemberKey>> running;
    for (NodeSide& which : places) {
        for (const auto& [key, member] : which.node.members()) {
            if (!stands_still(which)) {
                running.emplace_back(&which, key);
            }
        }
    }
    if (running.empty()) {
        return false;
    }
    const auto& [which, key] = running[pick(running.size())];
    if (!which->node.crash_member(key, node_now(*which))) {
        return false;
    }
    watch.trial_crashed(key.trial);
    after_node(*which);
    return true;
}

}  // namespace muster
