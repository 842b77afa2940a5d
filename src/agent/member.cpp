// SPDX-License-Identifier: Apache-2.0

#include "agent/member.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/planted_fault.hpp"

namespace muster {
namespace {

int hardness(StopKind kind) {
    switch (kind) {
        case StopKind::GoalReached:
            return 0;
        case StopKind::Graceful:
            return 1;
        case StopKind::Kill:
            return 2;
    }
    return 2;
}

constexpr Duration kSecond = std::chrono::seconds{1};

Duration spacing_of(std::uint32_t per_second) {
    return kSecond / std::max<std::uint32_t>(per_second, 1);
}

std::string limit_text(EndCause limit, const TrialSpec& spec) {
    if (limit == EndCause::TimeLimit) {
        return format_duration(spec.time_limit.value_or(Duration{0}));
    }
    return fmt::format(
        "no report for {}", format_duration(spec.report_timeout.value_or(Duration{0}))
    );
}

}  // namespace

TimePoint AgentMember::due() const {
    return std::min({time_limit_at, report_due, patience_ends, flush_at});
}

bool hardens(StopKind kind, const std::optional<StopKind>& asked) {
    return !asked || hardness(kind) > hardness(*asked);
}

Outcome told_outcome(const AgentMember& member, const TrialSpec& spec, const Outcome& seen) {
    if (member.limit) {
        return {*member.limit, seen.code, limit_text(*member.limit, spec)};
    }
    if (member.asked && *member.asked != StopKind::GoalReached) {
        return {EndCause::Stopped, seen.code, to_string(seen)};
    }
    return seen;
}

StepTaken
take_step(std::vector<ValueMember>& metrics, const std::string& time_attr, double last_step) {
    const auto find = [&](std::string_view key) {
        return std::find_if(metrics.begin(), metrics.end(), [&](const ValueMember& metric) {
            return metric.key == key;
        });
    };
    auto found = find(time_attr);
    if (found == metrics.end()) {
        found = find("step");
    }
    if (found == metrics.end()) {
        return {last_step + 1, false};
    }
    const bool truth = found->value.as_bool() != nullptr;
    const std::optional<double> number = found->value.number();
    metrics.erase(found);
    if (truth || !number || !std::isfinite(*number)) {
        return {last_step + 1, true};
    }
    return {*number, false};
}

// The generic cell rate algorithm: `paid_until` runs ahead of now by one spacing for each report
// passed on, and by at most a second.
std::optional<Reported>
pass_or_hold(AgentMember& member, Reported report, std::uint32_t per_second, TimePoint now) {
    const Duration spacing = spacing_of(per_second);
    const TimePoint may_pass_at = member.paid_until - (kSecond - spacing);
    if (member.held) {
        report.coalesced = member.held->coalesced + 1;
    }
    if (may_pass_at <= now) {
        member.held.reset();
        member.flush_at = kNever;
        member.paid_until = std::max(member.paid_until, now) + spacing;
        return report;
    }
    member.held = std::move(report);
    member.flush_at = may_pass_at;
    return std::nullopt;
}

std::optional<Reported> release_held(AgentMember& member, std::uint32_t per_second, TimePoint now) {
    member.flush_at = kNever;
    std::optional<Reported> held = std::move(member.held);
    member.held.reset();
    if (!held || planted(PlantedFault::HeldReportLost)) {
        return std::nullopt;
    }
    member.paid_until = std::max(member.paid_until, now) + spacing_of(per_second);
    return held;
}

}  // namespace muster
