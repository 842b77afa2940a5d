// SPDX-License-Identifier: Apache-2.0
//
// restore - facts of earlier runs become state. Nothing is decided and nothing emitted here: the
// Reconcile that follows does what the restored state still needs.

#include <algorithm>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "base/check.hpp"
#include "base/overloaded.hpp"
#include "head/head_state.hpp"

namespace muster {
namespace {

Error contradiction(std::string text) {
    return {ErrorCode::Corrupt, std::move(text)};
}

Status unknown_trial(TrialId id) {
    return contradiction(fmt::format("trial {} was never created", to_string(id)));
}

Status restore_created(HeadState& head, const TrialCreated& created) {
    if (created.trial.value != head.trials.size()) {
        return contradiction(fmt::format(
            "trial {} was created when {} was due",
            to_string(created.trial),
            to_string(TrialId{head.trials.size()})
        ));
    }
    const Result<std::uint32_t> request = request_for(head, created.config);
    // Without one it fails, should it come to wait.
    head.trials.create(created.config, request_or_any(head, request));
    return Ok{};
}

Status restore_attempt_ended(HeadState& head, const AttemptEnded& ended) {
    TrialProgress& progress = head.trials.progress(ended.trial);
    progress.ran += ended.usage.wall;
    if (ended.is_failure) {
        ++progress.failures;
        ++head.trials.failures;
    }
    return Ok{};
}

Status restore_trial_ended(HeadState& head, const TrialEnded& ended, TimePoint at) {
    TrialProgress& progress = head.trials.progress(ended.trial);
    if (ended.results > 0 || ended.state == TrialState::Completed) {
        head.record.has_worked();
    }
    progress.ended = at;
    progress.reason = ended.reason;
    // The fact carries what the results say, so that they need not be read for trials that ended.
    head.trials.record_end(ended);
    head.trials.set_state(ended.trial, ended.state);
    if (ended.state != TrialState::Cancelled) {
        head.checkpoints.set_ended(ended.trial, head.trials.worth(ended.trial));
    }
    const bool is_whole =
        ended.state == TrialState::Completed || ended.state == TrialState::Stopped;
    if (is_whole && progress.attempts == 1) {
        head.durations[head.trials.at(ended.trial).alternative].add(progress.ran);
    }
    return Ok{};
}

/// An attempt began: a trial that an earlier run left behind runs again in this one.
void restore_start(HeadState& head, TrialId id, AttemptId last, std::uint32_t attempts) {
    // Even if that run's own record is lost: no two runs may have the same epoch.
    head.epoch = std::max(head.epoch, last.epoch);
    head.trials.set_state(id, TrialState::Pending);
    head.trials.progress(id).attempts += attempts;
    head.checkpoints.set_open(id);
}

void restore_kept(HeadState& head, const CheckpointKept& kept) {
    head.record.has_worked();
    head.checkpoints.keep(
        kept.trial,
        {.number = kept.number,
         .step = kept.step,
         .bytes = kept.bytes,
         .score = kept.score,
         .node = kept.node}
    );
}

/// The run may have ended before the files went.
void restore_dropped(HeadState& head, const CheckpointDropped& dropped) {
    constexpr std::size_t kRemembered = 1024;
    const TrialCheckpoints* all = head.checkpoints.find(dropped.trial);
    if (const Checkpoint* known = all == nullptr ? nullptr : all->find(dropped.number)) {
        head.dropped_last.push_back({known->node, {dropped.trial, dropped.number}});
        if (head.dropped_last.size() > kRemembered) {
            head.dropped_last.pop_front();
        }
    }
    head.checkpoints.drop(dropped.trial, dropped.number);
}

Status restore_paused(HeadState& head, const TrialPaused& paused) {
    head.trials.set_state(paused.trial, TrialState::Paused);
    head.trials.progress(paused.trial).reason = paused.reason;
    return Ok{};
}

Status restore_condensed(HeadState& head, const TrialCondensed& condensed) {
    if (condensed.config) {
        Status created = restore_created(head, {condensed.trial, *condensed.config});
        if (!created.ok()) {
            return created;
        }
    } else if (head.trials.find(condensed.trial) == nullptr) {
        return unknown_trial(condensed.trial);
    }
    if (condensed.attempts > 0) {
        restore_start(head, condensed.trial, condensed.attempt, condensed.attempts);
    }
    for (const std::uint32_t number : condensed.dropped) {
        head.checkpoints.drop(condensed.trial, number);
    }
    for (const CheckpointKept& kept : condensed.checkpoints) {
        restore_kept(head, kept);
    }
    if (condensed.last_checkpoint > 0) {
        head.checkpoints.used_number(condensed.trial, condensed.last_checkpoint);
    }
    if (condensed.attempts_ended > 0) {
        TrialProgress& progress = head.trials.progress(condensed.trial);
        progress.ran += condensed.usage.wall;
        progress.failures += condensed.failures;
        head.trials.failures += condensed.failures;
    }
    if (condensed.ended) {
        Status ended = restore_trial_ended(head, *condensed.ended, condensed.ended_at);
        if (!ended.ok()) {
            return ended;
        }
    }
    if (condensed.runs_again) {
        head.trials.set_state(condensed.trial, TrialState::Pending);
        head.checkpoints.set_open(condensed.trial);
    }
    if (condensed.paused) {
        return restore_paused(head, {condensed.trial, *condensed.paused});
    }
    return Ok{};
}

Status restore_reopened(HeadState& head, const TrialReopened& reopened) {
    TrialProgress& progress = head.trials.progress(reopened.trial);
    if (reopened.forgiven > progress.failures) {
        return contradiction(fmt::format(
            "{} failures of trial {} are forgiven, which failed {} times",
            reopened.forgiven,
            to_string(reopened.trial),
            progress.failures
        ));
    }
    if (head.trials.at(reopened.trial).state == TrialState::Failed) {
        head.checkpoints.set_open(reopened.trial);
    }
    head.trials.forgive(reopened.trial, reopened.forgiven);
    return Ok{};
}

Status restore_run_started(HeadState& head, const RunStarted& started) {
    if (started.epoch <= head.epoch) {
        return contradiction(fmt::format("run {} began after run {}", started.epoch, head.epoch));
    }
    head.epoch = started.epoch;
    head.ended_before.reset();
    return Ok{};
}

void restore_result(HeadState& head, const ResultReported& reported) {
    const TrialProgress& progress = head.trials.progress(reported.trial);
    if (!reported.overrun && reported.attempt.epoch >= progress.first_epoch) {
        head.record.has_worked();
        head.trials.record(reported.trial, reported.attempt, reported.result);
    }
}

void restore_restarted(HeadState& head, const TrialRestarted& restarted) {
    head.trials.restart(restarted.trial, restarted.epoch);
    head.checkpoints.set_open(restarted.trial);
}

/// A fact about a trial that was created before.
Status restore_known(HeadState& head, const Fact& fact, TimePoint at) {
    return std::visit(
        Overloaded{
            [&](const AttemptStarted& started) -> Status {
                restore_start(head, started.trial, started.attempt, 1);
                return Ok{};
            },
            [&](const ResultReported& reported) -> Status {
                restore_result(head, reported);
                return Ok{};
            },
            [&](const AttemptEnded& ended) { return restore_attempt_ended(head, ended); },
            [&](const TrialEnded& ended) { return restore_trial_ended(head, ended, at); },
            [&](const TrialReopened& reopened) { return restore_reopened(head, reopened); },
            [&](const CheckpointKept& kept) -> Status {
                restore_kept(head, kept);
                return Ok{};
            },
            [&](const CheckpointDropped& dropped) -> Status {
                restore_dropped(head, dropped);
                return Ok{};
            },
            [&](const TrialRestarted& restarted) -> Status {
                restore_restarted(head, restarted);
                return Ok{};
            },
            [&](const TrialPaused& paused) { return restore_paused(head, paused); },
            [](const auto&) -> Status { return Ok{}; }},
        fact
    );
}

}  // namespace

Status Head::restore(const Fact& fact, TimePoint at) {
    HeadState& head = *state_;
    check(head.phase == RunPhase::Restoring, "facts are restored before the run begins");
    return std::visit(
        Overloaded{
            [&](const RunStarted& started) { return restore_run_started(head, started); },
            [&](const RunEnded& ended) -> Status {
                head.ended_before = ended.end;
                return Ok{};
            },
            [](const NodeJoined&) -> Status { return Ok{}; },
            [&](const TrialCreated& created) { return restore_created(head, created); },
            [&](const TrialCondensed& condensed) { return restore_condensed(head, condensed); },
            [&](const auto& of_trial) -> Status {
                if constexpr (std::is_same_v<decltype(of_trial), const AttemptStarted&>) {
                    head.epoch = std::max(head.epoch, of_trial.attempt.epoch);
                }
                return head.trials.find(of_trial.trial) == nullptr ? unknown_trial(of_trial.trial)
                                                                   : restore_known(head, fact, at);
            }},
        fact
    );
}

}  // namespace muster
