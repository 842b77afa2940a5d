// SPDX-License-Identifier: Apache-2.0
//
// Which cores a bundle runs on: its own, those that fractions share, or those that are left over.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "placement/cluster.hpp"
#include "placement/topology.hpp"
#include "support/placement_case.hpp"

namespace muster {
namespace {

using testing::bundle;
using ::testing::ElementsAre;
using testing::group;
using ::testing::IsEmpty;
using testing::PlacementCase;

using Cores = std::vector<std::uint32_t>;

/// Two NUMA nodes of four cores each, with a device on each.
NodeInventory two_numa_nodes() {
    NodeInventory node = logical_node("numa", bundle("cpu=8"));
    for (std::size_t core = 0; core < 8; ++core) {
        node.cores[core].numa_node = core < 4 ? 0 : 1;
    }
    node.devices = {
        Device{.label = "0", .kind = DeviceKind::Logical, .numa_node = 0},
        Device{.label = "1", .kind = DeviceKind::Logical, .numa_node = 1}};
    return node;
}

/// Starts trials on one node and shows their cores.
class OneNode {
  public:
    explicit OneNode(const NodeInventory& node) { cluster.add_node(NodeId{0}, node); }

    std::uint32_t start(const PlacementGroupSpec& wanted) {
        const std::optional<Placement> placement = cluster.place(wanted);
        check(placement.has_value(), "the group fits");
        cluster.reserve(TrialId{static_cast<std::uint32_t>(placed.size())}, *placement);
        placed.push_back(*placement);
        return static_cast<std::uint32_t>(placed.size() - 1);
    }
    void end(std::uint32_t trial) { cluster.release(TrialId{trial}); }
    Cores cores(std::uint32_t trial, std::size_t bundle_index = 0) const {
        return cluster.cores_of(placed[trial], bundle_index);
    }
    std::vector<std::uint32_t> remasked() {
        std::vector<std::uint32_t> trials;
        for (const BundleRef& ref : cluster.take_remasked()) {
            trials.push_back(ref.holder.value);
        }
        return trials;
    }

