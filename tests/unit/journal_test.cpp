// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "journal/reader.hpp"
#include "journal/record.hpp"
#include "journal/writer.hpp"
#include "unit/journal_facts.hpp"

namespace muster {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

class JournalTest : public testing::Test {
  protected:
    JournalTest() {
        std::string name = (fs::temp_directory_path() / "muster-journal-XXXXXX").string();
        root_ = ::mkdtemp(name.data());
        directory_ = root_ + "/journal";
    }
    ~JournalTest() override { fs::remove_all(root_); }

    JournalOptions options() const { return {.directory = directory_, .experiment = "digits"}; }

    JournalWriter open(const JournalOptions& options) {
        Result<JournalWriter> writer = JournalWriter::open(options);
        EXPECT_TRUE(writer.ok()) << writer.error().message;
        return std::move(writer).value();
    }

    /// Writes `count` trials' creations and closes.
    void write_trials(std::uint32_t count, const Config& config = hard_config()) {
        JournalWriter writer = open(options());
        for (std::uint32_t id = 0; id < count; ++id) {
            writer.append(TrialCreated{TrialId{id}, config}, {});
        }
        ASSERT_TRUE(writer.close(10s).ok());
    }

    std::vector<TrialId> created() {
        std::vector<TrialId> ids;
        reading_ = read_journal(directory_, [&](const Fact& fact, TimePoint) {
            ids.push_back(std::get<TrialCreated>(fact).trial);
        });
        EXPECT_TRUE(reading_.ok());
        return ids;
    }

    std::string state_path() const { return directory_ + "/state-000001.log"; }

