// SPDX-License-Identifier: Apache-2.0
//
// spread - every item on a node of its own, by a matching with augmenting paths: exact, and hardest
// items get their preferred nodes as far as that costs nobody a place.

#include <algorithm>
#include <map>

#include "placement/group.hpp"

namespace muster {
namespace {

constexpr std::uint32_t kNobody = ~std::uint32_t{0};

class Matcher {
  public:
    explicit Matcher(const GroupSearch& search)
        : items_(search.items),
          candidates_(candidates_by_shape(search)),
          next_(candidates_.size()),
          refused_(candidates_.size()),
          node_of_(search.items.size(), kNobody) {}

    /// The node of each item, or kNobody; as many as possible have one.
    const Assignment& match() {
        for (std::uint32_t item = 0; item < items_.size(); ++item) {
            const std::uint32_t shape = items_[item].shape;
            if (!refused_[shape] && !take_free(item)) {
                visited_.clear();
                // Once one item has no way, no equal one ever gets one.
                refused_[shape] = !augment(item);
            }
        }
        return node_of_;
    }

  private:
    bool take_free(std::uint32_t item);
    bool augment(std::uint32_t item);
    void give(std::uint32_t node, std::uint32_t item) {
        owner_[node] = item;
        node_of_[item] = node;
    }

    const std::vector<GroupItem>& items_;
    std::vector<std::vector<std::uint32_t>> candidates_;
    // Per shape: the first candidate that may be free. A matched node stays matched.
    std::vector<std::size_t> next_;
    std::vector<bool> refused_;
    Assignment node_of_;
    std::map<std::uint32_t, std::uint32_t> owner_;
    std::map<std::uint32_t, bool> visited_;
};

bool Matcher::take_free(std::uint32_t item) {
    const std::uint32_t shape = items_[item].shape;
    std::size_t& next = next_[shape];
    while (next < candidates_[shape].size() && owner_.contains(candidates_[shape][next])) {
        ++next;
    }
    if (next == candidates_[shape].size()) {
        return false;
    }
    give(candidates_[shape][next], item);
    return true;
}

bool Matcher::augment(std::uint32_t item) {
    for (const std::uint32_t node : candidates_[items_[item].shape]) {
        if (!visited_.try_emplace(node, true).second) {
            continue;
        }
        const auto owner = owner_.find(node);
        if (owner == owner_.end() || take_free(owner->second) || augment(owner->second)) {
            give(node, item);
            return true;
        }
    }
    return false;
}

/// Puts the items without a node on used nodes, those with the fewest items first.
bool double_up(const GroupSearch& search, Assignment& assignment) {
    std::map<std::uint32_t, std::vector<const Demand*>> used;
    for (std::size_t i = 0; i < assignment.size(); ++i) {
        if (assignment[i] != kNobody) {
            used[assignment[i]].push_back(&search.items[i].demand);
        }
    }
    for (std::size_t i = 0; i < assignment.size(); ++i) {
        if (assignment[i] != kNobody) {
            continue;
        }
        std::vector<const Demand*>* best = nullptr;
        for (auto& [node, there] : used) {
            if (best != nullptr && there.size() >= best->size()) {
                continue;
            }
            there.push_back(&search.items[i].demand);
            const bool fits = holds(search.pool.state(node), there);
            there.pop_back();
            if (fits) {
                best = &there;
                assignment[i] = node;
            }
        }
        if (best == nullptr) {
            return false;
        }
        best->push_back(&search.items[i].demand);
    }
    return true;
}

}  // namespace

std::optional<Assignment> assign_strict_spread(const GroupSearch& search) {
    Assignment matched = Matcher(search).match();
    if (std::find(matched.begin(), matched.end(), kNobody) != matched.end()) {
        return std::nullopt;
    }
    return matched;
}

std::optional<Assignment> assign_spread(const GroupSearch& search) {
    Assignment matched = Matcher(search).match();
    if (double_up(search, matched)) {
        return matched;
    }
    return assign_backtracking(search, true);
}

}  // namespace muster
