// SPDX-License-Identifier: Apache-2.0
//
// member - one member on this node, as the agent knows it: what was asked of it, when its limits
// are reached, and which of its reports is held back.
//
// How a member's end is told: the limit that ended it, if one did; else Stopped, when the head
// asked for its end; else what the keeper saw. A member that has reached its goal and ends by
// itself within its grace ended as the keeper saw it: nobody ended it.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "muster/value.hpp"

#include "base/time.hpp"
#include "protocol/messages.hpp"

namespace muster {

struct AgentMember {
    MemberKey key;
    Duration grace{0};

    /// The hardest end that was asked for; a limit asks for none.
    std::optional<StopKind> asked;
    /// TimeLimit or ReportTimeout, once it has ended the member.
    std::optional<EndCause> limit;

    TimePoint time_limit_at = kNever;
    TimePoint report_due = kNever;
    /// When a member that has reached its goal is no longer waited for.
    TimePoint patience_ends = kNever;
    /// When the held report may go.
    TimePoint flush_at = kNever;
    /// Its place in the agent's row of deadlines: at or before the first of the four above.
    TimePoint wake = kNever;

    double last_step = 0;
    std::optional<Reported> held;
    /// When the reports passed on so far would have come at the highest rate that is allowed.
    TimePoint paid_until;

    bool said_no_objective = false;
    bool said_bad_step = false;
    std::uint32_t refusals = 0;

    /// The first time at which something is due.
    TimePoint due() const;
};

/// Whether `kind` is harder than what was asked before.
bool hardens(StopKind kind, const std::optional<StopKind>& asked);

/// How the end of `member` is told to the head.
Outcome told_outcome(const AgentMember& member, const TrialSpec& spec, const Outcome& seen);

/// Takes the step out of `metrics`: the number of the key `time_attr`, or of "step", else the
/// step after `last_step`. `bad` says that the key was there with something else than a number.
struct StepTaken {
    double step = 0;
    bool bad = false;
};
StepTaken
take_step(std::vector<ValueMember>& metrics, const std::string& time_attr, double last_step);

/// Lets `report` pass, or holds it back (and sets `flush_at`) when reports come faster than
/// `per_second`, for more than a second's worth of them. A held report that is replaced is counted
/// in its successor.
std::optional<Reported>
pass_or_hold(AgentMember& member, Reported report, std::uint32_t per_second, TimePoint now);

/// The held report, if there is one; it counts as passed on at `now`.
std::optional<Reported> release_held(AgentMember& member, std::uint32_t per_second, TimePoint now);

}  // namespace muster
