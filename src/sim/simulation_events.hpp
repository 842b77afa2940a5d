// SPDX-License-Identifier: Apache-2.0
//
// simulation_events - everything that waits in a simulation's queue, and nothing else. `life`
// counts a node's starts and `run` the heads: what is meant for an earlier one comes to nothing.

#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "search/searcher.hpp"

namespace muster {

struct FrameToAgent {
    NodeId node;
    std::uint32_t life = 0;
    std::string bytes;
};

struct FrameToHead {
    NodeId node;
    std::uint32_t life = 0;
    std::uint32_t run = 0;
    std::string bytes;
};

/// The node's next_wake(). `at` is when, even if something holds it up.
struct NodeWakes {
    NodeId node;
    std::uint32_t life = 0;
    TimePoint at;
};

/// The head's next_deadline(), likewise.
struct HeadWakes {
    std::uint32_t run = 0;
    TimePoint at;
};

struct FlushEnds {
    std::uint32_t run = 0;
};

struct SearcherAnswers {
    std::uint32_t run = 0;
    Suggestion suggestion;
};

struct NodeStarts {
    NodeId node;
    std::uint32_t run = 0;
};

/// The node has stood still for so long.
struct NodeGoesOn {
    NodeId node;
    std::uint32_t life = 0;
    Duration gap{0};
};

/// What had to be gone from the node by now is.
struct FenceChecked {
    NodeId node;
};

/// The node's agent notices that its head is gone.
struct HeadLossNoticed {
    NodeId node;
    std::uint32_t life = 0;
};

/// The head notices that the node is gone.
struct NodeLossNoticed {
    NodeId node;
    std::uint32_t life = 0;
};

struct RunBegins {};

/// The head hears when its time ends; kNever: that it does not.
struct EndIsTold {
    std::uint32_t run = 0;
    TimePoint at = kNever;
};

/// It does.
struct TimeIsUp {
    std::uint32_t run = 0;
};

using SimulationEvent = std::variant<
    FrameToAgent,
    FrameToHead,
    NodeWakes,
    HeadWakes,
    FlushEnds,
    SearcherAnswers,
    NodeStarts,
    NodeGoesOn,
    FenceChecked,
    HeadLossNoticed,
    NodeLossNoticed,
    RunBegins,
    EndIsTold,
    TimeIsUp>;

/// "head -> n1: Start 00003 1.4": for people who follow a run.
std::string to_text(const SimulationEvent& event);

}  // namespace muster
