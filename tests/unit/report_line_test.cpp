// SPDX-License-Identifier: Apache-2.0
//
// What each line of a trial means, and what is said about the ones that mean nothing.

#include "report/report_line.hpp"

#include <cmath>
#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/json_reader.hpp"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<ValueMember> metrics_of(const std::string& metrics) {
    const auto line = read_trial_line("{\"type\":\"report\",\"metrics\":" + metrics + "}");
    EXPECT_TRUE(line.ok()) << line.error().message;
    return line.ok() ? std::get<ReportLine>(*line).metrics : std::vector<ValueMember>{};
}

std::string problem_of(const std::string& line) {
    const auto read = read_trial_line(line);
    return read.ok() ? "nothing" : read.error().message;
}

TEST(ReportLineTest, MetricsKeepTheirOrderAndTypes) {
    EXPECT_EQ(
        metrics_of(
            R"({"step": 4, "loss": 0.31, "big": 1e3, "good": true, "note": "ok", "no": null})"
        ),
        (std::vector<ValueMember>{
            {"step", 4},
            {"loss", 0.31},
            {"big", 1000.0},
            {"good", true},
            {"note", "ok"},
            {"no", {}}})
    );
}

TEST(ReportLineTest, NonFiniteNumbersAreTextsOrTheWordsOfOtherWriters) {
    EXPECT_EQ(
        metrics_of(R"({"a": "nan", "b": "inf", "c": "-inf", "d": NaN, "e": -Infinity, "f": 1e999})"
        ),
        (std::vector<ValueMember>{
            {"a", kNan},
            {"b", kInfinity},
            {"c", -kInfinity},
            {"d", kNan},
            {"e", -kInfinity},
            {"f", kInfinity}})
    );
}

TEST(ReportLineTest, GroupsAreJoinedWithASlash) {
    EXPECT_EQ(
        metrics_of(R"({"train": {"loss": 1, "top": {"5": 0.5}}, "list": [1, [2.5]]})"),
        (std::vector<ValueMember>{
            {"train/loss", 1}, {"train/top/5", 0.5}, {"list", Value::List{1, Value::List{2.5}}}})
    );
}

TEST(ReportLineTest, WholeNumbersPastSixtyThreeBitsBecomeReal) {
    EXPECT_EQ(
        metrics_of(R"({"max": 9223372036854775807, "over": 9223372036854775808})"),
        (std::vector<ValueMember>{
            {"max", std::int64_t{9223372036854775807}}, {"over", 9223372036854775808.0}})
    );
}

TEST(ReportLineTest, EscapesAndUtf8AreText) {
    EXPECT_EQ(
        metrics_of(R"({"n\u00e4me": "a\"\\\n\ud83d\ude00ü"})"),
        (std::vector<ValueMember>{{"näme", "a\"\\\n😀ü"}})
    );
}

TEST(ReportLineTest, MembersThatAreNotKnownAreIgnored) {
    const auto line = read_trial_line(
        R"({"later": {"a": [1]}, "metrics": {"x": 1}, "wait": true, "type": "report"})"
    );

    EXPECT_EQ(*line, (TrialLine{ReportLine{{{"x", 1}}, true}}));
}

TEST(ReportLineTest, AHelloNamesTheMember) {
    const auto line = read_trial_line(
        R"({"type": "hello", "protocol": 1, "trial": "00042", "attempt": "1.7", "member": 3})"
    );

    EXPECT_EQ(*line, (TrialLine{HelloLine{1, {TrialId{42}, AttemptId{1, 7}, MemberId{3}}}}));
}

TEST(ReportLineTest, WhatIsShownOfALongTextEndsWithAWholeCharacter) {
    EXPECT_EQ(
        problem_of("{\"type\": \"" + std::string(39, 'x') + "\u00e9\u00e9\"}"),
        "unknown type \"" + std::string(39, 'x') +
            "\u00e9\"; known: hello, report, checkpoint, log, config"
    );
}

