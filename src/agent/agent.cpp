// SPDX-License-Identifier: Apache-2.0

#include "agent/agent.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "agent/launch_plan.hpp"
#include "agent/member.hpp"
#include "base/overloaded.hpp"
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

struct Agent::State {
    explicit State(AgentOptions agent_options) : options(std::move(agent_options)) {}

    AgentOptions options;
    NodeInventory inventory;
    std::optional<Setup> setup;
    std::map<MemberKey, AgentMember> members;
    // Members by when they must be looked at. A member's place may be early, never late, so that
    // a report does not move it.
    std::set<std::pair<TimePoint, MemberKey>> deadlines;
    TimePoint next_heartbeat = kNever;
    // The run is over here: nobody listens, nothing starts, and the node is left once it is empty.
    bool leaving = false;
    AgentCommands commands;

    void on(const NodeProbed& event, TimePoint now);
    void on(const HeadSaid& event, TimePoint now);
    void on(const MemberStarted& event, TimePoint now);
    void on(const MemberEnded& event, TimePoint now);
    void on(const ReportArrived& event, TimePoint now);
    void on(const ReportRefused& event, TimePoint now);
    void on(const HeadLost& event, TimePoint now);
    void on(const StoodStill& event, TimePoint now);
    void on(const NodeBroken& event, TimePoint now);
    void on(const AgentTick& event, TimePoint now);

    void take(const Setup& message, TimePoint now);
    void take(const Start& message, TimePoint now);
    void take(const Stop& message, TimePoint now);
    void take(const SetCores& message, TimePoint now);
    void take(const Alive& message, TimePoint now);
    void take(const Dismiss& message, TimePoint now);

    AgentMember* find(const MemberKey& key);
    void add_member(const Start& start, TimePoint now);
    void refuse(const MemberKey& key, std::string why);
    void tell(FromAgent message);
    void remark(const MemberKey& key, std::string text);
    void schedule(AgentMember& member);
    void look_at(AgentMember& member, TimePoint now);
    void end_by_limit(AgentMember& member, EndCause limit);
    void check_objective(AgentMember& member, const std::vector<ValueMember>& metrics);
    void leave();
};

void Agent::State::on(const NodeProbed& event, TimePoint now) {
    inventory = event.inventory;
    tell(Hello{event.incarnation, event.inventory});
    if (options.heartbeat > Duration{0} && !leaving) {
        next_heartbeat = now + options.heartbeat;
    }
}

void Agent::State::on(const HeadSaid& event, TimePoint now) {
    if (!leaving) {
        std::visit([&](const auto& message) { take(message, now); }, event.message);
    }
}

void Agent::State::take(const Setup& message, TimePoint /*now*/) {
    if (!setup) {
        setup = message;
    }
}

void Agent::State::take(const Start& message, TimePoint now) {
    if (members.count(message.key) != 0) {
        return;
    }
    if (!setup) {
        refuse(message.key, "the agent was asked to start it before it knew the experiment");
        return;
    }
    auto plan = make_launch_plan(*setup, message, inventory, options);
    if (!plan) {
        refuse(message.key, plan.error().message);
        return;
    }
    add_member(message, now);
    commands.emplace_back(Launch{std::move(plan).value()});
}

void Agent::State::add_member(const Start& start, TimePoint now) {
    const TrialSpec& spec = *setup->trial;
    AgentMember& member = members[start.key];
    member.key = start.key;
    member.grace = spec.grace;
    member.last_step = start.last_step;
    if (spec.time_limit) {
        member.time_limit_at = now + *spec.time_limit;
    }
    if (spec.report_timeout) {
        member.report_due = now + *spec.report_timeout;
    }
    schedule(member);
}

