// SPDX-License-Identifier: Apache-2.0
//
// The small tables of the head: steps that count, and how long trials take.

#include <chrono>
#include <cstdint>
#include <optional>

#include <gtest/gtest.h>

#include "head/recent_durations.hpp"
#include "head/trial_steps.hpp"

namespace muster {
namespace {

using namespace std::chrono_literals;

constexpr AttemptId kFirst{1, 0};
constexpr AttemptId kSecond{1, 4};
constexpr AttemptId kThird{2, 0};

TEST(TrialStepsTest, ALaterAttemptReplacesWhatIsNotBeforeItsSteps) {
    TrialSteps steps;
    for (const double step : {1.0, 2.0, 3.0, 4.0}) {
        steps.take(kFirst, step);
    }

    EXPECT_EQ(steps.take(kSecond, 3), 3U);
    EXPECT_EQ(steps.take(kSecond, 4), 4U);
    EXPECT_EQ(steps.take(kThird, 1), 1U);
}

TEST(TrialStepsTest, WithinOneAttemptStepsMayComeTwiceOrGoBack) {
    TrialSteps steps;

    EXPECT_EQ(steps.take(kFirst, 5), 1U);
    EXPECT_EQ(steps.take(kFirst, 5), 2U);
    EXPECT_EQ(steps.take(kFirst, 3), 3U);
    EXPECT_EQ(steps.take(kFirst, 0.1), 4U);
}

TEST(TrialStepsTest, FractionsOfAStepAreToldApart) {
    TrialSteps steps;
    for (int tenth = 1; tenth <= 1000; ++tenth) {
        steps.take(kFirst, tenth * 0.1);
    }

    EXPECT_EQ(steps.take(kSecond, 50.1), 501U);
}

TEST(TrialStepsTest, WhatAnEarlierRunHadCountsUpToTheFirstNewStep) {
    EXPECT_EQ(TrialSteps(10, 10).take(kFirst, 8), 8U);
    EXPECT_EQ(TrialSteps(100, 10).take(kFirst, 71), 8U);
    EXPECT_EQ(TrialSteps(1, 1).take(kFirst, 2), 2U);
    EXPECT_EQ(TrialSteps(1, 1).take(kFirst, 1), 1U);
}

TEST(TrialStepsTest, AnyNumberOfIrregularStepsTakesBoundedRoom) {
    TrialSteps steps;
    std::uint64_t count = 0;

    for (int index = 0; index < 20'000; ++index) {
        count = steps.take(kFirst, index % 2 == 0 ? index * index : -index);
    }

    EXPECT_EQ(count, 20'000U);
}

TEST(RecentDurationsTest, NineOfTenTakeNoLonger) {
    RecentDurations durations;
    EXPECT_EQ(durations.percentile(90), std::nullopt);

    for (int minute = 10; minute >= 1; --minute) {
        durations.add(minute * 1min);
    }

    EXPECT_EQ(durations.percentile(90), 9min);
    EXPECT_EQ(durations.percentile(100), 10min);
}

TEST(RecentDurationsTest, OnlyTheLatestCount) {
    RecentDurations durations;
    durations.add(100h);
    for (std::size_t index = 0; index < RecentDurations::kMost; ++index) {
        durations.add(1min);
    }

    EXPECT_EQ(durations.percentile(100), 1min);
    EXPECT_EQ(durations.count(), RecentDurations::kMost);
}

}  // namespace
}  // namespace muster
