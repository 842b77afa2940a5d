// SPDX-License-Identifier: Apache-2.0
//
// simulation_faults - what goes wrong, once its time has come.

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
    NodeSide* which = some_node_up();
    switch (kind) {
        case FaultKind::NodeDies:
            if (which != nullptr) {
                const NodeId id = id_of(*which);
                die(*which);
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
                cut_off(*which);
            }
            return;
        case FaultKind::NodeFallsSilent:
            if (which != nullptr) {
                die(*which);
                push(
                    now + draw(milliseconds{10}, 2 * scenario.options.lease),
                    NodeStarts{id_of(*which), run_number}
                );
            }
            return;
        case FaultKind::LinkCut:
            if (which != nullptr) {
                which->cut_until = now + draw(milliseconds{100}, 3 * scenario.options.lease);
            }
            return;
        case FaultKind::NodeBreaks:
            if (which != nullptr) {
                which->comes_back = true;
                which->node.break_down(scenario.model, now);
                after_node(*which);
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
        case FaultKind::EndComesLate:
            tell_some_end_again();
            return;
    }
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
    which.cut_life = which.life;
    which.cut_at = now + draw(milliseconds{0}, milliseconds{500});
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

void Simulation::State::tell_some_end_again() {
    std::vector<AttemptEnded> late;
    for (const TrialId id : side->head.active_trials()) {
        const auto before = last_ended.find(id);
        if (before != last_ended.end()) {
            late.push_back(before->second);
        }
    }
    if (late.empty() || side->counted.empty()) {
        return;
    }
    const AttemptEnded& told = late[pick(late.size())];
    const MemberKey key{told.trial, told.attempt, MemberId{0}};
    const NodeId node =
        std::next(side->counted.begin(), static_cast<std::ptrdiff_t>(pick(side->counted.size())))
            ->first;
    step(AgentSaid{node, Ended{key, told.outcome, told.usage}});
}

void Simulation::State::crash_some_trial() {
    std::vector<std::pair<NodeSide*, MemberKey>> running;
    for (NodeSide& which : places) {
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

}  // namespace muster
