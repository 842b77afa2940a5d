// SPDX-License-Identifier: Apache-2.0

#include "placement/cluster.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/check.hpp"
#include "base/planted_fault.hpp"
#include "placement/infeasible.hpp"
#include "placement/node_pool.hpp"
#include "placement/node_use.hpp"
#include "placement/place.hpp"

namespace muster {
namespace {

struct NodeRecord {
    NodeInventory inventory;
    ResourceSet capacity;
    NodeUse use;
};

void add_to(ResourceSet& sum, const ResourceSet& added, std::int64_t sign) {
    const auto signed_amount = [sign](Amount amount) {
        return Amount::ten_thousandths(sign * amount.ten_thousandths());
    };
    sum.cpu += signed_amount(added.cpu);
    sum.gpu += signed_amount(added.gpu);
    sum.memory_bytes += sign * added.memory_bytes;
    for (const NamedAmount& entry : added.custom) {
        sum.set_custom(entry.name, sum.custom_amount(entry.name) + signed_amount(entry.amount));
    }
}

enum class Part { OfNode, OfRun };

Amount less(Amount amount, Amount kept) {
    return amount > kept ? amount - kept : Amount{};
}

}  // namespace

struct Cluster::State {
    explicit State(ClusterOptions given)
        : options(std::move(given)),
          now(options.node_choice),
          idle(options.node_choice) {
        for (const NamedAmount& entry : options.cluster_resources) {
            now.add_cluster_resource(entry);
            idle.add_cluster_resource(entry);
            capacity.set_custom(entry.name, capacity.custom_amount(entry.name) + entry.amount);
        }
    }

    ResourceSet offered_by(const NodeInventory& inventory) const;
    ResourceSet part_of(const Bundle& bundle, Part part) const;
    const Holding* holding(TrialId holder, std::uint32_t bundle, NodeId node) const;
    void settle(std::vector<NodeId> touched, TrialId newcomer);
    // For trying out what an end would bring: only the pool changes.
    void pretend_release(TrialId holder, bool undo);

    const NodeRecord& record(NodeId node) const {
        check(now.has(node.value), "a node that is asked about is there");
        return *records[node.value];
    }

