// SPDX-License-Identifier: Apache-2.0
//
// Nodes that are silent, leave, are lost and come anew, as the head sees them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "head/head.hpp"
#include "support/head_case.hpp"

namespace muster {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using testing::HeadCase;
using ::testing::IsEmpty;
using testing::make_node;
using ::testing::SizeIs;

constexpr NodeId kNode0{0};
constexpr NodeId kNode1{1};

ExperimentSpec spec() {
    ExperimentSpec spec;
    spec.name = "test";
    spec.objective = ObjectiveSpec{"accuracy", Mode::Max};
    return spec;
}

/// Two nodes of one slot each.
HeadCase two_nodes(std::uint32_t trials, RunOptions options = {}) {
    options.expected_nodes = 2;
    options.lease = seconds{60};
    HeadCase test(spec(), trials, options);
    test.begin_with({make_node("n0", 1), make_node("n1", 1)});
    return test;
}

void heartbeat(HeadCase& test, NodeId node, std::uint64_t number = 1) {
    test.handle(AgentSaid{node, Heartbeat{number}});
}

TEST(HeadNodesTest, AHeartbeatIsAnsweredAtOnceAndWaitsForNothing) {
    HeadCase test = two_nodes(1);
    test.commands.clear();

    heartbeat(test, kNode1, 17);

    EXPECT_EQ(test.commands, (std::vector<Command>{{Send{kNode1, Alive{17}}, 0}}));
}

TEST(HeadNodesTest, ANodeThatIsSilentForTheLeaseIsLost) {
    HeadCase test = two_nodes(1);
    test.advance(seconds{30});
    heartbeat(test, kNode1);

    test.advance(seconds{30} - Duration{1});
    EXPECT_EQ(test.head.summary().nodes, 2U);
    test.advance(Duration{1});

    EXPECT_EQ(test.head.summary().nodes, 1U);
    EXPECT_EQ(test.actions<Abandon>(), (std::vector<Abandon>{{kNode0, 1}}));
    EXPECT_EQ(test.node_of(0), kNode1);
    EXPECT_EQ(
        test.kept<AttemptEnded>().front().outcome,
        (Outcome{EndCause::Lost, 0, "node n0 was lost: it was silent for 1m00s"})
    );
    EXPECT_THAT(
        test.actions<Note>().back().text, HasSubstr("n0 was lost: it was silent for 1m00s")
    );
}

TEST(HeadNodesTest, WhateverANodeSaysKeepsItUp) {
    HeadCase test = two_nodes(1);

    for (int minute = 0; minute < 5; ++minute) {
        test.advance(seconds{50});
        test.trial_reports(0, minute, {{"accuracy", 0.5}});
        heartbeat(test, kNode1);
    }

    EXPECT_EQ(test.head.summary().nodes, 2U);
}

TEST(HeadNodesTest, WithoutALeaseNobodyIsEverTooSilent) {
    HeadCase test(spec(), 1);
    test.begin_with({make_node("n0", 1)});

    EXPECT_EQ(test.head.next_deadline(), kNever);
}

TEST(HeadNodesTest, WhoSaysFarewellIsLostWithItsReason) {
    HeadCase test = two_nodes(1);

    test.handle(AgentSaid{kNode0, Farewell{"its spawner ended"}});

    EXPECT_EQ(test.actions<Abandon>(), (std::vector<Abandon>{{kNode0, 1}}));
    EXPECT_EQ(test.node_of(0), kNode1);
    EXPECT_THAT(test.actions<Note>().back().text, HasSubstr("n0 was lost: its spawner ended"));
}

TEST(HeadNodesTest, ALostNodeIsHeardAgainOnlyWithANewerHello) {
    HeadCase test = two_nodes(1);
    test.handle(NodeLost{kNode0, "its connection was reset"});
    test.commands.clear();
    test.facts.clear();

    heartbeat(test, kNode0);
    test.node_reports(kNode0, make_node("n0", 1), 1);
    EXPECT_THAT(test.commands, IsEmpty());
    EXPECT_EQ(test.head.summary().nodes, 1U);
    test.node_reports(kNode0, make_node("n0", 1), 2);

    EXPECT_EQ(test.head.summary().nodes, 2U);
    EXPECT_THAT(test.sent<muster::Setup>(), SizeIs(1));
    EXPECT_EQ(test.kept<NodeJoined>(), (std::vector<NodeJoined>{{kNode0, "n0", 2}}));
}

TEST(HeadNodesTest, ANodeThatCameAnewBeforeItWasMissedHasLostWhatItRan) {
    HeadCase test = two_nodes(2);
    const AttemptId before = test.key(0).attempt;
    test.commands.clear();

    test.node_reports(kNode0, make_node("n0", 1), 2);

    ASSERT_FALSE(test.commands.empty());
    EXPECT_EQ(test.commands.front(), (Command{Abandon{kNode0, 1}, 0}));
    EXPECT_EQ(test.state(0), TrialState::Running);
    EXPECT_NE(test.key(0).attempt, before);
    EXPECT_EQ(test.head.summary().nodes, 2U);
    EXPECT_EQ(test.head.summary().failures, 0U);
}

TEST(HeadNodesTest, AHelloThatIsNotNewerChangesNothing) {
    HeadCase test = two_nodes(1);
    test.node_reports(kNode0, make_node("n0", 1), 5);
    test.commands.clear();

    test.node_reports(kNode0, make_node("n0", 8), 5);
    test.node_reports(kNode0, make_node("n0", 8), 4);

    EXPECT_THAT(test.commands, IsEmpty());
    EXPECT_EQ(test.head.summary().capacity.cpu, Amount::whole(2));
}

TEST(HeadNodesTest, EveryAcceptedHelloIsKept) {
    HeadCase test = two_nodes(1);

    EXPECT_EQ(
        test.kept<NodeJoined>(), (std::vector<NodeJoined>{{kNode0, "n0", 1}, {kNode1, "n1", 1}})
    );
}

TEST(HeadNodesTest, ANodeLostBeforeTheStartIsNotCounted) {
    HeadCase test(spec(), 1, {.expected_nodes = 2});
    test.begin_with({make_node("n0", 1)});

    test.handle(NodeLost{kNode0, "its connection was reset"});
    test.node_reports(kNode1, make_node("n1", 1));
    EXPECT_FALSE(test.head.is_going());
    test.advance(seconds{60});

    EXPECT_TRUE(test.head.is_going());
    EXPECT_EQ(test.node_of(0), kNode1);
}

TEST(HeadNodesTest, WhenAllAreLostBeforeTheStartTheRunEndsInTime) {
    HeadCase test(spec(), 1, {.expected_nodes = 2});
    test.begin_with({make_node("n0", 1)});
    test.handle(NodeLost{kNode0, "its connection was reset"});

    test.advance(seconds{60});

    EXPECT_EQ(test.actions<Leave>().front().end, RunEnd::Interrupted);
}

TEST(HeadNodesTest, WhenAllNodesAreLostTheRunIsInterruptedAndTrialsArePending) {
    HeadCase test = two_nodes(3);

    test.handle(NodeLost{kNode0, "its connection was reset"});
    test.handle(NodeLost{kNode1, "its connection was reset"});

    EXPECT_EQ(test.actions<Leave>().front().end, RunEnd::Interrupted);
    EXPECT_EQ(test.head.summary().pending, 3U);
    EXPECT_EQ(test.head.summary().failures, 0U);
    EXPECT_THAT(test.sent<Dismiss>(), IsEmpty());
}

TEST(HeadNodesTest, WithAWaitTheRunGoesOnWhenANodeComesBack) {
    HeadCase test = two_nodes(3, {.wait_for_nodes = seconds{300}});
    test.handle(NodeLost{kNode0, "its connection was reset"});
    test.handle(NodeLost{kNode1, "its connection was reset"});

    test.advance(seconds{299});
    EXPECT_TRUE(test.head.is_going());
    test.node_reports(kNode1, make_node("n1", 1), 2);
    // What was interrupted is behind what waited.
    test.trial_ends(2);
    test.trial_ends(0);
    test.trial_ends(1);

    EXPECT_EQ(test.actions<Leave>(), (std::vector<Leave>{{RunEnd::Finished, ""}}));
}

TEST(HeadNodesTest, WithAWaitThatEndsTheRunIsInterrupted) {
    HeadCase test = two_nodes(3, {.wait_for_nodes = seconds{300}});
    test.handle(NodeLost{kNode0, "its connection was reset"});
    test.handle(NodeLost{kNode1, "its connection was reset"});

    test.advance(seconds{300});

    EXPECT_EQ(test.actions<Leave>().front().end, RunEnd::Interrupted);
}

TEST(HeadNodesTest, ARunThatEndsAwaitsNothingElse) {
    ExperimentSpec mixed = spec();
    mixed.resources = {
        {{{"index", {0}}}, {}}, {{}, {{{.cpu = Amount::whole(1), .gpu = Amount::whole(1)}}}}};
    HeadCase test(mixed, 2, {.expected_nodes = 2, .wait_for_nodes = seconds{10}});
    test.begin_with({make_node("n0", 1), make_node("n1", 1, 1)});
    test.handle(NodeLost{kNode1, "its connection was reset"});
    EXPECT_EQ(test.head.next_deadline(), test.now + seconds{10});

    test.handle(CancelRequested{RunEnd::Cancelled, false, "cancelled"});

    EXPECT_EQ(test.head.next_deadline(), kNever);
}

TEST(HeadNodesTest, ANodeLostWhileTheRunEndsHoldsNothingUp) {
    HeadCase test = two_nodes(4);
    test.handle(CancelRequested{RunEnd::Cancelled, false, "cancelled"});

    test.trial_ends(1, {EndCause::Stopped, 15, ""});
    EXPECT_THAT(test.actions<Leave>(), IsEmpty());
    test.handle(NodeLost{kNode0, "its connection was reset"});

    EXPECT_EQ(test.actions<Leave>().front().end, RunEnd::Cancelled);
    EXPECT_EQ(test.state(0), TrialState::Cancelled);
    EXPECT_EQ(test.commands[test.commands.size() - 2], (Command{Send{kNode1, Dismiss{}}, 0}));
    EXPECT_THAT(test.sent<Dismiss>(), SizeIs(1));
}

TEST(HeadNodesTest, ASilentNodeIsLostWhileTheRunEndsToo) {
    HeadCase test = two_nodes(2);
    test.handle(CancelRequested{RunEnd::Interrupted, false, "SIGTERM"});
    test.advance(seconds{59});
    test.trial_ends(1, {EndCause::Stopped, 15, ""});

    test.advance(seconds{1});

    EXPECT_EQ(test.actions<Leave>().front().end, RunEnd::Interrupted);
    EXPECT_EQ(test.state(0), TrialState::Pending);
}

TEST(HeadNodesTest, AGoalThatWasReachedStaysReachedWhenItsNodeIsLost) {
    ExperimentSpec goal = spec();
    goal.stop = {{"accuracy", Comparison::AtLeast, 0.9}};
    HeadCase test(goal, 1, {.expected_nodes = 2});
    test.begin_with({make_node("n0", 1), make_node("n1", 1)});
    test.trial_reports(0, 1, {{"accuracy", 0.95}});

    test.handle(NodeLost{kNode0, "its connection was reset"});

    EXPECT_EQ(test.state(0), TrialState::Completed);
    EXPECT_EQ(test.actions<Leave>().front().end, RunEnd::Finished);
}

TEST(HeadNodesTest, AnAttemptOnTwoNodesEndsWhereItsOtherNodeIsUp) {
    ExperimentSpec pair = spec();
    pair.resources.front().group.bundles = {{.cpu = Amount::whole(1)}, {.cpu = Amount::whole(1)}};
    HeadCase test(pair, 1, {.expected_nodes = 2, .wait_for_nodes = seconds{60}});
    test.begin_with({make_node("n0", 1), make_node("n1", 1)});
    ASSERT_EQ(test.node_of(0), kNode0);
    const MemberKey key = test.key(0);

    test.handle(NodeLost{kNode1, "its connection was reset"});

    EXPECT_EQ(test.sent<Stop>(), (std::vector<Stop>{{key, StopKind::Kill}}));
    test.trial_ends(0, {EndCause::Stopped, 9, ""});
    EXPECT_EQ(test.state(0), TrialState::Pending);
    EXPECT_EQ(test.head.summary().failures, 0U);
}

}  // namespace
}  // namespace muster
