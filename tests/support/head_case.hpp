// SPDX-License-Identifier: Apache-2.0
//
// head_case - drives a Head with literals: nodes that report, configs on demand, trials that say
// and end. It collects what the head keeps and does, so that a test states only what it is about.

#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "head/head.hpp"
#include "head/trial.hpp"
#include "resources/node_inventory.hpp"

namespace muster::testing {

/// A logical node: whole cores, devices "0", "1", ….
inline NodeInventory make_node(const std::string& name, std::int64_t cpus, std::int64_t gpus = 0) {
    NodeInventory node{.name = name, .cpu = Amount::whole(cpus)};
    node.cores.resize(static_cast<std::size_t>(cpus));
    for (std::int64_t index = 0; index < gpus; ++index) {
        node.devices.push_back({.label = std::to_string(index), .kind = DeviceKind::Logical});
    }
    return node;
}

class HeadCase {
  public:
    explicit HeadCase(ExperimentSpec spec, std::uint32_t trials, RunOptions options = {})
        : head(std::move(spec), std::move(options), trials),
          configs_left_(trials) {}

    void begin() { handle(Reconcile{}); }

    void node_reports(NodeId id, NodeInventory inventory, std::uint32_t incarnation = 1) {
        handle(AgentSaid{id, Hello{incarnation, std::move(inventory)}});
    }

    void begin_with(std::vector<NodeInventory> inventories) {
        begin();
        std::uint32_t next = 0;
        for (NodeInventory& inventory : inventories) {
            node_reports(NodeId{next++}, std::move(inventory));
        }
    }

    /// Handles the event, and answers the head's questions for configs until it has none.
    void handle(const Event& event) {
        take(head.handle(event, now));
        while (asked_ > 0) {
            Suggested suggested;
            const std::uint32_t count = std::min(std::exchange(asked_, 0), configs_left_);
            for (std::uint32_t index = 0; index < count; ++index) {
                suggested.configs.push_back(Config::from_members({{"index", int(next_config_++)}}));
            }
            configs_left_ -= count;
            suggested.exhausted = configs_left_ == 0;
            take(head.handle(suggested, now));
        }
    }

    void advance(Duration by) {
        now = now + by;
        while (head.next_deadline() <= now) {
            handle(Tick{});
        }
    }

    /// The running attempt's key. REQUIRES: the trial holds resources.
    MemberKey key(std::uint32_t trial) const {
        return {
            TrialId{trial}, head.trial(TrialId{trial})->progress->running->attempt, MemberId{0}};
    }

    NodeId node_of(std::uint32_t trial) const {
        return head.trial(TrialId{trial})->progress->running->placement.bundles.front().node;
    }

    void trial_reports(std::uint32_t trial, double step, std::vector<ValueMember> metrics) {
        handle(AgentSaid{node_of(trial), Reported{key(trial), {step, std::move(metrics)}, 0}});
    }

    void trial_ends(std::uint32_t trial, Outcome outcome = {}) {
        handle(AgentSaid{
            node_of(trial), Ended{key(trial), std::move(outcome), {std::chrono::seconds{1}}}});
    }

    void
    trial_saves(std::uint32_t trial, std::uint32_t number, double step, std::int64_t bytes = 100) {
        handle(AgentSaid{node_of(trial), CheckpointSaved{key(trial), number, step, bytes}});
    }

    /// As trial_ends(), after it ran for so long.
    void trial_ends_after(std::uint32_t trial, Duration wall, Outcome outcome = {}) {
        handle(AgentSaid{node_of(trial), Ended{key(trial), std::move(outcome), {wall}}});
    }

    /// The last Start that was sent for the trial.
    Start last_start(std::uint32_t trial) const {
        Start last;
        for (const Start& start : sent<Start>()) {
            last = start.key.trial == TrialId{trial} ? start : last;
        }
        return last;
    }

    TrialState state(std::uint32_t trial) const { return head.trial(TrialId{trial})->state; }

    std::size_t running() const { return head.active_trials().size(); }

    /// Everything of one kind that was sent so far.
    template <class Message>
    std::vector<Message> sent() const {
        std::vector<Message> found;
        for (const Command& command : commands) {
            if (const Send* send = std::get_if<Send>(&command.action)) {
                if (const Message* message = std::get_if<Message>(&send->message)) {
                    found.push_back(*message);
                }
            }
        }
        return found;
    }

    template <class Kind>
    std::vector<Kind> kept() const {
        std::vector<Kind> found;
        for (const Fact& fact : facts) {
            if (const Kind* kind = std::get_if<Kind>(&fact)) {
                found.push_back(*kind);
            }
        }
        return found;
    }

    template <class Kind>
    std::vector<Kind> actions() const {
        std::vector<Kind> found;
        for (const Command& command : commands) {
            if (const Kind* kind = std::get_if<Kind>(&command.action)) {
                found.push_back(*kind);
            }
        }
        return found;
    }

    Head head;
    TimePoint now{};
    std::vector<Fact> facts;
    std::vector<Command> commands;

  private:
    void take(Step step) {
        for (const Command& command : step.commands) {
            if (const Ask* ask = std::get_if<Ask>(&command.action)) {
                asked_ += ask->count;
            }
        }
        std::move(step.facts.begin(), step.facts.end(), std::back_inserter(facts));
        std::move(step.commands.begin(), step.commands.end(), std::back_inserter(commands));
    }

    std::uint32_t configs_left_ = 0;
    std::uint32_t next_config_ = 0;
    std::uint32_t asked_ = 0;
};

}  // namespace muster::testing
