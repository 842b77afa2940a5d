// SPDX-License-Identifier: Apache-2.0

#include "runtime/roles.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "resources/logical_node.hpp"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ResourceSet resources(const char* text) {
    return parse_node_resources(text).value();
}

EnrolledRank rank_on(std::uint32_t rank, std::string host, std::string boot = "b") {
    Enrol enrol;
    enrol.host = std::move(host);
    enrol.boot_id = std::move(boot);
    enrol.inventory = logical_node("probed", resources("cpu=8"));
    return {rank, enrol};
}

std::vector<std::string> names(const Roles& roles) {
    std::vector<std::string> all;
    for (const AgentRank& agent : roles.agents) {
        all.push_back(agent.inventory.name);
    }
    return all;
}

std::vector<std::uint32_t> ranks(const Roles& roles) {
    std::vector<std::uint32_t> all;
    for (const AgentRank& agent : roles.agents) {
        all.push_back(agent.rank);
    }
    return all;
}

TEST(RolesTest, EachHostIsServedByItsLowestRank) {
    const std::vector<EnrolledRank> enrolled = {
        rank_on(0, "n1"), rank_on(1, "n1"), rank_on(2, "n2"), rank_on(3, "n2")};

    const Roles roles = assign_roles(enrolled, {}).value();

    EXPECT_THAT(ranks(roles), ElementsAre(0, 2));
    EXPECT_THAT(names(roles), ElementsAre("n1", "n2"));
    EXPECT_EQ(roles.agents[1].inventory.cpu, Amount::whole(8));
    EXPECT_THAT(roles.idle, ElementsAre(1, 3));
    EXPECT_THAT(
        roles.remarks,
        ElementsAre(
            HasSubstr("ranks 0, 1 run on n1: one node, served by rank 0"),
            HasSubstr("ranks 2, 3 run on n2")
        )
    );
}

TEST(RolesTest, TwoMachinesOfOneNameAreTwoNodes) {
    const std::vector<EnrolledRank> enrolled = {
        rank_on(0, "localhost", "first"), rank_on(1, "localhost", "second")};

    const Roles roles = assign_roles(enrolled, {}).value();

    EXPECT_THAT(names(roles), ElementsAre("localhost", "localhost#1"));
    EXPECT_THAT(roles.remarks, IsEmpty());
}

TEST(RolesTest, WithRankIsNodeEveryRankHasTheGivenResources) {
    const std::vector<EnrolledRank> enrolled = {
        rank_on(0, "n1"), rank_on(1, "n1"), rank_on(2, "n2")};

    const Roles roles =
        assign_roles(enrolled, {.rank_is_node = true, .node_resources = resources("cpu=2,gpu=1")})
            .value();

    EXPECT_THAT(names(roles), ElementsAre("n1#0", "n1#1", "n2"));
    EXPECT_EQ(roles.agents[2].inventory.cpu, Amount::whole(2));
    EXPECT_THAT(roles.idle, IsEmpty());
}

TEST(RolesTest, RanksThatWouldEachOfferTheWholeHostAreRefused) {
    const Result<Roles> roles =
        assign_roles({rank_on(0, "n1"), rank_on(1, "n1")}, {.rank_is_node = true});

    ASSERT_FALSE(roles.ok());
    EXPECT_THAT(roles.error().message, HasSubstr("2 ranks run on n1"));
    EXPECT_THAT(roles.error().message, HasSubstr("--node-resources"));
}

TEST(RolesTest, RankIsNodeTakesTheNodesOfAFileInOrder) {
    const std::vector<EnrolledRank> enrolled = {rank_on(0, "pc"), rank_on(1, "pc")};
    const std::vector<NodeInventory> file = {
        logical_node("big", resources("cpu=64")), logical_node("small", resources("cpu=2"))};

    const Roles roles = assign_roles(enrolled, {.rank_is_node = true, .cluster = file}).value();

    EXPECT_THAT(names(roles), ElementsAre("big", "small"));
    EXPECT_EQ(roles.agents[0].inventory, file[0]);
}

