// SPDX-License-Identifier: Apache-2.0
//
// attempts - how a trial gets its resources, is asked to end, ends, and what becomes of it then.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.hpp"
#include "base/planted_fault.hpp"
#include "head/head_state.hpp"

namespace muster {
namespace {

/// A keeper may be killed by mistake. A trial that loses one after the other kills them itself, and
/// would be started for ever.
constexpr std::uint32_t kLossesForgiven = 3;

std::vector<BundleView> views_of(const HeadState& head, const Placement& placement) {
    std::vector<BundleView> views;
    views.reserve(placement.bundles.size());
    for (std::size_t index = 0; index < placement.bundles.size(); ++index) {
        const BundlePlacement& bundle = placement.bundles[index];
        const NodeRecord& node = *head.nodes.find(bundle.node);
        BundleView view{
            .host = node.name, .cores = head.cluster.cores_of(placement, index), .devices = {}};
        for (const DeviceShare& share : bundle.devices) {
            view.devices.push_back(node.devices.at(share.device));
        }
        views.push_back(std::move(view));
    }
    return views;
}

Start start_message(const HeadState& head, TrialId id, const Trial& trial) {
    const TrialProgress& progress = *trial.progress;
    const Placement& placement = progress.running->placement;
    const BundlePlacement& own = placement.bundles.front();
    Start start;
    start.key = {id, progress.running->attempt, MemberId{0}};
    start.config = trial.config;
    start.bundles = views_of(head, placement);
    start.cores = start.bundles.front().cores;
    start.last_step = progress.last_step;
    describe_checkpoints(head, id, start);
    start.cpu = own.bundle.cpu;
    start.gpu = own.bundle.gpu;
    start.memory_limit_bytes = own.bundle.memory_bytes;
    for (const DeviceShare& share : own.devices) {
        start.devices.push_back(share.device);
    }
    return start;
}

void start_trial(HeadState& head, TrialId id, Placement placement, TimePoint now) {
    Trial& trial = head.trials.at(id);
    TrialProgress& progress = head.trials.progress(id);
    const AttemptId attempt{head.epoch, head.next_attempt++};
    progress.running = std::make_unique<RunningAttempt>(RunningAttempt{
        .attempt = attempt,
        .placement = placement,
        .started = now,
        .members_left = 1,
        .stop = std::nullopt});
    ++progress.attempts;
    head.record.started(id);
    head.attempts.emplace(attempt, id);
    head.trials.set_state(id, TrialState::Running);

    choose_checkpoint(head, id);
    const TimePoint goal_time = time_total_reached_at(head, progress, now);
    if (goal_time != kNever) {
        head.goal_times.emplace(goal_time, attempt);
    }
    keep(head, AttemptStarted{id, attempt, std::move(placement)});
    // The first fact of a run is its epoch: were it lost, the next run would name its attempts
    // alike. The node removes what it is not told of: that a checkpoint was dropped must be on
    // disk.
    const bool has_saved = head.checkpoints.find(id) != nullptr;
    act(head,
        Send{member_node(progress.running->placement), start_message(head, id, trial)},
        has_saved ? head.facts_emitted : std::max<std::uint64_t>(trial.created_fact, 1));
    warn_of_near_end(head, id, now);
    if (planted(PlantedFault::DoubleStart)) {
        Start again = start_message(head, id, trial);
        ++again.key.attempt.number;
        act(head, Send{member_node(progress.running->placement), std::move(again)});
    }
}

/// What an attempt that ended by itself makes of its trial; nothing when that is a failure.
std::optional<TrialState> natural_end(const Outcome& outcome, std::uint32_t losses) {
    switch (outcome.cause) {
        case EndCause::Exited:
            return outcome.code == 0 ? std::optional(TrialState::Completed) : std::nullopt;
        case EndCause::TimeLimit:
            return TrialState::Stopped;
        case EndCause::Lost:
            if (planted(PlantedFault::LostNodeIsFailure) || losses > kLossesForgiven) {
                return std::nullopt;
            }
            return TrialState::Pending;
        case EndCause::Signalled:
        case EndCause::SpawnFailed:
        case EndCause::MemoryLimit:
        case EndCause::ReportTimeout:
        case EndCause::Stopped:
            return std::nullopt;
    }
    return std::nullopt;
}

void after_failure(HeadState& head, TrialId id, const Ended& ended, TimePoint now) {
    const std::int64_t allowed = head.spec.failures.max_failures;
    const TrialProgress& progress = head.trials.progress(id);
    const std::string what = failure_text(ended.outcome, ended.last_lines);
    const bool again = allowed < 0 || std::int64_t{progress.failures} <= allowed;
    if (again) {
        note(
            head,
            NoteLevel::Warning,
            fmt::format(
                "trial {} failed ({}) and runs again from {}: failure {} of {}",
                to_string(id),
                what,
                resume_text(head, id),
                progress.failures,
                allowed < 0 ? "any number" : std::to_string(allowed)
            )
        );
        requeue(head, id, now);
        return;
    }
    fail_trial(head, id, what, now);
    end_if_nothing_works(head, id, ended, now);
}

/// Counts the attempts that end as lost while the head still hears of their node.
void count_loss(HeadState& head, TrialId id, const Outcome& outcome) {
    TrialProgress& progress = head.trials.progress(id);
    if (outcome.cause != EndCause::Lost) {
        progress.losses = 0;
        return;
    }
    if (progress.running->could_not_resume) {
        return;
    }
    if (++progress.losses <= kLossesForgiven && head.phase == RunPhase::Going) {
        note(
            head,
            NoteLevel::Warning,
            fmt::format("trial {} runs again: {}", to_string(id), to_string(outcome))
        );
    }
}

/// What becomes of the trial of an attempt that has ended, and why; no state is a failure.
struct Verdict {
    std::optional<TrialState> becomes;
    std::string reason;
};

Verdict verdict_on(
    const HeadState& head,
    TrialProgress& progress,
    RunningAttempt& ran,
    const Outcome& outcome
) {
    // A goal that was reached stays reached, whatever the process did afterwards; a trial that was
    // to run again does so. What was asked for otherwise decides only what did not end by itself.
    const bool was_lost = outcome.cause == EndCause::Lost;
    if (ran.stop && (!was_lost || ran.stop->becomes != TrialState::Pending)) {
        return {ran.stop->becomes, std::move(ran.stop->text)};
    }
    if (left_after_warning(head, ran, outcome)) {
        return {TrialState::Paused, ""};
    }
    return {
        natural_end(outcome, progress.losses),
        outcome.cause == EndCause::TimeLimit ? to_string(outcome) : std::string()};
}

/// A whole trial, from its beginning, says how long trials like it take.
void take_duration(HeadState& head, TrialId id, const RunningAttempt& ran, const Ended& ended) {
    if (!ran.resume_from && ended.outcome.cause != EndCause::Lost) {
        head.durations[head.trials.at(id).alternative].add(ended.usage.wall);
    }
}

/// An attempt that did not fail has ended.
void go_on(
    HeadState& head,
    TrialId id,
    const RunningAttempt& ran,
    const Ended& ended,
    Verdict verdict,
    TimePoint now
) {
    switch (*verdict.becomes) {
        case TrialState::Paused:
            wait_for_next_run(head, id, ran, now);
            return;
        case TrialState::Pending:
            if (head.phase == RunPhase::Ending) {
                wait_for_next_run(head, id, ran, now);
            } else {
                requeue(head, id, now);
            }
            return;
        case TrialState::Completed:
        case TrialState::Stopped:
            take_duration(head, id, ran, ended);
            break;
        case TrialState::Running:
        case TrialState::Stopping:
        case TrialState::Failed:
        case TrialState::Cancelled:
            break;
    }
    end_trial(head, id, *verdict.becomes, std::move(verdict.reason), now);
}

}  // namespace

NodeId member_node(const Placement& placement) {
    return placement.bundles.front().node;
}

void start_what_fits(HeadState& head, TimePoint now) {
    if (head.phase != RunPhase::Going) {
        return;
    }
    close_what_will_not_fit(head, now);
    while (std::optional<QueueStart> next = head.queue.next(head.cluster, now)) {
        start_trial(head, next->trial, std::move(next->placement), now);
    }
    head.most_active = std::max<std::uint64_t>(head.most_active, head.trials.active().size());
    send_new_cores(head);
    look_ahead(head);
    end_if_time_is_short(head, now);
}

void requeue(HeadState& head, TrialId id, TimePoint now) {
    head.trials.set_state(id, TrialState::Pending);
    if (planted(PlantedFault::RequeueForgotten)) {
        return;
    }
    head.queue.push(id, head.trials.at(id).alternative, now);
}

void ask_to_stop(HeadState& head, TrialId id, StopReason reason) {
    RunningAttempt& running = *head.trials.progress(id).running;
    const StopKind kind = reason.kind;
    if (running.stop) {
        const bool is_harder = kind == StopKind::Kill && running.stop->kind != StopKind::Kill;
        const bool was_goal = running.stop->kind == StopKind::GoalReached;
        if (!is_harder && !(was_goal && kind == StopKind::Graceful)) {
            return;
        }
        running.stop->kind = kind;
    } else {
        running.stop = std::move(reason);
        head.trials.set_state(id, TrialState::Stopping);
    }
    act_after_facts(
        head, Send{member_node(running.placement), Stop{{id, running.attempt, MemberId{0}}, kind}}
    );
}

void on_member_ended(HeadState& head, TrialId id, const Ended& ended, TimePoint now) {
    RunningAttempt& running = *head.trials.progress(id).running;
    check(running.members_left > 0, "an attempt that holds resources has a member left");
    if (--running.members_left > 0) {
        return;
    }
    count_loss(head, id, ended.outcome);
    finish_attempt(head, id, ended, now);
    judge_nodes(head, now);
    if (!head.record.aside().empty()) {
        // What runs again may be able to do so only on nodes that are set aside.
        judge_feasibility(head, now);
    }
}

void finish_attempt(HeadState& head, TrialId id, const Ended& ended, TimePoint now) {
    const Outcome& outcome = ended.outcome;
    TrialProgress& progress = head.trials.progress(id);
    RunningAttempt running = std::move(*progress.running);
    progress.running.reset();
    head.attempts.erase(running.attempt);
    head.queue.ended(head.cluster, id);
    progress.ran += ended.usage.wall;

    Verdict verdict = verdict_on(head, progress, running, outcome);
    const bool is_failure = !verdict.becomes.has_value();
    if (is_failure) {
        progress.losses = 0;
        ++progress.failures;
        ++head.trials.failures;
    }
    keep(head, AttemptEnded{id, running.attempt, outcome, ended.usage, is_failure});
    const bool ended_well = outcome.cause == EndCause::TimeLimit ||
                            (outcome.cause == EndCause::Exited && outcome.code == 0);
    if (ended_well) {
        on_worked(head, id, running);
    }
    if (is_failure) {
        on_failed(head, id, running.placement, ended);
        after_failure(head, id, ended, now);
    } else {
        go_on(head, id, running, ended, std::move(verdict), now);
    }
}

void end_trial(HeadState& head, TrialId id, TrialState state, std::string reason, TimePoint now) {
    check(is_final(state), "a trial ends in a final state");
    TrialProgress& progress = head.trials.progress(id);
    progress.ended = now;
    progress.reason = reason;
    progress.steps.reset();
    head.trials.set_state(id, state);
    keep(
        head,
        TrialEnded{id, state, std::move(reason), progress.results, progress.last, progress.best}
    );
    if (state != TrialState::Cancelled) {
        act(head, Tell{id, state, progress.best});
        head.checkpoints.set_ended(id, head.trials.worth(id));
        keep_budget(head);
    }
    act_after_facts(head, Announce{id});
}

void fail_trial(HeadState& head, TrialId id, const std::string& reason, TimePoint now) {
    end_trial(head, id, TrialState::Failed, reason, now);
    if (head.spec.failures.fail_fast && head.phase == RunPhase::Going) {
        end_run(
            head,
            {RunEnd::FailFast,
             fmt::format("trial {} failed ({}) and fail_fast is set", to_string(id), reason)},
            StopKind::Graceful,
            now
        );
    }
}

void send_new_cores(HeadState& head) {
    if (planted(PlantedFault::RemaskForgotten)) {
        return;
    }
    for (const BundleRef& remasked : head.cluster.take_remasked()) {
        const TrialProgress* progress = head.trials.at(remasked.holder).progress.get();
        if (remasked.bundle != 0 || progress == nullptr || !progress->running) {
            continue;
        }
        const RunningAttempt& running = *progress->running;
        act(head,
            Send{
                member_node(running.placement),
                SetCores{
                    {remasked.holder, running.attempt, MemberId{0}},
                    head.cluster.cores_of(running.placement, 0)}});
    }
}

}  // namespace muster
