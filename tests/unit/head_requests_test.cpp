// SPDX-License-Identifier: Apache-2.0

#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "head/head.hpp"
#include "support/head_case.hpp"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::HeadCase;
using testing::make_node;

/// Trial n asks for as many CPUs as the function says of n.
ExperimentSpec spec_asking(std::function<std::int64_t(std::int64_t)> cpus) {
    ExperimentSpec spec;
    spec.name = "test";
    spec.resources_of = [cpus = std::move(cpus)](const Config& config) {
        const std::int64_t asked = cpus(*config.find("index")->as_int());
        PlacementGroupSpec group;
        group.bundles = {{.cpu = Amount::whole(asked)}};
        return Result<PlacementGroupSpec>(group);
    };
    return spec;
}

std::vector<std::size_t> cores_of(const HeadCase& test, std::initializer_list<std::uint32_t> ids) {
    std::vector<std::size_t> counts;
    for (const std::uint32_t id : ids) {
        const TrialProgress& progress = *test.head.trial(TrialId{id})->progress;
        counts.push_back(progress.running->placement.bundles.front().cores.size());
    }
    return counts;
}

TEST(HeadRequestsTest, EachTrialGetsWhatTheFunctionSaysOfItsConfig) {
    HeadCase test(spec_asking([](std::int64_t index) { return index % 3 + 1; }), 4);

    test.begin_with({make_node("n0", 16)});

    EXPECT_THAT(cores_of(test, {0, 1, 2, 3}), ElementsAre(1, 2, 3, 1));
}

TEST(HeadRequestsTest, WhatNoNodeHasFailsThatTrialAlone) {
    HeadCase test(spec_asking([](std::int64_t index) { return index == 1 ? 100 : 1; }), 3);

    test.begin_with({make_node("n0", 4)});
    test.trial_ends(0);
    test.trial_ends(2);

    EXPECT_EQ(test.state(1), TrialState::Failed);
    EXPECT_THAT(test.head.trial(TrialId{1})->progress->reason, HasSubstr("cpu: 100"));
    EXPECT_EQ(test.state(2), TrialState::Completed);
    EXPECT_EQ(test.actions<Leave>().front().end, RunEnd::Finished);
}

TEST(HeadRequestsTest, WhatTheFunctionThrowsFailsThatTrialAlone) {
    HeadCase test(
        spec_asking([](std::int64_t index) -> std::int64_t {
            if (index == 0) {
                throw std::invalid_argument("no such width");
            }
            return 1;
        }),
        2
    );

    test.begin_with({make_node("n0", 4)});

    EXPECT_EQ(test.state(0), TrialState::Failed);
    EXPECT_THAT(test.head.trial(TrialId{0})->progress->reason, HasSubstr("no such width"));
    EXPECT_EQ(test.state(1), TrialState::Running);
}

TEST(HeadRequestsTest, WhatALostNodeCouldRunIsNotGivenUp) {
    HeadCase test(
        spec_asking([](std::int64_t index) { return index < 1 ? 1 : 8; }),
        2,
        {.expected_nodes = 2, .start_timeout = std::chrono::seconds{60}}
    );
    test.begin();
    test.node_reports(NodeId{0}, make_node("small", 4));
    test.node_reports(NodeId{1}, make_node("large", 8));
    ASSERT_EQ(test.state(1), TrialState::Running);

    test.handle(NodeLost{NodeId{1}, "gone"});
    test.trial_ends(0);

    EXPECT_EQ(test.state(1), TrialState::Pending);
    EXPECT_EQ(test.actions<Leave>().front().end, RunEnd::Interrupted);
}

TEST(HeadRequestsTest, TheFunctionIsAskedAgainWhenTheExperimentGoesOn) {
    HeadCase before(spec_asking([](std::int64_t index) { return index + 1; }), 3);
    before.begin_with({make_node("n0", 6)});
    before.trial_ends(0);

    // The program was changed meanwhile, and the nodes are smaller.
    HeadCase after(spec_asking([](std::int64_t index) { return 2 * index; }), 0);
    for (const Fact& fact : before.facts) {
        ASSERT_TRUE(after.head.restore(fact, {}).ok());
    }
    after.begin_with({make_node("n0", 3)});

    EXPECT_EQ(after.state(0), TrialState::Completed);
    EXPECT_THAT(cores_of(after, {1}), ElementsAre(2));
    EXPECT_EQ(after.state(2), TrialState::Failed);
    EXPECT_THAT(after.head.trial(TrialId{2})->progress->reason, HasSubstr("cpu: 4"));
}

}  // namespace
}  // namespace muster
