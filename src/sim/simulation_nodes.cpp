// SPDX-License-Identifier: Apache-2.0
//
// simulation_nodes - the nodes' side: messages to and from agents, and nodes that come and go.

#include <algorithm>
#include <utility>

#include "sim/simulation_state.hpp"
#include "wire/codec.hpp"

namespace muster {
namespace {

using std::chrono::milliseconds;

}  // namespace

void Simulation::State::on(FrameToAgent& event) {
    NodeSide& to = place(event.node);
    if (to.life != event.life || !to.node.is_up()) {
        return;
    }
    auto messages = decode_to_agent(event.bytes);
    if (!messages) {
        watch.violate("What was encoded is decoded.", messages.error().message);
        return;
    }
    for (const ToAgent& message : *messages) {
        to.node.head_said(message, scenario.model, now);
    }
    check_fence(to);
    after_node(to);
}

void Simulation::State::on(NodeWakes& event) {
    NodeSide& which = place(event.node);
    if (which.life != event.life) {
        return;
    }
    which.wake_queued = kNever;
    if (which.node.next_wake() <= now) {
        which.node.wake(scenario.model, now);
    }
    after_node(which);
}

void Simulation::State::on(NodeStarts& event) {
    NodeSide& which = place(event.node);
    if (!is_run(event.run) || which.node.is_up()) {
        return;
    }
    ++which.life;
    which.was_up = true;
    which.comes_back = false;
    which.wake_queued = kNever;
    which.node.start(which.life, now);
    after_node(which);
}

void Simulation::State::on(HeadLossNoticed& event) {
    NodeSide& which = place(event.node);
    if (which.life == event.life && which.node.is_up()) {
        which.node.head_lost(scenario.model, now);
        after_node(which);
    }
}

void Simulation::State::after_node(NodeSide& which) {
    const NodeId id = id_of(which);
    if (which.node.is_up() && which.node.incarnation() != which.life) {
        // It lost its lease and begins anew: what comes to the one before it is void.
        which.life = which.node.incarnation();
        which.wake_queued = kNever;
    }
    for (const FromAgent& message : which.node.take_messages()) {
        which.last_to_head =
            std::max(which.last_to_head, std::max(now, which.cut_until) + message_delay(which));
        push(which.last_to_head, FrameToHead{id, which.life, run_number, encode(message)});
    }
    const TimePoint wake = which.node.next_wake();
    if (wake < which.wake_queued) {
        which.wake_queued = wake;
        push(wake, NodeWakes{id, which.life});
    }
    if (which.was_up && !which.node.is_up()) {
        which.was_up = false;
        if (which.comes_back) {
            const Duration delay = draw(milliseconds{0}, milliseconds{3000});
            push(now + delay, NodeStarts{id, run_number});
        }
        begin_next_if_down();
    }
}

/// With leases no trial ever runs in two places: whoever starts it elsewhere may be sure that its
/// processes are gone.
void Simulation::State::check_fence(const NodeSide& which) {
    if (scenario.lease == Duration{0}) {
        return;
    }
    for (const auto& [key, member] : which.node.members()) {
        for (const NodeSide& other : places) {
            const auto& members = other.node.members();
            const auto twin = members.lower_bound(MemberKey{key.trial, {}, {}});
            if (&other != &which && twin != members.end() && twin->first.trial == key.trial) {
                watch.violate(
                    "A trial runs in one place at a time.", "trial " + to_string(key.trial)
                );
            }
        }
    }
}

Duration Simulation::State::message_delay(const NodeSide& which) {
    const Duration delay = draw(scenario.message_delay);
    return now < which.slow_until ? delay + draw(milliseconds{0}, milliseconds{2000}) : delay;
}

bool Simulation::State::all_down() const {
    return std::none_of(places.begin(), places.end(), [](const NodeSide& which) {
        return which.node.is_up();
    });
}

void Simulation::State::begin_next_if_down() {
    if (!side && !over && all_down()) {
        push(now + draw(milliseconds{0}, milliseconds{1000}), RunBegins{});
    }
}

}  // namespace muster
