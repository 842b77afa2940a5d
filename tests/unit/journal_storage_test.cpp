// SPDX-License-Identifier: Apache-2.0
//
// What the writer promises while its storage is slow, full, gone or forgetful.

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include "journal/reader.hpp"
#include "journal/writer.hpp"

namespace muster {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

/// A disk that fails by chance, and keeps in a crash only what was synced.
class FaultyFiles : public JournalFiles {
  public:
    explicit FaultyFiles(std::uint32_t seed) : random_(seed) {}

    /// One call in so many fails; 0 is none.
    std::atomic<std::uint32_t> one_in = 0;
    /// Every call fails so.
    std::atomic<int> always = 0;

    int create(const std::string& path) override {
        if (const int error = fails()) {
            return -error;
        }
        const int fd = JournalFiles::create(path);
        const std::lock_guard lock(mutex_);
        files_[fd] = {path, 0, 0};
        synced_[path] = 0;
        return fd;
    }
    long write(int fd, std::string_view bytes) override {
        if (const int error = fails()) {
            return -error;
        }
        // A part of it now and then.
        const std::lock_guard lock(mutex_);
        const std::size_t size = random_() % 4 == 0 ? bytes.size() / 2 + 1 : bytes.size();
        const long count = JournalFiles::write(fd, bytes.substr(0, size));
        files_[fd].written += static_cast<std::uint64_t>(count > 0 ? count : 0);
        return count;
    }
    int sync(int fd) override {
        const int error = fails();
        const std::lock_guard lock(mutex_);
        File& file = files_[fd];
        if (error != 0) {
            // As Linux does, it drops what it could not write, and forgets that it did.
            forget(file);
            return -error;
        }
        file.synced = file.written;
        synced_[file.path] = file.synced;
        return 0;
    }
    int sync_directory(const std::string& path) override {
        const int error = fails();
        return error != 0 ? -error : JournalFiles::sync_directory(path);
    }

    /// The machine fails: of each file what was synced is left.
    void crash() {
        const std::lock_guard lock(mutex_);
        for (const auto& [path, size] : synced_) {
            if (fs::exists(path)) {
                fs::resize_file(path, std::min<std::uintmax_t>(size, fs::file_size(path)));
            }
        }
    }

  private:
    struct File {
        std::string path;
        std::uint64_t written = 0;
        std::uint64_t synced = 0;
    };

    int fails() {
        if (const int error = always.load()) {
            return error;
        }
        const std::lock_guard lock(mutex_);
        constexpr int kErrors[] = {EIO, ENOSPC, ESTALE, EDQUOT, ETIMEDOUT, ENOENT};
        const std::uint32_t chance = one_in;
        return chance != 0 && random_() % chance == 0 ? kErrors[random_() % std::size(kErrors)] : 0;
    }
    static void forget(File& file) {
        const std::uint64_t size = file.written - file.synced;
        std::fstream stream(file.path, std::ios::binary | std::ios::in | std::ios::out);
        stream.seekp(static_cast<std::streamoff>(file.synced));
        stream << std::string(size, '\0');
    }

    std::mutex mutex_;
    std::mt19937 random_;
    std::map<int, File> files_;
    std::map<std::string, std::uint64_t> synced_;
};

/// A disk that does not answer while it is shut.
class HungFiles : public JournalFiles {
  public:
    long write(int fd, std::string_view bytes) override {
        wait();
        return JournalFiles::write(fd, bytes);
    }
    int sync(int fd) override {
        wait();
        return JournalFiles::sync(fd);
    }
    void set_shut(bool shut) {
        const std::lock_guard lock(mutex_);
        shut_ = shut;
        opened_.notify_all();
    }

  private:
    void wait() {
        std::unique_lock lock(mutex_);
        opened_.wait_for(lock, 20s, [this] { return !shut_; });
    }

    std::mutex mutex_;
    std::condition_variable opened_;
    bool shut_ = false;
};

template <class Condition>
bool wait_until(const Condition& holds) {
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (!holds() && std::chrono::steady_clock::now() < deadline) {
        ::poll(nullptr, 0, 1);
    }
    return holds();
}

class JournalStorageTest : public testing::Test {
  protected:
    JournalStorageTest() {
        std::string name = (fs::temp_directory_path() / "muster-storage-XXXXXX").string();
        root_ = ::mkdtemp(name.data());
        directory_ = root_ + "/journal";
    }
    ~JournalStorageTest() override { fs::remove_all(root_); }

    JournalOptions options(std::shared_ptr<JournalFiles> files) const {
        JournalOptions options{.directory = directory_, .experiment = "storage"};
        options.retry_interval = 1ms;
        options.results_interval = 5ms;
        options.slow_after = 10ms;
        options.limit_bytes = 20'000;
        options.segment_bytes = 3'000;
        options.files = std::move(files);
        return options;
    }

