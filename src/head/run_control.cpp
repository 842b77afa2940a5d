// SPDX-License-Identifier: Apache-2.0
//
// run_control - how a run begins, asks for configs, and ends.

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/check.hpp"
#include "head/head_state.hpp"

namespace muster {
namespace {

/// Trials that wait, at least, so that a slot never waits for the searcher.
constexpr std::uint64_t kLeastAhead = 16;

/// The first alternative of the spec that the present nodes could not run even when idle.
std::optional<Error> first_infeasible(const HeadState& head) {
    if (head.spec.resources_of) {
        return std::nullopt;
    }
    for (const ResourceAlternative& alternative : head.spec.resources) {
        const Status feasible = head.cluster.feasible(alternative.group);
        if (!feasible) {
            return feasible.error();
        }
    }
    return std::nullopt;
}

/// As first_infeasible, but only for what waits now.
std::optional<Error> first_waiting_infeasible(const HeadState& head) {
    for (const std::uint32_t shape : head.queue.waiting_shapes()) {
        const Status feasible = head.cluster.feasible(head.spec.resources[shape].group);
        if (!feasible) {
            return feasible.error();
        }
    }
    return std::nullopt;
}

void create_trial(HeadState& head, const Config& config, TimePoint now) {
    const Result<std::uint32_t> request = request_for(head, config);
    const TrialId id = head.trials.create(config, request_or_any(head, request));
    head.trials.at(id).created_fact = keep(head, TrialCreated{id, config});
    const Status fine = request.ok() ? judge_request(head, *request) : request.error();
    if (fine.ok()) {
        head.queue.push(id, *request, now);
    } else {
        fail_trial(head, id, fine.error().message, now);
    }
}

/// Fails what waits since an earlier run and can't run in this one: only what a function asked for.
void fail_what_never_fits(HeadState& head, TimePoint now) {
    for (const std::uint32_t request : head.queue.waiting_shapes()) {
        const Status fine = judge_request(head, request);
        while (const std::optional<TrialId> id =
                   fine.ok() ? std::nullopt : head.queue.first_waiting(request)) {
            head.queue.remove(*id);
            fail_trial(head, *id, fine.error().message, now);
        }
    }
}

bool end_if_budget_is_spent(HeadState& head, TimePoint now) {
    const std::optional<Duration>& budget = head.spec.time_budget;
    if (!budget || now.since_start < *budget) {
        return false;
    }
    end_run(
        head,
        {RunEnd::TimeBudget, fmt::format("time_budget of {} is spent", format_duration(*budget))},
        StopKind::Graceful,
        now
    );
    return true;
}

/// Nothing is active, nothing waits or is paused, and no other config will come.
bool all_done(const HeadState& head) {
    return head.exhausted && !head.ask_open && head.queue.waiting() == 0 &&
           head.time_ends.left.empty();
}

/// Trials that an earlier run left Cancelled, or Failed when those are to be tried again.
bool runs_again(const HeadState& head, TrialState state) {
    return state == TrialState::Cancelled ||
           (state == TrialState::Failed && head.options.retry_failed != RetryFailed::No);
}

/// The order in which trials begin that earlier runs left: those that can go on from a checkpoint
/// first, then those that were interrupted.
int turn_of(const HeadState& head, TrialId id, TrialState before) {
    const TrialCheckpoints* checkpoints = head.checkpoints.find(id);
    if (before == TrialState::Paused || (checkpoints != nullptr && checkpoints->latest())) {
        return before == TrialState::Failed ? 2 : 0;
    }
    const TrialProgress* progress = head.trials.find(id)->progress.get();
    const bool was_interrupted =
        before == TrialState::Pending && progress != nullptr && progress->attempts > 0;
    return was_interrupted ? 1 : 2;
}

/// Everything that may run waits now.
void queue_what_was_left(HeadState& head, TimePoint now) {
    std::array<std::vector<TrialId>, 3> turns;
    for (std::uint32_t value = 0; value < head.trials.size(); ++value) {
        const TrialId id{value};
        const TrialState before = head.trials.at(id).state;
        if (before == TrialState::Failed && head.options.retry_failed == RetryFailed::FromNothing) {
            restart_trial(head, id);
        }
        if (runs_again(head, before) || before == TrialState::Paused) {
            head.trials.set_state(id, TrialState::Pending);
            head.checkpoints.set_open(id);
        }
        if (head.trials.at(id).state == TrialState::Pending) {
            turns[static_cast<std::size_t>(turn_of(head, id, before))].push_back(id);
        }
    }
    for (const std::vector<TrialId>& turn : turns) {
        for (const TrialId id : turn) {
            const Result<std::uint32_t> request = request_for(head, head.trials.at(id).config);
            if (request.ok()) {
                head.queue.push(id, *request, now);
            } else {
                fail_trial(head, id, request.error().message, now);
            }
        }
    }
}

/// Whoever cancels a run cancels what waits too. Once a run, so looking at all trials is cheap.
void cancel_waiting(HeadState& head, TimePoint now) {
    for (std::uint32_t value = 0; value < head.trials.size(); ++value) {
        const TrialId id{value};
        const TrialState state = head.trials.at(id).state;
        if (state == TrialState::Pending || state == TrialState::Paused) {
            head.queue.remove(id);
            end_trial(head, id, TrialState::Cancelled, head.ending->reason, now);
        }
    }
}

}  // namespace

void on_reconcile(HeadState& head, TimePoint now) {
    check(head.phase == RunPhase::Restoring, "a run begins once");
    ++head.epoch;
    keep(head, RunStarted{head.epoch});
    for (const auto& [node, checkpoint] : head.dropped_last) {
        head.to_delete[node].push_back(checkpoint);
    }
    head.dropped_last.clear();
    queue_what_was_left(head, now);
    keep_budget(head);
    head.time_ends.began = now;
    head.phase = RunPhase::WaitingForNodes;
    head.start_by = now + head.options.start_timeout;
    begin_if_ready(head, now);
}

void begin_if_ready(HeadState& head, TimePoint now) {
    if (head.phase != RunPhase::WaitingForNodes) {
        return;
    }
    const bool all_here = head.nodes.count() >= head.options.expected_nodes;
    if (!all_here && now < head.start_by) {
        return;
    }
    head.start_by = kNever;
    if (head.nodes.count() == 0) {
        end_run(head, {RunEnd::Interrupted, "no node is there to begin with"}, StopKind::Kill, now);
        return;
    }
    if (!all_here) {
        note(
            head,
            NoteLevel::Warning,
            fmt::format(
                "{} of {} nodes reported in time; going on with those",
                head.nodes.count(),
                head.options.expected_nodes
            )
        );
    }
    if (const std::optional<Error> infeasible = first_infeasible(head)) {
        end_run(head, {RunEnd::Infeasible, infeasible->message}, StopKind::Kill, now);
        return;
    }
    if (end_if_budget_is_spent(head, now)) {
        return;
    }
    head.phase = RunPhase::Going;
    head.nodes_at_begin = head.nodes.count();
    fail_what_never_fits(head, now);
    start_what_fits(head, now);
}

void judge_feasibility(HeadState& head, TimePoint now) {
    if (head.phase != RunPhase::Going) {
        return;
    }
    std::optional<Error> infeasible = first_waiting_infeasible(head);
    if (infeasible && take_back_needed_nodes(head)) {
        infeasible.reset();
    }
    if (!infeasible) {
        head.give_up_at = kNever;
        return;
    }
    head.give_up_reason = infeasible->message;
    if (head.give_up_at == kNever) {
        head.give_up_at = now + head.options.wait_for_nodes;
    }
    if (head.give_up_at <= now) {
        head.give_up_at = kNever;
        end_run(head, {RunEnd::Interrupted, head.give_up_reason}, StopKind::Graceful, now);
    }
}

void look_ahead(HeadState& head) {
    if (head.phase != RunPhase::Going || head.ask_open || head.exhausted) {
        return;
    }
    const std::uint64_t ahead =
        std::max<std::uint64_t>(kLeastAhead, 2 * head.trials.active().size());
    const std::uint64_t waiting = head.queue.waiting();
    // Asking in halves keeps the questions few when many trials end at once.
    if (waiting > ahead / 2) {
        return;
    }
    head.ask_open = true;
    act(head, Ask{static_cast<std::uint32_t>(ahead - waiting)});
}

void on_suggested(HeadState& head, const Suggested& suggested, TimePoint now) {
    head.ask_open = false;
    head.exhausted = head.exhausted || suggested.exhausted;
    for (const Config& config : suggested.configs) {
        create_trial(head, config, now);
    }
    judge_feasibility(head, now);
    start_what_fits(head, now);
}

void end_run(HeadState& head, RunEnded ended, StopKind kind, TimePoint now) {
    if (head.ending) {
        return;
    }
    const RunEnd end = ended.end;
    head.ending = std::move(ended);
    head.phase = RunPhase::Ending;
    head.start_by = kNever;
    head.give_up_at = kNever;
    const bool goes_on = end == RunEnd::Interrupted || end == RunEnd::NothingWorks;
    const TrialState becomes = goes_on                     ? TrialState::Pending
                               : end == RunEnd::TimeBudget ? TrialState::Stopped
                                                           : TrialState::Cancelled;
    const std::set<TrialId> active = head.trials.active();
    for (const TrialId id : active) {
        ask_to_stop(head, id, {becomes, kind, head.ending->reason});
    }
    if (becomes == TrialState::Cancelled) {
        cancel_waiting(head, now);
    }
}

void on_cancel(HeadState& head, const CancelRequested& cancel, TimePoint now) {
    const StopKind kind = cancel.at_once ? StopKind::Kill : StopKind::Graceful;
    if (!head.ending) {
        end_run(head, {cancel.end, cancel.reason}, kind, now);
        return;
    }
    const std::set<TrialId> active = head.trials.active();
    for (const TrialId id : active) {
        ask_to_stop(head, id, {TrialState::Cancelled, kind, cancel.reason});
    }
}

void on_tick(HeadState& head, TimePoint now) {
    if (head.phase == RunPhase::Going) {
        end_if_budget_is_spent(head, now);
    }
    watch_end(head, now);
    stop_by_time_total(head, now);
    lose_silent_nodes(head, now);
    begin_if_ready(head, now);
    judge_feasibility(head, now);
    start_what_fits(head, now);
}

void leave_if_done(HeadState& head) {
    if (head.phase == RunPhase::Over || !head.trials.active().empty()) {
        return;
    }
    if (head.phase == RunPhase::Going && all_done(head)) {
        head.ending = RunEnded{RunEnd::Finished, ""};
        head.phase = RunPhase::Ending;
    }
    if (head.phase != RunPhase::Ending) {
        return;
    }
    head.phase = RunPhase::Over;
    if (head.time_ends.has_come) {
        head.ending->reason += left_behind_text(head);
    }
    keep(head, *head.ending);
    for (const NodeId node : head.nodes.up()) {
        act(head, Send{node, Dismiss{}});
    }
    act_after_facts(head, Leave{head.ending->end, head.ending->reason});
}

}  // namespace muster
