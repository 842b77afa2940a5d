// SPDX-License-Identifier: Apache-2.0
//
// nodes - which nodes are up, when each was heard of last, and which incarnation of it is the
// newest. A node that was lost is remembered by its incarnation alone: only a newer one is taken
// in again.

#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"

namespace muster {

struct NodeRecord {
    std::string name;
    std::uint32_t incarnation = 0;
    /// Labels of its devices, as masks spell them.
    std::vector<std::string> devices;
};

class Nodes {
  public:
    /// A node is silent once it was not heard of for `lease`; 0 is never.
    explicit Nodes(Duration lease) : lease_(lease) {}

    /// nullptr unless it is up.
    const NodeRecord* find(NodeId node) const;
    /// The node of that name that is up.
    std::optional<NodeId> find(const std::string& name) const;
    /// The lowest that is up.
    std::optional<NodeId> first() const;
    /// Whether a node that comes with this incarnation is news: none was as high.
    bool is_news(NodeId node, std::uint32_t incarnation) const;

    /// REQUIRES: is_news(), and that it is not up.
    void join(NodeId node, NodeRecord record, TimePoint now);
    /// REQUIRES: it is up.
    NodeRecord leave(NodeId node);

    /// Something came from the node. False when it is not up: what it says means nothing.
    bool hear(NodeId node, TimePoint now);
    /// A node that is silent now and still up, if there is one.
    std::optional<NodeId> silent(TimePoint now);
    /// When silent() is next to be asked, or earlier.
    TimePoint next_deadline() const;

    std::uint32_t count() const { return count_; }
    /// Those that are up, ascending.
    std::vector<NodeId> up() const;

  private:
    struct Entry {
        std::optional<NodeRecord> record;
        std::optional<std::uint32_t> incarnation;
        TimePoint heard;
        /// Its place in the row.
        TimePoint wake = kNever;
    };

    void wake_at(NodeId node, TimePoint when);

    Duration lease_;
    // By node.
    std::vector<Entry> entries_;
    std::uint32_t count_ = 0;
    // Of those that are up.
    std::unordered_map<std::string, NodeId> by_name_;
    // Nodes by when they must be looked at. A node's place may be early, never late, so that a
    // message does not move it.
    std::set<std::pair<TimePoint, NodeId>> row_;
};

}  // namespace muster
