// SPDX-License-Identifier: Apache-2.0

#include "runtime/node_side.hpp"

#include <string>
#include <utility>
#include <variant>

#include "base/overloaded.hpp"

namespace muster {

void NodeSide::tell(const AgentEvent& event, TimePoint now) {
    for (AgentCommand& command : agent_.handle(event, now)) {
        carry_out(std::move(command));
    }
}

void NodeSide::add_poll_fds(std::vector<pollfd>& fds, bool reading) const {
    const short wanted = reading ? POLLIN : 0;
    fds.push_back({reading ? reports_.fd() : -1, wanted, 0});
    fds.push_back({reading ? processes_.fd() : -1, wanted, 0});
}

void NodeSide::take(const pollfd* fds, TimePoint now) {
    if (fds[0].revents != 0) {
        take_reports(now);
    }
    if (fds[1].revents != 0) {
        take_processes(now);
    }
}

void NodeSide::take_reports(TimePoint now) {
    for (const AgentEvent& event : reports_.receive()) {
        tell(event, now);
    }
}

void NodeSide::take_processes(TimePoint now) {
    for (const AgentEvent& event : processes_.receive()) {
        const auto* ended = std::get_if<MemberEnded>(&event);
        if (ended != nullptr) {
            for (const AgentEvent& last : reports_.drain(ended->key)) {
                tell(last, now);
            }
            reports_.forget(ended->key);
        }
        tell(event, now);
    }
    if (!processes_.alive() && !said_broken_) {
        said_broken_ = true;
        tell(NodeBroken{processes_.death_reason()}, now);
    }
}

void NodeSide::tick(TimePoint now) {
    if (agent_.next_deadline() <= now) {
        tell(AgentTick{}, now);
    }
}

void NodeSide::carry_out(AgentCommand command) {
    std::visit(
        Overloaded{
            [&](TellHead& tell) { head_.say(std::move(tell.message)); },
            [&](const Launch& launched) { launch(launched.plan); },
            [&](const EndMember& end) { processes_.end(end.key, end.kind); },
            [&](const Rebind& rebind) { processes_.bind(rebind.key, rebind.processing_units); },
            [&](const TellMemberToStop& stop) { reports_.tell_stop(stop.key); },
            [&](const BeginAnew& anew) { head_.begin_anew(anew.incarnation); },
            [&](const LeaveNode&) { has_left_ = true; }},
        command
    );
}

void NodeSide::launch(const LaunchPlan& plan) {
    std::string config = "{}";
    for (const FileToWrite& file : plan.files) {
        if (file.path == plan.remove_at_end) {
            config = file.content.substr(0, file.content.find_last_not_of('\n') + 1);
        }
    }
    reports_.expect(plan.key, std::move(config));
    processes_.launch(plan);
}

}  // namespace muster
