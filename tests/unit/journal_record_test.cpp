// SPDX-License-Identifier: Apache-2.0

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "journal/names.hpp"
#include "journal/record.hpp"
#include "unit/journal_facts.hpp"

namespace muster {
namespace {

using journal::append_record;
using journal::Header;
using journal::Record;
using journal::RecordReader;

constexpr std::string_view kUtc = "2026-11-30T21:40:10.123Z";

std::string line_of(const Fact& fact) {
    std::string line;
    append_record(fact, {5, TimePoint{Duration{1'500'000'000}}}, kUtc, line);
    return line.substr(0, line.size() - 1);
}

TEST(JournalRecordTest, EveryFactComesBackAsItWas) {
    RecordReader reader;

    for (const Fact& fact : every_fact()) {
        const Result<Record> record = reader.read(line_of(fact));

        ASSERT_TRUE(record.ok()) << record.error().message << "\n" << line_of(fact);
        EXPECT_EQ(std::get<Fact>(record->content), fact) << line_of(fact);
        EXPECT_EQ(record->stamp.number, 5U);
        EXPECT_EQ(record->stamp.at, TimePoint{Duration{1'500'000'000}});
    }
}

TEST(JournalRecordTest, ALineReadsAsTheFormatPageSays) {
    EXPECT_EQ(
        line_of(RunStarted{3}),
        "f5d90eca "
        R"({"n":5,"at_ns":1500000000,"utc":"2026-11-30T21:40:10.123Z","kind":"run_started","epoch":3})"
    );
}

TEST(JournalRecordTest, AHeaderComesBackAsItWas) {
    std::string line;
    append_record(Header{1, "0.1.0", "digits \"2\""}, kUtc, line);
    line.pop_back();

    const Result<Record> record = RecordReader().read(line);

    ASSERT_TRUE(record.ok()) << record.error().message;
    EXPECT_EQ(std::get<Header>(record->content), (Header{1, "0.1.0", "digits \"2\""}));
}

TEST(JournalRecordTest, ALineCutAnywhereIsRefused) {
    RecordReader reader;

    for (const Fact& fact : every_fact()) {
        const std::string line = line_of(fact);
        for (std::size_t size = 0; size < line.size(); ++size) {
            EXPECT_FALSE(reader.read(std::string_view(line).substr(0, size)).ok());
        }
    }
}

TEST(JournalRecordTest, AnyFlippedBitOfTheContentIsFound) {
    RecordReader reader;

    for (const Fact& fact : every_fact()) {
        std::string line = line_of(fact);
        for (std::size_t bit = 72; bit < line.size() * 8; ++bit) {
            const auto mask = static_cast<char>(1U << (bit % 8));
            line[bit / 8] = static_cast<char>(line[bit / 8] ^ mask);
            EXPECT_FALSE(reader.read(line).ok()) << line;
            line[bit / 8] = static_cast<char>(line[bit / 8] ^ mask);
        }
    }
}

TEST(JournalRecordTest, ConfigsWithTheSameKeysShareASchema) {
    RecordReader reader;
    const std::string line = line_of(TrialCreated{TrialId{1}, hard_config()});

    const Result<Record> first = reader.read(line);
    const Result<Record> second = reader.read(line);

    const auto schema_of = [](const Result<Record>& record) {
        return std::get<TrialCreated>(std::get<Fact>(record->content)).config.schema();
    };
    EXPECT_EQ(schema_of(first), schema_of(second));
}

TEST(JournalRecordTest, ACheapLookSeesWhichTrialAResultIsOf) {
    for (const Fact& fact : every_fact()) {
        const std::optional<journal::ResultGlance> glance = RecordReader::glance(line_of(fact));

        const auto* result = std::get_if<ResultReported>(&fact);
        ASSERT_EQ(glance.has_value(), result != nullptr) << line_of(fact);
        if (glance) {
            EXPECT_EQ(glance->trial, result->trial);
            EXPECT_EQ(glance->stamp.number, 5U);
            EXPECT_EQ(glance->stamp.at, TimePoint{Duration{1'500'000'000}});
        }
    }
}

TEST(JournalRecordTest, ACheapLookSeesNothingInADamagedLine) {
    std::string line = line_of(ResultReported{TrialId{42}, {1, 0}, {1, {}}, false, 0});
    line.back() = ' ';

    EXPECT_FALSE(RecordReader::glance(line));
}

TEST(JournalRecordTest, KeysMayComeInAnyOrderWithBlanksBetween) {
    const std::string json =
        R"({ "trial" : 7 , "results":2,"state":"Failed", "kind":"trial_ended","n":1,"at_ns":0,)"
        R"( "new": [{"a":[1,{}]}, "x\"y", null], "reason":"a \"b\" \u00fc" })";

    const Result<Record> record =
        RecordReader().read(fmt::format("{:08x} {}", journal::checksum(json), json));

    ASSERT_TRUE(record.ok()) << record.error().message;
    EXPECT_EQ(
        std::get<Fact>(record->content),
        Fact(TrialEnded{TrialId{7}, TrialState::Failed, "a \"b\" \u00fc", 2, {}, {}})
    );
}

TEST(JournalRecordTest, WhatIsNotARecordIsRefusedWhateverItIs) {
    const std::vector<std::string> texts = {
        "",
        "{",
        "}",
        "[]",
        "{}",
        "7",
        "{\"n\"}",
        "{\"n\":}",
        "{\"n\":1,}",
        "{\"n\":1}}",
        "{\"n\":[1}",
        R"({"n":-1,"at_ns":0,"kind":"run_started","epoch":1})",
        R"({"n":1.5,"at_ns":0,"kind":"run_started","epoch":1})",
        R"({"n":1,"at_ns":0,"kind":"run_started","epoch":4294967296})",
        R"({"n":1,"at_ns":0,"kind":"run_started"})",
        R"({"n":1,"at_ns":0,"kind":"unheard_of"})",
        R"({"n":1,"at_ns":0,"kind":7})",
        R"({"n":1,"at_ns":0,"kind":"trial_ended","trial":0,"results":0,"state":"Running"})",
        R"({"n":1,"at_ns":0,"kind":"trial_created","trial":0,"config":[]})",
        R"({"n":1,"at_ns":0,"kind":"trial_created","trial":0,"config":{"a":x}})",
        R"({"n":1,"at_ns":0,"kind":"attempt_started","trial":0,"attempt":[1],"placement":[]})",
        std::string(1'000'000, '['),
        "{\"n\":" + std::string(1'000'000, '[') + "}"};

    for (const std::string& json : texts) {
        EXPECT_FALSE(
            RecordReader().read(fmt::format("{:08x} {}", journal::checksum(json), json)).ok()
        ) << json.substr(0, 100);
    }
}

}  // namespace
}  // namespace muster
