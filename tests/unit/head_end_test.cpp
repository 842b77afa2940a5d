// SPDX-License-Identifier: Apache-2.0
//
// What the head does when the time of its run ends.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "head/head.hpp"
#include "head/trial.hpp"
#include "support/head_case.hpp"

namespace muster {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using testing::HeadCase;
using ::testing::IsEmpty;
using testing::make_node;

const Outcome kStopped{EndCause::Stopped, 15, ""};

/// Trials have a grace of 10 s and get their warning 2 min before the end, as by default.
ExperimentSpec spec(std::optional<Duration> time_limit = std::nullopt) {
    ExperimentSpec spec;
    spec.trial.time_limit = time_limit;
    return spec;
}

EndKnown ends_at(Duration at, Duration whole = 0s) {
    return {TimePoint{at}, whole, "--until 17:00"};
}

void restore(Head& head, const std::vector<Fact>& facts) {
    for (const Fact& fact : facts) {
        ASSERT_TRUE(head.restore(fact, {}).ok());
    }
}

TEST(HeadEndTest, RunningTrialsAreWarnedAndThenStoppedInTime) {
    HeadCase run(spec(), 1);
    run.begin_with({make_node("n0", 1)});
    run.handle(ends_at(1h));

    run.advance(58min - 1s);
    EXPECT_THAT(run.sent<Warn>(), IsEmpty());
    run.advance(1s);
    EXPECT_EQ(run.sent<Warn>(), (std::vector<Warn>{{run.key(0), 105s}}));
    EXPECT_THAT(run.sent<Stop>(), IsEmpty());
    run.advance(105s);

    EXPECT_EQ(run.sent<Stop>(), (std::vector<Stop>{{run.key(0), StopKind::Graceful}}));
    EXPECT_EQ(run.sent<Warn>().size(), 1U);
}

TEST(HeadEndTest, ASavedTrialIsPausedAnotherIsPendingAndTheRunCanBeContinued) {
    HeadCase run(spec(), 3);
    run.begin_with({make_node("n0", 2)});
    run.trial_saves(0, 1, 5);
    run.handle(ends_at(20min));
    run.advance(20min - 15s);

    run.trial_ends(0, kStopped);
    run.trial_ends(1, kStopped);

    EXPECT_EQ(run.state(0), TrialState::Paused);
    EXPECT_EQ(run.state(1), TrialState::Pending);
    EXPECT_EQ(run.kept<TrialPaused>().size(), 1U);
    ASSERT_EQ(run.actions<Leave>().size(), 1U);
    EXPECT_EQ(run.actions<Leave>()[0].end, RunEnd::Interrupted);
    EXPECT_EQ(
        run.actions<Leave>()[0].reason,
        "the time ends in 15.0s (--until 17:00); trials: 1 is saved and paused, 2 wait for the "
        "next allocation"
    );
    EXPECT_EQ(run.head.summary().failures, 0U);
    EXPECT_EQ(run.head.summary().paused, 1U);
}

TEST(HeadEndTest, PausedTrialsGoFirstInTheNextRunThenInterruptedOnes) {
    HeadCase before(spec(), 4);
    before.begin_with({make_node("n0", 3)});
    before.trial_saves(2, 1, 5);
    before.handle(ends_at(20min));
    before.trial_ends(0);
    before.advance(20min - 15s);
    for (const std::uint32_t trial : {1U, 2U, 3U}) {
        before.trial_ends(trial, kStopped);
    }
    HeadCase after(spec(), 0);
    restore(after.head, before.facts);
    EXPECT_EQ(after.state(2), TrialState::Paused);
    EXPECT_THAT(
        after.head.explain(TrialId{2}, after.now),
        HasSubstr("it goes on in the next run, from checkpoint 1 (step 5)")
    );

    after.begin_with({make_node("n0", 1)});

    EXPECT_EQ(after.state(2), TrialState::Running);
    EXPECT_EQ(after.last_start(2).resume_from, 1U);
    after.trial_ends(2);
    EXPECT_EQ(after.state(1), TrialState::Running);
}

TEST(HeadEndTest, NothingStartsThatIsNotExpectedToEndInTime) {
    HeadCase run(spec(), 12);
    run.begin_with({make_node("n0", 1)});
    run.handle(ends_at(1h));
    // 9 of 10 take up to 20 minutes.
    run.advance(20min);
    run.trial_ends_after(0, 20min);
    ASSERT_EQ(run.state(1), TrialState::Running);

    run.advance(20min);
    run.trial_ends_after(1, 20min);

    EXPECT_EQ(run.state(2), TrialState::Pending);
    ASSERT_EQ(run.actions<Leave>().size(), 1U);
    EXPECT_EQ(run.actions<Leave>()[0].end, RunEnd::Interrupted);
    EXPECT_EQ(
        run.actions<Leave>()[0].reason,
        "no more trials that need {cpu: 1} start, since the time ends in 20m00s (--until 17:00), "
        "of which trials have 19m45s, and they take 20m00s (9 of 10 of 2 that ended); trials: 10 "
        "wait for the next allocation"
    );
}

TEST(HeadEndTest, TheTimeLimitStandsForWhatIsNotKnownYet) {
    HeadCase run(spec(30min), 2);
    run.begin_with({make_node("n0", 1)});
    run.handle(ends_at(40min));
    run.advance(20min);

    run.trial_ends(0, {EndCause::Lost, 0, ""});

    EXPECT_EQ(run.running(), 0U);
    ASSERT_EQ(run.actions<Leave>().size(), 1U);
    EXPECT_THAT(run.actions<Leave>()[0].reason, HasSubstr("they take 30m00s (their time_limit)"));
}

TEST(HeadEndTest, ATimeLimitThatNoAllocationFitsKeepsNoTrialFromStarting) {
    HeadCase run(spec(30min), 2);
    run.begin();
    run.handle(ends_at(20min));

    run.node_reports(NodeId{0}, make_node("n0", 1));

    EXPECT_EQ(run.running(), 1U);
}

TEST(HeadEndTest, ATrialOfUnknownLengthStarts) {
    HeadCase run(spec(), 1);
    run.begin();
    run.handle(ends_at(20min));

    run.node_reports(NodeId{0}, make_node("n0", 1));

    EXPECT_EQ(run.running(), 1U);
}

TEST(HeadEndTest, TrialsThatSaveStartWhileASliceIsLeft) {
    HeadCase run(spec(2h), 4);
    run.begin_with({make_node("n0", 1)});
    run.trial_saves(0, 1, 1);
    run.handle(ends_at(1h));
    run.advance(45min);
    run.trial_ends_after(0, 45min);
    EXPECT_EQ(run.state(1), TrialState::Running);
    run.advance(6min);
    EXPECT_EQ(run.state(2), TrialState::Pending);

    run.trial_ends_after(1, 6min);

    // Half of what ended took longer than what is left, and that is less than end.min_slice.
    EXPECT_EQ(run.state(2), TrialState::Pending);
    ASSERT_EQ(run.actions<Leave>().size(), 1U);
    EXPECT_THAT(
        run.actions<Leave>()[0].reason, HasSubstr("9m00s (--until 17:00), less than end.min_slice")
    );
}

TEST(HeadEndTest, AnAttemptThatTookAWholeAllocationAndSavedNothingHasFailed) {
    HeadCase run(spec(), 2);
    run.begin_with({make_node("n0", 2)});
    run.handle(ends_at(1h, 1h));
    run.trial_saves(0, 1, 1);
    run.advance(1h - 15s);

    run.trial_ends(0, kStopped);
    run.trial_ends(1, kStopped);

    EXPECT_EQ(run.state(0), TrialState::Paused);
    EXPECT_EQ(run.state(1), TrialState::Failed);
    EXPECT_THAT(
        run.head.trial(TrialId{1})->progress->reason,
        HasSubstr("it ran for 59m45s of the 1h00m that an allocation lasts and saved no checkpoint")
    );
    EXPECT_EQ(run.head.summary().failures, 0U);
}

TEST(HeadEndTest, OneThatBeganLateIsOnlyInterrupted) {
    HeadCase run(spec(), 1);
    run.advance(30min);
    run.begin_with({make_node("n0", 1)});
    run.handle(ends_at(1h, 1h));
    run.advance(30min - 15s);

    run.trial_ends(0, kStopped);

    EXPECT_EQ(run.state(0), TrialState::Pending);
}

TEST(HeadEndTest, WhatNoAllocationFitsStartsOnlyWhereThereIsTheMostTime) {
    HeadCase before(spec(), 4);
    before.begin_with({make_node("n0", 1)});
    before.trial_ends_after(0, 3h);
    HeadCase after(spec(), 0);
    restore(after.head, before.facts);
    after.begin();
    after.handle(ends_at(1h, 1h));

    after.node_reports(NodeId{0}, make_node("n0", 1));
    EXPECT_EQ(after.running(), 1U);
    after.advance(30min);
    after.trial_ends(1, {EndCause::Exited, 1, ""});

    EXPECT_EQ(after.running(), 0U);
    EXPECT_EQ(after.actions<Leave>().size(), 1U);
}

TEST(HeadEndTest, ATrialThatLeavesAfterItsWarningGoesOnInTheNextRun) {
    ExperimentSpec with_signal = spec();
    with_signal.end.signal = 10;
    HeadCase run(std::move(with_signal), 3);
    run.begin_with({make_node("n0", 3)});
    run.trial_saves(0, 1, 1);
    run.handle(ends_at(1h));
    run.advance(58min);

    run.trial_ends(0, {EndCause::Exited, 75, ""});
    run.trial_ends(1, {EndCause::Signalled, 10, ""});
    EXPECT_EQ(run.state(0), TrialState::Paused);
    EXPECT_EQ(run.state(1), TrialState::Pending);
    EXPECT_EQ(run.running(), 1U);
    run.trial_ends(2);

    EXPECT_EQ(run.state(2), TrialState::Completed);
    ASSERT_EQ(run.actions<Leave>().size(), 1U);
    EXPECT_EQ(run.actions<Leave>()[0].end, RunEnd::Interrupted);
    EXPECT_EQ(run.head.summary().failures, 0U);
}

TEST(HeadEndTest, WithoutAWarningTheSameEndsAreFailures) {
    HeadCase run(spec(), 1);
    run.begin_with({make_node("n0", 1)});

    run.trial_ends(0, {EndCause::Exited, 75, ""});

    EXPECT_EQ(run.state(0), TrialState::Failed);
}

TEST(HeadEndTest, AnEndThatIsTakenBackStopsNobody) {
    HeadCase run(spec(), 2);
    run.begin_with({make_node("n0", 2)});
    run.handle(ends_at(1h));
    run.advance(58min);
    run.trial_ends(0, {EndCause::Exited, 75, ""});
    EXPECT_EQ(run.running(), 1U);

    run.handle(EndKnown{});
    EXPECT_EQ(run.running(), 2U);
    run.advance(1h);

    EXPECT_THAT(run.sent<Stop>(), IsEmpty());
    EXPECT_EQ(run.head.summary().time_ends, kNever);
}

TEST(HeadEndTest, AnEndThatIsKnownBetterWarnsNobodyTwice) {
    HeadCase run(spec(), 1);
    run.begin_with({make_node("n0", 1)});
    run.handle(ends_at(1h));
    run.handle(ends_at(1h + 2s));
    run.advance(58min + 2s);

    run.handle(ends_at(1h + 1s));

    EXPECT_EQ(run.sent<Warn>().size(), 1U);
    EXPECT_EQ(run.actions<Note>().size(), 2U);
}

TEST(HeadEndTest, ATrialThatStartsAfterTheWarningIsWarnedAtOnce) {
    HeadCase run(spec(), 2);
    run.begin_with({make_node("n0", 1)});
    run.handle(ends_at(1h));
    run.advance(58min);
    run.advance(30s);
    const MemberKey first = run.key(0);
    run.trial_ends_after(0, 30s);

    ASSERT_EQ(run.state(1), TrialState::Running);
    EXPECT_EQ(run.sent<Warn>(), (std::vector<Warn>{{first, 105s}, {run.key(1), 75s}}));
}

TEST(HeadEndTest, AnEndInAMomentWarnsAndStopsAtOnce) {
    HeadCase run(spec(), 1);
    run.begin_with({make_node("n0", 1)});

    run.handle(ends_at(10s));

    EXPECT_EQ(run.sent<Warn>(), (std::vector<Warn>{{run.key(0), 0s}}));
    EXPECT_EQ(run.sent<Stop>().size(), 1U);
}

TEST(HeadEndTest, ExplainSaysThatATrialWaitsForTheNextRun) {
    HeadCase run(spec(30min), 2);
    run.begin_with({make_node("n0", 1)});
    run.advance(15min);
    run.handle(ends_at(40min));

    EXPECT_EQ(
        run.head.explain(TrialId{1}, run.now),
        "Pending: no more trials that need {cpu: 1} start, since the time ends in 25m00s (--until "
        "17:00), of which trials have 24m45s, and they take 30m00s (their time_limit)"
    );
}

}  // namespace
}  // namespace muster