    ClusterOptions options;
    NodePool now;
    // As if nothing were held.
    NodePool idle;
    // By node; null when it is not there.
    std::vector<std::unique_ptr<NodeRecord>> records;
    // Only looked up, never gone through.
    std::unordered_map<TrialId, Placement> held;
    std::vector<BundleRef> remasked;
    ResourceSet capacity;
    ResourceSet in_use;
    std::uint64_t room_version = 0;
};

ResourceSet Cluster::State::offered_by(const NodeInventory& inventory) const {
    const ResourceSet& reserve = options.reserve;
    ResourceSet offered = inventory.total();
    const Amount cores = Amount::whole(static_cast<std::int64_t>(inventory.cores.size()));
    offered.cpu = less(std::min(offered.cpu, cores), reserve.cpu);
    offered.gpu = Amount::whole(less(offered.gpu, reserve.gpu).floor());
    offered.memory_bytes = std::max<std::int64_t>(0, offered.memory_bytes - reserve.memory_bytes);
    for (const NamedAmount& entry : inventory.custom) {
        const bool elsewhere = now.is_cluster_resource(entry.name);
        const Amount left = less(entry.amount, reserve.custom_amount(entry.name));
        offered.set_custom(entry.name, elsewhere ? Amount{} : left);
    }
    return offered;
}

/// What of the bundle its node gives, or what the whole run does.
ResourceSet Cluster::State::part_of(const Bundle& bundle, Part part) const {
    ResourceSet wanted;
    if (part == Part::OfNode) {
        wanted.cpu = bundle.cpu;
        wanted.gpu = bundle.gpu;
        wanted.memory_bytes = bundle.memory_bytes;
    }
    for (const NamedAmount& entry : bundle.custom) {
        if (now.is_cluster_resource(entry.name) == (part == Part::OfRun)) {
            wanted.custom.push_back(entry);
        }
    }
    return wanted;
}

const Holding* Cluster::State::holding(TrialId holder, std::uint32_t bundle, NodeId node) const {
    return now.has(node.value) ? records[node.value]->use.find({holder, bundle}) : nullptr;
}

void Cluster::State::settle(std::vector<NodeId> touched, TrialId newcomer) {
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    for (const NodeId node : touched) {
        records[node.value]->use.settle(node.value, now, newcomer, remasked);
    }
}

void Cluster::State::pretend_release(TrialId holder, bool undo) {
    const auto entry = held.find(holder);
    if (entry == held.end()) {
        return;
    }
    const std::vector<BundlePlacement>& bundles = entry->second.bundles;
    for (std::uint32_t i = 0; i < bundles.size(); ++i) {
        const Holding* there = holding(holder, i, bundles[i].node);
        if (there != nullptr && undo) {
            now.take(there->bundle, there->counts_as_nothing);
        } else if (there != nullptr) {
            now.give(there->bundle, there->counts_as_nothing);
        }
        if (undo) {
            now.take_cluster_resources(bundles[i].bundle);
        } else {
            now.give_cluster_resources(bundles[i].bundle);
        }
    }
}

Cluster::Cluster(ClusterOptions options) : state_(std::make_unique<State>(std::move(options))) {}
Cluster::~Cluster() = default;
Cluster::Cluster(Cluster&&) noexcept = default;
Cluster& Cluster::operator=(Cluster&&) noexcept = default;

void Cluster::add_node(NodeId node, NodeInventory inventory) {
    State& state = *state_;
    const ResourceSet offered = state.offered_by(inventory);
    state.now.add(node.value, inventory, offered);
    state.idle.add(node.value, inventory, offered);
    if (node.value >= state.records.size()) {
        state.records.resize(node.value + 1);
    }
    state.records[node.value] =
        std::make_unique<NodeRecord>(NodeRecord{std::move(inventory), offered, NodeUse{}});
    add_to(state.capacity, offered, 1);
    ++state.room_version;
}

void Cluster::remove_node(NodeId node) {
    State& state = *state_;
    if (!has_node(node)) {
        return;
    }
    for (const Holding& holding : state.record(node).use.holdings()) {
        // What the run shares stays with the holder.
        add_to(state.in_use, state.part_of(holding.bundle.bundle, Part::OfNode), -1);
    }
    add_to(state.capacity, state.records[node.value]->capacity, -1);
    state.now.remove(node.value);
    state.idle.remove(node.value);
    state.records[node.value].reset();
    std::erase_if(state.remasked, [&](const BundleRef& ref) {
        const auto holder = state.held.find(ref.holder);
        return holder == state.held.end() || holder->second.bundles[ref.bundle].node == node;
    });
}

void Cluster::set_aside(NodeId node, bool aside) {
    State& state = *state_;
    check(has_node(node), "a node that is set aside is there");
    if (aside == is_set_aside(node)) {
        return;
    }
    state.now.hide(node.value, aside);
    state.idle.hide(node.value, aside);
    if (!aside) {
        ++state.room_version;
    }
}

bool Cluster::is_set_aside(NodeId node) const {
    return has_node(node) && state_->now.state(node.value).hidden;
}

bool Cluster::has_node(NodeId node) const {
    return state_->now.has(node.value);
}

std::vector<NodeId> Cluster::nodes() const {
    std::vector<NodeId> nodes;
    for (std::uint32_t node = 0; node < state_->now.size(); ++node) {
        if (state_->now.has(node)) {
            nodes.push_back(NodeId{node});
        }
    }
    return nodes;
}

std::optional<Placement>
Cluster::place(const PlacementGroupSpec& group, std::span<const NodeId> avoid) const {
    return muster::place(state_->now, group, avoid);
}

Status Cluster::feasible(const PlacementGroupSpec& group) const {
    if (muster::place(state_->idle, group, {})) {
        return Ok{};
    }
    std::vector<std::string> names(state_->records.size());
    for (const NodeId node : nodes()) {
        names[node.value] = state_->records[node.value]->inventory.name;
    }
    return infeasible(state_->idle, names, group);
}

std::optional<RoomPlan>
Cluster::plan_room(const PlacementGroupSpec& group, std::span<const TrialId> ending) const {
    State& state = *state_;
    std::size_t ended = 0;
    // The pool is changed in place, since copying it costs more, and is put back at the end.
    const auto nodes_after = [&](std::size_t endings) {
        for (; ended < endings; ++ended) {
            state.pretend_release(ending[ended], false);
        }
        for (; ended > endings; --ended) {
            state.pretend_release(ending[ended - 1], true);
        }
        return place_nodes(state.now, group);
    };
    std::optional<RoomPlan> plan;
    std::size_t too_few = 0;
    for (std::size_t endings = 0; !plan; endings = std::max<std::size_t>(1, 2 * endings)) {
        endings = std::min(endings, ending.size());
        if (auto nodes = nodes_after(endings)) {
            plan = RoomPlan{endings, std::move(*nodes)};
        } else if (endings == ending.size()) {
            break;
        } else {
            too_few = endings;
        }
    }
    while (plan && plan->endings > too_few + 1) {
        const std::size_t middle = too_few + (plan->endings - too_few) / 2;
        if (auto nodes = nodes_after(middle)) {
            plan = RoomPlan{middle, std::move(*nodes)};
        } else {
            too_few = middle;
        }
    }
    for (; ended > 0; --ended) {
        state.pretend_release(ending[ended - 1], true);
    }
    return plan;
}

void Cluster::reserve(TrialId holder, const Placement& placement) {
    State& state = *state_;
    const bool added = state.held.try_emplace(holder, placement).second;
    check(added, "a trial holds one placement at a time");
    const bool nothing = placement.bundles.size() == 1 && placement.bundles[0].bundle.is_zero();
    std::vector<NodeId> touched;
    for (std::uint32_t i = 0; i < placement.bundles.size(); ++i) {
        const BundlePlacement& bundle = placement.bundles[i];
        check(has_node(bundle.node), "resources are reserved on nodes that are there");
        if (nothing || !bundle.bundle.is_zero()) {
            state.now.take(bundle, nothing);
        }
        state.now.take_cluster_resources(bundle.bundle);
        add_to(state.in_use, bundle.bundle, 1);
        Holding holding{.ref = {holder, i}, .bundle = bundle, .counts_as_nothing = nothing};
        holding.fallback = fallback_cores(placement, i);
        state.records[bundle.node.value]->use.add(std::move(holding));
        touched.push_back(bundle.node);
    }
    state.settle(std::move(touched), holder);
}

void Cluster::release(TrialId holder) {
    State& state = *state_;
    const auto entry = state.held.find(holder);
    if (entry == state.held.end()) {
        return;
    }
    const Placement placement = std::move(entry->second);
    state.held.erase(entry);
    if (planted(PlantedFault::ResourcesNotReleased)) {
        return;
    }
    std::vector<NodeId> touched;
    for (std::uint32_t i = 0; i < placement.bundles.size(); ++i) {
        const BundlePlacement& bundle = placement.bundles[i];
        state.now.give_cluster_resources(bundle.bundle);
        add_to(state.in_use, state.part_of(bundle.bundle, Part::OfRun), -1);
        const Holding* there = state.holding(holder, i, bundle.node);
        if (there == nullptr) {
            continue;
        }
        if (there->counts_as_nothing || !bundle.bundle.is_zero()) {
            state.now.give(bundle, there->counts_as_nothing);
        }
        state.records[bundle.node.value]->use.remove({holder, i});
        add_to(state.in_use, state.part_of(bundle.bundle, Part::OfNode), -1);
        touched.push_back(bundle.node);
    }
    std::erase_if(state.remasked, [&](const BundleRef& ref) { return ref.holder == holder; });
    state.settle(std::move(touched), holder);
    ++state.room_version;
}

std::vector<std::uint32_t> Cluster::cores_of(const Placement& placement, std::size_t bundle) const {
    const BundlePlacement& wanted = placement.bundles[bundle];
    if (!has_node(wanted.node)) {
        return wanted.cores;
    }
    return state_->record(wanted.node)
        .use.cores_of(
            state_->now.state(wanted.node.value), wanted, fallback_cores(placement, bundle)
        );
}

std::vector<BundleRef> Cluster::take_remasked() {
    std::vector<BundleRef> remasked = std::exchange(state_->remasked, {});
    std::sort(remasked.begin(), remasked.end());
    remasked.erase(std::unique(remasked.begin(), remasked.end()), remasked.end());
    return remasked;
}

const ResourceSet& Cluster::capacity() const {
    return state_->capacity;
}

const ResourceSet& Cluster::in_use() const {
    return state_->in_use;
}

std::uint64_t Cluster::room_version() const {
    return state_->room_version;
}

const NodeInventory& Cluster::inventory(NodeId node) const {
    return state_->record(node).inventory;
}

const ResourceSet& Cluster::capacity(NodeId node) const {
    return state_->record(node).capacity;
}

ResourceSet Cluster::free(NodeId node) const {
    ResourceSet free = state_->record(node).capacity;
    for (const Holding& holding : state_->record(node).use.holdings()) {
        add_to(free, state_->part_of(holding.bundle.bundle, Part::OfNode), -1);
    }
    return free;
}

std::vector<TrialId> Cluster::holders(NodeId node) const {
    std::vector<TrialId> holders;
    for (const Holding& holding : state_->record(node).use.holdings()) {
        holders.push_back(holding.ref.holder);
    }
    std::sort(holders.begin(), holders.end());
    holders.erase(std::unique(holders.begin(), holders.end()), holders.end());
    return holders;
}

const std::vector<NamedAmount>& Cluster::cluster_resources() const {
    return state_->options.cluster_resources;
}

Amount Cluster::free_cluster_resource(std::string_view name) const {
    return state_->now.cluster_resource(name);
}

}  // namespace muster
