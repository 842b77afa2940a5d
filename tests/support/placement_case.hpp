// SPDX-License-Identifier: Apache-2.0
//
// placement_case - a cluster in three lines, and what each of its nodes should receive.
//
//     PlacementCase cluster({"cpu=4", "cpu=4"});
//     cluster.start(group({cpu(2), cpu(2)}));
//     cluster.expect({{cpu(2), cpu(2)}, {}});
//
// It aborts when it is destroyed unchecked.

#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "muster/resources.hpp"

#include "base/check.hpp"
#include "placement/cluster.hpp"
#include "resources/logical_node.hpp"

namespace muster::testing {

inline Amount amount(double value) {
    return Amount::from_real(value).value();
}

/// A request as --node-resources would write it: "cpu=1,gpu=0.5,licence=1"; "" is empty.
inline Bundle bundle(std::string_view text) {
    Bundle parsed;
    while (!text.empty()) {
        const std::size_t comma = std::min(text.find(','), text.size());
        const std::string_view part = text.substr(0, comma);
        text.remove_prefix(std::min(comma + 1, text.size()));
        if (part.starts_with("gpu=")) {
            parsed.gpu = amount(std::stod(std::string(part.substr(4))));
        } else {
            const ResourceSet one = parse_node_resources(part).value();
            parsed.cpu += one.cpu;
            parsed.memory_bytes += one.memory_bytes;
            for (const NamedAmount& entry : one.custom) {
                parsed.set_custom(entry.name, entry.amount);
            }
        }
    }
    return parsed;
}

inline PlacementGroupSpec group(
    const std::vector<std::string>& bundles,
    PlacementStrategy strategy = PlacementStrategy::Pack
) {
    PlacementGroupSpec spec{.bundles = {}, .strategy = strategy};
    for (const std::string& text : bundles) {
        spec.bundles.push_back(bundle(text));
    }
    return spec;
}

class PlacementCase {
  public:
    explicit PlacementCase(const std::vector<std::string>& nodes, ClusterOptions options = {})
        : cluster(std::move(options)) {
        for (const std::string& node : nodes) {
            add_node(node);
        }
    }
    ~PlacementCase() { check(checked_, "a PlacementCase is checked before it goes"); }
    PlacementCase(const PlacementCase&) = delete;
    PlacementCase& operator=(const PlacementCase&) = delete;

    NodeId add_node(const std::string& resources) {
        const NodeId node{next_node_++};
        cluster.add_node(
            node,
            logical_node(
                "node" + std::to_string(node.value), parse_node_resources(resources).value()
            )
        );
        return node;
    }

    /// Places and reserves; false when it does not fit now.
    bool start(const PlacementGroupSpec& wanted) {
        const std::optional<Placement> placement = cluster.place(wanted);
        if (!placement) {
            return false;
        }
        cluster.reserve(TrialId{next_trial_++}, *placement);
        placed.push_back(*placement);
        return true;
    }

    /// How many start until one does not.
    int start_all(const PlacementGroupSpec& wanted) {
        int started = 0;
        while (start(wanted)) {
            ++started;
        }
        return started;
    }

    /// What each node has received so far, in the order in which it was placed.
    void expect(const std::vector<std::vector<std::string>>& by_node) {
        checked_ = true;
        std::vector<std::vector<std::string>> received(next_node_);
        std::vector<std::vector<std::string>> wanted;
        for (const Placement& placement : placed) {
            for (const BundlePlacement& one : placement.bundles) {
                received[one.node.value].push_back(to_string(one.bundle));
            }
        }
        for (const std::vector<std::string>& node : by_node) {
            std::vector<std::string>& texts = wanted.emplace_back();
            for (const std::string& text : node) {
                texts.push_back(to_string(bundle(text)));
            }
        }
        EXPECT_EQ(received, wanted);
    }

    /// For cases that look at something else than bundles by node.
    void checked() { checked_ = true; }

    Cluster cluster;
    std::vector<Placement> placed;

  private:
    std::uint32_t next_node_ = 0;
    std::uint32_t next_trial_ = 0;
    bool checked_ = false;
};

}  // namespace muster::testing
