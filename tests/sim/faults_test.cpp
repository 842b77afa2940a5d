// SPDX-License-Identifier: Apache-2.0
//
// The random scenarios hold every kind of fault, and some of them in a form that leaves no doubt
// how the run must end.

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "easy_scenario.hpp"
#include "sim/simulation.hpp"

namespace muster {
namespace {

using std::chrono::seconds;

/// Attempts that began on the node.
std::uint64_t attempts_on(const SimulationResult& result, NodeId node) {
    return static_cast<std::uint64_t>(std::count_if(
        result.facts.begin(),
        result.facts.end(),
        [&](const TimedFact& fact) {
            const auto* started = std::get_if<AttemptStarted>(&fact.fact);
            return started != nullptr && started->placement.bundles.front().node == node;
        }
    ));
}

std::uint64_t attempts_lost(const SimulationResult& result) {
    return static_cast<std::uint64_t>(std::count_if(
        result.facts.begin(),
        result.facts.end(),
        [](const TimedFact& fact) {
            const auto* ended = std::get_if<AttemptEnded>(&fact.fact);
            return ended != nullptr && ended->outcome.cause == EndCause::Lost;
        }
    ));
}

TEST(FaultsTest, EveryKindStrikesInRandomScenarios) {
    std::map<FaultKind, std::uint32_t> struck;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        for (const auto& [kind, count] : Simulation(random_scenario(seed)).run().struck) {
            struck[kind] += count;
        }
    }

    for (int kind = 0; kind <= static_cast<int>(FaultKind::HelloComesLate); ++kind) {
        EXPECT_GE(struck[static_cast<FaultKind>(kind)], 1U) << "kind " << kind;
    }
}

TEST(FaultsTest, ANodeOnWhichEverythingFailsCostsNoTrial) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        Scenario scenario = easy_scenario(seed);
        const NodeId bad{static_cast<std::uint32_t>(seed % 3)};
        scenario.bad_node = bad;

        const SimulationResult result = Simulation(std::move(scenario)).run();

        ASSERT_FALSE(result.violation) << "seed " << seed << ": " << *result.violation;
        EXPECT_EQ(result.runs, 1U) << "seed " << seed;
        EXPECT_GE(attempts_on(result, bad), 3U) << "seed " << seed;
    }
}

TEST(FaultsTest, ANodeThatStandsStillForLongerThanItsLeaseLosesItsTrialsOnce) {
    std::uint64_t lost = 0;
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        Scenario scenario = easy_scenario(seed);
        scenario.faults = {{FaultKind::NodeStalls, 20 + seed}, {FaultKind::NodeStalls, 60 + seed}};

        const SimulationResult result = Simulation(std::move(scenario)).run();

        ASSERT_FALSE(result.violation) << "seed " << seed << ": " << *result.violation;
        EXPECT_EQ(result.runs, 1U) << "seed " << seed;
        lost += attempts_lost(result);
    }
    EXPECT_GT(lost, 50U);
}

TEST(FaultsTest, AHeadThatStandsStillLosesNoTrialForGood) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        Scenario scenario = easy_scenario(seed);
        scenario.faults = {{FaultKind::HeadStalls, 20 + seed}, {FaultKind::HeadStalls, 90 + seed}};

        const SimulationResult result = Simulation(std::move(scenario)).run();

        ASSERT_FALSE(result.violation) << "seed " << seed << ": " << *result.violation;
        EXPECT_EQ(result.runs, 1U) << "seed " << seed;
    }
}

TEST(FaultsTest, ASpentTimeBudgetEndsTheExperiment) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        Scenario scenario = easy_scenario(seed);
        scenario.spec.time_budget = seconds{10};
        scenario.faults = {{FaultKind::HeadDies, 3 * seed}};

        const SimulationResult result = Simulation(std::move(scenario)).run();

        ASSERT_FALSE(result.violation) << "seed " << seed << ": " << *result.violation;
        ASSERT_TRUE(result.leave) << "seed " << seed;
        EXPECT_EQ(result.leave->end, RunEnd::TimeBudget) << "seed " << seed;
    }
}

TEST(FaultsTest, FailedTrialsRunAgainWhenThatIsAskedFor) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        Scenario scenario = easy_scenario(seed);
        scenario.retry_failed =
            seed % 2 == 0 ? RetryFailed::FromCheckpoint : RetryFailed::FromNothing;
        // Of each trial whose number is odd the first attempt fails.
        const auto failed = std::make_shared<std::map<TrialId, bool>>();
        scenario.model = [failed](const LaunchPlan& plan) {
            TrialScript script;
            script.reports = 2;
            bool& has_failed = (*failed)[plan.key.trial];
            if (plan.key.trial.value % 2 == 1 && !std::exchange(has_failed, true)) {
                script.failure = Outcome{EndCause::Exited, 1, "boom"};
            }
            return script;
        };
        for (std::size_t trial = 1; trial < scenario.expected.size(); trial += 2) {
            scenario.expected[trial] = ExpectedEnd::CompletesOrFails;
        }

        const SimulationResult result = Simulation(std::move(scenario)).run();

        ASSERT_FALSE(result.violation) << "seed " << seed << ": " << *result.violation;
        EXPECT_EQ(result.runs, 2U) << "seed " << seed;
        std::map<TrialId, TrialState> ends;
        for (const TimedFact& fact : result.facts) {
            if (const auto* ended = std::get_if<TrialEnded>(&fact.fact)) {
                ends[ended->trial] = ended->state;
            }
        }
        EXPECT_THAT(ends, testing::Each(testing::Pair(testing::_, TrialState::Completed)));
    }
}

}  // namespace
}  // namespace muster
