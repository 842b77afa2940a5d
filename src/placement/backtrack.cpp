// SPDX-License-Identifier: Apache-2.0
//
// backtrack - a depth-first search over the nodes of each item, for the groups in which placing the
// hardest first leaves a later one without room.

#include <algorithm>
#include <map>

#include "placement/group.hpp"

namespace muster {
namespace {

constexpr int kMostSteps = 1000;

class Backtracker {
  public:
    Backtracker(const GroupSearch& search, bool spread) : search_(search), spread_(spread) {
        const auto candidates = candidates_by_shape(search);
        for (const auto& of_shape : candidates) {
            nodes_.insert(nodes_.end(), of_shape.begin(), of_shape.end());
        }
        std::sort(nodes_.begin(), nodes_.end());
        nodes_.erase(std::unique(nodes_.begin(), nodes_.end()), nodes_.end());
        for (const auto& of_shape : candidates) {
            places_.emplace_back();
            for (const std::uint32_t node : of_shape) {
                const auto at = std::lower_bound(nodes_.begin(), nodes_.end(), node);
                places_.back().push_back(static_cast<std::size_t>(at - nodes_.begin()));
            }
        }
        there_.resize(nodes_.size());
        chosen_.resize(search.items.size());
    }

    std::optional<Assignment> run() {
        if (!enough_in_all() || !place_from(0)) {
            return std::nullopt;
        }
        Assignment assignment;
        for (const std::size_t place : chosen_) {
            assignment.push_back(nodes_[place]);
        }
        return assignment;
    }

  private:
    bool enough_in_all() const;
    bool place_from(std::size_t item);
    std::vector<std::size_t> order_for(std::size_t item) const;

    const GroupSearch& search_;
    bool spread_;
    // Nodes that some item may use, ascending; below, a node is its place here.
    std::vector<std::uint32_t> nodes_;
    // Per shape, best first.
    std::vector<std::vector<std::size_t>> places_;
    std::vector<std::vector<const Demand*>> there_;
    std::vector<std::size_t> chosen_;
    int steps_ = 0;
};

/// A bound that ends most hopeless searches at once.
bool Backtracker::enough_in_all() const {
    Demand asked;
    for (const GroupItem& item : search_.items) {
        asked.add(item.demand);
    }
    std::int64_t cpu = 0;
    std::int64_t memory = 0;
    std::int64_t unshared = 0;
    for (const std::uint32_t node : nodes_) {
        const NodeState& state = search_.pool.state(node);
        cpu += state.cpu;
        memory += state.memory;
        unshared += state.unshared();
    }
    return asked.cpu <= cpu && asked.memory <= memory && asked.devices <= unshared;
}

/// Nodes to try for the item. Of equal items the later one gets the same node or a later one, since
/// swapping them changes nothing.
std::vector<std::size_t> Backtracker::order_for(std::size_t item) const {
    std::vector<std::size_t> order = places_[search_.items[item].shape];
    if (item > 0 && search_.items[item].shape == search_.items[item - 1].shape) {
        const std::size_t from = chosen_[item - 1];
        order.erase(
            std::remove_if(
                order.begin(), order.end(), [&](std::size_t place) { return place < from; }
            ),
            order.end()
        );
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
        if (spread_) {
            return there_[left].size() < there_[right].size();
        }
        return !there_[left].empty() && there_[right].empty();
    });
    return order;
}

bool Backtracker::place_from(std::size_t item) {
    if (item == search_.items.size()) {
        return true;
    }
    for (const std::size_t place : order_for(item)) {
        if (++steps_ > kMostSteps) {
            return false;
        }
        std::vector<const Demand*>& there = there_[place];
        there.push_back(&search_.items[item].demand);
        if (holds(search_.pool.state(nodes_[place]), there)) {
            chosen_[item] = place;
            if (place_from(item + 1)) {
                return true;
            }
        }
        there.pop_back();
    }
    return false;
}

}  // namespace

std::optional<Assignment> assign_backtracking(const GroupSearch& search, bool spread) {
    // Equal items need no search: greedy placing fails only when there is no room.
    if (search.items.size() > kMostBacktracked || shape_count(search.items) < 2) {
        return std::nullopt;
    }
    return Backtracker(search, spread).run();
}

}  // namespace muster
