// SPDX-License-Identifier: Apache-2.0
//
// node_index - finds the best nodes for a demand without looking at every node.
//
// Nodes are kept in the order in which a demand prefers them: first by class (whether there are
// devices, how many of them nobody uses, which custom resources the node offers), then by what is
// left of CPUs and memory, then by id. Within a class they lie in blocks that know the most that
// any of theirs has left of each kind, so a search skips whole blocks that can't serve. The answer
// is exactly that of a scan over all nodes.

#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "muster/experiment.hpp"

#include "base/ids.hpp"
#include "placement/demand.hpp"
#include "placement/node_state.hpp"

namespace muster {

/// What is looked for.
struct NodeQuery {
    /// Of all bundles that must sit on the node.
    const Demand* demand = nullptr;
    /// The bundles one by one when they are several.
    const std::vector<const Demand*>* together = nullptr;
    /// Ascending.
    std::span<const NodeId> avoid;
};

/// A node in its place within a class. The search compares `cpu`, `memory` and `node` in turn.
struct NodeRow {
    /// Negative when the emptiest node is preferred, so that ascending is always better first.
    std::int64_t cpu = 0;
    std::int64_t memory = 0;
    std::uint32_t node = 0;
    std::int32_t shared_room = 0;
    std::int32_t nothing = 0;
    std::int32_t unshared_together = 0;

    bool before(const NodeRow& other) const {
        if (cpu != other.cpu) {
            return cpu < other.cpu;
        }
        return memory != other.memory ? memory < other.memory : node < other.node;
    }
};

class NodeIndex {
  public:
    explicit NodeIndex(NodeChoice choice) : sign_(choice == NodeChoice::Tightest ? 1 : -1) {}

    /// `offered` are the custom kinds of the node's signature, ascending.
    /// REQUIRES: states[node] is as it is to be found; it stays so until erase().
    void insert(
        std::uint32_t node,
        const std::vector<NodeState>& states,
        const std::vector<Kind>& offered
    );
    void erase(std::uint32_t node, const std::vector<NodeState>& states);

    /// Up to `count` nodes that could take the query's demand, the preferred ones first.
    std::vector<std::uint32_t>
    find(const NodeQuery& query, std::size_t count, const std::vector<NodeState>& states) const;

  private:
    struct ClassKey {
        std::int64_t unshared = 0;
        std::uint32_t signature = 0;
        bool has_devices = false;

        friend auto operator<=>(const ClassKey&, const ClassKey&) = default;
    };

    struct Block {
        static constexpr std::size_t kRows = 64;

        std::array<NodeRow, kRows> rows;
        std::size_t size = 0;
        // The most that any of the rows has.
        std::int64_t memory = 0;
        std::int32_t shared_room = 0;
        std::int32_t nothing = 0;
        std::int32_t unshared_together = 0;
        std::vector<std::int64_t> custom;
    };

    struct NodeClass {
        std::vector<Kind> offered;
        /// At least one. Empty only when no node is of this class now, and then the only one.
        std::vector<std::unique_ptr<Block>> blocks;
    };

    /// Where a share may come from.
    enum class ShareFrom { Anywhere, SharedDevice, UnsharedDevice };

    struct Search {
        const NodeQuery& query;
        const std::vector<NodeState>& states;
        ShareFrom from = ShareFrom::Anywhere;
    };

    struct Ranked {
        std::array<std::int64_t, 3> rank{};
        const ClassKey* key = nullptr;
        const NodeClass* nodes = nullptr;
    };

    static void update_block(
        Block& block,
        const std::vector<Kind>& offered,
        const std::vector<NodeState>& states
    );
    static bool block_may_serve(const Block& block, const NodeClass& nodes, const Search& search);
    static bool serves(const NodeRow& row, const ClassKey& key, const Search& search);
    std::vector<Ranked> ranked_classes(const Search& search) const;
    void find_in_class(
        const Ranked& ranked,
        const Search& search,
        std::size_t count,
        std::vector<NodeRow>& found
    ) const;
    void find_pass(const Search& search, std::size_t count, std::vector<std::uint32_t>& found)
        const;

    std::int64_t sign_;
    std::map<ClassKey, NodeClass> classes_;
    // Where each node is; by node.
    std::vector<ClassKey> class_of_;
    std::vector<NodeRow> row_of_;
};

}  // namespace muster
