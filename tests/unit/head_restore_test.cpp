// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "head/head.hpp"
#include "support/head_case.hpp"

namespace muster {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using testing::HeadCase;
using testing::make_node;
using ::testing::SizeIs;

ExperimentSpec spec() {
    ExperimentSpec spec;
    spec.name = "test";
    spec.objective = ObjectiveSpec{"accuracy", Mode::Max};
    return spec;
}

/// A run of four trials on one slot: 0 completed after two reports, 1 failed after one, 2 was
/// running with one report, 3 waited.
std::vector<Fact> facts_of_a_run_that_was_killed() {
    HeadCase before(spec(), 4);
    before.begin_with({make_node("n0", 1)});
    before.trial_reports(0, 1, {{"accuracy", 0.5}});
    before.trial_reports(0, 2, {{"accuracy", 0.9}});
    before.trial_ends(0);
    before.trial_reports(1, 1, {{"accuracy", 0.6}});
    before.trial_ends(1, {EndCause::Exited, 1, ""});
    before.trial_reports(2, 1, {{"accuracy", 0.7}});
    return before.facts;
}

void restore(Head& head, const std::vector<Fact>& facts) {
    for (const Fact& fact : facts) {
        const Status restored = head.restore(fact, TimePoint{seconds{10}});
        ASSERT_TRUE(restored.ok()) << restored.error().message;
    }
}

TEST(HeadRestoreTest, RunGoesOnWithWhatHasNotEnded) {
    HeadCase after(spec(), 0);
    restore(after.head, facts_of_a_run_that_was_killed());

    after.begin_with({make_node("n0", 1)});

    EXPECT_EQ(after.state(0), TrialState::Completed);
    EXPECT_EQ(after.state(1), TrialState::Failed);
    EXPECT_EQ(after.state(2), TrialState::Running);
    EXPECT_EQ(after.state(3), TrialState::Pending);
    EXPECT_EQ(after.head.epoch(), 2U);
    EXPECT_EQ(after.key(2).attempt, (AttemptId{2, 0}));
}

TEST(HeadRestoreTest, ResultsAndBestAreThereAgain) {
    HeadCase after(spec(), 0);

    restore(after.head, facts_of_a_run_that_was_killed());

    EXPECT_EQ(after.head.summary().best, TrialId{0});
    EXPECT_EQ(after.head.trial(TrialId{0})->progress->results, 2U);
    EXPECT_EQ(after.head.trial(TrialId{2})->progress->last->metric("accuracy"), 0.7);
    EXPECT_EQ(after.head.summary().failures, 1U);
}

TEST(HeadRestoreTest, StepsGoOnWhereTheyWere) {
    HeadCase after(spec(), 0);
    restore(after.head, facts_of_a_run_that_was_killed());

    after.begin_with({make_node("n0", 1)});

    EXPECT_EQ(after.sent<Start>().front().last_step, 1);
}

TEST(HeadRestoreTest, TrialsThatEndedNeedNoResultsReadBack) {
    HeadCase after(spec(), 0);

    for (const Fact& fact : facts_of_a_run_that_was_killed()) {
        if (!std::holds_alternative<ResultReported>(fact)) {
            ASSERT_TRUE(after.head.restore(fact, {}).ok());
        }
    }

    EXPECT_EQ(after.head.summary().best, TrialId{0});
    EXPECT_EQ(after.head.trial(TrialId{0})->progress->results, 2U);
    EXPECT_EQ(after.head.trial(TrialId{0})->progress->best->metric("accuracy"), 0.9);
}

TEST(HeadRestoreTest, FailedTrialsRunAgainOnRequest) {
    HeadCase after(spec(), 0, {.retry_failed = RetryFailed::FromCheckpoint});
    restore(after.head, facts_of_a_run_that_was_killed());

    after.begin_with({make_node("n0", 4)});

    EXPECT_EQ(after.state(1), TrialState::Running);
}

TEST(HeadRestoreTest, CancelledTrialsRunAgain) {
    HeadCase before(spec(), 2);
    before.begin_with({make_node("n0", 1)});
    before.handle(CancelRequested{RunEnd::Cancelled, false, "cancelled"});
    before.trial_ends(0, {EndCause::Stopped, 15, ""});
    HeadCase after(spec(), 0);
    restore(after.head, before.facts);
    EXPECT_EQ(after.state(0), TrialState::Cancelled);
    EXPECT_EQ(after.state(1), TrialState::Cancelled);

    after.begin_with({make_node("n0", 1)});

    EXPECT_EQ(after.state(0), TrialState::Running);
    EXPECT_EQ(after.state(1), TrialState::Pending);
}

TEST(HeadRestoreTest, RestoringEmitsNothingAndReconcileStartsARun) {
    HeadCase after(spec(), 0);
    restore(after.head, facts_of_a_run_that_was_killed());

    after.begin();

    EXPECT_EQ(after.facts, (std::vector<Fact>{RunStarted{2}}));
}

TEST(HeadRestoreTest, FactsThatContradictEachOtherAreRefused) {
    HeadCase after(spec(), 0);

    const Status gap = after.head.restore(TrialCreated{TrialId{3}, {}}, {});
    const Status unknown = after.head.restore(AttemptStarted{TrialId{7}, {1, 0}, {}}, {});

    ASSERT_FALSE(gap.ok());
    EXPECT_EQ(gap.error().code, ErrorCode::Corrupt);
    EXPECT_THAT(gap.error().message, HasSubstr("00003"));
    ASSERT_FALSE(unknown.ok());
    EXPECT_THAT(unknown.error().message, HasSubstr("00007"));
    EXPECT_EQ(after.head.trial_count(), 0U);
}

}  // namespace
}  // namespace muster