TEST(RolesTest, AFileWithAnotherNumberOfNodesThanRanksIsRefused) {
    const std::vector<NodeInventory> file = {
        logical_node("a", resources("cpu=1")), logical_node("b", resources("cpu=1"))};

    const Result<Roles> few =
        assign_roles({rank_on(0, "pc")}, {.rank_is_node = true, .cluster = file});
    const Result<Roles> many = assign_roles(
        {rank_on(0, "pc"), rank_on(1, "pc"), rank_on(2, "pc")},
        {.rank_is_node = true, .cluster = file}
    );

    ASSERT_FALSE(few.ok());
    EXPECT_THAT(few.error().message, HasSubstr("has 2 nodes and 1 rank came"));
    ASSERT_FALSE(many.ok());
    EXPECT_THAT(many.error().message, HasSubstr("has 2 nodes and 3 ranks came"));
}

TEST(RolesTest, AFileGivesHostsTheirResourcesByName) {
    const std::vector<NodeInventory> file = {
        logical_node("n2", resources("cpu=2")),
        logical_node("n1", resources("cpu=1")),
        logical_node("n9", resources("cpu=9"))};

    const Roles roles =
        assign_roles({rank_on(0, "n1.cluster.org"), rank_on(1, "n2")}, {.cluster = file}).value();

    EXPECT_THAT(names(roles), ElementsAre("n1", "n2"));
    EXPECT_THAT(roles.remarks, ElementsAre(HasSubstr("no rank came from node n9")));
}

TEST(RolesTest, AHostThatIsNotInTheFileIsRefused) {
    const Result<Roles> roles = assign_roles(
        {rank_on(0, "n1"), rank_on(1, "n7")}, {.cluster = {logical_node("n1", resources("cpu=1"))}}
    );

    ASSERT_FALSE(roles.ok());
    EXPECT_THAT(roles.error().message, HasSubstr("rank 1 runs on n7, which is not in the file"));
}

TEST(RolesTest, ADedicatedHeadKeepsItsWholeHostFree) {
    const std::vector<EnrolledRank> enrolled = {
        rank_on(0, "n1"), rank_on(1, "n1"), rank_on(2, "n2")};

    const Roles roles = assign_roles(enrolled, {.dedicated_head = true}).value();

    EXPECT_THAT(names(roles), ElementsAre("n2"));
    EXPECT_THAT(roles.idle, ElementsAre(0, 1));
}

TEST(RolesTest, ADedicatedHeadAloneIsRefused) {
    const Result<Roles> roles = assign_roles({rank_on(0, "n1")}, {.dedicated_head = true});

    ASSERT_FALSE(roles.ok());
    EXPECT_THAT(roles.error().message, HasSubstr("there is no other node"));
}

TEST(RolesTest, ANodeThatCouldNotBeProbedIsLeftOut) {
    EnrolledRank blind = rank_on(1, "n2");
    blind.enrol.inventory = {};
    blind.enrol.problem = "hwloc found nothing";

    const Roles roles = assign_roles({rank_on(0, "n1"), blind}, {}).value();

    EXPECT_THAT(names(roles), ElementsAre("n1"));
    EXPECT_THAT(roles.idle, ElementsAre(1));
    EXPECT_THAT(roles.remarks, ElementsAre("node n2 is left out: hwloc found nothing"));
}

TEST(RolesTest, TheSpecGivesCustomResourcesByName) {
    NodeResources custom;
    custom.nodes = "n[1-3]";
    custom.resources = {{"nvme", Amount::whole(4)}};

    const Roles roles =
        assign_roles({rank_on(0, "n1"), rank_on(1, "n9")}, {.custom = {custom}}).value();

    EXPECT_EQ(roles.agents[0].inventory.custom, custom.resources);
    EXPECT_THAT(roles.agents[1].inventory.custom, IsEmpty());
}

}  // namespace
}  // namespace muster
