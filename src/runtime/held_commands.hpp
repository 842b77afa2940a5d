// SPDX-License-Identifier: Apache-2.0
//
// held_commands - commands that must not be carried out before facts are on disk, and those to the
// same receiver that came after them.

#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "base/ids.hpp"
#include "protocol/commands.hpp"

namespace muster {

class HeldCommands {
  public:
    /// Takes a step's command in; gives it back when nothing holds it up. `durable` facts of the
    /// run are on disk.
    std::optional<Command> hold_or_pass(Command command, std::uint64_t durable) {
        if (is_urgent(command)) {
            return command;
        }
        // Nothing goes to a node before the run's first fact, its epoch, is on disk.
        if (std::holds_alternative<Send>(command.action)) {
            command.after_facts = std::max<std::uint64_t>(command.after_facts, 1);
        }
        const Receiver receiver = receiver_of(command);
        const auto queue = queues_.find(receiver);
        if (queue == queues_.end() && is_free(command, durable)) {
            return command;
        }
        queues_[receiver].push_back(std::move(command));
        return std::nullopt;
    }

    /// What nothing holds up any more, in order for each receiver.
    std::vector<Command> release(std::uint64_t durable) {
        std::vector<Command> free;
        for (auto queue = queues_.begin(); queue != queues_.end();) {
            std::deque<Command>& commands = queue->second;
            while (!commands.empty() && is_free(commands.front(), durable)) {
                free.push_back(std::move(commands.front()));
                commands.pop_front();
            }
            queue = commands.empty() ? queues_.erase(queue) : std::next(queue);
        }
        return free;
    }

    /// Holds every Start, and what comes after it, whatever is on disk; or no longer.
    void hold_starts(bool hold) { holds_starts_ = hold; }

    /// Trials of which a Start is held.
    std::size_t held_trials() const {
        std::set<TrialId> trials;
        for (const auto& queue : queues_) {
            for (const Command& command : queue.second) {
                if (const Start* start = start_in(command)) {
                    trials.insert(start->key.trial);
                }
            }
        }
        return trials.size();
    }

    /// Drops what was to go to a node.
    void forget(NodeId node) { queues_.erase(node); }

    bool empty() const { return queues_.empty(); }

  private:
    /// The node of a Send; nothing for all else.
    using Receiver = std::optional<NodeId>;

    /// A lease must not run out since the disk is slow; a lost node hears nothing any more.
    static bool is_urgent(const Command& command) {
        const auto* send = std::get_if<Send>(&command.action);
        return std::holds_alternative<Abandon>(command.action) ||
               (send != nullptr && std::holds_alternative<Alive>(send->message));
    }

    static const Start* start_in(const Command& command) {
        const auto* send = std::get_if<Send>(&command.action);
        return send != nullptr ? std::get_if<Start>(&send->message) : nullptr;
    }

    bool is_free(const Command& command, std::uint64_t durable) const {
        return command.after_facts <= durable && !(holds_starts_ && start_in(command) != nullptr);
    }

    static Receiver receiver_of(const Command& command) {
        const auto* send = std::get_if<Send>(&command.action);
        return send != nullptr ? Receiver(send->node) : std::nullopt;
    }

    std::map<Receiver, std::deque<Command>> queues_;
    bool holds_starts_ = false;
};

}  // namespace muster
