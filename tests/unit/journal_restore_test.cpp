// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>

#include "journal/tidy.hpp"
#include "journal/writer.hpp"
#include "unit/journal_life.hpp"

namespace muster {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr std::uint32_t kTrials = 30;

class JournalRestoreTest : public JournalLifeTest {
  protected:
    void tidy() {
        const std::atomic<bool> stop = false;
        const Status tidied = JournalTidier(directory_, stop, 0).tidy();
        EXPECT_TRUE(tidied.ok()) << tidied.error().message;
    }

    std::uintmax_t size_of(const std::string& stem) const {
        std::uintmax_t size = 0;
        for (const fs::directory_entry& file : fs::directory_iterator(directory_)) {
            const std::string name = file.path().filename().string();
            size += name.compare(0, stem.size(), stem) == 0 ? file.file_size() : 0;
        }
        return size;
    }

    std::string path(const std::string& name) const { return directory_ + "/" + name; }
};

TEST_F(JournalRestoreTest, ATidyJournalSaysTheSameInLess) {
    for (std::uint32_t seed = 0; seed < 40; ++seed) {
        fs::remove_all(directory_);
        write_journal(directory_, Life(kTrials, seed).live(3, 250), 20 + seed % 10 * 8);
        const Revived before = revive_anew(kTrials);
        const std::uintmax_t size = size_of("state");

        tidy();

        ASSERT_EQ(revive_anew(kTrials), before) << seed;
        ASSERT_LT(size_of("state"), size) << seed;
        ASSERT_TRUE(before.problems.empty()) << before.problems.front();
    }
}

TEST_F(JournalRestoreTest, TidyingAgainAndFromTheMiddleChangesNothing) {
    write_journal(directory_, Life(kTrials, 1).live(3, 300), 30);
    const Revived before = revive_anew(kTrials);

    for (std::uint64_t upto = 1; upto < 12; ++upto) {
        const std::atomic<bool> stop = false;
        ASSERT_TRUE(JournalTidier(directory_, stop, 0).tidy(upto, upto).ok());

        ASSERT_EQ(revive_anew(kTrials), before) << upto;
    }
}

TEST_F(JournalRestoreTest, ResultsOfEndedTrialsAreNotRead) {
    const BasicSearcher searcher = life_searcher(life_spec(kTrials));
    std::vector<TimedFact> facts{{RunStarted{1}, {}}};
    TimePoint now;
    const auto keep = [&](Fact fact) { facts.push_back({std::move(fact), now = now + 1ns}); };
    for (std::uint32_t id = 0; id < 10; ++id) {
        const TrialId trial{id};
        keep(TrialCreated{trial, searcher.config_at(id).value()});
        keep(AttemptStarted{trial, {1, id}, {}});
        for (int step = 1; step <= 20; ++step) {
            keep(ResultReported{trial, {1, id}, {double(step), {{"accuracy", 0.5}}}, false, 0});
        }
        if (id != 4) {
            keep(TrialEnded{trial, TrialState::Completed, "", 20, {}, {}});
        }
    }
    write_journal(directory_, facts, 20);
    const Revived before = revive_anew(kTrials);
    tidy();

    // Of a segment with an index in which nothing is needed, not even damage is seen.
    for (std::uint64_t number = 1; number <= 10; ++number) {
        const std::string segment = path(journal::segment_name("results", number));
        const std::string bytes = read_whole(segment);
        write_whole(segment, std::string(bytes.size(), '\0'));

        EXPECT_EQ(revive_anew(kTrials) == before, number != 5) << number;
        write_whole(segment, bytes);
    }
}

TEST_F(JournalRestoreTest, AnIndexOfAnotherSizeOrADamagedOneIsNotBelieved) {
    const std::vector<TimedFact> facts = Life(kTrials, 3).live(1, 400);
    write_journal(directory_, facts, 25);
    const Revived before = revive_anew(kTrials);
    tidy();
    for (const fs::directory_entry& file : fs::directory_iterator(directory_)) {
        if (file.path().extension() == ".index") {
            std::string bytes = read_whole(file.path().string());
            bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
            write_whole(file.path().string(), bytes);
        }
    }

    EXPECT_EQ(revive_anew(kTrials), before);
}

TEST_F(JournalRestoreTest, WhateverStopsTheTidyingTheJournalIsWhole) {
    write_journal(directory_, Life(kTrials, 4).live(2, 300), 40);
    const Revived before = revive_anew(kTrials);
    // It was killed while it wrote the new file of the second segment.
    const std::string half = read_whole(path("state-000002.log")).substr(0, 700);
    write_whole(path("state-000002.log.new"), half);
    write_whole(path("results-000002.index.new"), half);

    EXPECT_EQ(revive_anew(kTrials), before);
    tidy();
    EXPECT_EQ(revive_anew(kTrials), before);
    EXPECT_FALSE(fs::exists(path("state-000002.log.new")));
}

TEST_F(JournalRestoreTest, TidyingThatIsToldToStopLeavesThingsAsTheyAre) {
    write_journal(directory_, Life(kTrials, 5).live(1, 300), 40);
    const std::uintmax_t size = size_of("state");
    const std::atomic<bool> stop = true;

    EXPECT_TRUE(JournalTidier(directory_, stop, 0).tidy().ok());

    EXPECT_EQ(size_of("state"), size);
}

TEST_F(JournalRestoreTest, SmallSegmentsStayAsTheyAre) {
    write_journal(directory_, Life(kTrials, 5).live(1, 300), 40);
    const std::uintmax_t size = size_of("");
    const std::atomic<bool> stop = false;

    EXPECT_TRUE(JournalTidier(directory_, stop).tidy().ok());

    EXPECT_EQ(size_of(""), size);
}

TEST_F(JournalRestoreTest, ARunTidiesUpBehindItself) {
    JournalOptions options{.directory = directory_, .experiment = "life"};
    options.segment_bytes = JournalTidier::kLeastBytes;
    Result<JournalWriter> writer = JournalWriter::open(options);
    ASSERT_TRUE(writer.ok());
    const auto is_tidy = [&](std::uint64_t segment) {
        const std::string state = path(journal::segment_name("state", segment));
        return read_whole(state).substr(0, 500).find("\"lines\":") != std::string::npos &&
               fs::exists(path("results-000001.index"));
    };
    const auto deadline = std::chrono::steady_clock::now() + 15s;
    std::uint32_t id = 0;
    while (!is_tidy(1) && std::chrono::steady_clock::now() < deadline) {
        for (int batch = 0; batch < 500; ++batch, ++id) {
            const TrialId trial{id};
            writer->append(TrialCreated{trial, {}}, {});
            writer->append(AttemptStarted{trial, {1, id}, {}}, {});
            writer->append(ResultReported{trial, {1, id}, {1, {}}, false, 0}, {});
            writer->append(TrialEnded{trial, TrialState::Completed, "", 1, {}, {}}, {});
        }
        ::poll(nullptr, 0, 10);
    }
    EXPECT_TRUE(writer->close(10s).ok());

    EXPECT_TRUE(is_tidy(1));
    const Revived revived = revive_anew(id);
    EXPECT_EQ(revived.trials.size(), id);
    EXPECT_TRUE(revived.problems.empty()) << revived.problems.front();
}

TEST_F(JournalRestoreTest, ADamagedSegmentStaysAsItIs) {
    write_journal(directory_, Life(kTrials, 6).live(1, 300), 40);
    std::string bytes = read_whole(path("state-000002.log"));
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    write_whole(path("state-000002.log"), bytes);
    const Revived before = revive_anew(kTrials);

    tidy();

    EXPECT_EQ(read_whole(path("state-000002.log")), bytes);
    EXPECT_EQ(revive_anew(kTrials), before);
    EXPECT_FALSE(before.problems.empty());
}

TEST_F(JournalRestoreTest, SegmentsThatAreThereTwiceCountOnce) {
    for (const bool tidied : {false, true}) {
        fs::remove_all(directory_);
        write_journal(directory_, Life(kTrials, 7).live(2, 300), 30);
        const Revived before = revive_anew(kTrials);
        const std::string first = read_whole(path("state-000001.log"));
        if (tidied) {
            tidy();
        }
        fs::copy_file(path("state-000002.log"), path("state-000090.log"));
        fs::copy_file(path("results-000001.log"), path("results-000090.log"));
        write_whole(path("state-000091.log"), first);

        EXPECT_EQ(revive_anew(kTrials), before);
        tidy();
        EXPECT_EQ(revive_anew(kTrials), before);
    }
}

TEST_F(JournalRestoreTest, RecordsWrittenAgainFillTheHolesOfTheFirstTime) {
    const std::vector<TimedFact> facts = Life(kTrials, 8).live(1, 300);
    write_journal(directory_, facts, 1000);
    const Revived before = revive_anew(kTrials);
    // A commit failed: the system dropped a part of what it had taken, and all of it was written
    // again to the next segment.
    std::string bytes = read_whole(path("state-000001.log"));
    std::size_t again = bytes.find('\n') + 1;
    for (int line = 0; line < 20; ++line) {
        again = bytes.find('\n', again) + 1;
    }
    write_whole(
        path("state-000002.log"), bytes.substr(0, bytes.find('\n') + 1) + bytes.substr(again)
    );
    bytes.replace(again + 1000, 3000, std::string(3000, '\0'));
    write_whole(path("state-000001.log"), bytes);

    for (int round = 0; round < 2; ++round) {
        const Revived after = revive_anew(kTrials);

        EXPECT_EQ(after.trials, before.trials);
        EXPECT_EQ(after.rest, before.rest);
        tidy();
    }
}

TEST_F(JournalRestoreTest, WhatARunThatWasTakenForDeadStillWroteDoesNotCount) {
    const std::vector<TimedFact> facts = Life(kTrials, 9).live(2, 200);
    write_journal(directory_, facts, 60);
    const Revived before = revive_anew(kTrials);
    std::string late;
    for (std::uint64_t number = 61; number < 65; ++number) {
        journal::append_record(TrialReopened{TrialId{0}, 1'000}, {number, {}}, "", late);
    }
    write_whole(path("state-000001.log"), read_whole(path("state-000001.log")) + late);

    EXPECT_EQ(revive_anew(kTrials), before);
    tidy();
    EXPECT_EQ(revive_anew(kTrials), before);
}

TEST_F(JournalRestoreTest, ABetterResultOfALaterRunIsTheBest) {
    const auto ended = [](TrialState state, double accuracy, std::uint64_t results) {
        const TrialResult result{double(results), {{"accuracy", accuracy}}};
        return TrialEnded{TrialId{0}, state, "", results, result, result};
    };
    const BasicSearcher searcher = life_searcher(life_spec(2));
    write_journal(
        directory_,
        {{TrialCreated{TrialId{0}, searcher.config_at(0).value()}, {}},
         {TrialCreated{TrialId{1}, searcher.config_at(1).value()}, {}},
         {ended(TrialState::Cancelled, 0.2, 1), {}},
         {TrialEnded{
              TrialId{1},
              TrialState::Completed,
              "",
              1,
              TrialResult{1, {{"accuracy", 0.5}}},
              TrialResult{1, {{"accuracy", 0.5}}}},
          {}},
         {AttemptStarted{TrialId{0}, {1, 1}, {}}, {}},
         {ended(TrialState::Completed, 0.9, 2), {}}},
        100
    );

    EXPECT_NE(revive_anew(2).rest.find("best 00000"), std::string::npos);
}

}  // namespace
}  // namespace muster
