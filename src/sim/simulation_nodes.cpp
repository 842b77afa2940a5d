// SPDX-License-Identifier: Apache-2.0
//
// simulation_nodes - the nodes' side: messages to and from agents, and nodes that come and go.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "sim/simulation_state.hpp"
#include "wire/codec.hpp"

namespace muster {
namespace {

using std::chrono::milliseconds;

/// What an agent and the kernel may take, once a node goes on that stood still for too long.
constexpr Duration kKillTakes = milliseconds{1500};

/// Whether something else of the same trial runs there.
bool has_twin(const NodeSide& which, const MemberKey& key) {
    const auto& members = which.node.members();
    auto of_trial = members.lower_bound(MemberKey{key.trial, {}, {}});
    while (of_trial != members.end() && of_trial->first == key) {
        ++of_trial;
    }
    return of_trial != members.end() && of_trial->first.trial == key.trial;
}

}  // namespace

void Simulation::State::on(FrameToAgent& event) {
    NodeSide& to = place(event.node);
    if (to.life != event.life || !to.node.is_up() || !arrives(to.link.to_agent_ends, to.life)) {
        return;
    }
    auto messages = decode_to_agent(event.bytes);
    if (!messages) {
        watch.violate("What was encoded is decoded.", messages.error().message);
        return;
    }
    for (const ToAgent& message : *messages) {
        to.node.head_said(message, scenario.model, node_now(to));
        if (const auto* start = std::get_if<Start>(&message)) {
            check_fence(to);
            if (to.node.is_bad() && scenario.bad_node != event.node) {
                watch.fails_by_its_node(start->key.trial);
            }
        }
    }
    after_node(to);
}

void Simulation::State::on(NodeWakes& event) {
    NodeSide& which = place(event.node);
    if (which.life != event.life) {
        return;
    }
    which.wakes_queued.erase(event.at);
    if (which.node.next_wake() <= node_now(which)) {
        which.node.wake(scenario.model, node_now(which));
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
    which.wakes_queued.clear();
    if (scenario.bad_node == event.node) {
        which.node.go_bad();
    }
    which.node.start(which.life, node_now(which));
    after_node(which);
}

void Simulation::State::on(NodeGoesOn& event) {
    NodeSide& which = place(event.node);
    if (which.life != event.life || !which.node.is_up()) {
        return;
    }
    which.stood += event.gap;
    which.node.stood_still(event.gap, scenario.model, node_now(which));
    after_node(which);
    push(now + kKillTakes, FenceChecked{event.node});
}

void Simulation::State::on(FenceChecked& event) {
    check_fence(place(event.node));
}

void Simulation::State::on(HeadLossNoticed& event) {
    NodeSide& which = place(event.node);
    if (which.life == event.life && which.node.is_up()) {
        which.node.head_lost(scenario.model, node_now(which));
        after_node(which);
    }
}

void Simulation::State::after_node(NodeSide& which) {
    const NodeId id = id_of(which);
    if (which.node.is_up() && which.node.incarnation() != which.life) {
        // It lost its lease and begins anew: what comes to the one before it is void.
        Link& link = which.link;
        lose_what_is_under_way(
            link.to_head_ends, which.life, std::max(link.last_to_head[0], link.last_to_head[1])
        );
        which.life = which.node.incarnation();
        which.wakes_queued.clear();
    }
    tell_touches(which);
    for (const FromAgent& message : which.node.take_messages()) {
        send_to_head(which, message);
    }
    const TimePoint wake = std::max(real_wake(which), now);
    if (is_sooner(wake, which.wakes_queued)) {
        which.wakes_queued.insert(wake);
        push(wake, NodeWakes{id, which.life, wake});
    }
    if (which.was_up && !which.node.is_up()) {
        which.was_up = false;
        after_node_left(which);
    }
}

void Simulation::State::tell_touches(NodeSide& which) {
    for (const CheckpointTouch& touch : which.node.take_touches()) {
        watch.checkpoints().touched(which.node.inventory().name, touch);
    }
}

void Simulation::State::after_node_left(NodeSide& which) {
    const NodeId id = id_of(which);
    if (which.comes_back) {
        const Duration delay = draw(milliseconds{0}, milliseconds{3000});
        push(now + delay, NodeStarts{id, run_number});
    }
    // Its process is gone, and so is its connection.
    push(now + draw(milliseconds{1}, milliseconds{3000}), NodeLossNoticed{id, which.life});
    begin_next_if_down();
}

/// A node that stood still has not had the time yet to kill what may run elsewhere by now.
bool Simulation::State::goes_on_just_now(const NodeSide& which) const {
    return now < which.still_until + kKillTakes;
}

/// With leases no trial ever runs in two places: whoever starts it elsewhere may be sure that its
/// processes are gone.
void Simulation::State::check_fence(const NodeSide& which) {
    if (scenario.lease == Duration{0} || goes_on_just_now(which)) {
        return;
    }
    for (const auto& [key, member] : which.node.members()) {
        for (const NodeSide& other : places) {
            if (!goes_on_just_now(other) && has_twin(other, key)) {
                watch.violate(
                    "A trial runs in one place at a time.",
                    fmt::format(
                        "trial {} runs on nodes {} and {}",
                        to_string(key.trial),
                        id_of(which).value,
                        id_of(other).value
                    )
                );
            }
        }
    }
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
