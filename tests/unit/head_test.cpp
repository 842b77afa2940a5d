// SPDX-License-Identifier: Apache-2.0

#include "head/head.hpp"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/head_case.hpp"

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using testing::HeadCase;
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

Outcome exit_code(int code) {
    return {EndCause::Exited, code, ""};
}

TEST(HeadTest, RunsAsManyTrialsAsFitAndTheRestWhenTheyEnd) {
    HeadCase test(spec(), 3);
    test.begin_with({make_node("n0", 2)});
    EXPECT_EQ(test.running(), 2U);

    test.trial_ends(0);

    EXPECT_EQ(test.state(0), TrialState::Completed);
    EXPECT_EQ(test.state(2), TrialState::Running);
}

TEST(HeadTest, FirstStartWaitsForItsCreatedFactAlone) {
    HeadCase test(spec(), 2);
    test.begin_with({make_node("n0", 1)});

    std::vector<std::uint64_t> waits;
    for (const Command& command : test.commands) {
        const Send* send = std::get_if<Send>(&command.action);
        if (send != nullptr && std::holds_alternative<Start>(send->message)) {
            waits.push_back(command.after_facts);
        }
    }

    // RunStarted is the first fact, NodeJoined the second, trial 0 the third; the start does not
    // wait for trial 1.
    EXPECT_EQ(waits, (std::vector<std::uint64_t>{3}));
}

TEST(HeadTest, FinishedRunDismissesEverybodyAndLeavesAfterAllFacts) {
    HeadCase test(spec(), 1);
    test.begin_with({make_node("n0", 1)});

    test.trial_ends(0);

    EXPECT_THAT(test.sent<Dismiss>(), SizeIs(1));
    EXPECT_EQ(test.actions<Leave>(), (std::vector<Leave>{{RunEnd::Finished, ""}}));
    EXPECT_EQ(test.commands.back().after_facts, test.facts.size());
    EXPECT_EQ(test.kept<RunEnded>(), (std::vector<RunEnded>{{RunEnd::Finished, ""}}));
}

TEST(HeadTest, FailingTrialWithoutRetriesFailsOnce) {
    HeadCase test(spec(), 1);
    test.begin_with({make_node("n0", 1)});

    test.trial_ends(0, {EndCause::Exited, 3, "boom"});

    EXPECT_EQ(test.state(0), TrialState::Failed);
    EXPECT_EQ(test.kept<TrialEnded>().front().reason, "exit code 3: boom");
    EXPECT_EQ(test.head.summary().failures, 1U);
}

TEST(HeadTest, FailedTrialRunsAgainAtTheEndOfTheQueue) {
    ExperimentSpec retrying = spec();
    retrying.failures.max_failures = 1;
    HeadCase test(retrying, 2);
    test.begin_with({make_node("n0", 1)});

    test.trial_ends(0, exit_code(1));
    EXPECT_EQ(test.state(0), TrialState::Pending);
    EXPECT_EQ(test.state(1), TrialState::Running);
    test.trial_ends(1);
    test.trial_ends(0);

    EXPECT_EQ(test.state(0), TrialState::Completed);
    EXPECT_EQ(test.head.summary().failures, 1U);
}

TEST(HeadTest, AlwaysFailingTrialWithTwoRetriesFailsThreeTimes) {
    ExperimentSpec retrying = spec();
    retrying.failures.max_failures = 2;
    HeadCase test(retrying, 1);
    test.begin_with({make_node("n0", 1)});

    for (int attempt = 0; attempt < 3; ++attempt) {
        test.trial_ends(0, exit_code(1));
    }

    EXPECT_EQ(test.state(0), TrialState::Failed);
    EXPECT_EQ(test.head.summary().failures, 3U);
}

TEST(HeadTest, FailFastCancelsTheOthersAndEndsTheRun) {
    ExperimentSpec strict = spec();
    strict.failures.fail_fast = true;
    HeadCase test(strict, 3);
    test.begin_with({make_node("n0", 2)});

    test.trial_ends(0, exit_code(1));
    EXPECT_EQ(test.state(1), TrialState::Stopping);
    test.trial_ends(1, {EndCause::Stopped, 15, ""});

    EXPECT_EQ(test.state(1), TrialState::Cancelled);
    EXPECT_EQ(test.state(2), TrialState::Cancelled);
    EXPECT_EQ(test.actions<Leave>().front().end, RunEnd::FailFast);
}

