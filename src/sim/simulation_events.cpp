// SPDX-License-Identifier: Apache-2.0

#include "sim/simulation_events.hpp"

#include <fmt/format.h>

#include "base/overloaded.hpp"
#include "protocol/messages.hpp"
#include "wire/codec.hpp"

namespace muster {
namespace {

std::string name_of(const MemberKey& key) {
    return fmt::format("{} attempt {}", to_string(key.trial), to_string(key.attempt));
}

std::string kind_text(StopKind kind) {
    switch (kind) {
        case StopKind::Graceful:
            return "gracefully";
        case StopKind::GoalReached:
            return "at its goal";
        case StopKind::Kill:
            return "at once";
    }
    return "";
}

std::string text_of(const ToAgent& message) {
    return std::visit(
        Overloaded{
            [](const Setup& said) { return fmt::format("Setup, run {}", said.epoch); },
            [](const Start& said) { return "Start " + name_of(said.key); },
            [](const Stop& said) {
                return fmt::format("Stop {} {}", name_of(said.key), kind_text(said.kind));
            },
            [](const SetCores& said) {
                return fmt::format("SetCores {}: {} cores", name_of(said.key), said.cores.size());
            },
            [](const CheckpointDurable& said) {
                return fmt::format("CheckpointDurable {}: {}", name_of(said.key), said.number);
            },
            [](const DeleteCheckpoint& said) {
                return fmt::format("DeleteCheckpoint {}: {}", to_string(said.trial), said.number);
            },
            [](const Warn& said) {
                return fmt::format("Warn {}: {} left", name_of(said.key), seconds(said.left));
            },
            [](const FromPeer& said) { return fmt::format("FromPeer n{}", said.from.value); },
            [](const PeerUnreachable& said) {
                return fmt::format("PeerUnreachable n{}", said.node.value);
            },
            [](const Alive& said) { return fmt::format("Alive {}", said.heartbeat); },
            [](const Dismiss&) { return std::string("Dismiss"); }},
        message
    );
}

std::string text_of(const FromAgent& message) {
    return std::visit(
        Overloaded{
            [](const Hello& said) {
                return fmt::format("Hello {}, life {}", said.inventory.name, said.incarnation);
            },
            [](const Started& said) { return "Started " + name_of(said.key); },
            [](const Reported& said) {
                return fmt::format("Reported {} step {}", name_of(said.key), said.result.step);
            },
            [](const Ended& said) {
                return fmt::format("Ended {}: {}", name_of(said.key), to_string(said.outcome));
            },
            [](const Remark& said) {
                return fmt::format("Remark {}: {}", name_of(said.key), said.text);
            },
            [](const CheckpointSaved& said) {
                return fmt::format("CheckpointSaved {}: {}", name_of(said.key), said.number);
            },
            [](const CheckpointGone& said) {
                return fmt::format("CheckpointGone {}: {}", name_of(said.key), said.number);
            },
            [](const ToPeer& said) { return fmt::format("ToPeer n{}", said.to.value); },
            [](const Heartbeat& said) { return fmt::format("Heartbeat {}", said.number); },
            [](const Farewell& said) { return "Farewell: " + said.reason; }},
        message
    );
}

template <class Messages>
std::string text_of_all(const Result<Messages>& messages) {
    if (!messages) {
        return messages.error().message;
    }
    std::string text;
    for (const auto& message : *messages) {
        text += (text.empty() ? "" : "; ") + text_of(message);
    }
    return text;
}

}  // namespace

std::string to_text(const SimulationEvent& event) {
    return std::visit(
        Overloaded{
            [](const FrameToAgent& frame) {
                return fmt::format(
                    "head -> n{} (life {}): {}",
                    frame.node.value,
                    frame.life,
                    text_of_all(decode_to_agent(frame.bytes))
                );
            },
            [](const FrameToHead& frame) {
                return fmt::format(
                    "n{} (life {}) -> head: {}",
                    frame.node.value,
                    frame.life,
                    text_of_all(decode_from_agent(frame.bytes))
                );
            },
            [](const NodeWakes& wake) { return fmt::format("n{} wakes", wake.node.value); },
            [](const HeadWakes&) { return std::string("head wakes"); },
            [](const FlushEnds&) { return std::string("facts are on disk"); },
            [](const SearcherAnswers& answer) {
                return fmt::format("searcher: {} configs", answer.suggestion.configs.size());
            },
            [](const NodeStarts& start) { return fmt::format("n{} starts", start.node.value); },
            [](const NodeGoesOn& node) {
                return fmt::format("n{} goes on, {} later", node.node.value, seconds(node.gap));
            },
            [](const FenceChecked&) { return std::string("a look at what runs twice"); },
            [](const HeadLossNoticed& loss) {
                return fmt::format(
                    "n{} (life {}) notices that the head is gone", loss.node.value, loss.life
                );
            },
            [](const NodeLossNoticed& loss) {
                return fmt::format(
                    "head notices the loss of n{} (life {})", loss.node.value, loss.life
                );
            },
            [](const RunBegins&) { return std::string("a run begins"); },
            [](const EndIsTold& end) {
                return end.at == kNever
                           ? std::string("the time does not end")
                           : fmt::format("the time ends at {}s", seconds(end.at.since_start));
            },
            [](const TimeIsUp&) { return std::string("the time is up"); }},
        event
    );
}

}  // namespace muster
