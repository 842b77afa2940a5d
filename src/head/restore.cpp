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
    if (ended.best) {
        head.trials.record(ended.trial, *ended.best);
    }
    progress.results = ended.results;
    progress.last = ended.last;
    progress.best = ended.best;
    if (ended.last) {
        progress.last_step = ended.last->step;
    }
    head.trials.set_state(ended.trial, ended.state);
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
        head.epoch = std::max(head.epoch, condensed.attempt.epoch);
        head.trials.progress(condensed.trial).attempts += condensed.attempts;
        head.trials.set_state(condensed.trial, TrialState::Pending);
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
                // Even if that run's own record is lost: no two runs may have the same epoch.
                head.epoch = std::max(head.epoch, started.attempt.epoch);
                return for_known(started.trial, [&]() -> Status {
                    // A trial that an earlier run left behind runs again in this one.
                    head.trials.set_state(started.trial, TrialState::Pending);
                    ++head.trials.progress(started.trial).attempts;
                    return Ok{};
                });
            },
            [&](const ResultReported& reported) {
                return for_known(reported.trial, [&]() -> Status {
                    if (!reported.overrun) {
                        head.record.has_worked();
                        head.trials.record(reported.trial, reported.result);
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
            [&](const TrialCondensed& condensed) { return restore_condensed(head, condensed); }},
        fact
    );
}

}  // namespace muster
