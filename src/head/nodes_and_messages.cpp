// SPDX-License-Identifier: Apache-2.0
//
// nodes_and_messages - what agents say, and nodes that come and go. This is the one place where
// messages of attempts that are over are dropped.

#include <utility>

#include <fmt/format.h>

#include "base/overloaded.hpp"
#include "base/planted_fault.hpp"
#include "head/head_state.hpp"

namespace muster {
namespace {

/// The trial that this attempt is running, or nothing when the attempt is over: whatever is said
/// about it is late and changes nothing.
std::optional<TrialId> running_trial(const HeadState& head, const MemberKey& key, NodeId node) {
    if (planted(PlantedFault::StaleEndedAccepted)) {
        const Trial* trial = head.trials.find(key.trial);
        const bool runs = trial != nullptr && trial->progress && trial->progress->running;
        return runs ? std::optional(key.trial) : std::nullopt;
    }
    const auto found = head.attempts.find(key.attempt);
    if (found == head.attempts.end() || found->second != key.trial) {
        return std::nullopt;
    }
    const Trial* trial = head.trials.find(key.trial);
    return member_node(trial->progress->running->placement) == node ? std::optional(found->second)
                                                                    : std::nullopt;
}

void on_hello(HeadState& head, NodeId id, const Hello& hello, TimePoint now) {
    const auto known = head.nodes.find(id);
    if (known != head.nodes.end()) {
        if (hello.incarnation <= known->second.incarnation) {
            return;
        }
        // It came back before anyone missed it: what it ran then is gone.
        on_node_lost(head, id, now);
    }
    NodeRecord record{
        .name = hello.inventory.name, .incarnation = hello.incarnation, .devices = {}};
    for (const Device& device : hello.inventory.devices) {
        record.devices.push_back(device.label);
    }
    head.nodes[id] = std::move(record);
    head.cluster.add_node(id, hello.inventory);
    act(head,
        Send{
            id,
            Setup{
                .epoch = head.epoch,
                .experiment = head.spec.name,
                .experiment_dir = head.options.experiment_dir,
                .trial = head.spec.trial,
                .objective = head.spec.objective}});
    begin_if_ready(head, now);
    judge_feasibility(head, now);
    start_what_fits(head, now);
}

}  // namespace

void on_agent_said(HeadState& head, const AgentSaid& said, TimePoint now) {
    if (const Hello* hello = std::get_if<Hello>(&said.message)) {
        on_hello(head, said.node, *hello, now);
        return;
    }
    const auto for_trial = [&](const MemberKey& key, const auto& then) {
        if (const std::optional<TrialId> trial = running_trial(head, key, said.node)) {
            then(*trial);
        }
    };
    std::visit(
        Overloaded{
            [](const Hello&) {},
            [](const Heartbeat&) {},
            [](const Farewell&) {},
            [](const Started&) {},
            [&](const Reported& reported) {
                for_trial(reported.key, [&](TrialId id) { on_reported(head, id, reported, now); });
            },
            [&](const Ended& ended) {
                for_trial(ended.key, [&](TrialId id) {
                    on_member_ended(head, id, ended, now);
                    start_what_fits(head, now);
                });
            },
            [&](const Remark& remark) {
                for_trial(remark.key, [&](TrialId id) {
                    note(
                        head,
                        NoteLevel::Warning,
                        fmt::format("trial {}: {}", to_string(id), remark.text)
                    );
                });
            }},
        said.message
    );
}

void on_node_lost(HeadState& head, NodeId node, TimePoint now) {
    const auto known = head.nodes.find(node);
    if (known == head.nodes.end()) {
        return;
    }
    const std::string name = known->second.name;
    head.nodes.erase(known);
    head.cluster.remove_node(node);

    std::size_t interrupted = 0;
    const std::set<TrialId> active = head.trials.active();
    for (const TrialId id : active) {
        const RunningAttempt& running = *head.trials.progress(id).running;
        const Placement& placement = running.placement;
        bool touches = false;
        for (const BundlePlacement& bundle : placement.bundles) {
            touches = touches || bundle.node == node;
        }
        if (!touches) {
            continue;
        }
        ++interrupted;
        if (member_node(placement) == node) {
            finish_attempt(
                head,
                id,
                {EndCause::Lost, 0, fmt::format("node {} was lost", name)},
                Usage{.wall = now - running.started},
                now
            );
        } else {
            ask_to_stop(
                head,
                id,
                {TrialState::Pending, StopKind::Kill, fmt::format("node {} was lost", name)}
            );
        }
    }
    note(
        head,
        NoteLevel::Warning,
        fmt::format("node {} was lost; trials that run again: {}", name, interrupted)
    );
    judge_feasibility(head, now);
    start_what_fits(head, now);
}

}  // namespace muster