    Cluster cluster;
    std::vector<Placement> placed;
};

TEST(CoresTest, WholeCpusGetCoresOfTheirOwnOnOneNumaNode) {
    OneNode node(two_numa_nodes());
    const auto two = node.start(group({"cpu=2"}));
    const auto four = node.start(group({"cpu=4"}));
    const auto other_two = node.start(group({"cpu=2"}));

    EXPECT_EQ(node.cores(two), (Cores{0, 1}));
    EXPECT_EQ(node.cores(four), (Cores{4, 5, 6, 7}));
    EXPECT_EQ(node.cores(other_two), (Cores{2, 3}));
    EXPECT_THAT(node.remasked(), IsEmpty());
}

TEST(CoresTest, WholeCpusAreNearTheirDevice) {
    OneNode node(two_numa_nodes());
    node.start(group({"cpu=1,gpu=1"}));
    const auto second = node.start(group({"cpu=2,gpu=1"}));

    EXPECT_EQ(node.placed[second].bundles[0].devices[0].device, 1U);
    EXPECT_EQ(node.cores(second), (Cores{4, 5}));
}

TEST(CoresTest, ManyCpusReachOverToTheOtherNumaNode) {
    OneNode node(two_numa_nodes());
    const auto trial = node.start(group({"cpu=6,gpu=1"}));

    EXPECT_EQ(node.cores(trial), (Cores{0, 1, 2, 3, 4, 5}));
}

TEST(CoresTest, FractionsShareAsManyCoresAsTheirSumBegins) {
    OneNode node(logical_node("a", bundle("cpu=4")));
    const auto first = node.start(group({"cpu=0.5"}));
    EXPECT_EQ(node.cores(first), (Cores{0}));
    const auto second = node.start(group({"cpu=0.5"}));
    EXPECT_EQ(node.cores(second), (Cores{0}));
    EXPECT_THAT(node.remasked(), IsEmpty());

    const auto third = node.start(group({"cpu=1.5"}));

    EXPECT_EQ(node.cores(third), (Cores{0, 1, 2}));
    EXPECT_EQ(node.cores(first), (Cores{0, 1, 2}));
    EXPECT_THAT(node.remasked(), ElementsAre(first, second));
    node.end(third);
    EXPECT_EQ(node.cores(first), (Cores{0}));
    EXPECT_THAT(node.remasked(), ElementsAre(first, second));
}

TEST(CoresTest, FractionsAndWholeCoresNeverOverlap) {
    OneNode node(logical_node("a", bundle("cpu=4")));
    const auto half = node.start(group({"cpu=0.5"}));
    const auto three = node.start(group({"cpu=3"}));

    EXPECT_EQ(node.cores(half), (Cores{0}));
    EXPECT_EQ(node.cores(three), (Cores{1, 2, 3}));
    EXPECT_FALSE(node.cluster.place(group({"cpu=1"})).has_value());
    EXPECT_TRUE(node.cluster.place(group({"cpu=0.5"})).has_value());
}

TEST(CoresTest, WithoutCpusEveryGpuTrialGetsItsShareOfTheCoresNearItsDevice) {
    OneNode node(two_numa_nodes());
    const auto first = node.start(group({"gpu=1"}));
    const auto second = node.start(group({"gpu=1"}));

    EXPECT_EQ(node.cores(first), (Cores{0, 1, 2, 3}));
    EXPECT_EQ(node.cores(second), (Cores{4, 5, 6, 7}));
}

TEST(CoresTest, AGpuTrialWithoutCpusLeavesCoresToWholeCoreTrialsAndIsTold) {
    OneNode node(two_numa_nodes());
    const auto gpu = node.start(group({"gpu=1"}));
    EXPECT_EQ(node.cores(gpu), (Cores{0, 1, 2, 3}));

    const auto whole = node.start(group({"cpu=3,gpu=1"}));
    EXPECT_EQ(node.cores(whole), (Cores{4, 5, 6}));
    EXPECT_THAT(node.remasked(), IsEmpty());

    const auto near = node.start(group({"cpu=4"}));
    EXPECT_EQ(node.cores(near), (Cores{0, 1, 2, 3}));
    EXPECT_EQ(node.cores(gpu), (Cores{7}));
    EXPECT_THAT(node.remasked(), ElementsAre(gpu));

    node.end(near);
    EXPECT_EQ(node.cores(gpu), (Cores{0, 1, 2, 3}));
    EXPECT_THAT(node.remasked(), ElementsAre(gpu));
}

TEST(CoresTest, WhenNoCoreIsLeftOverAGpuTrialRunsNearItsDeviceAllTheSame) {
    OneNode node(two_numa_nodes());
    node.start(group({"cpu=8"}));
    const auto gpu = node.start(group({"gpu=1"}));

    EXPECT_EQ(node.cores(gpu), (Cores{0, 1, 2, 3}));
}

TEST(CoresTest, EightGpusOnFewCoresStillRunOneCoreEach) {
    OneNode node(logical_node("a", ResourceSet{.cpu = Amount::whole(2), .gpu = Amount::whole(8)}));
    for (int i = 0; i < 8; ++i) {
        EXPECT_EQ(node.cores(node.start(group({"gpu=1"}))).size(), 1U);
    }
}

TEST(CoresTest, TrialsThatAskForNothingFloatOverWhatIsLeft) {
    OneNode node(logical_node("a", bundle("cpu=4")));
    const auto nothing = node.start(group({""}));
    EXPECT_EQ(node.cores(nothing), (Cores{0, 1, 2, 3}));

    node.start(group({"cpu=2"}));

    EXPECT_EQ(node.cores(nothing), (Cores{2, 3}));
    EXPECT_THAT(node.remasked(), ElementsAre(nothing));
}

TEST(CoresTest, AReservedCoreIsNobodys) {
    Cluster cluster({.reserve = bundle("cpu=1")});
    cluster.add_node(NodeId{0}, logical_node("a", bundle("cpu=4")));
    const auto nothing = cluster.place(group({""}));
    cluster.reserve(TrialId{0}, *nothing);

    EXPECT_EQ(cluster.cores_of(*nothing, 0), (Cores{0, 1, 2}));
    EXPECT_FALSE(cluster.place(group({"cpu=4"})).has_value());
}

TEST(CoresTest, ANodeWithFewerCoresThanItSaysOffersThese) {
    NodeInventory inventory = logical_node("a", bundle("cpu=4"));
    inventory.cores.resize(2);
    Cluster cluster;
    cluster.add_node(NodeId{0}, inventory);

    EXPECT_EQ(cluster.capacity().cpu, Amount::whole(2));
    EXPECT_FALSE(cluster.feasible(group({"cpu=3"})).ok());
}

TEST(CoresTest, ManyCoresAreCountedBeyondOneWord) {
    OneNode node(logical_node("a", bundle("cpu=200")));
    node.start(group({"cpu=130"}));
    const auto rest = node.start(group({"cpu=70"}));

    EXPECT_EQ(node.cores(rest).front(), 130U);
    EXPECT_EQ(node.cores(rest).back(), 199U);
}

TEST(CoresTest, SoAreThoseOfTheLargestNodes) {
    OneNode node(logical_node("a", bundle("cpu=1000")));
    node.start(group({"cpu=600"}));
    const auto rest = node.start(group({"cpu=400"}));

    EXPECT_EQ(node.cores(rest).front(), 600U);
    EXPECT_EQ(node.cores(rest).back(), 999U);
}

TEST(CoreSetTest, SmallAndLargeSetsAreAlike) {
    for (const std::size_t cores : {1U, 64U, 65U, 256U, 257U, 1000U}) {
        const auto last = static_cast<std::uint32_t>(cores - 1);
        CoreSet set(cores);
        EXPECT_TRUE(set.empty());
        EXPECT_EQ(set.next(0), std::nullopt);

        set.insert(0);
        set.insert(last);
        CoreSet end(cores);
        end.insert(last);

        EXPECT_EQ(set.next(0), 0U);
        EXPECT_EQ(set.next(last), last);
        EXPECT_EQ(set.next(last + 1), std::nullopt);
        EXPECT_EQ((set & end).list(), (Cores{last}));
        EXPECT_EQ((set - end).empty(), cores == 1);
        EXPECT_EQ(set.size(), cores == 1 ? 1U : 2U);
    }
}

}  // namespace
}  // namespace muster
