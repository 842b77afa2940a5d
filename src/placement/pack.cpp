// SPDX-License-Identifier: Apache-2.0
//
// pack - as few nodes as possible. The hardest of the remaining items that fit on one node together
// go to the node that they fit tightest, then whatever else fits there; for equal items that is the
// fewest nodes there can be.

#include <algorithm>
#include <numeric>

#include "placement/group.hpp"

namespace muster {
namespace {

class Packer {
  public:
    explicit Packer(const GroupSearch& search)
        : search_(search),
          avoid_(search.avoid.begin(), search.avoid.end()),
          remaining_(search.items.size()),
          assignment_(search.items.size()) {
        std::iota(remaining_.begin(), remaining_.end(), 0U);
    }

    std::optional<Assignment> pack() {
        while (!remaining_.empty()) {
            if (!open_node()) {
                return std::nullopt;
            }
        }
        return assignment_;
    }

  private:
    bool open_node();
    std::size_t most_on_one_node() const;
    void fill(std::uint32_t node, std::size_t first);

    const GroupSearch& search_;
    // What is to be avoided, and what is used; ascending.
    std::vector<NodeId> avoid_;
    // Hardest first.
    std::vector<std::uint32_t> remaining_;
    Assignment assignment_;
};

/// How many of the remaining items, from the first, fit on one node together.
std::size_t Packer::most_on_one_node() const {
    const auto fits = [&](std::size_t count) {
        return find_node_for(search_, std::span(remaining_).first(count), avoid_).has_value();
    };
    if (fits(remaining_.size())) {
        return remaining_.size();
    }
    std::size_t most = 0;
    std::size_t too_many = remaining_.size();
    while (too_many - most > 1) {
        const std::size_t middle = most + (too_many - most) / 2;
        (fits(middle) ? most : too_many) = middle;
    }
    return most;
}

bool Packer::open_node() {
    const std::size_t count = most_on_one_node();
    if (count == 0) {
        return false;
    }
    const std::uint32_t node = *find_node_for(search_, std::span(remaining_).first(count), avoid_);
    avoid_.insert(std::upper_bound(avoid_.begin(), avoid_.end(), NodeId{node}), NodeId{node});
    fill(node, count);
    return true;
}

/// Puts the first `first` remaining items on the node, then all others that still fit.
void Packer::fill(std::uint32_t node, std::size_t first) {
    std::vector<const Demand*> there;
    std::vector<std::uint32_t> left;
    std::optional<std::uint32_t> refused_shape;
    for (std::size_t i = 0; i < remaining_.size(); ++i) {
        const GroupItem& item = search_.items[remaining_[i]];
        there.push_back(&item.demand);
        const bool fits =
            i < first || (item.shape != refused_shape && holds(search_.pool.state(node), there));
        if (fits) {
            assignment_[remaining_[i]] = node;
        } else {
            there.pop_back();
            left.push_back(remaining_[i]);
            refused_shape = item.shape;
        }
    }
    remaining_ = std::move(left);
}

}  // namespace

std::optional<Assignment> assign_strict_pack(const GroupSearch& search) {
    std::vector<std::uint32_t> all(search.items.size());
    std::iota(all.begin(), all.end(), 0U);
    const std::optional<std::uint32_t> node = find_node_for(search, all, search.avoid);
    if (!node) {
        return std::nullopt;
    }
    return Assignment(search.items.size(), *node);
}

std::optional<Assignment> assign_pack(const GroupSearch& search) {
    std::optional<Assignment> packed = Packer(search).pack();
    return packed ? packed : assign_backtracking(search, false);
}

}  // namespace muster
