// SPDX-License-Identifier: Apache-2.0
//
// Whatever happened to its bytes, a journal opens; what a trial's own undamaged records say of it
// is known; and a head that took it in runs to the end.

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "journal/tidy.hpp"
#include "support/head_case.hpp"
#include "unit/journal_life.hpp"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kTrials = 8;

/// The trials that a line may be about; any, for a line of the run or one that is unreadable.
std::set<std::uint32_t> trials_in(const std::string& bytes) {
    std::set<std::uint32_t> trials;
    journal::RecordReader reader;
    std::size_t start = 0;
    while (start < bytes.size()) {
        const std::size_t end = std::min(bytes.find('\n', start), bytes.size());
        const Result<journal::Record> record =
            reader.read(std::string_view(bytes).substr(start, end - start));
        start = end + 1;
        const auto* fact = record.ok() ? std::get_if<Fact>(&record->content) : nullptr;
        if (fact != nullptr) {
            std::visit(
                [&](const auto& of) {
                    if constexpr (requires { of.trial; }) {
                        trials.insert(of.trial.value);
                    }
                },
                *fact
            );
        }
    }
    return trials;
}

/// The trials that lines of `before` are about which are not in `after`.
std::set<std::uint32_t> hurt(const std::string& before, const std::string& after) {
    std::set<std::string> there;
    for (std::size_t start = 0; start < after.size();) {
        const std::size_t end = std::min(after.find('\n', start), after.size() - 1);
        there.insert(after.substr(start, end + 1 - start));
        start = end + 1;
    }
    std::string lost;
    for (std::size_t start = 0; start < before.size();) {
        const std::size_t end = before.find('\n', start);
        const std::string line = before.substr(start, end + 1 - start);
        lost += there.count(line) == 0 ? line : "";
        start = end + 1;
    }
    return trials_in(lost);
}

class JournalDamageTest : public JournalLifeTest {
  protected:
    JournalDamageTest() { make(40); }

    void make(std::size_t per_segment) {
        fs::remove_all(directory_);
        write_journal(directory_, Life(kTrials, 11).live(3, 35), per_segment);
        whole_ = revive_anew(kTrials);
        ASSERT_TRUE(whole_.problems.empty()) << whole_.problems.front();
        ASSERT_EQ(whole_.trials.size(), kTrials);
    }

    void tidy() {
        const std::atomic<bool> stop = false;
        ASSERT_TRUE(JournalTidier(directory_, stop, 0).tidy().ok());
    }

    std::vector<std::string> segments(const std::string& stem) const {
        std::vector<std::string> paths;
        for (const fs::directory_entry& file : fs::directory_iterator(directory_)) {
            const std::string name = file.path().filename().string();
            if (name.compare(0, stem.size(), stem) == 0 && file.path().extension() == ".log") {
                paths.push_back(file.path().string());
            }
        }
        std::sort(paths.begin(), paths.end());
        return paths;
    }

    /// What must hold when of `before` `after` is left, in a segment of the state.
    void expect_others_unhurt(const std::string& before, const std::string& after) {
        const Revived revived = revive_anew(kTrials);
        const std::set<std::uint32_t> damaged = hurt(before, after);

        for (std::uint32_t id = 0; id < revived.trials.size(); ++id) {
            if (damaged.count(id) == 0) {
                ASSERT_EQ(revived.trials[id], whole_.trials[id]) << id;
            }
        }
        // Those at the end are missing without a trace, and made anew by the search.
        for (auto id = static_cast<std::uint32_t>(revived.trials.size()); id < kTrials; ++id) {
            ASSERT_EQ(damaged.count(id), 1U) << id;
        }
        ASSERT_LE(revived.trials.size(), kTrials);
    }

    /// Runs what was restored to the end.
    void expect_it_runs_to_the_end() {
        const ExperimentSpec spec = life_spec(kTrials);
        BasicSearcher searcher = life_searcher(spec);
        testing::HeadCase after(spec, 0);
        const Revived revived = revive(directory_, after.head, &searcher);
        after.begin_with({testing::make_node("n0", 4)});
        for (std::uint32_t round = 0; round < kTrials + 1; ++round) {
            for (const TrialId trial : after.head.active_trials()) {
                after.trial_ends(trial.value);
            }
        }

        const HeadSummary summary = after.head.summary();
        ASSERT_EQ(summary.done(), revived.trials.size());
        ASSERT_EQ(summary.running + summary.stopping + summary.pending, 0U);
    }

    Revived whole_;
};

TEST_F(JournalDamageTest, CutAtAnyByteItKeepsWhatIsBeforeTheCut) {
    make(1000);
    const std::string path = segments("state").at(0);
    const std::string bytes = read_whole(path);

    for (std::size_t size = 0; size < bytes.size(); ++size) {
        const std::string cut = bytes.substr(0, size);
        write_whole(path, cut);
        expect_others_unhurt(bytes, cut);
        if (HasFatalFailure()) {
            FAIL() << size;
        }
    }
}

TEST_F(JournalDamageTest, ATidyOneCutAtAnyByteSaysSo) {
    make(20);
    tidy();
    const std::string path = segments("state").at(1);
    const std::string bytes = read_whole(path);

    for (std::size_t size = 0; size < bytes.size(); ++size) {
        const std::string cut = bytes.substr(0, size);
        write_whole(path, cut);
        expect_others_unhurt(bytes, cut);
        ASSERT_FALSE(revive_anew(kTrials).problems.empty()) << size;
        if (HasFatalFailure()) {
            FAIL() << size;
        }
    }
}

