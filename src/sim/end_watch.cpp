// SPDX-License-Identifier: Apache-2.0

#include "sim/end_watch.hpp"

#include <variant>

#include <fmt/format.h>

#include "head/trial.hpp"

namespace muster {
namespace {

using std::chrono::seconds;

/// What the head leaves for its own end besides the trials' grace.
constexpr Duration kMargin = seconds{5};
/// What it may be late by.
constexpr Duration kLate = seconds{1};

/// What is worth starting for. The simulation always says how long an allocation lasts.
Duration least_slice(const ExperimentSpec& spec, Duration whole) {
    return std::min<Duration>(spec.end.min_slice, whole / 2);
}

}  // namespace

void EndWatch::run_begins(const std::vector<Fact>& kept) {
    end_ = kNever;
    seen_in_this_run_.clear();
    fresh_.clear();
    started_.clear();
    warned_.clear();
    any_saved_ = std::any_of(kept.begin(), kept.end(), [](const Fact& fact) {
        return std::holds_alternative<CheckpointKept>(fact);
    });
}

TimePoint EndWatch::stop_at() const {
    return end_ == kNever ? kNever : end_ - spec_.trial.grace - kMargin;
}

std::optional<Duration> EndWatch::longest(std::uint32_t alternative) const {
    const auto seen = seen_.find(alternative);
    if (seen == seen_.end()) {
        return spec_.trial.time_limit;
    }
    return std::max(seen->second.most, spec_.trial.time_limit.value_or(Duration{0}));
}

bool EndWatch::may_wait(std::uint32_t alternative, TimePoint now) const {
    if (end_ == kNever) {
        return false;
    }
    const Duration left = stop_at() - now;
    if (left <= Duration{0}) {
        return true;
    }
    if (any_saved_ && end_ - now >= least_slice(spec_, whole_)) {
        return false;
    }
    const std::optional<Duration> takes = longest(alternative);
    return any_saved_ || (takes && left < *takes);
}

void EndWatch::head_stepped(const Head& head, const Event& event, const Step& step, TimePoint now) {
    if (const auto* known = std::get_if<EndKnown>(&event)) {
        end_ = known->at;
        whole_ = known->whole;
    }
    for (const Fact& fact : step.facts) {
        if (const auto* started = std::get_if<AttemptStarted>(&fact)) {
            check_start(head, started->trial, now);
            started_[started->trial] = now;
        } else if (const auto* ended = std::get_if<AttemptEnded>(&fact)) {
            take_end(head, *ended);
        } else if (std::holds_alternative<CheckpointKept>(fact)) {
            any_saved_ = true;
        }
    }
    for (const Command& command : step.commands) {
        const auto* send = std::get_if<Send>(&command.action);
        if (send == nullptr) {
            continue;
        }
        if (const auto* start = std::get_if<Start>(&send->message)) {
            fresh_.erase(start->key.trial);
            if (!start->resume_from) {
                fresh_.emplace(start->key.trial, now);
            }
        } else if (const auto* warn = std::get_if<Warn>(&send->message)) {
            warned_.insert(warn->key.attempt);
        }
    }
}

void EndWatch::take_end(const Head& head, const AttemptEnded& ended) {
    const std::uint32_t alternative = head.trial(ended.trial)->alternative;
    Seen& seen = seen_[alternative];
    seen.least = std::min(seen.least, ended.usage.wall);
    seen.most = std::max(seen.most, ended.usage.wall);
    const TrialState state = head.trial(ended.trial)->state;
    const bool is_whole = state == TrialState::Completed || state == TrialState::Stopped;
    if (is_whole && fresh_.count(ended.trial) != 0 && ended.outcome.cause != EndCause::Lost) {
        seen_in_this_run_.insert(alternative);
    }
}

void EndWatch::check_start(const Head& head, TrialId trial, TimePoint now) {
    if (end_ == kNever) {
        return;
    }
    const std::uint32_t alternative = head.trial(trial)->alternative;
    const Duration left = stop_at() - now;
    const bool has_slice = any_saved_ && end_ - now >= least_slice(spec_, whole_);
    const bool is_known = seen_in_this_run_.count(alternative) != 0;
    // What is too long for any allocation is started once all the same.
    const Duration overhead = spec_.trial.grace + kMargin;
    const bool fits_none = is_known && *longest(alternative) > whole_ - overhead;
    const bool too_long = is_known && left < seen_.at(alternative).least;
    if (left <= Duration{0} || (too_long && !has_slice && !fits_none)) {
        complaint_.say(
            "Nothing starts that can't end in time.",
            fmt::format("trial {} does, {} before", to_string(trial), format_duration(left))
        );
    }
}

void EndWatch::check_now(const Head& head, TimePoint now) {
    if (end_ == kNever || !head.is_going()) {
        return;
    }
    if (now > stop_at() + kLate) {
        complaint_.say(
            "Nothing runs on into the end of the time.",
            fmt::format("{} before it the run goes on", format_duration(end_ - now))
        );
    }
    const TimePoint warned_by = end_ - spec_.end.warning;
    if (now <= warned_by + kLate) {
        return;
    }
    for (const TrialId id : head.active_trials()) {
        const Trial& trial = *head.trial(id);
        const auto started = started_.find(id);
        const bool was_there = started != started_.end() && started->second < warned_by;
        const bool runs = trial.state == TrialState::Running && trial.progress->running;
        if (runs && was_there && warned_.count(trial.progress->running->attempt) == 0) {
            complaint_.say(
                "Running trials are warned before the time ends.",
                fmt::format("trial {} was not", to_string(id))
            );
        }
    }
}

}  // namespace muster