void Agent::State::take(const Stop& message, TimePoint now) {
    AgentMember* member = find(message.key);
    if (member == nullptr || member->limit || !hardens(message.kind, member->asked) ||
        planted(PlantedFault::StopIgnored)) {
        return;
    }
    if (!member->asked && message.kind != StopKind::Kill) {
        commands.emplace_back(TellMemberToStop{message.key});
    }
    member->asked = message.kind;
    member->report_due = kNever;
    member->patience_ends = kNever;
    if (message.kind == StopKind::GoalReached) {
        member->patience_ends = now + member->grace;
        schedule(*member);
        return;
    }
    commands.emplace_back(EndMember{message.key, message.kind});
}

void Agent::State::take(const SetCores& message, TimePoint /*now*/) {
    if (find(message.key) == nullptr) {
        return;
    }
    auto units = processing_units_of(inventory, message.cores);
    if (!units) {
        remark(message.key, "not bound anew: " + units.error().message);
    } else if (!units->empty()) {
        commands.emplace_back(Rebind{message.key, std::move(units).value()});
    }
}

void Agent::State::take(const Alive& /*message*/, TimePoint /*now*/) {}

void Agent::State::take(const Dismiss& /*message*/, TimePoint /*now*/) {
    leave();
}

void Agent::State::on(const HeadLost& /*event*/, TimePoint /*now*/) {
    if (!leaving) {
        leave();
    }
}

void Agent::State::on(const StoodStill& /*event*/, TimePoint /*now*/) {}

void Agent::State::on(const NodeBroken& event, TimePoint /*now*/) {
    tell(Farewell{event.reason});
    if (!leaving) {
        leave();
    }
}

void Agent::State::leave() {
    leaving = true;
    next_heartbeat = kNever;
    deadlines.clear();
    for (const auto& [key, member] : members) {
        commands.emplace_back(EndMember{key, StopKind::Kill});
    }
    if (members.empty()) {
        commands.emplace_back(LeaveNode{});
    }
}

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
    tell(Ended{event.key, told_outcome(*member, *setup->trial, event.outcome), event.usage});
    deadlines.erase({member->wake, event.key});
    members.erase(event.key);
    if (leaving && members.empty()) {
        commands.emplace_back(LeaveNode{});
    }
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

void Agent::State::on(const AgentTick& /*event*/, TimePoint now) {
    if (now >= next_heartbeat) {
        tell(Heartbeat{});
        next_heartbeat = now + options.heartbeat;
    }
    while (!deadlines.empty() && deadlines.begin()->first <= now) {
        AgentMember& member = members.at(deadlines.begin()->second);
        deadlines.erase(deadlines.begin());
        member.wake = kNever;
        look_at(member, now);
        schedule(member);
    }
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

AgentMember* Agent::State::find(const MemberKey& key) {
    const auto found = members.find(key);
    return found == members.end() ? nullptr : &found->second;
}

void Agent::State::refuse(const MemberKey& key, std::string why) {
    tell(Ended{key, {EndCause::SpawnFailed, 0, std::move(why)}, {}});
}

void Agent::State::tell(FromAgent message) {
    if (!leaving) {
        commands.emplace_back(TellHead{std::move(message)});
    }
}

void Agent::State::remark(const MemberKey& key, std::string text) {
    tell(Remark{key, std::move(text)});
}

void Agent::State::schedule(AgentMember& member) {
    const TimePoint due = member.due();
    if (leaving || due >= member.wake) {
        return;
    }
    deadlines.erase({member.wake, member.key});
    member.wake = due;
    deadlines.insert({due, member.key});
}

Agent::Agent(AgentOptions options) : state_(std::make_unique<State>(std::move(options))) {}
Agent::~Agent() = default;
Agent::Agent(Agent&&) noexcept = default;
Agent& Agent::operator=(Agent&&) noexcept = default;

AgentCommands Agent::handle(const AgentEvent& event, TimePoint now) {
    std::visit([&](const auto& happened) { state_->on(happened, now); }, event);
    return std::exchange(state_->commands, {});
}

TimePoint Agent::next_deadline() const {
    const TimePoint member = state_->deadlines.empty() ? kNever : state_->deadlines.begin()->first;
    return std::min(member, state_->next_heartbeat);
}

std::size_t Agent::member_count() const {
    return state_->members.size();
}

}  // namespace muster