TEST(ReportLineTest, WhatMeansNothingIsRefusedWithItsReason) {
    EXPECT_THAT(problem_of("hello"), HasSubstr("not a line of JSON: expected '{' at byte 0"));
    EXPECT_THAT(problem_of(R"({"type": "report", "metrics": {"a": }})"), HasSubstr("at byte 36"));
    EXPECT_THAT(problem_of(R"({"type": "report"} x)"), HasSubstr("expected nothing more"));
    EXPECT_THAT(problem_of(R"({"type": "report")"), HasSubstr("expected ',' or '}'"));
    EXPECT_THAT(
        problem_of(R"({"type": "dance"})"), HasSubstr("unknown type \"dance\"; known: hello")
    );
    EXPECT_THAT(problem_of(R"({"type": "log"})"), HasSubstr("\"log\" is not in this version"));
    EXPECT_THAT(problem_of(R"({"type": "report"})"), HasSubstr("without \"metrics\""));
    EXPECT_THAT(problem_of(R"({"type":"report","metrics":{}})"), HasSubstr("at least one metric"));
    EXPECT_THAT(problem_of(R"({"type":"report","metrics":{"":1}})"), HasSubstr("without a name"));
    EXPECT_THAT(problem_of(R"({"type":"report","metrics":{"a":1,"a":2}})"), HasSubstr("twice"));
    EXPECT_THAT(
        problem_of(R"({"type":"report","metrics":{"a/b":1,"a":{"b":2}}})"), HasSubstr("twice")
    );
    EXPECT_THAT(problem_of("{\"type\": \"\xff\"}"), HasSubstr("not UTF-8 at byte 10"));
    EXPECT_THAT(problem_of(R"({"a": "\ud800"})"), HasSubstr("surrogate"));
    EXPECT_THAT(
        problem_of(R"({"type":"hello","protocol":1,"trial":"x","attempt":"1.7"})"),
        HasSubstr("no trial is called \"x\"")
    );
    EXPECT_THAT(
        problem_of(R"({"type":"hello","protocol":1,"trial":"1","attempt":"17"})"),
        HasSubstr("no attempt is called \"17\"")
    );
}

TEST(ReportLineTest, DeepNestingIsRefusedAndNotFollowed) {
    const std::string line = "{\"type\":\"report\",\"metrics\":{\"a\":" + std::string(500'000, '[');

    EXPECT_THAT(problem_of(line), HasSubstr("more than 32 levels"));
}

TEST(ReportLineTest, ALineOfAHundredThousandNamesIsReadInNoTime) {
    std::string metrics = "{\"m\":0";
    for (int index = 0; index < 100'000; ++index) {
        metrics += ",\"" + std::to_string(index) + "\":1";
    }

    EXPECT_EQ(metrics_of(metrics + "}").size(), 100'001U);
    EXPECT_THAT(
        problem_of("{\"type\":\"report\",\"metrics\":" + metrics + ",\"77\":1}}"),
        HasSubstr("twice")
    );
}

TEST(ReportLineTest, EveryPrefixOfALineIsRefused) {
    const std::string line =
        R"({"type": "report", "metrics": {"a": [1, {"b": "\u00e4"}], "c": -1.5e-3}, "wait": true})";

    for (std::size_t size = 0; size < line.size(); ++size) {
        EXPECT_FALSE(read_trial_line(line.substr(0, size)).ok()) << size;
    }
    EXPECT_TRUE(read_trial_line(line).ok());
}

TEST(ReportLineTest, AnErrorLineIsJsonWhateverItQuotes) {
    EXPECT_EQ(
        error_line(7, "a \"b\"\n\xff", true),
        "{\"type\": \"error\", \"line\": 7, \"text\": \"a \\\"b\\\"\\n\xEF\xBF\xBD\", \"closed\": "
        "true}\n"
    );
}

TEST(ReportLineTest, ACheckpointNamesAFreshDirectoryAndPerhapsItsStep) {
    const auto plain = read_trial_line(R"({"type": "checkpoint", "path": ".new-1.7-0-99-0"})");
    const auto stepped = read_trial_line(R"({"type": "checkpoint", "path": ".new-1", "step": 4})");

    ASSERT_TRUE(plain.ok() && stepped.ok());
    EXPECT_EQ(std::get<CheckpointLine>(*plain), (CheckpointLine{".new-1.7-0-99-0", std::nullopt}));
    EXPECT_EQ(std::get<CheckpointLine>(*stepped), (CheckpointLine{".new-1", 4.0}));
}

TEST(ReportLineTest, ACheckpointOutsideItsDirectoryOrWithABadStepIsRefused) {
    for (const char* path : {"null", "7", R"("model")", R"(".new-/../x")", R"(".new-a\u0000b")"}) {
        const std::string line = std::string(R"({"type": "checkpoint", "path": )") + path + "}";
        EXPECT_THAT(problem_of(line), HasSubstr("begins with .new-")) << path;
    }
    for (const char* step : {"true", R"("four")", R"("nan")"}) {
        const std::string line =
            std::string(R"({"type": "checkpoint", "path": ".new-1", "step": )") + step + "}";
        EXPECT_THAT(problem_of(line), HasSubstr("is no number")) << step;
    }
}

TEST(ReportLineTest, AnswersToCheckpointsAndWarningsAreWhole) {
    EXPECT_EQ(
        checkpoint_line(3, "checkpoint_000004"),
        "{\"type\": \"checkpoint\", \"line\": 3, \"name\": \"checkpoint_000004\"}\n"
    );
    EXPECT_EQ(
        warning_line(std::chrono::milliseconds{119'500}),
        "{\"type\": \"warning\", \"seconds\": 119.500}\n"
    );
}

}  // namespace
}  // namespace muster
