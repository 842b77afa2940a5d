// SPDX-License-Identifier: Apache-2.0

#include "cli/until.hpp"

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <string>

#include <gtest/gtest.h>

namespace muster {
namespace {

using namespace std::chrono_literals;

/// 2026-12-01 12:00 in Berlin, an hour ahead of UTC in winter.
constexpr Duration kNoon = 1'796'122'800s;

class UntilTest : public testing::Test {
  protected:
    // A zone that is written out needs no files.
    UntilTest() {
        ::setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
        ::tzset();
    }
};

TEST_F(UntilTest, ADurationBeginsNowAndIsHowLongEachRunLasts) {
    const Result<Until> until = parse_until("90m", kNoon);

    ASSERT_TRUE(until);
    EXPECT_EQ(until->at, kNoon + 90min);
    EXPECT_EQ(until->whole, 90min);
    EXPECT_EQ(until->why, "--until 90m");
}

TEST_F(UntilTest, ATimeOfDayIsTheNextOne) {
    EXPECT_EQ(parse_until("17:30", kNoon)->at, kNoon + 5h + 30min);
    EXPECT_EQ(parse_until("12:00:05", kNoon)->at, kNoon + 5s);
    EXPECT_EQ(parse_until("11:59", kNoon)->at, kNoon + 23h + 59min);
    EXPECT_EQ(parse_until("12:00", kNoon)->at, kNoon + 24h);
    EXPECT_EQ(parse_until("17:30", kNoon)->whole, 0s);
}

TEST_F(UntilTest, TomorrowMayBeInTheNextMonth) {
    EXPECT_EQ(parse_until("11:00", kNoon + 30 * 24h)->at, kNoon + 31 * 24h - 1h);
}

TEST_F(UntilTest, ADateIsMeantHereOrInUtc) {
    EXPECT_EQ(parse_until("2026-12-01T17:30", kNoon)->at, kNoon + 5h + 30min);
    EXPECT_EQ(parse_until("2026-12-01 17:30:10", kNoon)->at, kNoon + 5h + 30min + 10s);
    EXPECT_EQ(parse_until("2026-12-01T17:30Z", kNoon)->at, kNoon + 6h + 30min);
    EXPECT_EQ(parse_until("2027-07-01T12:00", kNoon)->at, kNoon + 212 * 24h - 1h);
}

TEST_F(UntilTest, WhatIsNoTimeIsRefusedWithWhatWouldBeRight) {
    for (const char* text :
         {"",
          "soon",
          "25:00",
          "17:30pm",
          "2026-13-01T10:00",
          "2027-02-30T10:00",
          "17",
          "12:",
          "-1:00"}) {
        const Result<Until> until = parse_until(text, kNoon);
        if (std::string(text) == "17") {
            // Seconds, as everywhere.
            EXPECT_TRUE(until);
            continue;
        }
        ASSERT_FALSE(until) << text;
        EXPECT_NE(until.error().message.find("17:30"), std::string::npos) << until.error().message;
    }
}

TEST_F(UntilTest, WhatIsOverIsRefused) {
    EXPECT_EQ(
        parse_until("2026-12-01T11:59", kNoon)
            .error()
            .message.find("expected a time that is still"),
        0U
    );
    EXPECT_FALSE(parse_until("0s", kNoon));
}

}  // namespace
}  // namespace muster
