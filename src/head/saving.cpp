// SPDX-License-Identifier: Apache-2.0
//
// saving - checkpoints that trials save, go on from and lose: which are kept, and that files go
// only after the fact that drops them is on disk.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/planted_fault.hpp"
#include "head/head_state.hpp"

namespace muster {
namespace {

/// The name of the node of the trial's attempt; empty where all nodes see its checkpoints.
std::string home_of(const HeadState& head, const RunningAttempt& running) {
    return head.spec.checkpoints.storage == CheckpointStorage::Shared
               ? std::string()
               : head.nodes.find(member_node(running.placement))->name;
}

CheckpointKept fact_of(TrialId id, AttemptId attempt, const Checkpoint& checkpoint) {
    return {
        id,
        attempt,
        checkpoint.number,
        checkpoint.step,
        checkpoint.bytes,
        checkpoint.score,
        checkpoint.node};
}

/// A node that can remove the files, when one is there: rather the one where the trial runs.
std::optional<NodeId> remover_of(const HeadState& head, TrialId id, const std::string& node) {
    if (!node.empty()) {
        return head.nodes.find(node);
    }
    const Trial* trial = head.trials.find(id);
    const bool runs = trial != nullptr && trial->progress && trial->progress->running;
    return runs ? std::optional(member_node(trial->progress->running->placement))
                : head.nodes.first();
}

void delete_files(HeadState& head, CheckpointRef checkpoint, const std::string& node) {
    if (const std::optional<NodeId> remover = remover_of(head, checkpoint.trial, node)) {
        act(head,
            Send{*remover, DeleteCheckpoint{checkpoint.trial, checkpoint.number}},
            planted(PlantedFault::CheckpointRemovedTooEarly) ? 0 : head.facts_emitted);
    } else {
        head.to_delete[node].push_back(checkpoint);
    }
}

/// A checkpoint that its trial's new node has fetched lies there from now on.
void move_checkpoint(HeadState& head, TrialId id, const Checkpoint& from, const std::string& to) {
    if (from.node == to) {
        return;
    }
    Checkpoint moved = from;
    const std::string before = std::exchange(moved.node, to);
    keep(head, fact_of(id, head.trials.progress(id).running->attempt, moved));
    head.checkpoints.keep(id, std::move(moved));
    delete_files(head, {id, from.number}, before);
}

std::optional<double> score_now(const HeadState& head, const TrialProgress& progress) {
    const std::string& metric = head.spec.checkpoints.score;
    return metric.empty() || !progress.last ? std::nullopt : progress.last->metric(metric);
}

std::string name_of(const Checkpoint& checkpoint) {
    return fmt::format("checkpoint {} (step {})", checkpoint.number, checkpoint.step);
}

/// The latest checkpoint that can be had, and the node to fetch it from when that is not `home`.
std::pair<const Checkpoint*, std::optional<NodeId>>
latest_within_reach(const HeadState& head, const TrialCheckpoints& all, const std::string& home) {
    for (auto checkpoint = all.kept.rbegin(); checkpoint != all.kept.rend(); ++checkpoint) {
        if (checkpoint->node.empty() || checkpoint->node == home) {
            return {&*checkpoint, std::nullopt};
        }
        if (const std::optional<NodeId> owner = head.nodes.find(checkpoint->node)) {
            return {&*checkpoint, owner};
        }
    }
    return {nullptr, std::nullopt};
}

}  // namespace

void on_checkpoint_saved(HeadState& head, TrialId id, const CheckpointSaved& saved, TimePoint now) {
    RunningAttempt& running = *head.trials.progress(id).running;
    const std::string home = home_of(head, running);
    if (const TrialCheckpoints* all = head.checkpoints.find(id)) {
        if (const Checkpoint* known = all->find(saved.number)) {
            const Checkpoint from = *known;
            move_checkpoint(head, id, from, home);
            return;
        }
        if (saved.number < all->next) {
            delete_files(head, {id, saved.number}, home);
            return;
        }
    }
    Checkpoint checkpoint{
        .number = saved.number,
        .step = saved.step,
        .bytes = std::max<std::int64_t>(saved.bytes, 0),
        .score = score_now(head, head.trials.progress(id)),
        .node = home};
    keep(head, fact_of(id, running.attempt, checkpoint));
    head.checkpoints.keep(id, std::move(checkpoint));
    running.has_saved = true;
    act(head,
        Send{member_node(running.placement), CheckpointDurable{saved.key, saved.number}},
        planted(PlantedFault::CheckpointSafeTooEarly) ? 0 : head.facts_emitted);
    for (const std::uint32_t number : head.checkpoints.surplus(id)) {
        drop_checkpoint(head, {id, number});
    }
    keep_budget(head);
    if (on_worked(head, id, running) && judge_nodes(head, now)) {
        start_what_fits(head, now);
    }
}

void on_checkpoint_gone(HeadState& head, TrialId id, const CheckpointGone& gone) {
    head.trials.progress(id).running->could_not_resume = true;
    const TrialCheckpoints* all = head.checkpoints.find(id);
    const Checkpoint* known = all == nullptr ? nullptr : all->find(gone.number);
    if (known == nullptr) {
        return;
    }
    const std::string name = name_of(*known);
    // A node that is away may come back with it.
    const bool is_away = !known->node.empty() && !head.nodes.find(known->node);
    if (!is_away) {
        drop_checkpoint(head, {id, gone.number});
    }
    note(
        head,
        NoteLevel::Warning,
        fmt::format(
            "trial {} can't go on from {}: {}{}",
            to_string(id),
            name,
            gone.why,
            is_away ? "" : "; it goes on from " + resume_text(head, id)
        )
    );
}

void on_to_peer(HeadState& head, NodeId from, const ToPeer& word) {
    if (head.nodes.find(word.to) != nullptr) {
        act(head, Send{word.to, FromPeer{from, word.content}});
    } else {
        act(head, Send{from, PeerUnreachable{word.to}});
    }
}

void choose_checkpoint(HeadState& head, TrialId id) {
    const TrialCheckpoints* all = head.checkpoints.find(id);
    if (all == nullptr || all->kept.empty()) {
        return;
    }
    TrialProgress& progress = head.trials.progress(id);
    const auto [found, owner] = latest_within_reach(head, *all, home_of(head, *progress.running));
    progress.running->fetch_from = owner;
    progress.last_step = found == nullptr ? 0 : found->step;
    if (found != nullptr) {
        progress.running->resume_from = found->number;
    }
    if (found != all->latest()) {
        note(
            head,
            NoteLevel::Warning,
            fmt::format(
                "trial {} goes on from {}, since node {}, which has {}, is not there",
                to_string(id),
                found == nullptr ? "the beginning" : name_of(*found),
                all->latest()->node,
                name_of(*all->latest())
            )
        );
    }
}

void describe_checkpoints(const HeadState& head, TrialId id, Start& start) {
    const TrialCheckpoints* all = head.checkpoints.find(id);
    if (all == nullptr) {
        return;
    }
    const RunningAttempt& running = *head.trials.find(id)->progress->running;
    for (const Checkpoint& checkpoint : all->kept) {
        start.kept_checkpoints.push_back(checkpoint.number);
    }
    if (!planted(PlantedFault::CheckpointForgotten)) {
        start.resume_from = running.resume_from;
    }
    start.fetch_from = running.fetch_from;
    start.next_checkpoint = all->next;
}

void drop_checkpoint(HeadState& head, CheckpointRef checkpoint) {
    const Checkpoint* known = head.checkpoints.find(checkpoint.trial)->find(checkpoint.number);
    const std::string node = known->node;
    head.checkpoints.drop(checkpoint.trial, checkpoint.number);
    keep(head, CheckpointDropped{checkpoint.trial, checkpoint.number});
    delete_files(head, checkpoint, node);
}

void keep_budget(HeadState& head) {
    while (const std::optional<CheckpointRef> excess = head.checkpoints.excess()) {
        drop_checkpoint(head, *excess);
    }
    if (!head.checkpoints.is_over_budget() || head.said_over_budget) {
        return;
    }
    head.said_over_budget = true;
    note(
        head,
        NoteLevel::Warning,
        fmt::format(
            "checkpoints take {}, more than checkpoints.budget of {}: the latest ones of trials "
            "that go on are all that is left",
            format_bytes(head.checkpoints.bytes()),
            format_bytes(head.spec.checkpoints.budget_bytes)
        )
    );
}

void delete_waiting_files(HeadState& head, NodeId node) {
    for (const std::string& name : {std::string(), head.nodes.find(node)->name}) {
        const auto waiting = head.to_delete.find(name);
        if (waiting == head.to_delete.end()) {
            continue;
        }
        for (const CheckpointRef& gone : waiting->second) {
            act_after_facts(head, Send{node, DeleteCheckpoint{gone.trial, gone.number}});
        }
        head.to_delete.erase(waiting);
    }
}

void tell_fetchers(HeadState& head, NodeId lost) {
    if (head.spec.checkpoints.storage == CheckpointStorage::Shared) {
        return;
    }
    for (const TrialId id : head.trials.active()) {
        RunningAttempt& running = *head.trials.progress(id).running;
        if (running.fetch_from == lost) {
            running.fetch_from.reset();
            act(head, Send{member_node(running.placement), PeerUnreachable{lost}});
        }
    }
}

void restart_trial(HeadState& head, TrialId id) {
    if (const TrialCheckpoints* all = head.checkpoints.find(id)) {
        const std::vector<Checkpoint> kept = all->kept;
        for (const Checkpoint& checkpoint : kept) {
            drop_checkpoint(head, {id, checkpoint.number});
        }
    }
    head.trials.restart(id, head.epoch);
    keep(head, TrialRestarted{id, head.epoch});
}

std::string resume_text(const HeadState& head, TrialId id) {
    const TrialCheckpoints* all = head.checkpoints.find(id);
    const Checkpoint* latest = all == nullptr ? nullptr : all->latest();
    return latest == nullptr ? "the beginning" : name_of(*latest);
}

}  // namespace muster
