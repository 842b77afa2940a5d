// SPDX-License-Identifier: Apache-2.0
//
// Samplers: their ranges, their ends and their shape, with fixed seeds.

#include "search/sample.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include <gtest/gtest.h>

namespace muster {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

template <class Domain>
auto draws(const Domain& domain, int count) {
    RandomStream random(7);
    std::vector<decltype(sample(domain, random))> drawn;
    drawn.reserve(static_cast<std::size_t>(count));
    for (int draw = 0; draw < count; ++draw) {
        drawn.push_back(sample(domain, random));
    }
    return drawn;
}

template <class Domain>
auto counts(const Domain& domain, int count) {
    RandomStream random(7);
    std::map<decltype(sample(domain, random)), int> counted;
    for (int draw = 0; draw < count; ++draw) {
        ++counted[sample(domain, random)];
    }
    return counted;
}

template <class Number>
double mean_log10(const std::vector<Number>& numbers) {
    double sum = 0;
    for (const Number number : numbers) {
        sum += std::log10(static_cast<double>(number));
    }
    return sum / static_cast<double>(numbers.size());
}

TEST(SampleTest, UniformFillsItsRange) {
    const std::vector<double> drawn = draws(RealDomain{.lower = -1, .upper = 3}, 10'000);

    const auto [least, most] = std::minmax_element(drawn.begin(), drawn.end());
    double sum = 0;
    for (const double number : drawn) {
        sum += number;
    }
    EXPECT_GE(*least, -1);
    EXPECT_LT(*least, -0.99);
    EXPECT_GT(*most, 2.99);
    EXPECT_LT(*most, 3);
    EXPECT_NEAR(sum / 10'000, 1, 0.05);
}

TEST(SampleTest, UniformHoldsForTheWidestAndTheNarrowestRange) {
    const double huge = std::numeric_limits<double>::max();
    const auto wide = draws(RealDomain{.lower = -huge, .upper = huge}, 1000);
    const auto narrow = draws(RealDomain{.lower = 1, .upper = std::nextafter(1.0, 2.0)}, 1000);

    EXPECT_TRUE(std::all_of(wide.begin(), wide.end(), [](double one) { return std::isfinite(one); })
    );
    EXPECT_LT(*std::min_element(wide.begin(), wide.end()), -huge / 2);
    EXPECT_GT(*std::max_element(wide.begin(), wide.end()), huge / 2);
    EXPECT_TRUE(std::all_of(narrow.begin(), narrow.end(), [](double one) { return one == 1; }));
}

TEST(SampleTest, LogUniformReachesBothEndsOfItsExponents) {
    const auto drawn = draws(RealDomain{.lower = 1e-10, .upper = 1e-1, .log = true}, 1000);

    const auto [least, most] = std::minmax_element(drawn.begin(), drawn.end());
    EXPECT_GE(*least, 1e-10);
    EXPECT_LT(*most, 1e-1);
    EXPECT_NEAR(std::log10(*least), -10, 0.1);
    EXPECT_NEAR(std::log10(*most), -1, 0.1);
    EXPECT_NEAR(mean_log10(drawn), -5.5, 0.3);
}

TEST(SampleTest, LogUniformHoldsForTheWidestAndTheNarrowestRange) {
    const double huge = std::numeric_limits<double>::max();
    const double tiny = std::numeric_limits<double>::denorm_min();
    const auto wide = draws(RealDomain{.lower = tiny, .upper = huge, .log = true}, 1000);
    const RealDomain step{.lower = 1e15, .upper = std::nextafter(1e15, 2e15), .log = true};
    const auto narrow = draws(step, 1000);
    const auto ten = counts(RealDomain{.lower = 1e15, .upper = 1e15 + 1.25, .log = true}, 10'000);

    EXPECT_NEAR(mean_log10(wide), (std::log10(tiny) + std::log10(huge)) / 2, 20);
    EXPECT_TRUE(std::all_of(narrow.begin(), narrow.end(), [](double one) { return one == 1e15; }));
    // The ten doubles from 1e15 on are 0.125 apart.
    EXPECT_EQ(ten.size(), 10U);
}

TEST(SampleTest, QuantisedUniformGivesEveryMultipleAndBothEnds) {
    const auto counted = counts(RealDomain{.lower = 0.1, .upper = 0.5, .q = 0.1}, 10'000);

    std::vector<double> values;
    for (const auto& [value, count] : counted) {
        values.push_back(value);
        EXPECT_NEAR(count, 2000, 200) << value;
    }
    EXPECT_EQ(values, (std::vector<double>{0.1, 0.2, 0.3, 0.4, 0.5}));
}

TEST(SampleTest, QuantisedLogUniformGivesMultiplesBySharesOfTheLogarithm) {
    const auto counted =
        counts(RealDomain{.lower = 0.5, .upper = 2, .q = 0.5, .log = true}, 10'000);

    // Of log(2.25 / 0.25): log(3), log(5/3), log(7/5), log(9/7).
    ASSERT_EQ(counted.size(), 4U);
    EXPECT_NEAR(counted.at(0.5), 5000, 200);
    EXPECT_NEAR(counted.at(1.0), 2325, 200);
    EXPECT_NEAR(counted.at(1.5), 1531, 200);
    EXPECT_NEAR(counted.at(2.0), 1144, 200);
}

TEST(SampleTest, RandintLeavesItsUpperBoundOut) {
    const auto counted = counts(IntDomain{.lower = -1, .upper = 2}, 3000);

    ASSERT_EQ(counted.size(), 3U);
    for (const std::int64_t value : {-1, 0, 1}) {
        EXPECT_NEAR(counted.at(value), 1000, 120);
    }
    EXPECT_EQ(counts(IntDomain{.lower = 5, .upper = 6}, 100).size(), 1U);
}

TEST(SampleTest, QuantisedRandintIncludesItsUpperBound) {
    const auto by_three = counts(IntDomain{.lower = -3, .upper = 6, .q = 3}, 4000);
    const auto by_one = counts(IntDomain{.lower = 1, .upper = 3, .q = 1}, 3000);

    ASSERT_EQ(by_three.size(), 4U);
    for (const std::int64_t value : {-3, 0, 3, 6}) {
        EXPECT_NEAR(by_three.at(value), 1000, 120);
    }
    ASSERT_EQ(by_one.size(), 3U);
    EXPECT_NEAR(by_one.at(3), 1000, 120);
}

TEST(SampleTest, LogRandintLeavesItsUpperBoundOut) {
    const auto counted = counts(IntDomain{.lower = 1, .upper = 8, .log = true}, 9000);

    // A number n has the share log((n + 1) / n) of log(8): a third for 1, which is [1, 2).
    EXPECT_EQ(counted.begin()->first, 1);
    EXPECT_EQ(counted.rbegin()->first, 7);
    EXPECT_EQ(counted.size(), 7U);
    EXPECT_NEAR(counted.at(1), 3000, 200);
}

TEST(SampleTest, QuantisedLogRandintIncludesItsUpperBound) {
    const auto counted = counts(IntDomain{.lower = 4, .upper = 16, .q = 4, .log = true}, 10'000);

    ASSERT_EQ(counted.size(), 4U);
    EXPECT_NEAR(counted.at(4), 5000, 200);
    EXPECT_NEAR(counted.at(8), 2325, 200);
    EXPECT_NEAR(counted.at(12), 1531, 200);
    EXPECT_NEAR(counted.at(16), 1144, 200);
}

TEST(SampleTest, WholeNumbersAreSafeAtTheirExtremes) {
    const auto all = draws(IntDomain{.lower = kLeast, .upper = kMost}, 1000);
    const auto all_by_one = draws(IntDomain{.lower = kLeast, .upper = kMost, .q = 1}, 1000);
    const auto halves = counts(
        IntDomain{
            .lower = kLeast,
            .upper = kMost - kMost % (std::int64_t{1} << 62),
            .q = std::int64_t{1} << 62},
        1000
    );
    const auto log = draws(IntDomain{.lower = 1, .upper = kMost, .log = true}, 1000);
    const auto log_by_one = draws(IntDomain{.lower = 1, .upper = kMost, .q = 1, .log = true}, 1000);
    const auto top = draws(IntDomain{.lower = kMost - 1, .upper = kMost, .log = true}, 100);

    EXPECT_LT(*std::min_element(all.begin(), all.end()), kLeast / 100 * 99);
    EXPECT_GT(*std::max_element(all_by_one.begin(), all_by_one.end()), kMost / 100 * 99);
    EXPECT_EQ(halves.size(), 4U);
    EXPECT_GE(*std::min_element(log.begin(), log.end()), 1);
    EXPECT_NEAR(mean_log10(log), 9.5, 0.5);
    EXPECT_NEAR(mean_log10(log_by_one), 9.5, 0.5);
    EXPECT_TRUE(std::all_of(top.begin(), top.end(), [](std::int64_t one) {
        return one == kMost - 1;
    }));
}

TEST(SampleTest, NormalHasItsMeanAndItsDeviation) {
    const auto drawn = draws(NormalDomain{.mean = 10, .sd = 2}, 10'000);

    double sum = 0;
    double squares = 0;
    for (const double number : drawn) {
        sum += number;
        squares += (number - 10) * (number - 10);
    }
    EXPECT_NEAR(sum / 10'000, 10, 0.1);
    EXPECT_NEAR(std::sqrt(squares / 10'000), 2, 0.1);
}

TEST(SampleTest, QuantisedNormalGivesMultiples) {
    const auto counted = counts(NormalDomain{.mean = 0, .sd = 0.2, .q = 0.1}, 10'000);

    // P(|z| < 0.25) and P(0.25 < z < 0.75).
    EXPECT_NEAR(counted.at(0.0), 1974, 200);
    EXPECT_NEAR(counted.at(0.1), 1747, 200);
    EXPECT_NEAR(counted.at(-0.1), 1747, 200);
    EXPECT_EQ(counted.count(0.3), 1U);
}

TEST(SampleTest, ChoiceKeepsTypesAndIsFair) {
    const Choice domain{{1, 1.0, "1", true, {}}};
    RandomStream random(7);
    std::vector<int> counted(domain.values.size());

    for (int draw = 0; draw < 5000; ++draw) {
        const Value& drawn = sample(domain, random);
        const auto found = std::find(domain.values.begin(), domain.values.end(), drawn);
        ++counted[static_cast<std::size_t>(found - domain.values.begin())];
    }

    for (const int count : counted) {
        EXPECT_NEAR(count, 1000, 150);
    }
}

TEST(SampleTest, MultiplesAreWhatOneWouldWriteDown) {
    EXPECT_EQ(multiple(3, 0.1), 0.3);
    EXPECT_EQ(multiple(-7, 0.1), -0.7);
    EXPECT_EQ(multiple(3, 0.3), 0.9);
    EXPECT_EQ(multiple(57, 0.01), 0.57);
    EXPECT_EQ(multiple(3, 1e-5), 3e-5);
    EXPECT_EQ(multiple(4, 0.25), 1.0);
    EXPECT_EQ(multiple(2, 1.0 / 3), 2.0 / 3);
    EXPECT_EQ(multiple(0, 0.1), 0.0);
    EXPECT_EQ(multiple(3, 1e300), 3e300);
}

TEST(SampleTest, StreamsDifferByTrialKeyAndSeed) {
    const std::uint64_t drawn = stream_for(1, 2, "lr")();

    EXPECT_EQ(stream_for(1, 2, "lr")(), drawn);
    EXPECT_NE(stream_for(1, 2, "mr")(), drawn);
    EXPECT_NE(stream_for(1, 3, "lr")(), drawn);
    EXPECT_NE(stream_for(2, 2, "lr")(), drawn);
}

}  // namespace
}  // namespace muster
