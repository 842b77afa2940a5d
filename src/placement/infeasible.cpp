// SPDX-License-Identifier: Apache-2.0

#include "placement/infeasible.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "placement/place.hpp"

namespace muster {
namespace {

/// One kind that was asked for, and the node that has the most of it.
struct Availability {
    std::string name;
    std::int64_t asked = 0;
    std::int64_t most = 0;
    std::uint32_t node = 0;
    bool bytes = false;

    std::string amount(std::int64_t value) const {
        return bytes ? format_bytes(value) : to_string(Amount::ten_thousandths(value));
    }
};

class Explainer {
  public:
    Explainer(const NodePool& idle, const std::vector<std::string>& names)
        : idle_(idle),
          names_(names) {}

    std::string explain(const PlacementGroupSpec& group) const;

  private:
    std::optional<std::string> no_node_for(const Bundle& bundle) const;
    std::optional<std::string> beyond_the_run(const ResourceSet& sum) const;
    std::vector<Availability> availability(const ResourceSet& asked) const;
    template <class Left>
    Availability most_of(std::string name, std::int64_t asked, Left left) const;
    std::string most(const std::vector<Availability>& kinds) const;
    bool is_there(std::uint32_t node) const { return idle_.has(node) && !idle_.state(node).hidden; }
    std::size_t node_count() const;
    ResourceSet all_nodes(const ResourceSet& asked) const;

