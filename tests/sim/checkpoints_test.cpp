// SPDX-License-Identifier: Apache-2.0
//
// Trials that save their work, in a cluster in which something goes wrong at every moment in turn,
// and in allocations that are too short for them.

#include <cstdint>
#include <map>
#include <utility>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "easy_scenario.hpp"
#include "sim/simulation.hpp"

namespace muster {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

/// Few trials, each with `reports` reports over `duration` and a checkpoint after each.
Scenario saving_scenario(std::uint64_t seed, Duration duration, std::uint32_t reports) {
    Scenario scenario = easy_scenario(seed);
    scenario.spec.num_samples = 14;
    scenario.expected.assign(14, ExpectedEnd::Completes);
    scenario.spec.checkpoints.storage =
        seed % 2 == 0 ? CheckpointStorage::Shared : CheckpointStorage::Node;
    scenario.spec.checkpoints.path = "/scratch";
    scenario.model = [duration, reports](const LaunchPlan& /*plan*/) {
        TrialScript script;
        script.duration = duration;
        script.reports = reports;
        script.save_every = 1;
        script.when_warned = WhenWarned::SavesAndLeaves;
        return script;
    };
    return scenario;
}

/// Ends after so long, which the head hears at once.
EndPlan ends_after(Duration length) {
    return {.length = {length, length}, .told_after = {}};
}

struct Tally {
    std::uint64_t attempts = 0;
    std::uint64_t kept = 0;
    std::uint64_t dropped = 0;
    std::uint64_t paused = 0;
    std::map<TrialId, Duration> ran;
    std::map<TrialId, TrialEnded> ends;
};

Tally tally_of(const SimulationResult& result) {
    Tally tally;
    for (const TimedFact& timed : result.facts) {
        tally.attempts += std::holds_alternative<AttemptStarted>(timed.fact) ? 1U : 0U;
        tally.kept += std::holds_alternative<CheckpointKept>(timed.fact) ? 1U : 0U;
        tally.dropped += std::holds_alternative<CheckpointDropped>(timed.fact) ? 1U : 0U;
        tally.paused += std::holds_alternative<TrialPaused>(timed.fact) ? 1U : 0U;
        if (const auto* ended = std::get_if<AttemptEnded>(&timed.fact)) {
            tally.ran[ended->trial] += ended->usage.wall;
        } else if (const auto* end = std::get_if<TrialEnded>(&timed.fact)) {
            tally.ends.insert_or_assign(end->trial, *end);
        }
    }
    return tally;
}

TEST(SimulatedCheckpointsTest, TheLastTwoAreKeptAndTheOthersAreGone) {
    const SimulationResult result = Simulation(saving_scenario(1, seconds{10}, 6)).run();

    ASSERT_FALSE(result.violation) << *result.violation;
    const Tally tally = tally_of(result);
    EXPECT_EQ(tally.attempts, 14U);
    EXPECT_EQ(tally.kept, 14U * 6);
    EXPECT_EQ(tally.dropped, 14U * 4);
}

TEST(SimulatedCheckpointsTest, AHeadThatDiesAtAnyMomentLosesNothingThatWasSaved) {
    for (std::uint64_t moment = 1; moment <= 400; ++moment) {
        Scenario scenario = saving_scenario(moment, seconds{10}, 6);
        scenario.faults = {{FaultKind::HeadDies, moment}};

        const SimulationResult result = Simulation(std::move(scenario)).run();

        ASSERT_FALSE(result.violation) << "moment " << moment << ": " << *result.violation;
        EXPECT_EQ(result.runs, 2U) << "moment " << moment;
    }
}

TEST(SimulatedCheckpointsTest, ANodeThatDiesAtAnyMomentTakesOnlyWhatLayThere) {
    for (std::uint64_t moment = 1; moment <= 400; ++moment) {
        Scenario scenario = saving_scenario(moment, seconds{10}, 6);
        scenario.faults = {{FaultKind::NodeDies, moment}, {FaultKind::NodeDies, moment + 40}};

        const SimulationResult result = Simulation(std::move(scenario)).run();

        ASSERT_FALSE(result.violation) << "moment " << moment << ": " << *result.violation;
    }
}

TEST(SimulatedCheckpointsTest, TrialsLongerThanAnAllocationGoOnInTheNext) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        Scenario scenario = saving_scenario(seed, seconds{150}, 15);
        scenario.spec.checkpoints.storage = CheckpointStorage::Shared;
        scenario.spec.end.warning = seconds{12};
        scenario.end = ends_after(seconds{60});

        const SimulationResult result = Simulation(std::move(scenario)).run();

        ASSERT_FALSE(result.violation) << "seed " << seed << ": " << *result.violation;
        EXPECT_EQ(result.ran_into_end, 0U) << "seed " << seed;
        const Tally tally = tally_of(result);
        EXPECT_GT(tally.paused, 14U) << "seed " << seed;
        for (const auto& [trial, ran] : tally.ran) {
            // Saved work is not done again.
            EXPECT_LT(ran, seconds{165}) << "seed " << seed << " trial " << to_string(trial);
        }
    }
}

TEST(SimulatedCheckpointsTest, ATrialThatFitsNoAllocationAndSavesNothingFails) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        Scenario scenario = easy_scenario(seed);
        scenario.spec.num_samples = 4;
        scenario.expected.assign(4, ExpectedEnd::Fails);
        scenario.model = [](const LaunchPlan& /*plan*/) {
            TrialScript script;
            script.duration = seconds{300};
            return script;
        };
        scenario.end = ends_after(seconds{60});

        const SimulationResult result = Simulation(std::move(scenario)).run();

        ASSERT_FALSE(result.violation) << "seed " << seed << ": " << *result.violation;
        EXPECT_LE(result.runs, 4U) << "seed " << seed;
        EXPECT_EQ(result.ran_into_end, 0U) << "seed " << seed;
        for (const auto& entry : tally_of(result).ends) {
            EXPECT_THAT(entry.second.reason, HasSubstr("needs more time than there is"));
        }
    }
}

TEST(SimulatedCheckpointsTest, WhatCannotEndInTimeWaitsForTheNextAllocation) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        Scenario scenario = easy_scenario(seed);
        scenario.spec.num_samples = 100;
        scenario.expected.assign(100, ExpectedEnd::Completes);
        scenario.end = ends_after(seconds{40});

        const SimulationResult result = Simulation(std::move(scenario)).run();

        ASSERT_FALSE(result.violation) << "seed " << seed << ": " << *result.violation;
        EXPECT_GT(result.runs, 1U) << "seed " << seed;
        EXPECT_EQ(result.ran_into_end, 0U) << "seed " << seed;
        // At the first end most is known of how long they take.
        EXPECT_LE(tally_of(result).attempts, 104U) << "seed " << seed;
    }
}

}  // namespace
}  // namespace muster
