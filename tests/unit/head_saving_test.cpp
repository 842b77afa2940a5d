// SPDX-License-Identifier: Apache-2.0
//
// What the head does about checkpoints: which are kept, when their files go, what attempts go on
// from, and what is retried.

#include <chrono>
#include <cstdint>
#include <limits>
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
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::HeadCase;
using ::testing::IsEmpty;
using testing::make_node;

const Outcome kFails{EndCause::Exited, 1, ""};

ExperimentSpec spec(CheckpointOptions checkpoints = {}) {
    ExperimentSpec spec;
    spec.objective = ObjectiveSpec{"accuracy", Mode::Max};
    spec.checkpoints = std::move(checkpoints);
    return spec;
}

std::vector<std::uint32_t> dropped_by(const HeadCase& run) {
    std::vector<std::uint32_t> numbers;
    for (const CheckpointDropped& dropped : run.kept<CheckpointDropped>()) {
        numbers.push_back(dropped.number);
    }
    return numbers;
}

/// How many facts a command of this kind waits for; the last one of its kind.
template <class Message>
std::uint64_t waits_for(const HeadCase& run) {
    std::uint64_t facts = 0;
    for (const Command& command : run.commands) {
        const auto* send = std::get_if<Send>(&command.action);
        if (send != nullptr && std::holds_alternative<Message>(send->message)) {
            facts = command.after_facts;
        }
    }
    return facts;
}

void restore(Head& head, const std::vector<Fact>& facts) {
    for (const Fact& fact : facts) {
        ASSERT_TRUE(head.restore(fact, {}).ok());
    }
}

std::uint64_t results_of(const HeadCase& run, std::uint32_t trial) {
    return run.head.trial(TrialId{trial})->progress->results;
}

TEST(HeadSavingTest, ATrialHearsOfItsCheckpointOnceTheFactIsOnDisk) {
    HeadCase run(spec(), 1);
    run.begin_with({make_node("n0", 1)});
    run.trial_reports(0, 3, {{"accuracy", 0.5}});

    run.trial_saves(0, 1, 3, 4096);

    const CheckpointKept fact{TrialId{0}, {1, 0}, 1, 3, 4096, std::nullopt, ""};
    EXPECT_EQ(run.facts.back(), Fact{fact});
    EXPECT_EQ(run.sent<CheckpointDurable>(), (std::vector<CheckpointDurable>{{run.key(0), 1}}));
    EXPECT_EQ(waits_for<CheckpointDurable>(run), run.facts.size());
}