    const NodePool& idle_;
    const std::vector<std::string>& names_;
};

ResourceSet sum_of(const std::vector<Bundle>& bundles) {
    ResourceSet sum;
    for (const Bundle& bundle : bundles) {
        sum.cpu += bundle.cpu;
        sum.gpu += bundle.gpu;
        sum.memory_bytes += bundle.memory_bytes;
        for (const NamedAmount& entry : bundle.custom) {
            sum.set_custom(entry.name, sum.custom_amount(entry.name) + entry.amount);
        }
    }
    return sum;
}

template <class Left>
Availability Explainer::most_of(std::string name, std::int64_t asked, Left left) const {
    Availability kind{.name = std::move(name), .asked = asked};
    for (std::uint32_t node = 0; node < idle_.size(); ++node) {
        if (is_there(node) && left(idle_.state(node)) > kind.most) {
            kind.most = left(idle_.state(node));
            kind.node = node;
        }
    }
    return kind;
}

/// The kinds that nodes offer; what the whole run shares is not among them.
std::vector<Availability> Explainer::availability(const ResourceSet& asked) const {
    std::vector<Availability> kinds;
    if (!asked.cpu.is_zero()) {
        kinds.push_back(most_of("cpu", asked.cpu.ten_thousandths(), [](const NodeState& node) {
            return node.cpu;
        }));
    }
    if (!asked.gpu.is_zero()) {
        kinds.push_back(most_of("gpu", asked.gpu.ten_thousandths(), [](const NodeState& node) {
            return static_cast<std::int64_t>(node.devices.size()) * kWholeDevice;
        }));
    }
    if (asked.memory_bytes != 0) {
        kinds.push_back(most_of("memory", asked.memory_bytes, [](const NodeState& node) {
            return node.memory;
        }));
        kinds.back().bytes = true;
    }
    for (const NamedAmount& entry : asked.custom) {
        if (!idle_.is_cluster_resource(entry.name)) {
            const std::optional<Kind> kind = idle_.kinds().find(entry.name);
            kinds.push_back(most_of(
                entry.name,
                entry.amount.ten_thousandths(),
                [&](const NodeState& node) { return kind ? node.custom_amount(*kind) : 0; }
            ));
        }
    }
    return kinds;
}

/// "cpu 4 (node a), gpu 0".
std::string Explainer::most(const std::vector<Availability>& kinds) const {
    std::string text;
    for (const Availability& kind : kinds) {
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", kind.name, kind.amount(kind.most));
        if (kind.most > 0) {
            text += fmt::format(" (node {})", names_[kind.node]);
        }
    }
    return text;
}

std::size_t Explainer::node_count() const {
    std::size_t count = 0;
    for (std::uint32_t node = 0; node < idle_.size(); ++node) {
        count += is_there(node) ? 1U : 0U;
    }
    return count;
}

/// Of each kind that was asked for, what all nodes have together.
ResourceSet Explainer::all_nodes(const ResourceSet& asked) const {
    ResourceSet all;
    for (std::uint32_t node = 0; node < idle_.size(); ++node) {
        if (!is_there(node)) {
            continue;
        }
        const NodeState& state = idle_.state(node);
        all.cpu += asked.cpu.is_zero() ? Amount{} : Amount::ten_thousandths(state.cpu);
        all.gpu += asked.gpu.is_zero()
                       ? Amount{}
                       : Amount::whole(static_cast<std::int64_t>(state.devices.size()));
        all.memory_bytes += asked.memory_bytes == 0 ? 0 : state.memory;
        for (const NamedAmount& entry : asked.custom) {
            if (const auto kind = idle_.kinds().find(entry.name)) {
                all.set_custom(
                    entry.name,
                    all.custom_amount(entry.name) +
                        Amount::ten_thousandths(state.custom_amount(*kind))
                );
            }
        }
    }
    return all;
}

std::optional<std::string> Explainer::beyond_the_run(const ResourceSet& sum) const {
    for (const NamedAmount& entry : sum.custom) {
        if (idle_.is_cluster_resource(entry.name) &&
            entry.amount > idle_.cluster_resource(entry.name)) {
            return fmt::format(
                "asks for {} {} in all, but the whole run has {} (cluster_resources)",
                to_string(entry.amount),
                entry.name,
                to_string(idle_.cluster_resource(entry.name))
            );
        }
    }
    return std::nullopt;
}

std::optional<std::string> Explainer::no_node_for(const Bundle& bundle) const {
    if (place(idle_, PlacementGroupSpec{.bundles = {bundle}}, {})) {
        return std::nullopt;
    }
    const std::vector<Availability> kinds = availability(bundle);
    for (const Availability& kind : kinds) {
        if (kind.most == 0) {
            return fmt::format(
                "asks for {} on one node, but no node has any {}", to_string(bundle), kind.name
            );
        }
    }
    for (const Availability& kind : kinds) {
        if (kind.asked > kind.most) {
            return fmt::format(
                "asks for {} on one node, but the most {} that any node has is {} (node {})",
                to_string(bundle),
                kind.name,
                kind.amount(kind.most),
                names_[kind.node]
            );
        }
    }
    if (bundle.gpu > Amount::whole(1) && kinds.size() == (bundle.cpu.is_zero() ? 1U : 2U)) {
        return fmt::format(
            "asks for {} on one node, but a process can use only one MIG instance; no node has "
            "enough whole devices; the most that nodes have is {}",
            to_string(bundle),
            most(kinds)
        );
    }
    return fmt::format(
        "asks for {} on one node, but no node has all of it; the most that nodes have is {}",
        to_string(bundle),
        kinds.empty() ? "nothing" : most(kinds)
    );
}

std::string Explainer::explain(const PlacementGroupSpec& group) const {
    const std::size_t nodes = node_count();
    if (nodes == 0) {
        return fmt::format("asks for {}, but the cluster has no node", to_string(group));
    }
    const ResourceSet sum = sum_of(group.bundles);
    if (const auto text = beyond_the_run(sum)) {
        return *text;
    }
    const bool one = group.bundles.size() == 1;
    for (std::size_t i = 0; i < group.bundles.size(); ++i) {
        if (group.bundles[i].is_zero() && !one) {
            continue;
        }
        if (const auto text = no_node_for(group.bundles[i])) {
            return one ? *text : fmt::format("bundle {} {}", i, *text);
        }
    }
    const std::string asked = to_string(group);
    if (group.strategy == PlacementStrategy::StrictPack) {
        return fmt::format(
            "asks for {}; STRICT_PACK needs {} on one node, but the most that nodes have is {}",
            asked,
            to_string(sum),
            most(availability(sum))
        );
    }
    if (group.strategy == PlacementStrategy::StrictSpread) {
        const auto bundles =
            std::count_if(group.bundles.begin(), group.bundles.end(), [](const Bundle& bundle) {
                return !bundle.is_zero();
            });
        return fmt::format(
            "asks for {}; STRICT_SPREAD needs a node for each of {} bundles, but of {} node{} not "
            "enough can take one; the most that nodes have is {}",
            asked,
            bundles,
            nodes,
            nodes == 1 ? "" : "s",
            most(availability(sum))
        );
    }
    return fmt::format(
        "asks for {}, together {}, but the bundles don't fit on the nodes: all of them have {}, "
        "and "
        "the most that one has is {}",
        asked,
        to_string(sum),
        to_string(all_nodes(sum)),
        most(availability(sum))
    );
}

}  // namespace

Error infeasible(
    const NodePool& idle,
    const std::vector<std::string>& names,
    const PlacementGroupSpec& group
) {
    return Error{ErrorCode::Infeasible, Explainer(idle, names).explain(group)};
}

}  // namespace muster
