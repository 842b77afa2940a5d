// SPDX-License-Identifier: Apache-2.0
//
// restore - facts of earlier runs become state. Nothing is decided and nothing emitted here: the
// Reconcile that follows does what the restored state still needs.

#include <algorithm>
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
    std::uint32_t alternative = 0;
    for (std::size_t index = 0; index < head.spec.resources.size(); ++index) {
        if (holds(head.spec.resources[index].when, created.config)) {
            alternative = static_cast<std::uint32_t>(index);
            break;
        }
    }
    head.trials.create(created.config, alternative);
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

}  // namespace

Status Head::restore(const Fact& fact, TimePoint at) {
    HeadState& head = *state_;
    check(head.phase == RunPhase::Restoring, "facts are restored before the run begins");
    const auto for_known = [&](TrialId id, const auto& then) -> Status {
        return head.trials.find(id) == nullptr ? unknown_trial(id) : then();
    };
    return std::visit(
        Overloaded{
            [&](const RunStarted& started) -> Status {
                if (started.epoch <= head.epoch) {
                    return contradiction(
                        fmt::format("run {} began after run {}", started.epoch, head.epoch)
                    );
                }
                head.epoch = started.epoch;
                head.ended_before.reset();
                return Ok{};
            },
            [](const NodeJoined&) { return Status(Ok{}); },
            [&](const TrialCreated& created) { return restore_created(head, created); },
            [&](const AttemptStarted& started) {
                head.epoch = std::max(head.epoch, started.attempt.epoch);
                return for_known(started.trial, [&]() -> Status {
                    restore_start(head, started.trial, started.attempt, 1);
                    return Ok{};
                });
            },
            [&](const ResultReported& reported) {
                return for_known(reported.trial, [&]() -> Status {
                    const TrialProgress& progress = head.trials.progress(reported.trial);
                    if (!reported.overrun && reported.attempt.epoch >= progress.first_epoch) {
                        head.record.has_worked();
                        head.trials.record(reported.trial, reported.attempt, reported.result);
                    }
                    return Ok{};
                });
            },
            [&](const AttemptEnded& ended) {
                return for_known(ended.trial, [&] { return restore_attempt_ended(head, ended); });
            },
            [&](const TrialEnded& ended) {
                return for_known(ended.trial, [&] { return restore_trial_ended(head, ended, at); });
            },
            [&](const RunEnded& ended) -> Status {
                head.ended_before = ended.end;
                return Ok{};
            },
            [&](const TrialReopened& reopened) {
                return for_known(reopened.trial, [&]() -> Status {
                    return restore_reopened(head, reopened);
                });
            },
            [&](const CheckpointKept& kept) {
                return for_known(kept.trial, [&]() -> Status {
                    restore_kept(head, kept);
                    return Ok{};
                });
            },
            [&](const CheckpointDropped& dropped) {
                return for_known(dropped.trial, [&]() -> Status {
                    restore_dropped(head, dropped);
                    return Ok{};
                });
            },
            [&](const TrialRestarted& restarted) {
                return for_known(restarted.trial, [&]() -> Status {
                    head.trials.restart(restarted.trial, restarted.epoch);
                    head.checkpoints.set_open(restarted.trial);
                    return Ok{};
                });
            },
            [&](const TrialPaused& paused) {
                return for_known(paused.trial, [&] { return restore_paused(head, paused); });
            },
            [&](const TrialCondensed& condensed) { return restore_condensed(head, condensed); }},
        fact
    );
}

}  // namespace muster