TEST(HeadTest, LostNodeSendsItsTrialToAnotherNodeWithoutCountingAFailure) {
    HeadCase test(spec(), 1, {.expected_nodes = 2});
    test.begin_with({make_node("n0", 1), make_node("n1", 1)});
    ASSERT_EQ(test.node_of(0), kNode0);
    const AttemptId first = test.key(0).attempt;

    test.handle(NodeLost{kNode0, "its connection was reset"});

    EXPECT_EQ(test.state(0), TrialState::Running);
    EXPECT_EQ(test.node_of(0), kNode1);
    EXPECT_NE(test.key(0).attempt, first);
    EXPECT_EQ(test.head.summary().failures, 0U);
    EXPECT_TRUE(test.actions<Tell>().empty());
}

TEST(HeadTest, TrialThatLosesEveryKeeperFailsInTheEnd) {
    HeadCase test(ExperimentSpec{}, 1);
    test.begin_with({make_node("a", 1)});
    const Outcome lost{EndCause::Lost, 0, "its keeper was killed"};

    for (int attempt = 0; attempt < 3; ++attempt) {
        test.trial_ends(0, lost);
        EXPECT_EQ(test.state(0), TrialState::Running);
    }
    test.trial_ends(0, lost);

    EXPECT_EQ(test.state(0), TrialState::Failed);
    EXPECT_TRUE(test.kept<AttemptEnded>().back().is_failure);
    EXPECT_EQ(test.kept<TrialEnded>().front().reason, "lost: its keeper was killed");
}

TEST(HeadTest, MessagesOfAnAttemptThatIsOverChangeNothing) {
    HeadCase test(spec(), 1, {.expected_nodes = 2});
    test.begin_with({make_node("n0", 1), make_node("n1", 1)});
    const MemberKey old = test.key(0);
    test.handle(NodeLost{kNode0, "its connection was reset"});
    const std::size_t facts = test.facts.size();

    test.handle(AgentSaid{kNode0, Reported{old, {1, {{"accuracy", 0.5}}}, 0}});
    test.handle(AgentSaid{kNode0, Ended{old, {}, {}}});

    EXPECT_EQ(test.state(0), TrialState::Running);
    EXPECT_EQ(test.facts.size(), facts);
}

TEST(HeadTest, NodeThatComesBackRunsTrialsAgain) {
    HeadCase test(spec(), 1, {.wait_for_nodes = seconds{60}});
    test.begin_with({make_node("n0", 1)});

    test.handle(NodeLost{kNode0, "its connection was reset"});
    EXPECT_EQ(test.state(0), TrialState::Pending);
    test.node_reports(kNode0, make_node("n0", 1), 2);

    EXPECT_EQ(test.state(0), TrialState::Running);
}

TEST(HeadTest, RequestThatLostNodesMadeImpossibleEndsTheRunAsInterrupted) {
    HeadCase test(spec(), 1, {.wait_for_nodes = seconds{60}});
    test.begin_with({make_node("n0", 1)});
    test.handle(NodeLost{kNode0, "its connection was reset"});
    EXPECT_TRUE(test.actions<Leave>().empty());

    test.advance(seconds{60});

    EXPECT_EQ(test.actions<Leave>().front().end, RunEnd::Interrupted);
    EXPECT_EQ(test.state(0), TrialState::Pending);
}

TEST(HeadTest, InfeasibleRequestEndsTheRunBeforeAnythingStarts) {
    ExperimentSpec big = spec();
    big.resources.front().group.bundles = {{.cpu = Amount::whole(100)}};
    HeadCase test(big, 1);

    test.begin_with({make_node("n0", 4)});

    EXPECT_EQ(test.actions<Leave>().front().end, RunEnd::Infeasible);
    EXPECT_THAT(test.actions<Leave>().front().reason, HasSubstr("100"));
    EXPECT_TRUE(test.sent<Start>().empty());
}

