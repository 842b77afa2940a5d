// SPDX-License-Identifier: Apache-2.0
//
// simulation_network - messages on their way, and which of them arrive. It promises what
// transport/transport.hpp does, and nothing more.

#include <algorithm>

#include "base/overloaded.hpp"
#include "sim/simulation_state.hpp"
#include "wire/codec.hpp"

namespace muster {
namespace {

using std::chrono::milliseconds;

/// As runtime/post.hpp: what an agent says of itself goes first.
std::size_t lane_of(const FromAgent& message) {
    const bool of_itself = std::holds_alternative<Hello>(message) ||
                           std::holds_alternative<Heartbeat>(message) ||
                           std::holds_alternative<Farewell>(message);
    return of_itself ? 0 : 1;
}

}  // namespace

Duration Simulation::State::message_delay(const Link& link) {
    const Duration delay = draw(scenario.message_delay);
    return now < link.slow_until ? delay + draw(milliseconds{0}, milliseconds{2000}) : delay;
}

void Simulation::State::send_to_agent(const Send& send) {
    const auto counted = side->counted.find(send.node);
    // Nothing is sent to a node that was declared lost.
    if (counted == side->counted.end()) {
        return;
    }
    Link& link = place(send.node).link;
    const TimePoint leaves = std::max(now, link.to_agent_cut_until);
    link.last_to_agent = std::max(link.last_to_agent, leaves + message_delay(link));
    push(link.last_to_agent, FrameToAgent{send.node, counted->second, encode(send.message)});
}

void Simulation::State::send_to_head(NodeSide& from, const FromAgent& message) {
    Link& link = from.link;
    TimePoint& last = link.last_to_head[lane_of(message)];
    last = std::max(last, std::max(now, link.to_head_cut_until) + message_delay(link));
    push(last, FrameToHead{id_of(from), from.life, run_number, encode(message)});
}

/// One side has ended the session: what did not leave it yet never will.
void Simulation::State::lose_what_is_under_way(
    EndsOfLives& ends,
    std::uint32_t life,
    TimePoint last
) {
    const TimePoint end = last > now ? now + draw(Duration{0}, last - now) : now;
    const auto [found, is_new] = ends.emplace(life, end);
    found->second = std::min(found->second, end);
}

bool Simulation::State::arrives(const EndsOfLives& ends, std::uint32_t life) const {
    const auto end = ends.find(life);
    return end == ends.end() || now <= end->second;
}

/// Whoever stands still takes nothing in, and does nothing.
TimePoint Simulation::State::held_up_until(const SimulationEvent& event) const {
    const auto head = [&](std::uint32_t run) { return is_run(run) ? head_still_until : now; };
    const auto node = [&](NodeId id) { return places[id.value].still_until; };
    return std::visit(
        Overloaded{
            [&](const FrameToAgent& frame) { return node(frame.node); },
            [&](const FrameToHead& frame) { return head(frame.run); },
            [&](const NodeWakes& wake) { return node(wake.node); },
            [&](const HeadWakes& wake) { return head(wake.run); },
            [&](const FlushEnds& flush) { return head(flush.run); },
            [&](const SearcherAnswers& answer) { return head(answer.run); },
            [&](const HeadLossNoticed& loss) { return node(loss.node); },
            [&](const NodeLossNoticed&) { return head_still_until; },
            [&](const NodeStarts&) { return now; },
            [&](const NodeGoesOn&) { return now; },
            [&](const FenceChecked&) { return now; },
            [&](const RunBegins&) { return now; },
            [&](const EndIsTold& end) { return head(end.run); },
            [&](const TimeIsUp&) { return now; }},
        event
    );
}

}  // namespace muster
