// SPDX-License-Identifier: Apache-2.0

#include "agent/agent.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "agent/agent_state.hpp"
#include "agent/launch_plan.hpp"
#include "base/planted_fault.hpp"

namespace muster {
namespace {

// How long an agent that leaves waits for members that were killed: one may hang in the kernel.
constexpr Duration kKillPatience = std::chrono::seconds{30};

}  // namespace

void Agent::State::on(const NodeProbed& event, TimePoint now) {
    inventory = event.inventory;
    incarnation = event.incarnation;
    say_hello(now);
}

void Agent::State::say_hello(TimePoint now) {
    tell(Hello{incarnation, inventory});
    lease.hello(now);
    give_up_at = lease.has_length() ? now + options.rejoin : kNever;
}

void Agent::State::on(const HeadSaid& event, TimePoint now) {
    const bool dismissed = std::holds_alternative<Dismiss>(event.message);
    // What comes later than that is of a head that may have started everything elsewhere.
    if (phase == AgentPhase::Serving && !dismissed && lease.has_run_out(now)) {
        lose_lease(now);
        return;
    }
    if (phase == AgentPhase::Serving || (phase == AgentPhase::Killing && dismissed)) {
        std::visit([&](const auto& message) { take(message, now); }, event.message);
    }
}

void Agent::State::take(const Setup& message, TimePoint /*now*/) {
    setup = message;
    lease.begin();
    give_up_at = kNever;
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

void Agent::State::take(const Alive& message, TimePoint /*now*/) {
    lease.answered(message.heartbeat);
}

void Agent::State::take(const Dismiss& /*message*/, TimePoint now) {
    leave(now);
}

void Agent::State::take(const CheckpointDurable& message, TimePoint /*now*/) {
    if (find(message.key) != nullptr) {
        commands.emplace_back(AnswerCheckpoint{message.key, message.number});
    }
}

void Agent::State::take(const DeleteCheckpoint& message, TimePoint /*now*/) {
    if (setup) {
        commands.emplace_back(RemoveCheckpoint{
            checkpoint_dir(*setup, inventory, message.trial, options), message.number});
    }
}

void Agent::State::take(const Warn& message, TimePoint /*now*/) {
    const AgentMember* member = find(message.key);
    if (member != nullptr && !member->asked && !member->limit) {
        commands.emplace_back(WarnMember{message.key, message.left, setup->warning_signal});
    }
}

void Agent::State::take(const FromPeer& message, TimePoint /*now*/) {
    if (setup) {
        commands.emplace_back(HandFromPeer{
            message.from, message.content, checkpoint_root(*setup, inventory, options)});
    }
}

void Agent::State::take(const PeerUnreachable& message, TimePoint /*now*/) {
    commands.emplace_back(HandFromPeer{message.node, std::nullopt, ""});
}

void Agent::State::on(const CheckpointArrived& event, TimePoint now) {
    if (AgentMember* member = find(event.key)) {
        // What was reported before it is known before it.
        if (auto held = release_held(*member, options.reports_per_second, now)) {
            tell(std::move(*held));
        }
        tell(CheckpointSaved{
            event.key, event.number, event.step.value_or(member->last_step), event.bytes});
    }
}

void Agent::State::on(const CheckpointUnusable& event, TimePoint /*now*/) {
    if (find(event.key) != nullptr) {
        tell(CheckpointGone{event.key, event.number, event.why});
    }
}

void Agent::State::on(const PeerWord& event, TimePoint /*now*/) {
    tell(ToPeer{event.to, event.content});
}

void Agent::State::on(const HeadLost& /*event*/, TimePoint now) {
    leave(now);
}

void Agent::State::on(const StoodStill& event, TimePoint /*now*/) {
    lease.stood_still(event.gap);
}

void Agent::State::on(const NodeBroken& event, TimePoint now) {
    if (phase == AgentPhase::Serving || phase == AgentPhase::Killing) {
        // Not said yet: what runs here is started elsewhere at once then.
        farewell = Farewell{event.reason};
    }
    leave(now);
}

void Agent::State::lose_lease(TimePoint now) {
    phase = AgentPhase::Killing;
    give_up_at = now + options.rejoin;
    kill_members();
    go_on_if_empty(now);
}

void Agent::State::leave(TimePoint now) {
    if (phase == AgentPhase::Leaving || phase == AgentPhase::Left) {
        return;
    }
    phase = AgentPhase::Leaving;
    give_up_at = now + kKillPatience;
    kill_members();
    go_on_if_empty(now);
}

void Agent::State::kill_members() {
    lease.end();
    deadlines.clear();
    for (const auto& [key, member] : members) {
        commands.emplace_back(EndMember{key, StopKind::Kill});
    }
}

/// What waited for the last member to be gone.
void Agent::State::go_on_if_empty(TimePoint now) {
    if (!members.empty()) {
        return;
    }
    if (phase == AgentPhase::Killing) {
        ++incarnation;
        commands.emplace_back(BeginAnew{incarnation});
        phase = AgentPhase::Serving;
        setup.reset();
        say_hello(now);
    } else if (phase == AgentPhase::Leaving) {
        phase = AgentPhase::Left;
        give_up_at = kNever;
        if (farewell) {
            commands.emplace_back(TellHead{*farewell});
        }
        commands.emplace_back(LeaveNode{});
    }
}

void Agent::State::on(const AgentTick& /*event*/, TimePoint now) {
    if (now >= give_up_at) {
        phase = AgentPhase::Left;
        give_up_at = kNever;
        lease.end();
        commands.emplace_back(LeaveNode{});
    }
    if (lease.has_run_out(now)) {
        lose_lease(now);
    }
    if (const std::optional<Heartbeat> heartbeat = lease.next(now)) {
        tell(*heartbeat);
    }
    while (!deadlines.empty() && deadlines.begin()->first <= now) {
        AgentMember& member = members.at(deadlines.begin()->second);
        deadlines.erase(deadlines.begin());
        member.wake = kNever;
        look_at(member, now);
        schedule(member);
    }
}

AgentMember* Agent::State::find(const MemberKey& key) {
    const auto found = members.find(key);
    return found == members.end() ? nullptr : &found->second;
}

void Agent::State::refuse(const MemberKey& key, std::string why) {
    tell(Ended{key, {EndCause::SpawnFailed, 0, std::move(why)}, {}});
}

void Agent::State::tell(FromAgent message) {
    if (phase == AgentPhase::Serving) {
        commands.emplace_back(TellHead{std::move(message)});
    }
}

void Agent::State::remark(const MemberKey& key, std::string text) {
    tell(Remark{key, std::move(text)});
}

void Agent::State::schedule(AgentMember& member) {
    const TimePoint due = member.due();
    if (phase != AgentPhase::Serving || due >= member.wake) {
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
    return std::min({member, state_->lease.next_deadline(), state_->give_up_at});
}

std::size_t Agent::member_count() const {
    return state_->members.size();
}

}  // namespace muster
