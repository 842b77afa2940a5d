// SPDX-License-Identifier: Apache-2.0

#include "placement/node_index.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace muster {
namespace {

/// The block in which a row like `row` is or belongs: the first that does not end before it.
template <class Blocks>
auto block_for(Blocks& blocks, const NodeRow& row) {
    return std::lower_bound(
        blocks.begin(),
        blocks.end(),
        row,
        [](const auto& block, const NodeRow& wanted) {
            return block->rows[block->size - 1].before(wanted);
        }
    );
}

bool row_before(const NodeRow& left, const NodeRow& right) {
    return left.before(right);
}

bool offers_all(const std::vector<Kind>& offered, const Demand& demand) {
    return std::all_of(demand.custom.begin(), demand.custom.end(), [&](const KindAmount& wanted) {
        return std::binary_search(offered.begin(), offered.end(), wanted.kind);
    });
}

bool is_avoided(const NodeQuery& query, std::uint32_t node) {
    return !query.avoid.empty() &&
           std::binary_search(query.avoid.begin(), query.avoid.end(), NodeId{node});
}

}  // namespace

void NodeIndex::update_block(
    Block& block,
    const std::vector<Kind>& offered,
    const std::vector<NodeState>& states
) {
    block.memory = 0;
    block.shared_room = 0;
    block.nothing = 0;
    block.unshared_together = 0;
    block.custom.assign(offered.size(), 0);
    for (std::size_t i = 0; i < block.size; ++i) {
        const NodeRow& row = block.rows[i];
        block.memory = std::max(block.memory, row.memory < 0 ? -row.memory : row.memory);
        block.shared_room = std::max(block.shared_room, row.shared_room);
        block.nothing = std::max(block.nothing, row.nothing);
        block.unshared_together = std::max(block.unshared_together, row.unshared_together);
        for (std::size_t kind = 0; kind < offered.size(); ++kind) {
            block.custom[kind] =
                std::max(block.custom[kind], states[row.node].custom_amount(offered[kind]));
        }
    }
}

void NodeIndex::insert(
    std::uint32_t node,
    const std::vector<NodeState>& states,
    const std::vector<Kind>& offered
) {
    const NodeState& state = states[node];
    const ClassKey key{state.unshared(), state.signature, !state.devices.empty()};
    const NodeRow row{
        .cpu = sign_ * state.cpu,
        .memory = sign_ * state.memory,
        .node = node,
        .shared_room = static_cast<std::int32_t>(state.shared_room()),
        .nothing = static_cast<std::int32_t>(state.nothing),
        .unshared_together = static_cast<std::int32_t>(state.unshared_together())};
    if (node >= row_of_.size()) {
        row_of_.resize(node + 1);
        class_of_.resize(node + 1);
    }
    row_of_[node] = row;
    class_of_[node] = key;

    NodeClass& nodes = classes_[key];
    nodes.offered = offered;
    if (nodes.blocks.empty()) {
        nodes.blocks.push_back(std::make_unique<Block>());
    }
    auto place = nodes.blocks.size() == 1 ? nodes.blocks.begin() : block_for(nodes.blocks, row);
    if (place == nodes.blocks.end()) {
        --place;
    }
    if ((*place)->size == Block::kRows) {
        auto upper = std::make_unique<Block>();
        constexpr std::size_t kHalf = Block::kRows / 2;
        std::copy((*place)->rows.begin() + kHalf, (*place)->rows.end(), upper->rows.begin());
        upper->size = Block::kRows - kHalf;
        (*place)->size = kHalf;
        update_block(**place, offered, states);
        update_block(*upper, offered, states);
        const bool goes_up = (*place)->rows[kHalf - 1].before(row);
        place = nodes.blocks.insert(place + 1, std::move(upper));
        place -= goes_up ? 0 : 1;
    }
    Block& block = **place;
    auto* const end = block.rows.data() + block.size;
    auto* const at = std::lower_bound(block.rows.data(), end, row, row_before);
    std::move_backward(at, end, end + 1);
    *at = row;
    ++block.size;
    update_block(block, offered, states);
}

void NodeIndex::erase(std::uint32_t node, const std::vector<NodeState>& states) {
    const auto entry = classes_.find(class_of_[node]);
    check(entry != classes_.end(), "an indexed node has a class");
    NodeClass& nodes = entry->second;
    const NodeRow& row = row_of_[node];
    const auto place = block_for(nodes.blocks, row);
    check(place != nodes.blocks.end(), "an indexed node is in a block");
    Block& block = **place;
    auto* const end = block.rows.data() + block.size;
    auto* const at = std::lower_bound(block.rows.data(), end, row, row_before);
    check(at != end && at->node == node, "an indexed node is where its row says");
    std::move(at + 1, end, at);
    --block.size;
    if (block.size == 0) {
        // The last one stays: some node will soon be of this class again.
        if (nodes.blocks.size() > 1) {
            nodes.blocks.erase(place);
        }
    } else if (place + 1 != nodes.blocks.end() && block.size + (*(place + 1))->size <= Block::kRows / 2) {
        const Block& next = **(place + 1);
        std::copy_n(next.rows.begin(), next.size, block.rows.begin() + block.size);
        block.size += next.size;
        nodes.blocks.erase(place + 1);
        update_block(block, nodes.offered, states);
    } else {
        update_block(block, nodes.offered, states);
    }
}