    static std::string content(const std::string& path) {
        std::ifstream file(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    static void overwrite(const std::string& path, const std::string& bytes) {
        std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    }

    std::string root_;
    std::string directory_;
    Result<JournalReading> reading_ = JournalReading{};
};

/// Waits for durable() to reach `sequence`; false after ten seconds.
bool wait_durable(JournalWriter& writer, std::uint64_t sequence) {
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (writer.durable() < sequence && std::chrono::steady_clock::now() < deadline) {
        pollfd poll_fd{writer.fd(), POLLIN, 0};
        ::poll(&poll_fd, 1, 1000);
        writer.acknowledge();
    }
    return writer.durable() >= sequence;
}

TEST_F(JournalTest, FactsAndResultsComeBackInOrderWithTheirTimes) {
    std::vector<std::pair<Fact, TimePoint>> state;
    std::vector<std::pair<Fact, TimePoint>> results;
    {
        JournalWriter writer = open(options());
        TimePoint now;
        for (const Fact& fact : every_fact()) {
            now = now + 1ms;
            writer.append(fact, now);
            (std::holds_alternative<ResultReported>(fact) ? results : state)
                .emplace_back(fact, now);
        }
        EXPECT_TRUE(writer.close(10s).ok());
    }

    std::vector<std::pair<Fact, TimePoint>> state_read;
    std::vector<std::pair<Fact, TimePoint>> results_read;
    const auto state_reading = read_journal(directory_, [&](const Fact& fact, TimePoint at) {
        state_read.emplace_back(fact, at);
    });
    const auto results_reading =
        read_results(directory_, std::nullopt, [&](const ResultReported& result, TimePoint at) {
            results_read.emplace_back(result, at);
        });

    EXPECT_EQ(state_read, state);
    EXPECT_EQ(results_read, results);
    EXPECT_EQ(state_reading->next, state.size() + 1);
    EXPECT_EQ(state_reading->last, state.back().second);
    EXPECT_EQ(state_reading->damaged + state_reading->missing, 0U);
    EXPECT_EQ(results_reading->next, results.size() + 1);
}

TEST_F(JournalTest, ResultsOfOneTrialAreFoundAmongOthers) {
    {
        JournalWriter writer = open(options());
        for (std::uint32_t step = 0; step < 100; ++step) {
            writer.append(
                ResultReported{TrialId{step % 13}, {1, 0}, {double(step), {}}, {}, {}}, {}
            );
        }
    }

    std::vector<double> steps;
    const auto reading =
        read_results(directory_, TrialId{1}, [&](const ResultReported& result, TimePoint) {
            steps.push_back(result.result.step);
        });

    EXPECT_EQ(steps, (std::vector<double>{1, 14, 27, 40, 53, 66, 79, 92}));
    EXPECT_EQ(reading->records, 8U);
}

TEST_F(JournalTest, OnlyTheOwnerMayReadIt) {
    write_trials(1);

    struct stat status {};
    ASSERT_EQ(::stat(directory_.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0700U);
    ASSERT_EQ(::stat(state_path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST_F(JournalTest, AnAppendedFactBecomesDurableAndItsDescriptorSaysSo) {
    JournalWriter writer = open(options());

    const std::uint64_t first = writer.append(RunStarted{1}, {});
    EXPECT_TRUE(wait_durable(writer, first));
    const std::uint64_t result =
        writer.append(ResultReported{TrialId{0}, {1, 0}, {1, {}}, false, 0}, {});

    EXPECT_EQ(result, first);
    EXPECT_EQ(writer.problem(), "");
    EXPECT_FALSE(writer.full());
}

TEST_F(JournalTest, ResultsAreOnDiskNoLaterThanTheEndOfTheirTrial) {
    JournalWriter writer = open(options());
    writer.append(ResultReported{TrialId{0}, {1, 0}, {1, {}}, false, 0}, {});
    const std::uint64_t ended = writer.append(TrialEnded{TrialId{0}}, {});

    ASSERT_TRUE(wait_durable(writer, ended));

    int found = 0;
    (void
    )read_results(directory_, std::nullopt, [&](const ResultReported&, TimePoint) { ++found; });
    EXPECT_EQ(found, 1);
}

TEST_F(JournalTest, ALaterRunGoesOnInNewSegments) {
    write_trials(2);
    const std::vector<TrialId> before = created();
    JournalOptions later = options();
    later.next_state = reading_->next;
    {
        JournalWriter writer = open(later);
        writer.append(TrialCreated{TrialId{2}, {}}, {});
    }

    EXPECT_EQ(created(), (std::vector<TrialId>{TrialId{0}, TrialId{1}, TrialId{2}}));
    EXPECT_TRUE(fs::exists(directory_ + "/state-000002.log"));
    EXPECT_EQ(reading_->missing, 0U);
}

TEST_F(JournalTest, FullSegmentsAreFollowedByOthers) {
    JournalOptions small = options();
    small.segment_bytes = 1000;
    JournalWriter writer = open(small);
    for (std::uint32_t id = 0; id < 30; ++id) {
        ASSERT_TRUE(wait_durable(writer, writer.append(TrialCreated{TrialId{id}, {}}, {})));
    }
    ASSERT_TRUE(writer.close(10s).ok());

    EXPECT_EQ(created().size(), 30U);
    EXPECT_TRUE(fs::exists(directory_ + "/state-000003.log"));
}

TEST_F(JournalTest, AJournalCutAtAnyByteGivesEverythingBeforeTheCut) {
    write_trials(2, {});
    const std::string whole = content(state_path());
    const std::size_t header = whole.find('\n') + 1;

    for (std::size_t size : {std::size_t{0}, header / 2, header - 1}) {
        overwrite(state_path(), whole.substr(0, size));
        EXPECT_EQ(created().size(), 0U);
    }
    for (std::size_t size = header; size < whole.size(); ++size) {
        const std::string cut = whole.substr(0, size);
        overwrite(state_path(), cut);

        const std::vector<TrialId> ids = created();

        const auto lines = static_cast<std::size_t>(std::count(cut.begin(), cut.end(), '\n'));
        ASSERT_EQ(ids.size(), lines - 1) << size;
        ASSERT_EQ(reading_->damaged, cut.back() == '\n' ? 0U : 1U) << size;
    }
}

TEST_F(JournalTest, AZeroedBlockCostsWhatWasInItAndIsTold) {
    write_trials(100);
    std::string bytes = content(state_path());
    ASSERT_GT(bytes.size(), 3U * 4096U);
    bytes.replace(4096, 4096, std::string(4096, '\0'));
    overwrite(state_path(), bytes);

    const std::vector<TrialId> ids = created();

    EXPECT_GT(ids.size(), 70U);
    EXPECT_EQ(ids.size() + reading_->missing, 100U);
    EXPECT_GT(reading_->damaged, 0U);
    ASSERT_FALSE(reading_->problems.empty());
    EXPECT_EQ(reading_->problems[0].substr(0, 17), "state-000001.log:");
}

TEST_F(JournalTest, AJournalOfALaterFormatIsRefused) {
    write_trials(1);
    std::string header;
    journal::append_record(journal::Header{2, "9.0", "digits"}, "", header);
    overwrite(state_path(), header);

    const Result<JournalReading> reading = read_journal(directory_, [](const Fact&, TimePoint) {});

    ASSERT_FALSE(reading.ok());
    EXPECT_EQ(reading.error().code, ErrorCode::Corrupt);
}

TEST_F(JournalTest, WithoutAJournalThereIsNothingToRead) {
    EXPECT_FALSE(has_journal(directory_));
    EXPECT_EQ(
        read_journal(directory_, [](const Fact&, TimePoint) {}).error().code, ErrorCode::NotFound
    );
}

TEST_F(JournalTest, ADirectoryThatCannotBeMadeIsAnErrorThatNamesIt) {
    JournalOptions nowhere = options();
    nowhere.directory = root_ + "/absent/journal";

    const Result<JournalWriter> writer = JournalWriter::open(nowhere);

    ASSERT_FALSE(writer.ok());
    EXPECT_NE(writer.error().message.find("absent/journal"), std::string::npos);
}

/// Runs `body` in a child; its exit code, or -1 when it did not end by itself.
int in_child(const std::function<int()>& body) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(20);
        ::_exit(body());
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(JournalTest, AFileThatMayNotGrowIsFollowedByAnother) {
    const int code = in_child([&] {
        ::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{4096, 4096};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        JournalOptions eager = options();
        eager.retry_interval = 1ms;
        JournalWriter writer = open(eager);
        for (std::uint32_t id = 0; id < 100; ++id) {
            writer.append(TrialCreated{TrialId{id}, {}}, {});
            wait_durable(writer, writer.appended());
        }
        return writer.close(10s).ok() ? 0 : 1;
    });

    EXPECT_EQ(code, 0);
    EXPECT_EQ(created().size(), 100U);
    EXPECT_EQ(reading_->missing, 0U);
}

TEST_F(JournalTest, AFullDiskIsToldAndNothingIsLostOnceThereIsRoom) {
    constexpr int kNotAllowed = 77;
    fs::create_directory(root_ + "/small");
    const int code = in_child([&] {
        if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
            return kNotAllowed;
        }
        const std::string small = root_ + "/small";
        if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            ::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=64k") != 0) {
            return kNotAllowed;
        }
        directory_ = small + "/journal";
        JournalOptions eager = options();
        eager.retry_interval = 1ms;
        eager.limit_bytes = 1000;
        JournalWriter writer = open(eager);
        std::uint32_t id = 0;
        const auto deadline = std::chrono::steady_clock::now() + 10s;
        while (!writer.full() || writer.problem().empty()) {
            if (std::chrono::steady_clock::now() > deadline) {
                return 1;
            }
            writer.append(TrialCreated{TrialId{id++}, hard_config()}, {});
            ::usleep(50);
        }
        const std::uint64_t held = writer.appended();
        if (writer.durable() >= held || writer.close(50ms).ok()) {
            return 2;
        }
        ::mount("tmpfs", small.c_str(), "tmpfs", MS_REMOUNT, "size=8m");
        while (writer.durable() < held) {
            if (std::chrono::steady_clock::now() > deadline) {
                return 3;
            }
            ::usleep(1000);
        }
        return created().size() == id && reading_->missing == 0 ? 0 : 4;
    });

    if (code == kNotAllowed) {
        GTEST_SKIP() << "mounting a small tmpfs is not allowed here";
    }
    EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace muster