TEST(HeadSavingTest, OfTenTheLastTwoAreKept) {
    HeadCase run(spec({.keep = 2}), 1);
    run.begin_with({make_node("n0", 1)});

    for (std::uint32_t number = 1; number <= 10; ++number) {
        run.trial_saves(0, number, number);
    }

    EXPECT_THAT(dropped_by(run), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
    EXPECT_EQ(run.sent<DeleteCheckpoint>().size(), 8U);
    EXPECT_EQ(waits_for<DeleteCheckpoint>(run), run.facts.size());
}

TEST(HeadSavingTest, WithAScoreTheBestTwoAreKeptAndAlwaysTheLatest) {
    HeadCase run(spec({.keep = 2, .score = "accuracy"}), 1);
    run.begin_with({make_node("n0", 1)});
    std::uint32_t number = 0;

    for (const double accuracy : {0.1, 0.9, 0.2, 0.8, 0.3, 0.4}) {
        run.trial_reports(0, ++number, {{"accuracy", accuracy}});
        run.trial_saves(0, number, number);
    }

    EXPECT_THAT(dropped_by(run), ElementsAre(1, 3, 5));
}

TEST(HeadSavingTest, WithAScoreToBeMinimisedOneWithoutItGoesFirst) {
    HeadCase run(spec({.keep = 1, .score = "loss", .mode = Mode::Min}), 1);
    run.begin_with({make_node("n0", 1)});

    run.trial_saves(0, 1, 1);
    run.trial_reports(0, 2, {{"loss", 0.1}});
    run.trial_saves(0, 2, 2);
    run.trial_reports(0, 3, {{"loss", std::numeric_limits<double>::quiet_NaN()}});
    run.trial_saves(0, 3, 3);
    run.trial_saves(0, 4, 4);

    EXPECT_THAT(dropped_by(run), ElementsAre(1, 3));
}

TEST(HeadSavingTest, KeepingAllDropsNone) {
    HeadCase run(spec({.keep = 0}), 1);
    run.begin_with({make_node("n0", 1)});

    for (std::uint32_t number = 1; number <= 20; ++number) {
        run.trial_saves(0, number, number);
    }

    EXPECT_THAT(dropped_by(run), IsEmpty());
}

TEST(HeadSavingTest, TheBudgetTakesFromTheWorstOfTheEndedTrialsFirst) {
    HeadCase run(spec({.keep = 1, .budget_bytes = 250}), 3);
    run.begin_with({make_node("n0", 3)});
    run.trial_reports(0, 1, {{"accuracy", 0.9}});
    run.trial_saves(0, 1, 1);
    run.trial_reports(1, 1, {{"accuracy", 0.1}});
    run.trial_saves(1, 1, 1);
    run.trial_ends(0);
    run.trial_ends(1);

    run.trial_saves(2, 1, 1);

    EXPECT_EQ(run.kept<CheckpointDropped>(), (std::vector<CheckpointDropped>{{TrialId{1}, 1}}));
}

TEST(HeadSavingTest, TheBudgetNeverTakesTheLatestOfATrialThatGoesOnAndSaysSo) {
    HeadCase run(spec({.keep = 2, .budget_bytes = 150}), 2);
    run.begin_with({make_node("n0", 2)});
    run.trial_saves(0, 1, 1);

    run.trial_saves(1, 1, 1);
    EXPECT_THAT(dropped_by(run), IsEmpty());
    run.trial_saves(0, 2, 2);

    EXPECT_EQ(run.kept<CheckpointDropped>(), (std::vector<CheckpointDropped>{{TrialId{0}, 1}}));
    const std::vector<Note> notes = run.actions<Note>();
    ASSERT_EQ(notes.size(), 1U);
    EXPECT_THAT(notes[0].text, HasSubstr("more than checkpoints.budget of 150"));
}

TEST(HeadSavingTest, AFailedAttemptGoesOnFromTheLatestCheckpoint) {
    ExperimentSpec with_retries = spec();
    with_retries.failures.max_failures = 1;
    HeadCase run(std::move(with_retries), 1);
    run.begin_with({make_node("n0", 1)});
    for (const double step : {1.0, 2.0, 3.0}) {
        run.trial_reports(0, step, {{"accuracy", step / 10}});
    }
    run.trial_saves(0, 1, 2);

    run.trial_ends(0, kFails);

    const Start start = run.last_start(0);
    EXPECT_EQ(start.resume_from, 1U);
    EXPECT_EQ(start.next_checkpoint, 2U);
    EXPECT_EQ(start.last_step, 2);
    EXPECT_THAT(start.kept_checkpoints, ElementsAre(1));
    EXPECT_THAT(
        run.actions<Note>().back().text, HasSubstr("runs again from checkpoint 1 (step 2)")
    );
}

TEST(HeadSavingTest, StepsReportedAgainReplaceWhatWasThere) {
    ExperimentSpec with_retries = spec();
    with_retries.failures.max_failures = 1;
    HeadCase run(std::move(with_retries), 1);
    run.begin_with({make_node("n0", 1)});
    for (const double step : {1.0, 2.0, 3.0, 4.0}) {
        run.trial_reports(0, step, {{"accuracy", step / 10}});
    }
    run.trial_saves(0, 1, 2);
    run.trial_ends(0, kFails);
    EXPECT_EQ(results_of(run, 0), 4U);

    run.trial_reports(0, 3, {{"accuracy", 0.3}});

    EXPECT_EQ(results_of(run, 0), 3U);
    EXPECT_EQ(run.head.trial(TrialId{0})->progress->last_step, 3);
}

TEST(HeadSavingTest, ATrialOfALostNodeGoesOnElsewhere) {
    HeadCase run(spec(), 1);
    run.begin_with({make_node("n0", 1), make_node("n1", 1)});
    run.trial_saves(0, 1, 5);

    run.handle(NodeLost{run.node_of(0), "its connection was reset"});

    EXPECT_EQ(run.last_start(0).resume_from, 1U);
    EXPECT_EQ(run.last_start(0).fetch_from, std::nullopt);
    EXPECT_EQ(run.head.summary().failures, 0U);
}

TEST(HeadSavingTest, ACheckpointThatIsGoneIsDroppedAndTheOneBeforeIsTaken) {
    HeadCase run(spec(), 1);
    run.begin_with({make_node("n0", 1)});
    run.trial_saves(0, 1, 1);
    run.trial_saves(0, 2, 2);
    run.trial_ends(0, {EndCause::Lost, 0, "its keeper was lost"});
    ASSERT_EQ(run.last_start(0).resume_from, 2U);

    run.handle(AgentSaid{NodeId{0}, CheckpointGone{run.key(0), 2, "its directory is not there"}});
    run.trial_ends(0, {EndCause::Lost, 0, ""});

    EXPECT_THAT(dropped_by(run), ElementsAre(2));
    EXPECT_EQ(run.last_start(0).resume_from, 1U);
    EXPECT_EQ(run.last_start(0).next_checkpoint, 3U);
    EXPECT_EQ(run.state(0), TrialState::Running);
}

/// A trial on n0 with checkpoints on that node, which then fails; n0 is taken by another trial.
class NodeStorageTest : public ::testing::Test {
  protected:
    static ExperimentSpec node_spec() {
        ExperimentSpec with = spec({.storage = CheckpointStorage::Node});
        with.failures.max_failures = 3;
        return with;
    }
};

TEST_F(NodeStorageTest, AnAttemptOnAnotherNodeFetchesItsCheckpoint) {
    HeadCase run(node_spec(), 3);
    run.begin_with({make_node("n0", 1), make_node("n1", 1)});
    const NodeId home = run.node_of(0);
    run.trial_saves(0, 1, 1);
    run.trial_ends(0, kFails);
    // Trial 2 took its place.
    run.trial_ends(1);

    const Start start = run.last_start(0);
    EXPECT_NE(run.node_of(0), home);
    EXPECT_EQ(start.resume_from, 1U);
    EXPECT_EQ(start.fetch_from, home);

    run.trial_saves(0, 1, 1);

    EXPECT_EQ(run.kept<CheckpointKept>().back().node, "n1");
    EXPECT_EQ(run.sent<DeleteCheckpoint>(), (std::vector<DeleteCheckpoint>{{TrialId{0}, 1}}));
    EXPECT_THAT(run.sent<CheckpointDurable>(), ::testing::SizeIs(1));
}

TEST_F(NodeStorageTest, WithTheNodeOfAllCheckpointsGoneItBeginsAnewAndSaysSo) {
    HeadCase run(node_spec(), 1);
    run.begin_with({make_node("n0", 1), make_node("n1", 1)});
    run.trial_reports(0, 1, {{"accuracy", 0.5}});
    run.trial_saves(0, 1, 1);

    run.handle(NodeLost{run.node_of(0), "its connection was reset"});

    EXPECT_EQ(run.last_start(0).resume_from, std::nullopt);
    EXPECT_EQ(run.last_start(0).last_step, 0);
    bool said = false;
    for (const Note& note : run.actions<Note>()) {
        said = said || note.text ==
                           "trial 00000 goes on from the beginning, since node n0, which "
                           "has checkpoint 1 (step 1), is not there";
    }
    EXPECT_TRUE(said);
}

TEST_F(NodeStorageTest, WhoeverFetchesFromALostNodeHearsOfIt) {
    HeadCase run(node_spec(), 3);
    run.begin_with({make_node("n0", 1), make_node("n1", 1)});
    const NodeId home = run.node_of(0);
    run.trial_saves(0, 1, 1);
    run.trial_ends(0, kFails);
    run.trial_ends(1);

    run.handle(NodeLost{home, "its connection was reset"});

    EXPECT_EQ(run.sent<PeerUnreachable>(), (std::vector<PeerUnreachable>{{home}}));
}

TEST_F(NodeStorageTest, WordsBetweenAgentsArePassedOnUnread) {
    HeadCase run(node_spec(), 1);
    run.begin_with({make_node("n0", 1), make_node("n1", 1)});

    run.handle(AgentSaid{NodeId{1}, ToPeer{NodeId{0}, "a piece, please"}});
    run.handle(AgentSaid{NodeId{1}, ToPeer{NodeId{7}, "a piece, please"}});

    EXPECT_EQ(run.sent<FromPeer>(), (std::vector<FromPeer>{{NodeId{1}, "a piece, please"}}));
    EXPECT_EQ(run.sent<PeerUnreachable>(), (std::vector<PeerUnreachable>{{NodeId{7}}}));
}

TEST(HeadSavingTest, CheckpointsAreThereAgainInTheNextRun) {
    HeadCase before(spec(), 1);
    before.begin_with({make_node("n0", 1)});
    for (std::uint32_t number = 1; number <= 4; ++number) {
        before.trial_reports(0, number, {{"accuracy", 0.5}});
        before.trial_saves(0, number, number);
    }
    HeadCase after(spec(), 0);

    restore(after.head, before.facts);
    after.begin_with({make_node("other", 1)});

    EXPECT_EQ(after.last_start(0).resume_from, 4U);
    EXPECT_EQ(after.last_start(0).next_checkpoint, 5U);
    EXPECT_EQ(after.last_start(0).last_step, 4);
    // Perhaps the last run ended before their files went.
    EXPECT_EQ(
        after.sent<DeleteCheckpoint>(),
        (std::vector<DeleteCheckpoint>{{TrialId{0}, 1}, {TrialId{0}, 2}})
    );
}

/// Four trials; 1 and 3 fail after a report and a checkpoint of it.
std::vector<Fact> two_of_four_fail() {
    HeadCase before(spec(), 4);
    before.begin_with({make_node("n0", 4)});
    for (const std::uint32_t trial : {0U, 1U, 2U, 3U}) {
        before.trial_reports(trial, 1, {{"accuracy", 0.9 - 0.1 * trial}});
        before.trial_saves(trial, 1, 1);
        if (trial % 2 == 1) {
            before.trial_ends(trial, kFails);
            continue;
        }
        before.trial_reports(trial, 2, {{"accuracy", 0.3}});
        before.trial_ends(trial);
    }
    return before.facts;
}

/// Every trial that runs makes two reports on top of its checkpoint.
std::vector<std::uint64_t> results_after(HeadCase& run) {
    run.begin_with({make_node("n0", 4)});
    for (const TrialId id : run.head.active_trials()) {
        const double from = run.last_start(id.value).last_step;
        run.trial_reports(id.value, from + 1, {{"accuracy", 0.5}});
        run.trial_reports(id.value, from + 2, {{"accuracy", 0.5}});
        run.trial_ends(id.value);
    }
    std::vector<std::uint64_t> results;
    for (std::uint32_t trial = 0; trial < run.head.trial_count(); ++trial) {
        results.push_back(results_of(run, trial));
    }
    return results;
}

TEST(RetryFailedTest, FromTheCheckpointItsResultsGoOn) {
    HeadCase run(spec(), 0, {.retry_failed = RetryFailed::FromCheckpoint});
    restore(run.head, two_of_four_fail());

    EXPECT_THAT(results_after(run), ElementsAre(2, 3, 2, 3));
    EXPECT_EQ(run.last_start(1).resume_from, 1U);
    EXPECT_EQ(run.head.summary().completed, 4U);
}

TEST(RetryFailedTest, FromNothingItsResultsAreReplaced) {
    HeadCase run(spec(), 0, {.retry_failed = RetryFailed::FromNothing});
    restore(run.head, two_of_four_fail());

    EXPECT_THAT(results_after(run), ElementsAre(2, 2, 2, 2));
    EXPECT_EQ(run.last_start(1).resume_from, std::nullopt);
    EXPECT_EQ(run.last_start(1).next_checkpoint, 2U);
    EXPECT_EQ(
        run.kept<TrialRestarted>(), (std::vector<TrialRestarted>{{TrialId{1}, 2}, {TrialId{3}, 2}})
    );
    EXPECT_EQ(
        run.kept<CheckpointDropped>(),
        (std::vector<CheckpointDropped>{{TrialId{1}, 1}, {TrialId{3}, 1}})
    );
    EXPECT_EQ(run.sent<DeleteCheckpoint>().size(), 2U);
}

TEST(RetryFailedTest, WhatWasRestartedStaysSoInTheRunAfter) {
    std::vector<Fact> facts = two_of_four_fail();
    HeadCase second(spec(), 0, {.retry_failed = RetryFailed::FromNothing});
    restore(second.head, facts);
    second.begin_with({make_node("n0", 4)});
    second.trial_reports(1, 1, {{"accuracy", 0.5}});
    facts.insert(facts.end(), second.facts.begin(), second.facts.end());
    HeadCase third(spec(), 0);

    restore(third.head, facts);

    EXPECT_EQ(results_of(third, 1), 1U);
    EXPECT_EQ(third.state(1), TrialState::Pending);
    EXPECT_EQ(third.head.summary().failures, 0U);
}

TEST(RetryFailedTest, ABestTrialThatBeginsAnewIsBestNoMore) {
    HeadCase before(spec(), 2);
    before.begin_with({make_node("n0", 2)});
    before.trial_reports(0, 1, {{"accuracy", 0.5}});
    before.trial_ends(0);
    before.trial_reports(1, 1, {{"accuracy", 0.9}});
    before.trial_ends(1, kFails);
    HeadCase run(spec(), 0, {.retry_failed = RetryFailed::FromNothing});
    restore(run.head, before.facts);
    EXPECT_EQ(run.head.summary().best, TrialId{1});

    run.begin();

    EXPECT_EQ(run.head.summary().best, TrialId{0});
}

TEST(RetryFailedTest, WithoutItFailedTrialsStayAsTheyAre) {
    HeadCase run(spec(), 0);
    restore(run.head, two_of_four_fail());

    run.begin_with({make_node("n0", 4)});

    EXPECT_EQ(run.state(1), TrialState::Failed);
    EXPECT_EQ(run.running(), 0U);
}

}  // namespace
}  // namespace muster
