// SPDX-License-Identifier: Apache-2.0
//
// commands - everything that the head can ask of the loop around it, and nothing else.

#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "muster/config.hpp"

#include "base/ids.hpp"
#include "protocol/facts.hpp"
#include "protocol/messages.hpp"

namespace muster {

/// Send a message to a node's agent.
struct Send {
    NodeId node;
    ToAgent message;

    friend bool operator==(const Send&, const Send&) = default;
};

/// The node was lost: whatever is on its way to it is void, and nothing is sent to it before its
/// agent has come anew (a Hello with a higher incarnation).
struct Abandon {
    NodeId node;
    /// What was lost. A node may have come anew before anyone missed it: then its next incarnation
    /// is there already, and stays.
    std::uint32_t incarnation = 0;

    friend bool operator==(const Abandon&, const Abandon&) = default;
};

/// Ask the searcher for up to `count` configs; the answer is a Suggested event. At most one Ask is
/// open at a time.
struct Ask {
    std::uint32_t count = 0;

    friend bool operator==(const Ask&, const Ask&) = default;
};

/// Tell the searcher how a trial ended. Never sent for attempts that were lost. A trial that runs
/// again after it failed is told again: the later one counts.
struct Tell {
    TrialId trial;
    TrialState state = TrialState::Completed;
    std::optional<TrialResult> best;

    friend bool operator==(const Tell&, const Tell&) = default;
};

enum class NoteLevel : std::uint8_t { Info, Warning, Error };

/// Say something to whoever watches the run.
struct Note {
    NoteLevel level = NoteLevel::Info;
    std::string text;

    friend bool operator==(const Note&, const Note&) = default;
};

/// Tell people that a trial ended.
struct Announce {
    TrialId trial;

    friend bool operator==(const Announce&, const Announce&) = default;
};

/// The run is over and all agents were dismissed: leave.
struct Leave {
    RunEnd end = RunEnd::Finished;
    std::string reason;

    friend bool operator==(const Leave&, const Leave&) = default;
};

using Action = std::variant<Send, Abandon, Ask, Tell, Note, Announce, Leave>;

/// An action and what must be on disk before it is carried out: 0 is nothing, N the first N facts
/// that the head has emitted in this run, counted over all its steps.
struct Command {
    Action action;
    std::uint64_t after_facts = 0;

    friend bool operator==(const Command&, const Command&) = default;
};

/// What one event leads to. The loop gives `facts` to the journal first, then carries out
/// `commands` in order; a command that waits holds back only those after it to the same receiver
/// (the node of a Send; all else is one receiver).
struct Step {
    std::vector<Fact> facts;
    std::vector<Command> commands;

    friend bool operator==(const Step&, const Step&) = default;
};

}  // namespace muster
