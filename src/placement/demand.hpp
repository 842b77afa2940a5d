// SPDX-License-Identifier: Apache-2.0
//
// demand - a bundle in the numbers that the search compares.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/resources.hpp"

namespace muster {

/// A custom resource of nodes, by its place in KindTable.
using Kind = std::uint32_t;

struct KindAmount {
    Kind kind = 0;
    std::int64_t amount = 0;

    friend bool operator==(const KindAmount&, const KindAmount&) = default;
};

/// The names of custom resources that some node has or had.
class KindTable {
  public:
    std::optional<Kind> find(std::string_view name) const;
    Kind find_or_add(std::string_view name);
    const std::string& name(Kind kind) const { return names_[kind]; }
    std::size_t size() const { return names_.size(); }

  private:
    std::vector<std::string> names_;
};

/// What one bundle, or several together, ask of one node. Amounts are in 1/10000.
struct Demand {
    std::int64_t cpu = 0;
    std::int64_t memory = 0;
    /// Whole devices.
    std::int64_t devices = 0;
    /// The most whole devices that one bundle asks for.
    std::int64_t most_devices = 0;
    /// Of one device; the largest one when there are several.
    std::int64_t share = 0;
    std::uint32_t shares = 0;
    /// A trial that asks for nothing: a node takes as many as it has cores.
    std::int64_t nothing = 0;
    /// Ascending by kind.
    std::vector<KindAmount> custom;

    bool wants_devices() const { return devices > 0 || share > 0; }
    /// Adds what another bundle asks of the same node.
    void add(const Demand& other);

    friend bool operator==(const Demand&, const Demand&) = default;
};

}  // namespace muster
