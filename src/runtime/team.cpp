// SPDX-License-Identifier: Apache-2.0

#include "runtime/team.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "wire/codec.hpp"

namespace muster {
namespace {

constexpr std::uint32_t kHeadRank = 0;
constexpr Duration kFlushPatience = std::chrono::seconds{3};

}  // namespace

Team::Team(Transport& transport, RollCall& roll_call, const std::vector<AgentRank>& agents)
    : transport_(transport),
      roll_call_(roll_call),
      post_(transport) {
    for (const AgentRank& agent : agents) {
        const NodeId node{static_cast<std::uint32_t>(rank_of_.size())};
        rank_of_.push_back(agent.rank);
        node_of_[agent.rank] = node;
        if (agent.rank == kHeadRank) {
            local_ = node;
        } else {
            reached_.push_back(agent.rank);
        }
    }
    post_.put_back(roll_call.take_early());
}

Team::~Team() {
    if (!has_left_) {
        for (const std::uint32_t rank : reached_) {
            post_.send(rank, Dismiss{.orderly = !lost_any()});
        }
        leave();
    }
}

void Team::send(NodeId node, ToAgent message) {
    if (auto* dismiss = std::get_if<Dismiss>(&message)) {
        dismiss->orderly = !lost_any();
    }
    post_.send(rank_of_.at(node.value), std::move(message));
}

void Team::abandon(const Abandon& lost) {
    const std::uint32_t rank = rank_of_.at(lost.node.value);
    if (rank == kHeadRank) {
        return;
    }
    post_.forget(rank);
    if (session_of_[rank] <= lost.incarnation) {
        transport_.abandon(rank, lost.incarnation);
        reached_.erase(std::remove(reached_.begin(), reached_.end(), rank), reached_.end());
        lost_any_ = true;
    }
}

void Team::lose(std::uint32_t rank, const std::string& why, std::vector<Event>& events) {
    lost_any_ = true;
    const auto node = node_of_.find(rank);
    if (node != node_of_.end()) {
        events.emplace_back(NodeLost{node->second, why});
    }
}

void Team::take_broken(std::vector<Event>& events) {
    for (const BrokenPair& pair : transport_.take_broken()) {
        lose(pair.rank, pair.why, events);
    }
}

void Team::take_unreadable(const HeadPost::Unreadable& unreadable, std::vector<Event>& events) {
    if (node_of_.count(unreadable.from) != 0) {
        lose(unreadable.from, "what it says can't be read: " + unreadable.problem, events);
        return;
    }
    // A rank that enrols when the roll call is over.
    transport_.send(
        unreadable.from,
        Lane::Control,
        encode(Enlisted{.role = RankRole::Dismissed, .orderly = false})
    );
}

std::vector<Event> Team::receive(bool with_bulk) {
    std::vector<Event> events;
    HeadPost::Inbox inbox = post_.receive(with_bulk);
    for (HeadPost::Heard& heard : inbox.heard) {
        const auto node = node_of_.find(heard.from);
        if (node == node_of_.end()) {
            continue;
        }
        session_of_[heard.from] = heard.session;
        if (std::holds_alternative<Hello>(heard.message) &&
            std::count(reached_.begin(), reached_.end(), heard.from) == 0) {
            reached_.push_back(heard.from);
        }
        events.emplace_back(AgentSaid{node->second, std::move(heard.message)});
    }
    for (const HeadPost::Unreadable& unreadable : inbox.unreadable) {
        take_unreadable(unreadable, events);
    }
    take_broken(events);
    return events;
}

void Team::leave() {
    has_left_ = true;
    post_.flush();
    wait_until_sent(transport_, reached_, kFlushPatience);
    roll_call_.end_run(reached_);
}

}  // namespace muster
