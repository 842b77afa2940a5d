// SPDX-License-Identifier: Apache-2.0
//
// agent_members - what members do, and what becomes of it: starts, reports, limits, ends.

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "agent/agent_state.hpp"
#include "base/planted_fault.hpp"

namespace muster {
namespace {

// Refused reports of one attempt that are told; a broken trial could send millions.
constexpr std::uint32_t kRefusalsTold = 3;

std::string names_of(const std::vector<ValueMember>& metrics) {
    std::string names;
    for (const ValueMember& metric : metrics) {
        names += (names.empty() ? "" : ", ") + metric.key;
    }
    return names.empty() ? "nothing" : names;
}

}  // namespace

void Agent::State::on(const MemberStarted& event, TimePoint /*now*/) {
    if (find(event.key) == nullptr) {
        return;
    }
    tell(Started{event.key, event.pid});
    if (!event.binding_problem.empty()) {
        remark(event.key, "not bound as planned: " + event.binding_problem);
    }
}

void Agent::State::on(const MemberEnded& event, TimePoint now) {
    AgentMember* member = find(event.key);
    if (member == nullptr) {
        return;
    }
    if (auto held = release_held(*member, options.reports_per_second, now)) {
        tell(std::move(*held));
    }
    // A limit says what it is in place of how the process ended, and that had its last lines.
    tell(Ended{
        event.key,
        told_outcome(*member, *setup->trial, event.outcome),
        event.usage,
        member->limit ? event.outcome.detail : event.last_lines});
    deadlines.erase({member->wake, event.key});
    members.erase(event.key);
    go_on_if_empty(now);
}

void Agent::State::on(const ReportArrived& event, TimePoint now) {
    AgentMember* member = find(event.key);
    if (member == nullptr) {
        return;
    }
    const TrialSpec& spec = *setup->trial;
    check_objective(*member, event.metrics);
    Reported report{event.key, {0, event.metrics}, 0};
    const StepTaken taken = take_step(report.result.metrics, spec.time_attr, member->last_step);
    report.result.step = taken.step;
    member->last_step = taken.step;
    if (taken.bad && !member->said_bad_step) {
        member->said_bad_step = true;
        remark(
            event.key,
            fmt::format(
                "reported a {} that is not a number: such reports are counted as the step after "
                "the last",
                spec.time_attr
            )
        );
    }
    if (member->report_due != kNever) {
        member->report_due = now + *spec.report_timeout;
    }
    auto passed = pass_or_hold(*member, std::move(report), options.reports_per_second, now);
    if (passed) {
        tell(std::move(*passed));
    } else {
        schedule(*member);
    }
}

void Agent::State::check_objective(AgentMember& member, const std::vector<ValueMember>& metrics) {
    if (!setup->objective || member.said_no_objective) {
        return;
    }
    const std::string& wanted = setup->objective->metric;
    std::string problem =
        fmt::format("a report has no metric {}: it has {}", wanted, names_of(metrics));
    for (const ValueMember& metric : metrics) {
        if (metric.key != wanted) {
            continue;
        }
        if (metric.value.number()) {
            return;
        }
        problem =
            fmt::format("reported {} as {}, which is no number", wanted, to_json(metric.value));
    }
    member.said_no_objective = true;
    remark(member.key, std::move(problem));
}

void Agent::State::on(const ReportRefused& event, TimePoint /*now*/) {
    AgentMember* member = find(event.key);
    if (member == nullptr || member->refusals == kRefusalsTold) {
        return;
    }
    ++member->refusals;
    const bool last = member->refusals == kRefusalsTold;
    remark(event.key, event.text + (last ? " (more of this attempt are not told)" : ""));
}

void Agent::State::look_at(AgentMember& member, TimePoint now) {
    if (now >= member.flush_at) {
        if (auto held = release_held(member, options.reports_per_second, now)) {
            tell(std::move(*held));
        }
    }
    if (now >= member.patience_ends) {
        member.patience_ends = kNever;
        member.asked = StopKind::Graceful;
        commands.emplace_back(EndMember{member.key, StopKind::Graceful});
    }
    if (now >= member.time_limit_at) {
        end_by_limit(member, EndCause::TimeLimit);
    } else if (now >= member.report_due) {
        end_by_limit(member, EndCause::ReportTimeout);
    }
}

void Agent::State::end_by_limit(AgentMember& member, EndCause limit) {
    member.time_limit_at = kNever;
    member.report_due = kNever;
    member.patience_ends = kNever;
    if (planted(PlantedFault::LimitIgnored)) {
        return;
    }
    // What the head asked for first stays the reason of the end.
    if (member.asked) {
        member.asked = StopKind::Kill;
    } else {
        member.limit = limit;
    }
    commands.emplace_back(EndMember{member.key, StopKind::Kill});
}

}  // namespace muster
