// SPDX-License-Identifier: Apache-2.0
//
// node_use - who holds what on one node, and on which cores bundles run that have none of their
// own. It tells which of them are to be moved when that changes.

#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.hpp"
#include "placement/cluster.hpp"
#include "placement/core_set.hpp"
#include "placement/node_pool.hpp"
#include "resources/placement.hpp"

namespace muster {

/// How a bundle comes by its cores.
enum class CoreUse {
    /// A whole number of CPUs: cores of its own.
    Own,
    /// A fraction: cores that all such bundles of the node share.
    Shared,
    /// No CPUs: cores that no whole-core bundle holds.
    Floating,
};

CoreUse core_use(const Bundle& bundle);

/// What one bundle holds on the node.
struct Holding {
    BundleRef ref;
    BundlePlacement bundle;
    /// A trial that asks for nothing.
    bool counts_as_nothing = false;
    /// Where a floating bundle runs now.
    std::vector<std::uint32_t> floats_on;
    /// Where it runs when whole-core bundles hold all cores; empty is anywhere.
    std::vector<std::uint32_t> fallback;
};

class NodeUse {
  public:
    /// Adds a holding that the pool has taken already. Cores follow with settle().
    void add(Holding holding);
    /// Takes a holding out. REQUIRES: it is there.
    void remove(const BundleRef& ref);
    /// Null when it is not there.
    const Holding* find(const BundleRef& ref) const;
    const std::vector<Holding>& holdings() const { return holdings_; }

    /// Makes the shared set as large as the fractions need, and finds out which bundles run on
    /// other cores than before; those of `newcomer` are not told.
    void
    settle(std::uint32_t node, NodePool& pool, TrialId newcomer, std::vector<BundleRef>& remasked);

    /// The cores on which `bundle` would run.
    std::vector<std::uint32_t> cores_of(
        const NodeState& state,
        const BundlePlacement& bundle,
        const std::vector<std::uint32_t>& fallback
    ) const;

  private:
    bool resize_shared(std::uint32_t node, NodePool& pool);
    CoreSet available(const NodeState& state) const;

    // In no particular order; what is told is sorted.
    std::vector<Holding> holdings_;
    // Ascending.
    std::vector<std::uint32_t> shared_;
    Amount shared_sum_;
    std::size_t floating_ = 0;
};

/// Where the bundle of a placement runs when nothing floats: for an empty bundle 0, with bundle 1.
std::vector<std::uint32_t> fallback_cores(const Placement& placement, std::size_t bundle);

}  // namespace muster
