// SPDX-License-Identifier: Apache-2.0
//
// What fits, where it goes and what is refused: the tables of requests, strategies and devices.

#include "placement/cluster.hpp"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/placement_case.hpp"

namespace muster {
namespace {

using ::testing::AllOf;
using testing::amount;
using testing::bundle;
using ::testing::ElementsAre;
using testing::group;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::PlacementCase;

using enum PlacementStrategy;

/// How many of `wanted` run at once on `nodes`.
int at_once(const std::vector<std::string>& nodes, const PlacementGroupSpec& wanted) {
    PlacementCase cluster(nodes);
    cluster.checked();
    return cluster.start_all(wanted);
}

std::string refusal(const std::vector<std::string>& nodes, const PlacementGroupSpec& wanted) {
    PlacementCase cluster(nodes);
    cluster.checked();
    const Status status = cluster.cluster.feasible(wanted);
    EXPECT_FALSE(status.ok());
    if (status.ok()) {
        return "feasible";
    }
    EXPECT_EQ(status.error().code, ErrorCode::Infeasible);
    return status.error().message;
}

std::vector<std::uint32_t> devices_of(const Placement& placement, std::size_t bundle_index = 0) {
    std::vector<std::uint32_t> devices;
    for (const DeviceShare& share : placement.bundles[bundle_index].devices) {
        devices.push_back(share.device);
    }
    return devices;
}

// --- requests ---

TEST(RequestTest, AsManyRunAtOnceAsThePoolOfCpusHolds) {
    EXPECT_EQ(at_once({"cpu=4"}, PlacementGroupSpec{}), 4);
    EXPECT_EQ(at_once({"cpu=4"}, group({"cpu=2"})), 2);
    EXPECT_EQ(at_once({"cpu=4"}, group({"cpu=4"})), 1);
    EXPECT_EQ(at_once({"cpu=4"}, group({"cpu=0.5"})), 8);
    EXPECT_EQ(at_once({"cpu=4"}, group({"cpu=0.75"})), 5);
}

TEST(RequestTest, AskingForNothingRunsAsOftenAsThereAreCores) {
    EXPECT_EQ(at_once({"cpu=4"}, group({""})), 4);
    EXPECT_EQ(at_once({"cpu=4", "cpu=2"}, group({""})), 6);
}

TEST(RequestTest, AskingForNothingDoesNotWaitForCpus) {
    PlacementCase cluster({"cpu=2"});
    cluster.start(group({"cpu=2"}));

    EXPECT_TRUE(cluster.start(group({""})));
    EXPECT_TRUE(cluster.start(group({""})));
    EXPECT_FALSE(cluster.start(group({""})));
    cluster.expect({{"cpu=2", "", ""}});
}

TEST(RequestTest, EveryGpuTrialSeesAnotherDevice) {
    PlacementCase cluster({"cpu=2,gpu=8"});

    EXPECT_EQ(cluster.start_all(group({"gpu=1"})), 8);

    std::set<std::uint32_t> seen;
    for (const Placement& placement : cluster.placed) {
        seen.insert(devices_of(placement).at(0));
    }
    EXPECT_EQ(seen.size(), 8U);
    cluster.checked();
}

TEST(RequestTest, CpusAndGpusAreTakenTogether) {
    EXPECT_EQ(at_once({"cpu=4,gpu=1"}, group({"cpu=2,gpu=1"})), 1);
}

TEST(RequestTest, AShareSitsOnOneDevice) {
    EXPECT_EQ(at_once({"cpu=4,gpu=2"}, group({"gpu=0.75"})), 2);
    EXPECT_EQ(at_once({"cpu=4,gpu=2"}, group({"gpu=0.5"})), 4);
    EXPECT_EQ(at_once({"cpu=4,gpu=2"}, group({"gpu=0.3333"})), 6);
}

TEST(RequestTest, SixteenGpusFitTwiceInThirtyTwo) {
    EXPECT_EQ(at_once({"cpu=8,gpu=32"}, group({"gpu=16"})), 2);
    EXPECT_EQ(at_once({"gpu=16", "gpu=16"}, group({"gpu=16"})), 2);
    EXPECT_EQ(at_once({"gpu=8", "gpu=8", "gpu=8", "gpu=8"}, group({"gpu=8", "gpu=8"})), 2);
}

TEST(RequestTest, ThreeTrialsOfFourGpusFitOnTenAndFour) {
    PlacementCase cluster({"gpu=10", "gpu=4"});

    EXPECT_EQ(cluster.start_all(group({"gpu=4"})), 3);
    cluster.expect({{"gpu=4", "gpu=4"}, {"gpu=4"}});
}

TEST(RequestTest, OneGroupAtOnceWhereTwoAskForTooMuch) {
    EXPECT_EQ(at_once({"cpu=4,gpu=2,a=2"}, group({"cpu=1", "cpu=3,gpu=1"})), 1);
    EXPECT_EQ(at_once({"cpu=4,gpu=2,a=2"}, group({"cpu=1", "a=2"})), 1);
}

TEST(RequestTest, AThirdOfAPoolFitsThreeTimesAndLeavesExactlyNothing) {
    PlacementCase cluster({"cpu=0.99"});

    EXPECT_EQ(cluster.start_all(group({"cpu=0.33"})), 3);

    EXPECT_TRUE(cluster.cluster.free(NodeId{0}).is_zero());
    EXPECT_EQ(cluster.cluster.in_use(), cluster.cluster.capacity());
    cluster.checked();
}

TEST(RequestTest, AThirdWithFourDecimalsFitsThreeTimesInACustomResourceOfOne) {
    EXPECT_EQ(at_once({"cpu=8,token=1"}, group({"token=0.3333"})), 3);
}

TEST(RequestTest, MemoryIsCountedInBytes) {
    EXPECT_EQ(at_once({"cpu=8,memory=8GiB"}, group({"memory=3GiB"})), 2);
    EXPECT_EQ(at_once({"cpu=8,memory=8GiB"}, group({"cpu=1,memory=1GiB"})), 8);
}

TEST(RequestTest, WhatIsReservedIsKeptBackOnEveryNode) {
    ClusterOptions options;
    options.reserve = bundle("cpu=1,memory=2GiB");
    PlacementCase cluster({"cpu=4,memory=8GiB", "cpu=1,memory=1GiB"}, options);

    EXPECT_EQ(cluster.start_all(group({"cpu=1,memory=2GiB"})), 3);
    EXPECT_EQ(to_string(cluster.cluster.capacity()), "{cpu: 3, memory: 6GiB}");
    cluster.checked();
}

TEST(RequestTest, WhatTheRunSharesIsCountedOnceForAllNodes) {
    ClusterOptions options;
    options.cluster_resources = {{"licence", amount(5)}};
    PlacementCase cluster({"cpu=4", "cpu=4"}, options);

    EXPECT_EQ(cluster.start_all(group({"cpu=1,licence=2"})), 2);
    EXPECT_EQ(cluster.cluster.free_cluster_resource("licence"), amount(1));

    cluster.cluster.release(TrialId{0});
    EXPECT_EQ(cluster.cluster.free_cluster_resource("licence"), amount(3));
    EXPECT_EQ(to_string(cluster.cluster.in_use()), "{cpu: 1, licence: 2}");
    cluster.checked();
}

TEST(RequestTest, AnEmptyFirstBundleStartsWhereTheSecondIs) {
    PlacementCase cluster({"cpu=2", "cpu=4"});
    cluster.start(group({"", "cpu=4"}));

    cluster.expect({{}, {"", "cpu=4"}});
    EXPECT_THAT(cluster.cluster.cores_of(cluster.placed[0], 0), ElementsAre(0U, 1U, 2U, 3U));
}

TEST(RequestTest, AZeroEntryChangesNothing) {
    EXPECT_EQ(at_once({"cpu=4"}, group({"cpu=1,gpu=0"})), 4);
}

// --- devices ---

TEST(DeviceTest, FollowTheBookOnFourGpus) {
    PlacementCase cluster({"cpu=8,gpu=4"});

    EXPECT_TRUE(cluster.start(group({"gpu=2"})));
    EXPECT_FALSE(cluster.start(group({"gpu=3"})));
    EXPECT_TRUE(cluster.start(group({"gpu=0.4"})));
    EXPECT_TRUE(cluster.start(group({"gpu=0.7"})));
    EXPECT_TRUE(cluster.start(group({"gpu=0.3"})));

    EXPECT_THAT(devices_of(cluster.placed[0]), ElementsAre(0U, 1U));
    EXPECT_THAT(devices_of(cluster.placed[1]), ElementsAre(2U));
    EXPECT_THAT(devices_of(cluster.placed[2]), ElementsAre(3U));
    EXPECT_THAT(devices_of(cluster.placed[3]), ElementsAre(3U));
    cluster.checked();
}

TEST(DeviceTest, AWholeDeviceIsNeverTakenFromASharedOne) {
    PlacementCase cluster({"cpu=8,gpu=1"});
    cluster.start(group({"gpu=0.1"}));

    EXPECT_FALSE(cluster.start(group({"gpu=1"})));
    cluster.expect({{"gpu=0.1"}});
}

TEST(DeviceTest, ADeviceIsWholeAgainWhenItsLastShareIsReleased) {
    PlacementCase cluster({"cpu=8,gpu=1"});
    cluster.start(group({"gpu=0.1"}));
    cluster.start(group({"gpu=0.9"}));
    cluster.cluster.release(TrialId{0});
    EXPECT_FALSE(cluster.start(group({"gpu=1"})));

    cluster.cluster.release(TrialId{1});

    EXPECT_TRUE(cluster.start(group({"gpu=1"})));
    cluster.checked();
}

TEST(DeviceTest, ARequestOverSeveralKindsIsAllOrNothing) {
    PlacementCase cluster({"cpu=2,gpu=2"});

    EXPECT_FALSE(cluster.start(group({"cpu=1,gpu=3"})));

    EXPECT_TRUE(cluster.cluster.in_use().is_zero());
    EXPECT_EQ(to_string(cluster.cluster.free(NodeId{0})), "{cpu: 2, gpu: 2}");
    cluster.checked();
}

TEST(DeviceTest, SharesOfOneGroupFindDevicesThatBestFitAloneWouldMiss) {
    // Largest first on the best fit puts 0.4 + 0.4 on one device, and the last 0.3 nowhere.
    EXPECT_EQ(
        at_once(
            {"cpu=8,gpu=2"},
            group({"gpu=0.4", "gpu=0.4", "gpu=0.3", "gpu=0.3", "gpu=0.3", "gpu=0.3"})
        ),
        1
    );
}

TEST(DeviceTest, AProcessGetsOneMigInstanceOnly) {
    NodeInventory node = logical_node("mig", bundle("cpu=8"));
    node.devices = {Device{.label = "MIG-a"}, Device{.label = "MIG-b"}};
    Cluster cluster;
    cluster.add_node(NodeId{0}, node);

    EXPECT_TRUE(cluster.feasible(group({"gpu=1", "gpu=1"})).ok());
    EXPECT_THAT(cluster.feasible(group({"gpu=2"})).error().message, HasSubstr("one MIG instance"));
}

// --- strategies ---

TEST(StrategyTest, PackUsesOneNodeAndStrictSpreadTwo) {
    for (const PlacementStrategy strategy : {Pack, StrictPack}) {
        PlacementCase cluster({"cpu=4", "cpu=4"});
        cluster.start(group({"cpu=2", "cpu=2"}, strategy));
        cluster.expect({{"cpu=2", "cpu=2"}, {}});
    }
    PlacementCase cluster({"cpu=4", "cpu=4"});
    cluster.start(group({"cpu=2", "cpu=2"}, StrictSpread));
    cluster.expect({{"cpu=2"}, {"cpu=2"}});
}

TEST(StrategyTest, SpreadUsesAFreshNodeForEachBundle) {
    PlacementCase cluster({"cpu=4", "cpu=4", "cpu=4"});
    cluster.start(group({"cpu=2", "cpu=2", "cpu=2"}, Spread));
    cluster.expect({{"cpu=2"}, {"cpu=2"}, {"cpu=2"}});
}

TEST(StrategyTest, SpreadDoublesUpOnceEveryNodeIsUsed) {
    PlacementCase cluster({"cpu=4", "cpu=4"});
    cluster.start(group({"cpu=2", "cpu=2", "cpu=2"}, Spread));
    cluster.expect({{"cpu=2", "cpu=2"}, {"cpu=2"}});
}

TEST(StrategyTest, StrictPackTakesTheTightestNodeAndWithBalanceTheEmptiest) {
    const PlacementGroupSpec wanted = group({"cpu=2", "cpu=2"}, StrictPack);
    PlacementCase tightest({"cpu=8", "cpu=2", "cpu=4"});
    tightest.start(wanted);
    tightest.expect({{}, {}, {"cpu=2", "cpu=2"}});

    PlacementCase balanced({"cpu=4", "cpu=2", "cpu=8"}, {.node_choice = NodeChoice::Balance});
    balanced.start(wanted);
    balanced.expect({{}, {}, {"cpu=2", "cpu=2"}});
}

TEST(StrategyTest, SpreadOfMoreThanThereIsIsInfeasible) {
    EXPECT_THAT(
        refusal({"cpu=2"}, group({"cpu=2", "cpu=2", "cpu=2"}, Spread)),
        AllOf(HasSubstr("together {cpu: 6}"), HasSubstr("all of them have {cpu: 2}"))
    );
}

TEST(StrategyTest, StrictSpreadWaitsForNodesThatServe) {
    const PlacementGroupSpec wanted = group({"cpu=2", "cpu=2"}, StrictSpread);
    PlacementCase cluster({"cpu=2"});
    EXPECT_FALSE(cluster.cluster.feasible(wanted).ok());
    cluster.add_node("cpu=1");
    EXPECT_FALSE(cluster.cluster.feasible(wanted).ok());
    cluster.add_node("cpu=10");
    EXPECT_TRUE(cluster.cluster.feasible(wanted).ok());

    EXPECT_TRUE(cluster.start(wanted));
    cluster.expect({{"cpu=2"}, {}, {"cpu=2"}});
}

TEST(StrategyTest, EachRequestTakesTheNodeThatWastesLeast) {
    PlacementCase cluster({"cpu=1", "cpu=2", "cpu=1,gpu=1"});

    EXPECT_TRUE(cluster.start(group({"cpu=1"})));
    EXPECT_TRUE(cluster.start(group({"cpu=2"})));
    EXPECT_TRUE(cluster.start(group({"cpu=1,gpu=1"})));

    cluster.expect({{"cpu=1"}, {"cpu=2"}, {"cpu=1,gpu=1"}});
}

TEST(StrategyTest, CpuTrialsAvoidGpuNodesWhileOthersServe) {
    PlacementCase cluster({"cpu=4,gpu=1", "cpu=64"});
    cluster.start(group({"cpu=4"}));
    cluster.expect({{}, {"cpu=4"}});

    PlacementCase full({"cpu=4,gpu=1", "cpu=2"});
    full.start(group({"cpu=4"}));
    full.expect({{"cpu=4"}, {}});
}

TEST(StrategyTest, RequestsAvoidNodesWithCustomResourcesThatTheyDoNotUse) {
    PlacementCase cluster({"cpu=2,nvme=1", "cpu=8"});
    cluster.start(group({"cpu=2"}));
    cluster.expect({{}, {"cpu=2"}});
}

TEST(StrategyTest, BalanceFillsNodesEvenly) {
    PlacementCase cluster({"cpu=10", "cpu=10"}, {.node_choice = NodeChoice::Balance});

    EXPECT_EQ(cluster.start_all(group({"cpu=1", "cpu=1"}, StrictPack)), 10);

    std::vector<int> groups(2);
    for (const Placement& placement : cluster.placed) {
        ++groups[placement.bundles[0].node.value];
    }
    EXPECT_THAT(groups, ElementsAre(5, 5));
    cluster.checked();
}

TEST(StrategyTest, AGroupThatDoesNotFitReservesNothingAndIsPlacedLater) {
    PlacementCase cluster({"cpu=4", "cpu=4"});
    cluster.start(group({"cpu=3"}));
    cluster.start(group({"cpu=3"}));
    const PlacementGroupSpec wanted = group({"cpu=2", "cpu=2", "cpu=2", "cpu=2"}, Spread);
    const ResourceSet before = cluster.cluster.in_use();
    EXPECT_FALSE(cluster.start(wanted));
    EXPECT_EQ(cluster.cluster.in_use(), before);

    cluster.cluster.release(TrialId{0});
    cluster.cluster.release(TrialId{1});

    EXPECT_TRUE(cluster.start(wanted));
    cluster.checked();
}

TEST(StrategyTest, PackUsesTheFewestNodesForEqualBundles) {
    PlacementCase cluster({"cpu=4", "cpu=8", "cpu=4", "cpu=8"});
    cluster.start(group({"cpu=4", "cpu=4", "cpu=4"}));
    cluster.expect({{"cpu=4"}, {"cpu=4", "cpu=4"}, {}, {}});
}

TEST(StrategyTest, EarlierBundlesMoveWhenALaterOneHasNoRoom) {
    // Hardest first puts the memory bundle on node 0, where alone the CPU bundle fits.
    PlacementCase cluster({"cpu=4,memory=4GiB", "cpu=1,memory=8GiB"});

    EXPECT_TRUE(cluster.start(group({"cpu=1,memory=4GiB", "cpu=4"})));
    cluster.expect({{"cpu=4"}, {"cpu=1,memory=4GiB"}});
}

TEST(StrategyTest, StrictSpreadFindsTheMatchingThatGreedyMisses) {
    PlacementCase cluster({"cpu=4,memory=4GiB", "cpu=1,memory=8GiB"});

    EXPECT_TRUE(cluster.start(group({"cpu=1,memory=4GiB", "cpu=4"}, StrictSpread)));
    cluster.expect({{"cpu=4"}, {"cpu=1,memory=4GiB"}});
}

TEST(StrategyTest, AvoidedNodesAreLeftAlone) {
    PlacementCase cluster({"cpu=4", "cpu=8"});
    const std::vector<NodeId> avoid{NodeId{0}};

    EXPECT_EQ(cluster.cluster.place(group({"cpu=2"}), avoid)->bundles[0].node, NodeId{1});
    EXPECT_FALSE(cluster.cluster.place(group({"cpu=8", "cpu=2"}), avoid).has_value());
    cluster.checked();
}

// --- infeasible ---

TEST(InfeasibleTest, NamesWhatWasAskedAndTheMostThatThereIs) {
    EXPECT_THAT(
        refusal({"cpu=4"}, group({"cpu=100"})),
        AllOf(HasSubstr("{cpu: 100}"), HasSubstr("most cpu"), HasSubstr("is 4 (node node0)"))
    );
    EXPECT_THAT(
        refusal({"cpu=2", "cpu=2"}, group({"cpu=4"})),
        AllOf(HasSubstr("{cpu: 4}"), HasSubstr("is 2 (node node0)"))
    );
    EXPECT_THAT(
        refusal({"cpu=2,memory=1GiB"}, group({"memory=10PB"})),
        AllOf(HasSubstr("{memory: 10PB}"), HasSubstr("is 1GiB"))
    );
}

TEST(InfeasibleTest, NamesAResourceThatNoNodeHas) {
    EXPECT_THAT(refusal({"cpu=4"}, group({"foo=1"})), HasSubstr("no node has any foo"));
    EXPECT_THAT(refusal({"cpu=4"}, group({"gpu=1"})), HasSubstr("no node has any gpu"));
    EXPECT_THAT(refusal({}, group({"cpu=1"})), HasSubstr("the cluster has no node"));
}

TEST(InfeasibleTest, NamesTheStrategyThatCannotBeMet) {
    EXPECT_THAT(
        refusal({"cpu=2", "cpu=2"}, group({"cpu=2", "cpu=2", "cpu=2"}, StrictSpread)),
        AllOf(HasSubstr("STRICT_SPREAD"), HasSubstr("3 bundles"), HasSubstr("2 nodes"))
    );
    EXPECT_THAT(
        refusal({"cpu=2", "cpu=2"}, group({"cpu=2", "cpu=1"}, StrictPack)),
        AllOf(HasSubstr("STRICT_PACK"), HasSubstr("{cpu: 3}"), HasSubstr("cpu 2"))
    );
}

TEST(InfeasibleTest, NamesTheBundleAndWhatIsNotTogetherOnANode) {
    EXPECT_THAT(
        refusal({"cpu=8", "cpu=1,gpu=1"}, group({"cpu=1", "cpu=4,gpu=1"})),
        AllOf(HasSubstr("bundle 1"), HasSubstr("no node has all of it"), HasSubstr("cpu 8"))
    );
}

TEST(InfeasibleTest, NamesWhatTheWholeRunShares) {
    ClusterOptions options;
    options.cluster_resources = {{"licence", amount(5)}};
    Cluster cluster(options);
    cluster.add_node(NodeId{0}, logical_node("a", bundle("cpu=64")));

    EXPECT_TRUE(cluster.feasible(group({"cpu=1,licence=5"})).ok());
    EXPECT_THAT(
        cluster.feasible(group({"cpu=1,licence=3", "cpu=1,licence=3"})).error().message,
        AllOf(HasSubstr("6 licence"), HasSubstr("has 5"))
    );
}

TEST(InfeasibleTest, DoesNotDependOnWhatIsInUse) {
    PlacementCase cluster({"cpu=4"});
    cluster.start(group({"cpu=4"}));

    EXPECT_TRUE(cluster.cluster.feasible(group({"cpu=4"})).ok());
    cluster.expect({{"cpu=4"}});
}

// --- nodes come and go ---

TEST(NodeTest, ALostNodeIsForgottenAndReleasingWhatWasThereIsHarmless) {
    PlacementCase cluster({"cpu=2", "cpu=2"});
    cluster.start(group({"cpu=2", "cpu=2"}));
    cluster.cluster.remove_node(NodeId{0});
    EXPECT_EQ(to_string(cluster.cluster.capacity()), "{cpu: 2}");
    EXPECT_EQ(to_string(cluster.cluster.in_use()), "{cpu: 2}");

    cluster.cluster.release(TrialId{0});
    cluster.cluster.release(TrialId{0});

    EXPECT_TRUE(cluster.cluster.in_use().is_zero());
    EXPECT_THAT(cluster.cluster.nodes(), ElementsAre(NodeId{1}));
    cluster.checked();
}

TEST(NodeTest, ANodeThatCameBackIsIdleWhateverItsOldHoldersRelease) {
    PlacementCase cluster({"cpu=2"});
    cluster.start(group({"cpu=2"}));
    cluster.cluster.remove_node(NodeId{0});
    cluster.cluster.add_node(NodeId{0}, logical_node("again", bundle("cpu=2")));
    EXPECT_TRUE(cluster.start(group({"cpu=2"})));

    cluster.cluster.release(TrialId{0});

    EXPECT_FALSE(cluster.start(group({"cpu=1"})));
    EXPECT_THAT(cluster.cluster.holders(NodeId{0}), ElementsAre(TrialId{1}));
    cluster.checked();
}

TEST(NodeTest, RoomVersionRisesOnlyWhenSomethingMightFitThatDidNot) {
    PlacementCase cluster({"cpu=2"});
    const std::uint64_t before = cluster.cluster.room_version();
    cluster.start(group({"cpu=1"}));
    EXPECT_EQ(cluster.cluster.room_version(), before);

    cluster.cluster.release(TrialId{0});
    EXPECT_GT(cluster.cluster.room_version(), before);
    cluster.checked();
}

TEST(NodeTest, RoomIsPlannedWithTheFewestEndings) {
    PlacementCase cluster({"cpu=4", "cpu=4"});
    for (int i = 0; i < 8; ++i) {
        cluster.start(group({"cpu=1"}));
    }
    const std::vector<TrialId> ending{
        TrialId{0}, TrialId{4}, TrialId{5}, TrialId{6}, TrialId{1}, TrialId{7}};
    const ResourceSet before = cluster.cluster.in_use();

    const auto plan = cluster.cluster.plan_room(group({"cpu=4"}), ending);

    ASSERT_TRUE(plan.has_value());
    EXPECT_EQ(plan->endings, 6U);
    EXPECT_THAT(plan->nodes, ElementsAre(NodeId{1}));
    EXPECT_EQ(cluster.cluster.plan_room(group({"cpu=3"}), ending)->endings, 4U);
    EXPECT_FALSE(cluster.cluster.plan_room(group({"cpu=5"}), ending).has_value());
    EXPECT_EQ(cluster.cluster.in_use(), before);
    EXPECT_FALSE(cluster.start(group({"cpu=1"})));
    cluster.checked();
}

// --- nodes that are set aside ---

TEST(SetAsideTest, NothingIsPlacedThereAndWhatIsHeldStays) {
    PlacementCase cluster({"cpu=2", "cpu=2"});
    cluster.start(group({"cpu=1"}));
    cluster.cluster.set_aside(NodeId{0}, true);

    EXPECT_EQ(cluster.start_all(group({"cpu=1"})), 2);

    cluster.expect({{"cpu=1"}, {"cpu=1", "cpu=1"}});
    EXPECT_TRUE(cluster.cluster.is_set_aside(NodeId{0}));
    EXPECT_EQ(cluster.cluster.holders(NodeId{0}), std::vector<TrialId>{TrialId{0}});
    EXPECT_EQ(cluster.cluster.capacity().cpu, amount(4));
    EXPECT_EQ(cluster.cluster.in_use().cpu, amount(3));
}

TEST(SetAsideTest, WhatOnlyItCouldRunIsInfeasible) {
    PlacementCase cluster({"cpu=4", "cpu=2"});
    cluster.checked();
    cluster.cluster.set_aside(NodeId{0}, true);

    const Status feasible = cluster.cluster.feasible(group({"cpu=4"}));

    ASSERT_FALSE(feasible.ok());
    EXPECT_THAT(feasible.error().message, HasSubstr("node1"));
    EXPECT_TRUE(cluster.cluster.feasible(group({"cpu=2"})).ok());
}

TEST(SetAsideTest, ANodeThatIsTakenBackHasTheRoomThatWasGivenBackMeanwhile) {
    PlacementCase cluster({"cpu=2"});
    cluster.checked();
    cluster.start_all(group({"cpu=1"}));
    cluster.cluster.set_aside(NodeId{0}, true);
    cluster.cluster.release(TrialId{0});
    EXPECT_FALSE(cluster.cluster.place(group({"cpu=1"})));
    const std::uint64_t before = cluster.cluster.room_version();

    cluster.cluster.set_aside(NodeId{0}, false);

    EXPECT_GT(cluster.cluster.room_version(), before);
    EXPECT_EQ(cluster.start_all(group({"cpu=1"})), 1);
}

TEST(SetAsideTest, ANodeThatWasRemovedComesBackInUse) {
    PlacementCase cluster({"cpu=1"});
    cluster.checked();
    cluster.cluster.set_aside(NodeId{0}, true);
    cluster.cluster.remove_node(NodeId{0});
    EXPECT_FALSE(cluster.cluster.is_set_aside(NodeId{0}));

    cluster.cluster.add_node(
        NodeId{0}, logical_node("node0", parse_node_resources("cpu=1").value())
    );

    EXPECT_EQ(cluster.start_all(group({"cpu=1"})), 1);
}

}  // namespace
}  // namespace muster
