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
    if (!head.nodes.is_news(id, hello.incarnation)) {
        return;
    }
    if (head.nodes.find(id) != nullptr) {
        on_node_lost(head, id, "it came anew before it was missed", now);
    }
    NodeRecord record{
        .name = hello.inventory.name, .incarnation = hello.incarnation, .devices = {}};
    for (const Device& device : hello.inventory.devices) {
        record.devices.push_back(device.label);
    }
    head.record.excuse_nobody();
    head.nodes.join(id, std::move(record), now);
    keep(head, NodeJoined{id, hello.inventory.name, hello.incarnation});
    head.cluster.add_node(id, hello.inventory);
    act(head,
        Send{
            id,
            Setup{
                .epoch = head.epoch,
                .experiment = head.spec.name,
                .experiment_dir = head.options.experiment_dir,
                .trial = head.spec.trial,
                .objective = head.spec.objective,
                .checkpoint_storage = head.spec.checkpoints.storage,
                .checkpoint_path = head.spec.checkpoints.path,
                .warning_signal = head.spec.end.signal,
                .seed = head.spec.seed}});
    delete_waiting_files(head, id);
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
    if (!head.nodes.hear(said.node, now)) {
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
            [&](const Heartbeat& heartbeat) {
                act(head, Send{said.node, Alive{heartbeat.number}});
            },
            [&](const Farewell& farewell) { on_node_lost(head, said.node, farewell.reason, now); },
            [&](const Started& started) {
                for_trial(started.key, [&](TrialId id) {
                    head.trials.progress(id).running->fetch_from.reset();
                });
            },
            [&](const Reported& reported) {
                for_trial(reported.key, [&](TrialId id) { on_reported(head, id, reported, now); });
            },
            [&](const Ended& ended) {
                for_trial(ended.key, [&](TrialId id) {
                    on_member_ended(head, id, ended, now);
                    start_what_fits(head, now);
                });
            },
            [&](const CheckpointSaved& saved) {
                for_trial(saved.key, [&](TrialId id) {
                    on_checkpoint_saved(head, id, saved, now);
                });
            },
            [&](const CheckpointGone& gone) {
                for_trial(gone.key, [&](TrialId id) { on_checkpoint_gone(head, id, gone); });
            },
            [&](const ToPeer& word) { on_to_peer(head, said.node, word); },
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

void on_node_lost(HeadState& head, NodeId node, const std::string& why, TimePoint now) {
    if (head.nodes.find(node) == nullptr) {
        return;
    }
    const NodeRecord lost = head.nodes.leave(node);
    const std::vector<TrialId> interrupted = head.cluster.holders(node);
    head.cluster.remove_node(node);
    head.record.forget(node);
    act(head, Abandon{node, lost.incarnation});
    tell_fetchers(head, node);

    const std::string text = fmt::format("node {} was lost: {}", lost.name, why);
    for (const TrialId id : interrupted) {
        const RunningAttempt& running = *head.trials.progress(id).running;
        if (member_node(running.placement) == node) {
            const Usage usage{.wall = now - running.started};
            finish_attempt(head, id, {{}, {EndCause::Lost, 0, text}, usage, ""}, now);
        } else {
            ask_to_stop(head, id, {TrialState::Pending, StopKind::Kill, text});
        }
    }
    note(
        head,
        NoteLevel::Warning,
        fmt::format("{}; trials that it interrupted: {}", text, interrupted.size())
    );
    judge_feasibility(head, now);
    start_what_fits(head, now);
}

void lose_silent_nodes(HeadState& head, TimePoint now) {
    while (const std::optional<NodeId> node = head.nodes.silent(now)) {
        on_node_lost(
            head,
            *node,
            fmt::format("it was silent for {}", format_duration(head.options.lease)),
            now
        );
    }
}

}  // namespace muster