    /// The trials whose creation is on disk, in the order in which they are read.
    std::vector<std::uint32_t> created() {
        std::vector<std::uint32_t> ids;
        reading_ = read_journal(directory_, [&](const Fact& fact, TimePoint) {
            ids.push_back(std::get<TrialCreated>(fact).trial.value);
        });
        EXPECT_TRUE(reading_.ok());
        return ids;
    }

    std::string root_;
    std::string directory_;
    Result<JournalReading> reading_ = JournalReading{};
};

ResultReported report(std::uint32_t id) {
    return {TrialId{id}, {1, id}, {1, {{"loss", 0.5}}}, false, 0};
}

TEST_F(JournalStorageTest, AFileSystemThatHangsHoldsNobodyUpAndIsTold) {
    const auto files = std::make_shared<HungFiles>();
    Result<JournalWriter> writer = JournalWriter::open(options(files));
    ASSERT_TRUE(writer.ok());
    files->set_shut(true);
    std::uint32_t count = 0;

    // Whoever heeds full() stops here, with little more than the limit in memory.
    while (!writer->full()) {
        writer->append(TrialCreated{TrialId{count}, {}}, {});
        writer->append(report(count++), {});
    }
    EXPECT_TRUE(wait_until([&] { return !writer->problem().empty(); }));
    EXPECT_NE(writer->problem().find("does not answer"), std::string::npos);
    EXPECT_EQ(writer->durable(), 0U);
    EXPECT_LT(count, 500U);

    files->set_shut(false);
    EXPECT_TRUE(wait_until([&] { return writer->durable() == count && !writer->full(); }));
    EXPECT_TRUE(wait_until([&] { return writer->problem().empty(); }));
    EXPECT_TRUE(writer->close(10s).ok());
    EXPECT_EQ(created().size(), count);
}

TEST_F(JournalStorageTest, TheEndDoesNotWaitForAFileSystemThatHangs) {
    const auto files = std::make_shared<HungFiles>();
    Result<JournalWriter> writer = JournalWriter::open(options(files));
    ASSERT_TRUE(writer.ok());
    files->set_shut(true);
    writer->append(TrialCreated{}, {});

    const Status closed = writer->close(20ms);

    ASSERT_FALSE(closed.ok());
    EXPECT_NE(closed.error().message.find("does not answer"), std::string::npos);
    files->set_shut(false);
    EXPECT_TRUE(wait_until([&] { return created().size() == 1; }));
}

TEST_F(JournalStorageTest, StorageThatVanishesAndComesBackHasEverything) {
    for (const int error : {ENOENT, ESTALE, EIO, ENOSPC, EROFS}) {
        fs::remove_all(directory_);
        const auto files = std::make_shared<FaultyFiles>(1);
        Result<JournalWriter> writer = JournalWriter::open(options(files));
        ASSERT_TRUE(writer.ok());
        std::uint32_t count = 0;
        const auto append = [&](std::uint32_t many) {
            for (std::uint32_t index = 0; index < many; ++index) {
                writer->append(report(count), {});
                writer->append(TrialCreated{TrialId{count++}, {}}, {});
            }
        };
        append(20);
        ASSERT_TRUE(wait_until([&] { return writer->durable() == count; }));
        files->always = error;
        append(20);
        ASSERT_TRUE(wait_until([&] { return !writer->problem().empty(); }));
        append(20);
        EXPECT_EQ(writer->durable(), 20U);

        files->always = 0;

        EXPECT_TRUE(wait_until([&] { return writer->durable() == count; }));
        EXPECT_TRUE(wait_until([&] { return writer->problem().empty(); }));
        EXPECT_TRUE(writer->close(10s).ok());
        EXPECT_EQ(created().size(), 60U) << error;
        EXPECT_EQ(reading_->missing, 0U);
    }
}

TEST_F(JournalStorageTest, WhateverFailsNothingThatWasAcknowledgedIsLostInACrash) {
    for (std::uint32_t seed = 0; seed < 60; ++seed) {
        fs::remove_all(directory_);
        const auto files = std::make_shared<FaultyFiles>(seed);
        std::uint64_t acknowledged = 0;
        {
            Result<JournalWriter> writer = JournalWriter::open(options(files));
            ASSERT_TRUE(writer.ok());
            files->one_in = 2 + seed % 9;
            for (std::uint32_t id = 0; id < 100; ++id) {
                const std::uint64_t sequence = writer->append(TrialCreated{TrialId{id}, {}}, {});
                writer->append(report(id), {});
                if (id % 7 == 0) {
                    ASSERT_TRUE(wait_until([&] { return writer->durable() >= sequence; })) << seed;
                }
            }
            // Nothing reaches the disk from here on.
            files->always = EIO;
            (void)writer->close(5ms);
            acknowledged = writer->durable();
            files->crash();
        }

        const std::vector<std::uint32_t> ids = created();

        ASSERT_GE(acknowledged, 99U) << seed;
        ASSERT_GE(ids.size(), acknowledged) << seed;
        for (std::uint32_t id = 0; id < ids.size(); ++id) {
            ASSERT_EQ(ids[id], id) << seed;
        }
    }
}

}  // namespace
}  // namespace muster
