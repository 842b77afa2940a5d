// SPDX-License-Identifier: Apache-2.0
//
// Facts of checkpoints that were condensed lead to the same state as the facts themselves.

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "journal/condense.hpp"
#include "journal/record.hpp"
#include "support/head_case.hpp"

namespace muster {
namespace {

using testing::HeadCase;
using testing::make_node;

const TrialId kTrial{0};

/// What the facts are after they were condensed and read back.
std::vector<Fact> condensed(const std::vector<Fact>& facts) {
    journal::Condenser condenser(1, "2026-11-30T21:40:10.123Z");
    for (const Fact& fact : facts) {
        condenser.take(fact, {});
    }
    std::vector<Fact> read;
    journal::RecordReader reader;
    std::string_view text = condenser.finish();
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        const Result<journal::Record> record = reader.read(text.substr(0, end));
        EXPECT_TRUE(record.ok()) << record.error().message;
        read.push_back(std::get<Fact>(record->content));
        text.remove_prefix(end + 1);
    }
    return read;
}

/// What the next run tells the trial's attempt.
Start next_start(const std::vector<Fact>& facts) {
    ExperimentSpec spec;
    spec.checkpoints.keep = 0;
    spec.checkpoints.storage = CheckpointStorage::Node;
    HeadCase run(std::move(spec), 0);
    for (const Fact& fact : facts) {
        EXPECT_TRUE(run.head.restore(fact, {}).ok());
    }
    run.begin_with({make_node("b", 1), make_node("a", 1)});
    return run.last_start(0);
}

CheckpointKept kept(std::uint32_t number, const std::string& node) {
    return {kTrial, {1, 0}, number, double(number), 10, std::nullopt, node};
}

TEST(JournalCheckpointsTest, OfManyCheckpointsThoseThatAreKeptAreLeft) {
    std::vector<Fact> facts{
        RunStarted{1}, TrialCreated{kTrial, {}}, AttemptStarted{kTrial, {1, 0}, {}}};
    for (std::uint32_t number = 1; number <= 100; ++number) {
        facts.emplace_back(kept(number, "b"));
        if (number > 2) {
            facts.emplace_back(CheckpointDropped{kTrial, number - 2});
        }
    }

    const std::vector<Fact> few = condensed(facts);

    EXPECT_EQ(few.size(), 2U);
    EXPECT_EQ(next_start(few), next_start(facts));
    EXPECT_EQ(next_start(few).kept_checkpoints, (std::vector<std::uint32_t>{99, 100}));
    EXPECT_EQ(next_start(few).next_checkpoint, 101U);
}

TEST(JournalCheckpointsTest, OneThatMovedAndWasDroppedLaterIsNotThereAgain) {
    const std::vector<Fact> facts{
        RunStarted{1},
        TrialCreated{kTrial, {}},
        AttemptStarted{kTrial, {1, 0}, {}},
        kept(1, "a"),
        kept(2, "a"),
        RunStarted{2},
        AttemptStarted{kTrial, {2, 0}, {}},
        kept(2, "b"),
        kept(3, "b"),
        CheckpointDropped{kTrial, 1},
        CheckpointDropped{kTrial, 2}};

    const std::vector<Fact> few = condensed(facts);

    EXPECT_EQ(next_start(few), next_start(facts));
    EXPECT_EQ(next_start(few).kept_checkpoints, (std::vector<std::uint32_t>{3}));
}

TEST(JournalCheckpointsTest, WhatWasPausedAndCondensedTwiceIsPaused) {
    const std::vector<Fact> facts{
        RunStarted{1},
        TrialCreated{kTrial, {}},
        AttemptStarted{kTrial, {1, 0}, {}},
        kept(1, "a"),
        AttemptEnded{kTrial, {1, 0}, {EndCause::Stopped, 15, ""}, {}, false},
        TrialPaused{kTrial, "the time ends"}};

    const std::vector<Fact> few = condensed(condensed(facts));

    HeadCase run(ExperimentSpec{}, 0);
    for (const Fact& fact : few) {
        ASSERT_TRUE(run.head.restore(fact, {}).ok());
    }
    EXPECT_EQ(run.state(0), TrialState::Paused);
    EXPECT_EQ(next_start(few), next_start(facts));
}

TEST(JournalCheckpointsTest, ATrialThatBeganAnewHasNoCheckpointsButHigherNumbers) {
    const std::vector<Fact> facts{
        RunStarted{1},
        TrialCreated{kTrial, {}},
        AttemptStarted{kTrial, {1, 0}, {}},
        kept(1, "a"),
        AttemptEnded{kTrial, {1, 0}, {EndCause::Exited, 1, ""}, {}, true},
        TrialEnded{kTrial, TrialState::Failed, "exit code 1", 0, std::nullopt, std::nullopt},
        RunStarted{2},
        CheckpointDropped{kTrial, 1},
        TrialRestarted{kTrial, 2}};

    const std::vector<Fact> few = condensed(facts);

    EXPECT_EQ(next_start(few), next_start(facts));
    EXPECT_EQ(next_start(few).resume_from, std::nullopt);
    EXPECT_EQ(next_start(few).next_checkpoint, 2U);
}

}  // namespace
}  // namespace muster
