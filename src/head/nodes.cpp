// SPDX-License-Identifier: Apache-2.0

#include "head/nodes.hpp"

#include "base/check.hpp"

namespace muster {

const NodeRecord* Nodes::find(NodeId node) const {
    const bool is_up = node.value < entries_.size() && entries_[node.value].record;
    return is_up ? &*entries_[node.value].record : nullptr;
}

std::optional<NodeId> Nodes::find(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<NodeId> Nodes::first() const {
    for (std::uint32_t node = 0; node < entries_.size(); ++node) {
        if (entries_[node].record) {
            return NodeId{node};
        }
    }
    return std::nullopt;
}

bool Nodes::is_news(NodeId node, std::uint32_t incarnation) const {
    if (node.value >= entries_.size()) {
        return true;
    }
    const std::optional<std::uint32_t>& newest = entries_[node.value].incarnation;
    return !newest || incarnation > *newest;
}

void Nodes::join(NodeId node, NodeRecord record, TimePoint now) {
    check(find(node) == nullptr && is_news(node, record.incarnation), "a node joins once");
    if (node.value >= entries_.size()) {
        entries_.resize(node.value + 1);
    }
    Entry& entry = entries_[node.value];
    entry.incarnation = record.incarnation;
    by_name_[record.name] = node;
    entry.record = std::move(record);
    entry.heard = now;
    ++count_;
    if (lease_ > Duration{0}) {
        wake_at(node, now + lease_);
    }
}

NodeRecord Nodes::leave(NodeId node) {
    check(find(node) != nullptr, "a node that leaves was up");
    Entry& entry = entries_[node.value];
    NodeRecord record = std::move(*entry.record);
    entry.record.reset();
    if (find(record.name) == node) {
        by_name_.erase(record.name);
    }
    wake_at(node, kNever);
    --count_;
    return record;
}

bool Nodes::hear(NodeId node, TimePoint now) {
    if (find(node) == nullptr) {
        return false;
    }
    entries_[node.value].heard = now;
    return true;
}

std::optional<NodeId> Nodes::silent(TimePoint now) {
    while (!row_.empty() && row_.begin()->first <= now) {
        const NodeId node = row_.begin()->second;
        const TimePoint due = entries_[node.value].heard + lease_;
        if (due <= now) {
            return node;
        }
        wake_at(node, due);
    }
    return std::nullopt;
}

TimePoint Nodes::next_deadline() const {
    return row_.empty() ? kNever : row_.begin()->first;
}

void Nodes::wake_at(NodeId node, TimePoint when) {
    TimePoint& wake = entries_[node.value].wake;
    if (wake != kNever) {
        row_.erase({wake, node});
    }
    wake = when;
    if (wake != kNever) {
        row_.insert({wake, node});
    }
}

std::vector<NodeId> Nodes::up() const {
    std::vector<NodeId> nodes;
    nodes.reserve(count_);
    for (std::uint32_t node = 0; node < entries_.size(); ++node) {
        if (entries_[node].record) {
            nodes.push_back(NodeId{node});
        }
    }
    return nodes;
}

}  // namespace muster
