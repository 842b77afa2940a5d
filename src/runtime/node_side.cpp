// SPDX-License-Identifier: Apache-2.0

#include "runtime/node_side.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/overloaded.hpp"

namespace muster {

NodeSide::NodeSide(Agent& agent, Processes& processes, ReportServer& reports, HeadLine& head)
    : agent_(agent),
      processes_(processes),
      reports_(reports),
      head_(head),
      checkpoints_(
          reports,
          [this](AgentEvent event, TimePoint now) { tell(std::move(event), now); },
          [this](const LaunchPlan& plan) { processes_.launch(plan); }
      ) {}

void NodeSide::tell(AgentEvent event, TimePoint now) {
    events_.push_back(std::move(event));
    if (std::exchange(telling_, true)) {
        return;
    }
    while (!events_.empty()) {
        const AgentEvent next = std::move(events_.front());
        events_.pop_front();
        for (AgentCommand& command : agent_.handle(next, now)) {
            carry_out(std::move(command), now);
        }
    }
    telling_ = false;
}

void NodeSide::add_poll_fds(std::vector<pollfd>& fds, bool reading) const {
    const short wanted = reading ? POLLIN : 0;
    fds.push_back({reading ? reports_.fd() : -1, wanted, 0});
    fds.push_back({reading ? processes_.fd() : -1, wanted, 0});
    fds.push_back({checkpoints_.fd(), POLLIN, 0});
}

void NodeSide::take(const pollfd* fds, TimePoint now) {
    if (fds[0].revents != 0) {
        take_reports(now);
    }
    if (fds[1].revents != 0) {
        take_processes(now);
    }
    if (fds[2].revents != 0) {
        checkpoints_.take(now);
    }
}

void NodeSide::take_reports(TimePoint now) {
    for (AgentEvent& event : reports_.receive()) {
        tell(std::move(event), now);
    }
    take_checkpoints();
}

void NodeSide::take_checkpoints() {
    for (const ReportServer::CheckpointAsked& asked : reports_.take_checkpoints()) {
        checkpoints_.keep(asked);
    }
}

void NodeSide::take_processes(TimePoint now) {
    for (AgentEvent& event : processes_.receive()) {
        if (auto* ended = std::get_if<MemberEnded>(&event)) {
            end_member(std::move(*ended), now);
        } else {
            tell(std::move(event), now);
        }
    }
    if (!processes_.alive() && !said_broken_) {
        said_broken_ = true;
        tell(NodeBroken{processes_.death_reason()}, now);
    }
}

void NodeSide::end_member(MemberEnded ended, TimePoint now) {
    for (AgentEvent& last : reports_.drain(ended.key)) {
        tell(std::move(last), now);
    }
    take_checkpoints();
    reports_.forget(ended.key);
    if (std::optional<MemberEnded> over = checkpoints_.end(std::move(ended), now)) {
        tell(*std::move(over), now);
    }
}

TimePoint NodeSide::next_deadline() const {
    return std::min(agent_.next_deadline(), checkpoints_.next_deadline());
}

void NodeSide::tick(TimePoint now) {
    if (checkpoints_.next_deadline() <= now) {
        checkpoints_.tick(now);
    }
    if (agent_.next_deadline() <= now) {
        tell(AgentTick{}, now);
    }
}

void NodeSide::carry_out(AgentCommand command, TimePoint now) {
    std::visit(
        Overloaded{
            [&](TellHead& tell) { head_.say(std::move(tell.message)); },
            [&](const Launch& launched) { launch(launched.plan, now); },
            [&](const EndMember& end) {
                if (!checkpoints_.give_up(end.key, now)) {
                    processes_.end(end.key, end.kind);
                }
            },
            [&](const Rebind& rebind) { processes_.bind(rebind.key, rebind.processing_units); },
            [&](const TellMemberToStop& stop) { reports_.tell_stop(stop.key); },
            [&](const AnswerCheckpoint& durable) { checkpoints_.answer(durable); },
            [&](const RemoveCheckpoint& dropped) { checkpoints_.remove(dropped); },
            [&](const WarnMember& warning) {
                reports_.tell_warning(warning.key, warning.left);
                if (warning.signal != 0) {
                    processes_.signal(warning.key, warning.signal);
                }
            },
            [&](const HandFromPeer& heard) { checkpoints_.hear(heard, now); },
            [&](const BeginAnew& anew) { head_.begin_anew(anew.incarnation); },
            [&](const LeaveNode&) { has_left_ = true; }},
        command
    );
}

void NodeSide::launch(const LaunchPlan& plan, TimePoint now) {
    std::string config = "{}";
    for (const FileToWrite& file : plan.files) {
        if (file.path == plan.remove_at_end) {
            config = file.content.substr(0, file.content.find_last_not_of('\n') + 1);
        }
    }
    reports_.expect(plan.key, std::move(config));
    checkpoints_.launch(plan, now);
}

}  // namespace muster