TEST(HeadTest, NodesThatDoNotComeAreNotWaitedForForEver) {
    HeadCase test(spec(), 1, {.expected_nodes = 2, .start_timeout = seconds{60}});
    test.begin_with({make_node("n0", 1)});
    EXPECT_EQ(test.running(), 0U);

    test.advance(seconds{60});

    EXPECT_EQ(test.running(), 1U);
    EXPECT_THAT(test.actions<Note>().front().text, HasSubstr("1 of 2 nodes"));
}

TEST(HeadTest, ReachedGoalCompletesTheTrialAndLaterReportsAreOverrun) {
    ExperimentSpec goal = spec();
    goal.stop = {{"accuracy", Comparison::AtLeast, 0.9}};
    HeadCase test(goal, 1);
    test.begin_with({make_node("n0", 1)});

    test.trial_reports(0, 1, {{"accuracy", 0.5}});
    EXPECT_EQ(test.state(0), TrialState::Running);
    test.trial_reports(0, 2, {{"accuracy", 0.95}});
    EXPECT_EQ(test.state(0), TrialState::Stopping);
    test.trial_reports(0, 3, {{"accuracy", 0.99}});
    test.trial_ends(0, {EndCause::Stopped, 15, ""});

    EXPECT_EQ(
        test.sent<Stop>(), (std::vector<Stop>{{{TrialId{0}, {1, 0}, {}}, StopKind::GoalReached}})
    );
    EXPECT_EQ(test.state(0), TrialState::Completed);
    EXPECT_EQ(test.kept<TrialEnded>().front().best->metric("accuracy"), 0.95);
    EXPECT_TRUE(test.kept<ResultReported>().back().overrun);
}

TEST(HeadTest, GoalOfStepsAndOfTimeAreReached) {
    ExperimentSpec goal = spec();
    goal.stop = {{"step", Comparison::AtLeast, 3}, {"time_total", Comparison::AtLeast, 5}};
    HeadCase test(goal, 2);
    test.begin_with({make_node("n0", 2)});

    test.trial_reports(0, 3, {{"accuracy", 0.5}});
    EXPECT_EQ(test.state(0), TrialState::Stopping);
    EXPECT_EQ(test.state(1), TrialState::Running);
    test.advance(seconds{5});

    EXPECT_EQ(test.state(1), TrialState::Stopping);
}

TEST(HeadTest, NanIsNeverBestAndMeetsNoRule) {
    ExperimentSpec goal = spec();
    goal.stop = {{"accuracy", Comparison::AtMost, 0.0}};
    HeadCase test(goal, 2);
    test.begin_with({make_node("n0", 2)});

    test.trial_reports(0, 1, {{"accuracy", std::numeric_limits<double>::quiet_NaN()}});
    test.trial_reports(0, 2, {{"accuracy", std::numeric_limits<double>::infinity()}});
    EXPECT_EQ(test.head.summary().best, std::nullopt);
    test.trial_reports(1, 1, {{"accuracy", 0.1}});

    EXPECT_EQ(test.head.summary().best, TrialId{1});
    EXPECT_EQ(test.state(0), TrialState::Running);
}

TEST(HeadTest, TimeLimitStopsTheTrialAndIsNoFailure) {
    HeadCase test(spec(), 1);
    test.begin_with({make_node("n0", 1)});

    test.trial_ends(0, {EndCause::TimeLimit, 9, "30m"});

    EXPECT_EQ(test.state(0), TrialState::Stopped);
    EXPECT_EQ(test.head.summary().failures, 0U);
}

TEST(HeadTest, CancelStopsWhatRunsAndASecondOneKills) {
    HeadCase test(spec(), 2);
    test.begin_with({make_node("n0", 1)});

    test.handle(CancelRequested{RunEnd::Cancelled, false, "cancelled"});
    test.handle(CancelRequested{RunEnd::Cancelled, true, "cancelled"});
    test.trial_ends(0, {EndCause::Stopped, 9, ""});

    std::vector<StopKind> kinds;
    for (const Stop& stop : test.sent<Stop>()) {
        kinds.push_back(stop.kind);
    }
    EXPECT_EQ(kinds, (std::vector<StopKind>{StopKind::Graceful, StopKind::Kill}));
    EXPECT_EQ(test.state(0), TrialState::Cancelled);
    EXPECT_EQ(test.actions<Leave>().front().end, RunEnd::Cancelled);
}