/// The classes that may serve, in the order in which they are preferred; those of equal rank are
/// preferred by their rows.
std::vector<NodeIndex::Ranked> NodeIndex::ranked_classes(const Search& search) const {
    const Demand& demand = *search.query.demand;
    std::int64_t unshared = demand.devices;
    if (search.from == ShareFrom::UnsharedDevice) {
        unshared = std::max<std::int64_t>(unshared, 1);
    }
    std::vector<Ranked> ranked;
    for (const auto& [key, nodes] : classes_) {
        if (nodes.blocks.front()->size == 0 || key.unshared < unshared ||
            (demand.wants_devices() && !key.has_devices) || !offers_all(nodes.offered, demand)) {
            continue;
        }
        // Scarce things that the demand has no use for, fewest first: devices, custom resources.
        const std::int64_t wasted = key.has_devices && !demand.wants_devices() ? 1 : 0;
        const bool devices_count = sign_ > 0 || demand.wants_devices();
        const auto custom = static_cast<std::int64_t>(nodes.offered.size());
        ranked.push_back({{wasted, devices_count ? sign_ * key.unshared : 0, custom}, &key, &nodes}
        );
    }
    std::sort(ranked.begin(), ranked.end(), [](const Ranked& left, const Ranked& right) {
        return left.rank != right.rank ? left.rank < right.rank : *left.key < *right.key;
    });
    return ranked;
}

bool NodeIndex::block_may_serve(const Block& block, const NodeClass& nodes, const Search& search) {
    const Demand& demand = *search.query.demand;
    if (block.memory < demand.memory || block.nothing < demand.nothing) {
        return false;
    }
    if (search.from == ShareFrom::SharedDevice && block.shared_room < demand.share) {
        return false;
    }
    if (demand.most_devices > 1 && block.unshared_together < demand.most_devices) {
        return false;
    }
    for (const KindAmount& wanted : demand.custom) {
        const auto kind = std::lower_bound(nodes.offered.begin(), nodes.offered.end(), wanted.kind);
        if (block.custom[static_cast<std::size_t>(kind - nodes.offered.begin())] < wanted.amount) {
            return false;
        }
    }
    return true;
}

bool NodeIndex::serves(const NodeRow& row, const ClassKey& key, const Search& search) {
    const Demand& demand = *search.query.demand;
    const std::int64_t memory = row.memory < 0 ? -row.memory : row.memory;
    if (memory < demand.memory || row.nothing < demand.nothing) {
        return false;
    }
    if (demand.most_devices > 1 && row.unshared_together < demand.most_devices) {
        return false;
    }
    if (demand.share > 0) {
        const bool from_shared = row.shared_room >= demand.share;
        const bool from_unshared = key.unshared > demand.devices;
        const bool fits = search.from == ShareFrom::SharedDevice     ? from_shared
                          : search.from == ShareFrom::UnsharedDevice ? from_unshared && !from_shared
                                                                     : from_shared || from_unshared;
        if (!fits) {
            return false;
        }
    }
    const NodeState& state = search.states[row.node];
    for (const KindAmount& wanted : demand.custom) {
        if (state.custom_amount(wanted.kind) < wanted.amount) {
            return false;
        }
    }
    // Only devices can make bundles that fit one by one not fit together.
    const bool together = search.query.together != nullptr && demand.wants_devices();
    return !is_avoided(search.query, row.node) &&
           (!together || holds(state, *search.query.together));
}

void NodeIndex::find_in_class(
    const Ranked& ranked,
    const Search& search,
    std::size_t count,
    std::vector<NodeRow>& found
) const {
    const std::int64_t cpu = search.query.demand->cpu;
    const std::vector<std::unique_ptr<Block>>& blocks = ranked.nodes->blocks;
    auto block = blocks.begin();
    if (sign_ > 0) {
        block = block_for(blocks, NodeRow{.cpu = cpu, .memory = -1});
    }
    for (; block != blocks.end() && found.size() < count; ++block) {
        const Block& rows = **block;
        if (sign_ < 0 && -rows.rows[0].cpu < cpu) {
            return;
        }
        if (!block_may_serve(rows, *ranked.nodes, search)) {
            continue;
        }
        const auto* const end = rows.rows.data() + rows.size;
        for (const auto* row = rows.rows.data(); row != end && found.size() < count; ++row) {
            if (sign_ * row->cpu >= cpu && serves(*row, *ranked.key, search)) {
                found.push_back(*row);
            }
        }
    }
}

void NodeIndex::find_pass(
    const Search& search,
    std::size_t count,
    std::vector<std::uint32_t>& found
) const {
    const std::vector<Ranked> ranked = ranked_classes(search);
    std::vector<NodeRow> rows;
    std::vector<NodeRow> of_class;
    for (std::size_t i = 0; i < ranked.size() && found.size() < count; ++i) {
        of_class.clear();
        find_in_class(ranked[i], search, count - found.size(), of_class);
        rows.insert(rows.end(), of_class.begin(), of_class.end());
        if (i + 1 < ranked.size() && ranked[i + 1].rank == ranked[i].rank) {
            continue;
        }
        std::sort(rows.begin(), rows.end(), row_before);
        for (std::size_t j = 0; j < rows.size() && found.size() < count; ++j) {
            found.push_back(rows[j].node);
        }
        rows.clear();
    }
}

std::vector<std::uint32_t> NodeIndex::find(
    const NodeQuery& query,
    std::size_t count,
    const std::vector<NodeState>& states
) const {
    std::vector<std::uint32_t> found;
    const bool one_share = query.demand->share > 0 && query.demand->devices == 0;
    if (one_share && sign_ > 0) {
        find_pass({query, states, ShareFrom::SharedDevice}, count, found);
        find_pass({query, states, ShareFrom::UnsharedDevice}, count, found);
    } else {
        find_pass({query, states, ShareFrom::Anywhere}, count, found);
    }
    return found;
}

}  // namespace muster
