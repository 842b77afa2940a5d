// SPDX-License-Identifier: Apache-2.0

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "process/line_patterns.hpp"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

LinePatterns patterns_of(const std::vector<std::string>& expressions) {
    return LinePatterns::compile(expressions).value();
}

PatternReports all_of(LinePatterns patterns, const std::vector<std::string_view>& pieces) {
    PatternReports reports;
    for (const std::string_view piece : pieces) {
        patterns.feed(piece, reports);
    }
    patterns.finish(reports);
    return reports;
}

TEST(LinePatternsTest, NamedGroupsBecomeMetricsInTheirOrder) {
    EXPECT_EQ(
        all_of(
            patterns_of({R"(epoch (?P<step>\d+) acc=(?P<acc>\S+) (\w+))"}),
            {"epoch 3 acc=0.25 x\nepoch four acc=1 x\nepoch 4 acc=1 y\n"}
        ),
        (PatternReports{{{"step", 3}, {"acc", 0.25}}, {{"step", 4}, {"acc", 1}}})
    );
}

TEST(LinePatternsTest, LinesMayComeInPieces) {
    EXPECT_EQ(
        all_of(patterns_of({"n=(?P<n>\\d+)"}), {"n=", "1", "2\n", "n=3", "\nn=4"}),
        (PatternReports{{{"n", 12}}, {{"n", 3}}, {{"n", 4}}})
    );
}

TEST(LinePatternsTest, CarriageReturnEndsALine) {
    EXPECT_EQ(
        all_of(patterns_of({"^n=(?P<n>\\d+)"}), {"n=1\rn=2\r\nn=3"}),
        (PatternReports{{{"n", 1}}, {{"n", 2}}, {{"n", 3}}})
    );
}

TEST(LinePatternsTest, SeveralExpressionsMakeOneReportOfALine) {
    EXPECT_EQ(
        all_of(
            patterns_of({"loss=(?P<loss>\\S+)", "acc=(?P<acc>\\S+)", "(?P<loss>\\d)"}),
            {"acc=1 loss=2\nacc=3\n"}
        ),
        (PatternReports{{{"loss", 2}, {"acc", 1}}, {{"acc", 3}, {"loss", 3}}})
    );
}

TEST(LinePatternsTest, GroupThatTookNoPartIsNoMetric) {
    EXPECT_EQ(
        all_of(patterns_of({"a=(?P<a>\\d+)( b=(?P<b>\\d+))?"}), {"a=1\n"}),
        (PatternReports{{{"a", 1}}})
    );
}

TEST(LinePatternsTest, TooLongLineIsSkippedAndCounted) {
    LinePatterns patterns = patterns_of({"n=(?P<n>\\d+)"});
    PatternReports reports;
    const std::string half(40'000, 'x');

    patterns.feed("n=1 " + half, reports);
    patterns.feed(half, reports);
    patterns.feed(half + "\nn=2\n", reports);
    patterns.feed(std::string(kLongestPatternLine + 1, 'y') + "\nn=3\n", reports);

    EXPECT_EQ(reports, (PatternReports{{{"n", 2}}, {{"n", 3}}}));
    EXPECT_EQ(patterns.skipped_lines(), 2U);
}

TEST(LinePatternsTest, ValueThatIsNotUtf8IsDroppedAndCounted) {
    LinePatterns patterns = patterns_of({"a=(?P<a>[^ ]+) b=(?P<b>\\d+)"});
    PatternReports reports;

    patterns.feed("a=\xC3\xA4 b=1\n", reports);

    EXPECT_EQ(reports, (PatternReports{{{"a", "\xC3\xA4"}, {"b", 1}}}));
    EXPECT_EQ(patterns.refused_values(), 0U);
}

TEST(LinePatternsTest, WrongExpressionsAreRefusedWithTheReason) {
    EXPECT_THAT(LinePatterns::compile({"a(b"}).error().message, HasSubstr("a(b"));
    EXPECT_THAT(
        LinePatterns::compile({"loss=(\\d+)"}).error().message, HasSubstr("names no metric")
    );
}

TEST(LinePatternsTest, NumbersAreToldFromText) {
    EXPECT_EQ(value_from_text("12"), Value(12));
    EXPECT_EQ(value_from_text("+12"), Value(12));
    EXPECT_EQ(value_from_text("-3"), Value(-3));
    EXPECT_EQ(value_from_text("1.0"), Value(1.0));
    EXPECT_EQ(value_from_text("1e-05"), Value(1e-05));
    EXPECT_EQ(value_from_text("99999999999999999999"), Value(1e20));
    EXPECT_EQ(value_from_text("NaN"), Value(std::numeric_limits<double>::quiet_NaN()));
    EXPECT_EQ(value_from_text("-inf"), Value(-std::numeric_limits<double>::infinity()));
    EXPECT_EQ(value_from_text("Infinity"), Value(std::numeric_limits<double>::infinity()));
    EXPECT_EQ(value_from_text("1,5"), Value("1,5"));
    EXPECT_EQ(value_from_text("+-1"), Value("+-1"));
    EXPECT_EQ(value_from_text(""), Value(""));
    EXPECT_EQ(value_from_text("0x10"), Value("0x10"));
}

TEST(LinePatternsTest, EmptyTextHasNoReports) {
    EXPECT_THAT(all_of(patterns_of({"(?P<x>.*)y"}), {}), IsEmpty());
}

}  // namespace
}  // namespace muster