TEST(HeadTest, InterruptedRunPutsItsTrialsBackWithoutCountingAFailure) {
    HeadCase test(spec(), 1);
    test.begin_with({make_node("n0", 1)});

    test.handle(CancelRequested{RunEnd::Interrupted, false, "SIGTERM"});
    test.trial_ends(0, {EndCause::Stopped, 15, ""});

    EXPECT_EQ(test.state(0), TrialState::Pending);
    EXPECT_TRUE(test.kept<TrialEnded>().empty());
    EXPECT_FALSE(test.kept<AttemptEnded>().front().is_failure);
    EXPECT_EQ(test.actions<Leave>().front().end, RunEnd::Interrupted);
}

TEST(HeadTest, TimeBudgetStopsWhatRuns) {
    ExperimentSpec budget = spec();
    budget.time_budget = seconds{60};
    HeadCase test(budget, 2);
    test.begin_with({make_node("n0", 1)});

    test.advance(seconds{59});
    EXPECT_EQ(test.state(0), TrialState::Running);
    test.advance(seconds{1});
    test.trial_ends(0, {EndCause::Stopped, 15, ""});

    EXPECT_EQ(test.state(0), TrialState::Stopped);
    EXPECT_EQ(test.actions<Leave>().front().end, RunEnd::TimeBudget);
}

TEST(HeadTest, MaxConcurrentTrialsIsKept) {
    ExperimentSpec limited = spec();
    limited.max_concurrent_trials = 2;
    HeadCase test(limited, 5);

    test.begin_with({make_node("n0", 8)});

    EXPECT_EQ(test.running(), 2U);
}

TEST(HeadTest, ConfigChoosesItsResourcesAndOneWithoutAnyFails) {
    ExperimentSpec choosy = spec();
    choosy.resources = {
        {{{"index", {0}}}, {{{.gpu = Amount::whole(1)}}}},
        {{{"index", {1}}}, {{{.cpu = Amount::whole(2)}}}}};
    HeadCase test(choosy, 3);

    test.begin_with({make_node("n0", 2, 1)});

    const std::vector<Start> starts = test.sent<Start>();
    ASSERT_THAT(starts, SizeIs(2));
    EXPECT_EQ(starts[0].devices, (std::vector<std::uint32_t>{0}));
    EXPECT_EQ(starts[1].cpu, Amount::whole(2));
    EXPECT_EQ(test.state(2), TrialState::Failed);
}

TEST(HeadTest, EndedTrialsAreToldToTheSearcherAndAnnounced) {
    HeadCase test(spec(), 1);
    test.begin_with({make_node("n0", 1)});
    test.trial_reports(0, 4, {{"accuracy", 0.7}});

    test.trial_ends(0);

    const TrialResult best{4, {{"accuracy", 0.7}}};
    EXPECT_EQ(test.actions<Tell>(), (std::vector<Tell>{{TrialId{0}, TrialState::Completed, best}}));
    EXPECT_EQ(test.actions<Announce>(), (std::vector<Announce>{{TrialId{0}}}));
}

TEST(HeadTest, TrialsAreMadeLazily) {
    HeadCase test(spec(), 10'000);

    test.begin_with({make_node("n0", 4)});

    EXPECT_LE(test.head.trial_count(), 24U);
}

TEST(HeadTest, EveryTrialCanSayWhyItIsWhereItIs) {
    HeadCase test(spec(), 3);
    test.begin_with({make_node("n0", 1)});
    test.trial_ends(0, {EndCause::Exited, 1, "boom"});

    EXPECT_THAT(test.head.explain(TrialId{0}, test.now), HasSubstr("Failed: exit code 1: boom"));
    EXPECT_THAT(test.head.explain(TrialId{1}, test.now), HasSubstr("Running"));
    EXPECT_THAT(test.head.explain(TrialId{1}, test.now), HasSubstr("on n0"));
    EXPECT_THAT(test.head.explain(TrialId{2}, test.now), HasSubstr("Pending"));
    EXPECT_THAT(test.head.explain(TrialId{9}, test.now), HasSubstr("does not exist"));
}

}  // namespace
}  // namespace muster
