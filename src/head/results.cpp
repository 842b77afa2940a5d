// SPDX-License-Identifier: Apache-2.0
//
// results - what reports lead to: they are kept, counted, and held against the stop rules.

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/planted_fault.hpp"
#include "head/head_state.hpp"

namespace muster {
namespace {

constexpr std::string_view kTimeTotal = "time_total";

Duration ran_so_far(const TrialProgress& progress, TimePoint now) {
    return progress.ran + (progress.running ? now - progress.running->started : Duration{0});
}

/// What the rule looks at, in this report.
std::optional<double> observed(
    const HeadState& head,
    const StopRule& rule,
    const TrialProgress& progress,
    const TrialResult& result,
    TimePoint now
) {
    if (rule.metric == kTimeTotal) {
        return seconds(ran_so_far(progress, now));
    }
    if (const std::optional<double> value = result.metric(rule.metric)) {
        return value;
    }
    if (rule.metric == "step" || rule.metric == head.spec.trial.time_attr) {
        return result.step;
    }
    return std::nullopt;
}

bool is_met(const StopRule& rule, double value) {
    if (std::isnan(value)) {
        return false;
    }
    return rule.comparison == Comparison::AtLeast ? value >= rule.bound : value <= rule.bound;
}

std::string goal_text(const StopRule& rule, double value) {
    return fmt::format(
        "reached its goal: {} {} {} (at {})",
        rule.metric,
        rule.comparison == Comparison::AtLeast ? ">=" : "<=",
        rule.bound,
        value
    );
}

}  // namespace

void on_reported(HeadState& head, TrialId id, const Reported& reported, TimePoint now) {
    const AttemptId attempt = reported.key.attempt;
    const bool overrun = head.trials.at(id).state == TrialState::Stopping;
    if (!planted(PlantedFault::ResultDropped)) {
        keep(head, ResultReported{id, attempt, reported.result, overrun, reported.coalesced});
    }
    if (overrun) {
        return;
    }
    head.trials.record(id, attempt, reported.result);
    if (on_worked(head, id, *head.trials.progress(id).running) && judge_nodes(head, now)) {
        start_what_fits(head, now);
    }
    const TrialProgress& progress = head.trials.progress(id);
    for (const StopRule& rule : head.spec.stop) {
        const std::optional<double> value = observed(head, rule, progress, reported.result, now);
        if (value && is_met(rule, *value)) {
            ask_to_stop(
                head, id, {TrialState::Completed, StopKind::GoalReached, goal_text(rule, *value)}
            );
            return;
        }
    }
}

TimePoint
time_total_reached_at(const HeadState& head, const TrialProgress& progress, TimePoint now) {
    TimePoint at = kNever;
    for (const StopRule& rule : head.spec.stop) {
        if (rule.metric == kTimeTotal && rule.comparison == Comparison::AtLeast) {
            const std::chrono::duration<double> left{
                std::max(0.0, rule.bound - seconds(progress.ran))};
            // Bounds of centuries would not fit the clock; they are never reached either.
            if (left < std::chrono::hours{24 * 365 * 100}) {
                at = std::min(at, now + std::chrono::duration_cast<Duration>(left));
            }
        }
    }
    return at;
}

void stop_by_time_total(HeadState& head, TimePoint now) {
    while (!head.goal_times.empty() && head.goal_times.begin()->first <= now) {
        const AttemptId attempt = head.goal_times.begin()->second;
        head.goal_times.erase(head.goal_times.begin());
        const auto found = head.attempts.find(attempt);
        if (found == head.attempts.end()) {
            continue;
        }
        if (head.trials.at(found->second).state == TrialState::Running) {
            const double ran = seconds(ran_so_far(head.trials.progress(found->second), now));
            ask_to_stop(
                head,
                found->second,
                {TrialState::Completed,
                 StopKind::GoalReached,
                 fmt::format("reached its goal: time_total (at {:.1f} s)", ran)}
            );
        }
    }
}

}  // namespace muster
