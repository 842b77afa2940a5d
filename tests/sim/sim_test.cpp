// SPDX-License-Identifier: Apache-2.0
//
// Whole clusters in virtual time, one for each seed, with everything that can go wrong in them.
// MUSTER_SIM_SEED=17 runs that seed alone; MUSTER_SIM_SEEDS=100000 runs more than the usual ones.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <variant>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/simulation.hpp"

namespace muster {
namespace {

std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
    // Read once, before anything else runs in this process.
    const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::string story_of(std::uint64_t seed, const SimulationResult& result) {
    std::string story = fmt::format(
        "MUSTER_SIM_SEED={} build/dev/tests/sim/sim_test --gtest_filter=SimTest.EverySeed*\n{}\n",
        seed,
        *result.violation
    );
    for (const std::string& line : result.log) {
        story += line + "\n";
    }
    return story;
}

TEST(SimTest, EverySeedKeepsEveryPromise) {
    const std::uint64_t only = number_from_environment("MUSTER_SIM_SEED", 0);
    const std::uint64_t seeds = number_from_environment("MUSTER_SIM_SEEDS", 1000);
    const std::uint64_t first = only == 0 ? 1 : only;
    const std::uint64_t last = only == 0 ? seeds : only;
    std::uint64_t events = 0;
    for (std::uint64_t seed = first; seed <= last; ++seed) {
        const SimulationResult result = simulate_seed(seed);
        events += result.events;
        ASSERT_FALSE(result.violation) << story_of(seed, result);
    }
    RecordProperty("events", std::to_string(events));
    // Each of them is a small cluster at work, or the seeds prove nothing.
    EXPECT_GT(events, (last - first + 1) * 100);
}

TEST(SimTest, TheSameSeedGivesTheSameRun) {
    const SimulationResult one = simulate_seed(12);
    const SimulationResult other = simulate_seed(12);

    EXPECT_EQ(one.events, other.events);
    EXPECT_EQ(one.end, other.end);
    ASSERT_EQ(one.facts.size(), other.facts.size());
    for (std::size_t index = 0; index < one.facts.size(); ++index) {
        EXPECT_EQ(one.facts[index].at, other.facts[index].at);
    }
}

TEST(SimTest, HeadsAreReplacedAndTrialsBegunAnew) {
    std::uint64_t runs = 0;
    std::uint64_t lost = 0;
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        const SimulationResult result = simulate_seed(seed);
        runs += result.runs;
        for (const TimedFact& fact : result.facts) {
            const auto* ended = std::get_if<AttemptEnded>(&fact.fact);
            lost += ended != nullptr && ended->outcome.cause == EndCause::Lost ? 1U : 0U;
        }
    }

    EXPECT_GT(runs, 100U);
    EXPECT_GT(lost, 10U);
}

}  // namespace
}  // namespace muster