TEST_F(JournalDamageTest, AnyZeroedBlockCostsOnlyWhatIsInIt) {
    for (const bool tidied : {false, true}) {
        make(100);
        if (tidied) {
            tidy();
        }
        for (const std::string& path : segments("state")) {
            const std::string bytes = read_whole(path);
            for (std::size_t at = 0; at < bytes.size(); at += 4096) {
                std::string zeroed = bytes;
                const std::size_t size = std::min<std::size_t>(4096, bytes.size() - at);
                zeroed.replace(at, size, std::string(size, '\0'));
                write_whole(path, zeroed);
                expect_others_unhurt(bytes, zeroed);
                ASSERT_FALSE(revive_anew(kTrials).problems.empty());
                expect_it_runs_to_the_end();
                if (HasFatalFailure()) {
                    FAIL() << path << " " << at;
                }
            }
            write_whole(path, bytes);
        }
    }
}

TEST_F(JournalDamageTest, AnyFlippedBitCostsNoMoreThanTwoLines) {
    std::mt19937 random(5);
    for (const bool tidied : {false, true}) {
        make(50);
        if (tidied) {
            tidy();
        }
        const std::vector<std::string> paths = segments("state");
        for (int round = 0; round < 1'500; ++round) {
            const std::string& path = paths[random() % paths.size()];
            const std::string bytes = read_whole(path);
            std::string flipped = bytes;
            const std::size_t at = random() % bytes.size();
            const auto mask = static_cast<char>(1U << (random() % 8));
            flipped[at] = static_cast<char>(flipped[at] ^ mask);
            write_whole(path, flipped);
            expect_others_unhurt(bytes, flipped);
            if (round % 20 == 0) {
                expect_it_runs_to_the_end();
            }
            if (HasFatalFailure()) {
                FAIL() << path << " " << at;
            }
            write_whole(path, bytes);
        }
    }
}

TEST_F(JournalDamageTest, ManyFlippedBitsAtOnceLeaveAJournalThatRunsToTheEnd) {
    for (std::uint32_t seed = 0; seed < 200; ++seed) {
        std::mt19937 random(seed);
        make(50);
        for (const std::string stem : {"state", "results"}) {
            for (const std::string& path : segments(stem)) {
                std::string bytes = read_whole(path);
                for (std::uint32_t bit = 0; bit < 1 + seed % 30; ++bit) {
                    const std::size_t at = random() % bytes.size();
                    bytes[at] = static_cast<char>(bytes[at] ^ static_cast<char>(1U << (bit % 8)));
                }
                write_whole(path, bytes);
            }
        }
        expect_it_runs_to_the_end();
        if (HasFatalFailure()) {
            FAIL() << seed;
        }
    }
}

TEST_F(JournalDamageTest, AnyMissingSegmentCostsOnlyWhatIsInIt) {
    for (const bool tidied : {false, true}) {
        make(30);
        if (tidied) {
            tidy();
        }
        for (const std::string& path : segments("state")) {
            const std::string bytes = read_whole(path);
            fs::remove(path);
            expect_others_unhurt(bytes, "");
            expect_it_runs_to_the_end();
            if (HasFatalFailure()) {
                FAIL() << path;
            }
            write_whole(path, bytes);
        }
    }
}

TEST_F(JournalDamageTest, DamagedResultsCostReportsAlone) {
    std::mt19937 random(9);
    for (const std::string& path : segments("results")) {
        const std::string bytes = read_whole(path);
        for (int round = 0; round < 100; ++round) {
            std::string flipped = bytes.substr(0, bytes.size() - random() % 3 * 50);
            const std::size_t at = random() % flipped.size();
            flipped[at] = static_cast<char>(flipped[at] ^ 8);
            write_whole(path, flipped);
            const Revived revived = revive_anew(kTrials);

            ASSERT_EQ(revived.trials.size(), kTrials);
            for (std::uint32_t id = 0; id < kTrials; ++id) {
                const std::string state = whole_.trials[id].substr(0, whole_.trials[id].find(" r"));
                ASSERT_EQ(revived.trials[id].substr(0, state.size()), state);
            }
        }
        write_whole(path, bytes);
    }
}

TEST_F(JournalDamageTest, ALostCreationIsMadeUpForByTheSearch) {
    make(1000);
    const std::string path = segments("state").at(0);
    std::string bytes = read_whole(path);
    std::size_t lost = 0;
    for (std::size_t at = bytes.find("trial_created"); at != std::string::npos;
         at = bytes.find("trial_created", at + 1)) {
        bytes[at] = 'T';
        ++lost;
    }
    write_whole(path, bytes);

    const Revived revived = revive_anew(kTrials);

    ASSERT_GE(lost, kTrials);
    for (std::uint32_t id = 0; id < revived.trials.size(); ++id) {
        EXPECT_EQ(revived.trials[id], whole_.trials[id]);
    }
    const bool is_told =
        std::any_of(revived.problems.begin(), revived.problems.end(), [](const std::string& text) {
            return text.find("whose creation was lost") != std::string::npos;
        });
    EXPECT_TRUE(is_told);
}

TEST_F(JournalDamageTest, NoRunHasTheEpochOfOneWhoseBeginningWasLost) {
    make(1000);
    const std::string path = segments("state").at(0);
    std::string bytes = read_whole(path);
    for (std::size_t at = bytes.find("run_started"); at != std::string::npos;
         at = bytes.find("run_started", at + 1)) {
        bytes[at] = 'R';
    }
    write_whole(path, bytes);

    EXPECT_EQ(revive_anew(kTrials).rest.substr(0, 8), "epoch 3 ");
}

}  // namespace
}  // namespace muster
