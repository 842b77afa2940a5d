// SPDX-License-Identifier: Apache-2.0

#include "sim/simulated_node.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.hpp"
#include "base/overloaded.hpp"

namespace muster {
namespace {

using std::chrono::milliseconds;

/// Where directories lie that all nodes see.
constexpr std::string_view kExperiments = "/experiments/";
constexpr std::int32_t kSigKill = 9;
constexpr std::int32_t kSigSegv = 11;
constexpr std::int32_t kSigTerm = 15;

/// When the member makes its report number `index`, from 0.
TimePoint report_time(const SimulatedMember& member, std::uint32_t index) {
    const auto parts = static_cast<std::int64_t>(member.script.reports) + 1;
    return member.origin + member.script.duration / parts * (std::int64_t{index} + 1);
}

/// When the member next does something by itself.
TimePoint next_of(const SimulatedMember& member) {
    const std::uint32_t made = member.reports_made / std::max(member.script.burst, 1U);
    TimePoint next = member.origin + member.script.duration;
    if (member.script.failure) {
        next = member.origin + member.script.duration / 2;
    }
    if (made < member.script.reports) {
        next = std::min(next, report_time(member, made));
    }
    return next;
}

/// How everything fares on a bad node.
TrialScript failing_script() {
    TrialScript script;
    script.duration = milliseconds{300};
    script.failure = Outcome{EndCause::Exited, 1, "no such device"};
    return script;
}

}  // namespace

SimulatedNode::SimulatedNode(
    NodeInventory inventory,
    AgentOptions options,
    DurationRange process_delay,
    SimulatedStorage& storage,
    RandomStream random
)
    : inventory_(std::move(inventory)),
      options_(std::move(options)),
      process_delay_(process_delay),
      storage_(&storage),
      random_(random) {}

void SimulatedNode::start(std::uint32_t incarnation, TimePoint now) {
    check(!is_up(), "a node starts when it is down");
    incarnation_ = incarnation;
    agent_.emplace(options_);
    tell_agent(NodeProbed{inventory_, incarnation}, {}, now);
}

void SimulatedNode::lose() {
    agent_.reset();
    members_.clear();
    due_.clear();
    reports_made_.clear();
    outbox_.clear();
}

void SimulatedNode::head_said(const ToAgent& message, const TrialModel& model, TimePoint now) {
    if (is_up()) {
        tell_agent(HeadSaid{message}, model, now);
    }
}

void SimulatedNode::head_lost(const TrialModel& model, TimePoint now) {
    if (is_up()) {
        tell_agent(HeadLost{}, model, now);
    }
}

void SimulatedNode::break_down(const TrialModel& model, TimePoint now) {
    if (is_up()) {
        tell_agent(NodeBroken{"its disk is gone"}, model, now);
    }
}

void SimulatedNode::stood_still(Duration gap, const TrialModel& model, TimePoint now) {
    if (is_up()) {
        tell_agent(StoodStill{gap}, model, now);
    }
}

void SimulatedNode::wake(const TrialModel& model, TimePoint now) {
    while (!due_.empty() && due_.begin()->first <= now) {
        const MemberKey key = due_.begin()->second;
        due_.erase(due_.begin());
        members_.at(key).next = kNever;
        act(key, model, now);
    }
    if (is_up() && agent_->next_deadline() <= now) {
        tell_agent(AgentTick{}, model, now);
    }
}

TimePoint SimulatedNode::next_wake() const {
    const TimePoint member = due_.empty() ? kNever : due_.begin()->first;
    return is_up() ? std::min(member, agent_->next_deadline()) : kNever;
}

bool SimulatedNode::crash_member(const MemberKey& key, TimePoint now) {
    const auto found = members_.find(key);
    if (found == members_.end() || found->second.phase != SimulatedMember::Phase::Running) {
        return false;
    }
    leave_at(key, {EndCause::Signalled, kSigSegv, ""}, now);
    return true;
}

std::uint64_t SimulatedNode::reports_made(AttemptId attempt) const {
    const auto found = reports_made_.find(attempt);
    return found == reports_made_.end() ? 0 : found->second;
}

std::vector<FromAgent> SimulatedNode::take_messages() {
    return std::exchange(outbox_, {});
}

void SimulatedNode::tell_agent(const AgentEvent& event, const TrialModel& model, TimePoint now) {
    for (const AgentCommand& command : agent_->handle(event, now)) {
        carry_out(command, model, now);
    }
}

void SimulatedNode::carry_out(const AgentCommand& command, const TrialModel& model, TimePoint now) {
    std::visit(
        Overloaded{
            [&](const TellHead& tell) { outbox_.push_back(tell.message); },
            [&](const Launch& start) { launch(start.plan, model, now); },
            [&](const EndMember& end) { end_member(end, model, now); },
            [](const Rebind&) {},
            [&](const TellMemberToStop& tell) {
                if (members_.at(tell.key).script.ends_when_told) {
                    const TimePoint soon = now + draw({milliseconds{1}, milliseconds{800}});
                    leave_at(tell.key, {EndCause::Exited, 0, ""}, soon);
                }
            },
            [&](const AnswerCheckpoint& answered) { answer(answered, now); },
            [&](const RemoveCheckpoint& gone) { remove_files(gone.directory, gone.number); },
            [&](const WarnMember& warned) { warn(warned.key, model, now); },
            [&](const HandFromPeer& heard) { hear_peer(heard, model, now); },
            [&](const BeginAnew& anew) {
                incarnation_ = anew.incarnation;
                outbox_.clear();
            },
            // Messages that were said before are still on their way.
            [&](const LeaveNode&) { agent_.reset(); }},
        command
    );
}

void SimulatedNode::launch(const LaunchPlan& plan, const TrialModel& model, TimePoint now) {
    clean(plan);
    SimulatedMember& member = members_[plan.key];
    member.script = is_bad_ ? failing_script() : model(plan);
    member.grace = plan.grace;
    member.checkpoints = plan.checkpoints;
    member.launched = now;
    member.next = kNever;
    if (plan.checkpoints.directory.rfind(kExperiments, 0) != 0) {
        own_directories_.insert(plan.checkpoints.directory);
    }
    if (plan.checkpoints.fetch_from) {
        member.phase = SimulatedMember::Phase::Fetching;
        ask_piece(plan.key, model, now);
        return;
    }
    move_to(plan.key, member, now + draw(process_delay_));
}

void SimulatedNode::end_member(const EndMember& command, const TrialModel& model, TimePoint now) {
    const SimulatedMember& member = members_.at(command.key);
    const bool saves = member.phase == SimulatedMember::Phase::Running &&
                       member.script.saves_at_term && command.kind != StopKind::Kill;
    if (saves) {
        save(command.key, model, now);
    }
    const TimePoint at_once = now + draw(process_delay_);
    const Outcome killed{EndCause::Signalled, kSigKill, ""};
    if (command.kind == StopKind::Kill) {
        leave_at(command.key, killed, at_once);
    } else if (member.script.ignores_term) {
        leave_at(command.key, killed, at_once + member.grace);
    } else {
        const TimePoint soon = now + draw({milliseconds{1}, milliseconds{200}});
        leave_at(command.key, {EndCause::Signalled, kSigTerm, ""}, soon);
    }
}

void SimulatedNode::act(const MemberKey& key, const TrialModel& model, TimePoint now) {
    SimulatedMember& member = members_.at(key);
    switch (member.phase) {
        case SimulatedMember::Phase::Fetching:
            cannot_resume(key, model, now);
            return;
        case SimulatedMember::Phase::Starting:
            if (!resume(key, now)) {
                cannot_resume(key, model, now);
                return;
            }
            if (member.script.failure && member.script.failure->cause == EndCause::SpawnFailed) {
                exit(key, *member.script.failure, now);
                return;
            }
            member.phase = SimulatedMember::Phase::Running;
            member.started = now;
            tell_agent(MemberStarted{key, 1000, ""}, model, now);
            move_to(key, member, next_of(member));
            return;
        case SimulatedMember::Phase::Running:
            run_on(key, model, now);
            return;
        case SimulatedMember::Phase::Leaving: {
            const bool ran = member.started != TimePoint{};
            const Usage usage{ran ? now - member.started : Duration{0}, Duration{0}, 0};
            const Outcome outcome = member.outcome;
            if (member.checkpoints.fetch_from && member.checkpoints.resume_from) {
                // What was fetched is still the other node's.
                storage_->remove(member.checkpoints.directory, *member.checkpoints.resume_from);
            }
            members_.erase(key);
            tell_agent(MemberEnded{key, outcome, usage}, model, now);
            return;
        }
    }
}

void SimulatedNode::run_on(const MemberKey& key, const TrialModel& model, TimePoint now) {
    const SimulatedMember& member = members_.at(key);
    if (member.script.failure && now >= member.origin + member.script.duration / 2) {
        exit(key, *member.script.failure, now);
        return;
    }
    if (now >= member.origin + member.script.duration) {
        exit(key, {EndCause::Exited, 0, ""}, now);
        return;
    }
    report(key, model, now);
    const std::uint32_t every = member.script.save_every;
    const std::uint32_t made = member.reports_made / std::max(member.script.burst, 1U);
    if (every > 0 && made % every == 0 && member.phase == SimulatedMember::Phase::Running) {
        save(key, model, now);
        if (!member.script.saves_aside) {
            wait_until_safe(members_.at(key), key, now);
        }
    }
    // The agent may have asked for its end meanwhile; then it has its time already.
    go_on(key);
}

void SimulatedNode::go_on(const MemberKey& key) {
    SimulatedMember& member = members_.at(key);
    if (member.phase == SimulatedMember::Phase::Running && !member.awaited) {
        move_to(key, member, next_of(member));
    }
}

void SimulatedNode::report(const MemberKey& key, const TrialModel& model, TimePoint now) {
    for (std::uint32_t i = 0; i < std::max(members_.at(key).script.burst, 1U); ++i) {
        SimulatedMember& member = members_.at(key);
        const double step = ++member.reports_made;
        ++reports_made_[key.attempt];
        std::vector<ValueMember> metrics;
        if (member.script.says_step) {
            metrics.push_back({"step", step});
        }
        const char* name = member.script.without_objective ? "other" : "loss";
        metrics.push_back({name, member.script.quality + 1 / step});
        const bool garbage = member.script.sends_garbage;
        tell_agent(ReportArrived{key, std::move(metrics)}, model, now);
        if (garbage) {
            tell_agent(ReportRefused{key, "not JSON"}, model, now);
        }
    }
}

void SimulatedNode::exit(const MemberKey& key, Outcome outcome, TimePoint now) {
    leave_at(key, std::move(outcome), now + members_.at(key).script.leftovers);
}

void SimulatedNode::leave_at(const MemberKey& key, Outcome outcome, TimePoint when) {
    SimulatedMember& member = members_.at(key);
    const bool leaves_already = member.phase == SimulatedMember::Phase::Leaving;
    if (leaves_already && member.next <= when) {
        return;
    }
    // Leftovers that are killed do not change how the process ended.
    if (!leaves_already) {
        member.outcome = std::move(outcome);
    }
    member.phase = SimulatedMember::Phase::Leaving;
    move_to(key, member, when);
}

void SimulatedNode::move_to(const MemberKey& key, SimulatedMember& member, TimePoint next) {
    const auto [first, last] = due_.equal_range(member.next);
    for (auto entry = first; entry != last; ++entry) {
        if (entry->second == key) {
            due_.erase(entry);
            break;
        }
    }
    member.next = next;
    due_.emplace(next, key);
}

Duration SimulatedNode::draw(DurationRange range) {
    const auto width = static_cast<std::uint64_t>((range.to - range.from).count()) + 1;
    return range.from + Duration{static_cast<std::int64_t>(random_.below(width))};
}

}  // namespace muster
