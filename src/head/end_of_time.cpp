// SPDX-License-Identifier: Apache-2.0
//
// end_of_time - what the end of an allocation leads to: what does not fit any more does not start,
// running trials are warned and then stopped, saved ones are paused, and the run ends as
// Interrupted, to be continued.
//
// A trial is expected to take as long as 90 of 100 of those that ended, with the same request and
// from their beginning; at most its time limit. Where nothing is known it starts.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/planted_fault.hpp"
#include "head/head_state.hpp"

namespace muster {
namespace {

using namespace std::chrono_literals;

/// Between the last end of a trial and the end of time: to keep what it said, and to leave.
constexpr Duration kMargin = 5s;
constexpr std::uint32_t kPercentile = 90;
/// Exit code of a trial that wants to go on later, as of muster itself.
constexpr std::int32_t kContinueMe = 75;
/// A shell's exit code for a program that a signal ended is this and its number.
constexpr std::int32_t kShellSignal = 128;
/// An end that moves by less is not worth a word.
constexpr Duration kMoved = 60s;

struct Estimate {
    Duration takes{0};
    /// From so many trials; 0: from `time_limit` alone.
    std::size_t trials = 0;
};

std::optional<Estimate> estimate_of(const HeadState& head, std::uint32_t shape) {
    const RecentDurations& durations = head.durations[shape];
    const std::optional<Duration>& limit = head.spec.trial.time_limit;
    if (const std::optional<Duration> usual = durations.percentile(kPercentile)) {
        return Estimate{limit ? std::min(*usual, *limit) : *usual, durations.count()};
    }
    return limit ? std::optional(Estimate{*limit, 0}) : std::nullopt;
}

/// What trials can't use of an allocation.
Duration overhead(const HeadState& head) {
    return head.spec.trial.grace + kMargin;
}

/// When running trials are asked to stop.
TimePoint stop_at(const HeadState& head) {
    return head.time_ends.at == kNever ? kNever : head.time_ends.at - overhead(head);
}

TimePoint warn_at(const HeadState& head) {
    const EndOfTime& end = head.time_ends;
    return end.at == kNever || end.warned_of != kNever ? kNever : end.at - head.spec.end.warning;
}

/// Four fifths: as much as may be asked of an allocation that others shared in, or that began
/// with a wait.
bool is_nearly(Duration part, Duration whole) {
    return part >= whole / 5 * 4;
}

/// How long an allocation lasts, or this run where that is not known. REQUIRES: the end is known.
Duration whole_time(const HeadState& head) {
    const EndOfTime& end = head.time_ends;
    return std::max(end.whole, end.at - end.began);
}

/// `end.min_slice`, yet never more than half of an allocation: where all of them are short, trials
/// would wait for ever. REQUIRES: the end is known.
Duration least_slice(const HeadState& head) {
    return std::min<Duration>(head.spec.end.min_slice, whole_time(head) / 2);
}

bool may_start(const HeadState& head, std::uint32_t shape, TimePoint now) {
    const EndOfTime& end = head.time_ends;
    if (end.at == kNever || planted(PlantedFault::EndIgnored)) {
        return true;
    }
    const Duration left = stop_at(head) - now;
    const std::optional<Estimate> estimate = estimate_of(head, shape);
    if (left <= Duration{0}) {
        return false;
    }
    if (estimate && estimate->takes <= left) {
        return true;
    }
    if (head.checkpoints.any()) {
        return end.at - now >= least_slice(head);
    }
    if (!estimate) {
        return true;
    }
    // What fits no allocation would never run: a limit alone says little, and what others took not
    // all, so it gets its chance where there is the most time.
    const Duration usable = whole_time(head) - overhead(head);
    return estimate->takes > usable && usable > Duration{0} &&
           (estimate->trials == 0 || is_nearly(left, usable));
}

std::string time_text(const HeadState& head, TimePoint now) {
    const EndOfTime& end = head.time_ends;
    const Duration left = std::max(end.at - now, Duration{0});
    return fmt::format(
        "the time ends in {}{}",
        format_duration(left),
        end.why.empty() ? "" : fmt::format(" ({})", end.why)
    );
}

void tell_people(HeadState& head, TimePoint now) {
    EndOfTime& end = head.time_ends;
    if (end.at == kNever) {
        if (end.told != kNever) {
            note(head, NoteLevel::Info, "the time has no known end any more");
        }
    } else if (end.told == kNever || end.at - end.told > kMoved || end.told - end.at > kMoved) {
        note(head, NoteLevel::Info, time_text(head, now));
    } else {
        return;
    }
    end.told = end.at;
}

/// The end is so much later than the one that trials were warned of that they go on.
void forget_warning(HeadState& head, TimePoint now) {
    head.time_ends.warned_of = kNever;
    for (const TrialId id : std::exchange(head.time_ends.left, {})) {
        requeue(head, id, now);
    }
}

/// Tells the member how much time is left, behind whatever it is told before.
void warn_member(HeadState& head, TrialId id, RunningAttempt& running, TimePoint now) {
    const Duration left = std::max(stop_at(head) - now, Duration{0});
    running.warned = true;
    if (planted(PlantedFault::WarningForgotten)) {
        return;
    }
    act(head, Send{member_node(running.placement), Warn{{id, running.attempt, {}}, left}});
}

void warn(HeadState& head, TimePoint now) {
    EndOfTime& end = head.time_ends;
    end.warned_of = end.at;
    std::size_t warned = 0;
    for (const TrialId id : head.trials.active()) {
        RunningAttempt& running = *head.trials.progress(id).running;
        if (!running.stop) {
            warn_member(head, id, running, now);
            ++warned;
        }
    }
    if (warned > 0) {
        note(
            head,
            NoteLevel::Info,
            fmt::format(
                "{}: {} running trial{} told to save {} work",
                time_text(head, now),
                warned,
                warned == 1 ? " is" : "s are",
                warned == 1 ? "its" : "their"
            )
        );
    }
}

void end_for_time(HeadState& head, std::string reason, TimePoint now) {
    head.time_ends.has_come = true;
    end_run(head, {RunEnd::Interrupted, std::move(reason)}, StopKind::Graceful, now);
}

/// Why no allocation is long enough; empty when one may be.
std::string too_long_text(const HeadState& head, const RunningAttempt& ran, TimePoint now) {
    const Duration whole = head.time_ends.whole;
    const Duration took = now - ran.started;
    if (!head.time_ends.has_come || whole <= Duration{0} || ran.has_saved ||
        !is_nearly(took, whole)) {
        return "";
    }
    return fmt::format(
        "needs more time than there is: it ran for {} of the {} that an allocation lasts and saved "
        "no checkpoint. Let it save checkpoints (docs/checkpoints.md says how), or give the job "
        "more time, and run it again with --retry failed",
        format_duration(took),
        format_duration(whole)
    );
}

}  // namespace

void on_end_known(HeadState& head, const EndKnown& known, TimePoint now) {
    if (head.phase == RunPhase::Ending) {
        return;
    }
    EndOfTime& end = head.time_ends;
    end.at = known.at;
    end.whole = known.whole;
    end.why = known.why;
    tell_people(head, now);
    const bool was_warned = end.warned_of != kNever;
    if (was_warned && (end.at == kNever || end.at - end.warned_of > head.spec.end.warning)) {
        forget_warning(head, now);
    }
    watch_end(head, now);
    start_what_fits(head, now);
}

void watch_end(HeadState& head, TimePoint now) {
    const bool is_before = head.phase == RunPhase::Going || head.phase == RunPhase::WaitingForNodes;
    if (!is_before) {
        return;
    }
    if (now >= warn_at(head) && head.phase == RunPhase::Going) {
        warn(head, now);
    }
    if (now >= stop_at(head)) {
        end_for_time(head, time_text(head, now), now);
    }
}

void warn_of_near_end(HeadState& head, TrialId id, TimePoint now) {
    if (head.time_ends.warned_of != kNever) {
        warn_member(head, id, *head.trials.progress(id).running, now);
    }
}

TimePoint end_deadline(const HeadState& head) {
    switch (head.phase) {
        case RunPhase::Going:
            return std::min(warn_at(head), stop_at(head));
        case RunPhase::WaitingForNodes:
            return stop_at(head);
        case RunPhase::Restoring:
        case RunPhase::Ending:
        case RunPhase::Over:
            break;
    }
    return kNever;
}

void close_what_will_not_fit(HeadState& head, TimePoint now) {
    for (std::uint32_t shape = 0; shape < head.durations.size(); ++shape) {
        head.queue.set_closed(shape, !may_start(head, shape, now));
    }
}

void end_if_time_is_short(HeadState& head, TimePoint now) {
    if (head.time_ends.at == kNever || head.phase != RunPhase::Going || head.ask_open ||
        !head.trials.active().empty()) {
        return;
    }
    const std::vector<std::uint32_t> waiting = head.queue.waiting_shapes();
    const bool none_may_start =
        std::all_of(waiting.begin(), waiting.end(), [&](std::uint32_t shape) {
            return head.queue.is_closed(shape);
        });
    if (none_may_start && (!waiting.empty() || !head.time_ends.left.empty())) {
        end_for_time(
            head,
            waiting.empty() ? time_text(head, now) : closed_text(head, waiting.front(), now),
            now
        );
    }
}

void wait_for_next_run(HeadState& head, TrialId id, const RunningAttempt& ran, TimePoint now) {
    if (const std::string too_long = too_long_text(head, ran, now); !too_long.empty()) {
        fail_trial(head, id, too_long, now);
        return;
    }
    if (head.phase != RunPhase::Ending) {
        head.time_ends.left.push_back(id);
    }
    const TrialCheckpoints* checkpoints = head.checkpoints.find(id);
    if (checkpoints == nullptr || checkpoints->latest() == nullptr) {
        head.trials.set_state(id, TrialState::Pending);
        return;
    }
    const std::string reason =
        head.ending ? head.ending->reason : "it saved its work when it was told of the end";
    head.trials.set_state(id, TrialState::Paused);
    head.trials.progress(id).reason = reason;
    keep(head, TrialPaused{id, reason});
}

bool left_after_warning(
    const HeadState& head,
    const RunningAttempt& running,
    const Outcome& outcome
) {
    const std::int32_t signal = head.spec.end.signal;
    if (!running.warned) {
        return false;
    }
    if (outcome.cause == EndCause::Exited) {
        return outcome.code == kContinueMe || (signal > 0 && outcome.code == kShellSignal + signal);
    }
    return outcome.cause == EndCause::Signalled && signal > 0 && outcome.code == signal;
}

std::string left_behind_text(const HeadState& head) {
    const std::uint64_t paused = head.trials.count(TrialState::Paused);
    const std::uint64_t created = head.trials.size();
    const std::uint64_t to_come =
        head.total_trials && *head.total_trials > created ? *head.total_trials - created : 0;
    const std::uint64_t waiting = head.trials.count(TrialState::Pending) + to_come;
    const std::string wait =
        fmt::format("{} wait{} for the next allocation", waiting, waiting == 1 ? "s" : "");
    if (paused == 0) {
        return waiting == 0 ? "" : "; trials: " + wait;
    }
    return fmt::format(
        "; trials: {} {} saved and paused{}",
        paused,
        paused == 1 ? "is" : "are",
        waiting == 0 ? "" : ", " + wait
    );
}

std::string closed_text(const HeadState& head, std::uint32_t shape, TimePoint now) {
    const Duration left = std::max(stop_at(head) - now, Duration{0});
    std::string begin = fmt::format(
        "no more trials that need {} start, since {}",
        to_string(head.spec.resources[shape].group),
        time_text(head, now)
    );
    const std::optional<Estimate> estimate = estimate_of(head, shape);
    if (head.checkpoints.any() && left > Duration{0}) {
        return fmt::format(
            "{}, less than end.min_slice of {}", begin, format_duration(least_slice(head))
        );
    }
    if (!estimate) {
        return begin;
    }
    return fmt::format(
        "{}, of which trials have {}, and they take {} ({})",
        begin,
        format_duration(left),
        format_duration(estimate->takes),
        estimate->trials == 0 ? "their time_limit"
                              : fmt::format("9 of 10 of {} that ended", estimate->trials)
    );
}

}  // namespace muster
