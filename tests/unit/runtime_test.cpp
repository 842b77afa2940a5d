// SPDX-License-Identifier: Apache-2.0

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/spawner.hpp"
#include "runtime/experiment_clock.hpp"
#include "runtime/experiment_dir.hpp"
#include "runtime/held_commands.hpp"
#include "runtime/host.hpp"
#include "runtime/run_dir.hpp"
#include "runtime/signals.hpp"

namespace muster {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

Command send(std::uint32_t node, std::uint64_t after_facts) {
    return {Send{NodeId{node}, Dismiss{}}, after_facts};
}

TEST(ExperimentClockTest, TimeGoesOnFromWhereTheLastRunLeftIt) {
    ExperimentClock clock(TimePoint{10s}, 1000s);

    EXPECT_EQ(clock.advance(1003s, 3s), TimePoint{13s});
    EXPECT_EQ(clock.advance(1003s + 900ms, 0s), TimePoint{13s + 900ms});
}

TEST(ExperimentClockTest, TimeStandsStillWhileTheLoopWasStopped) {
    ExperimentClock clock(TimePoint{0s}, 0s);

    EXPECT_EQ(clock.advance(60s, 500ms), TimePoint{500ms});
    EXPECT_EQ(clock.advance(61s, 1s), TimePoint{1500ms});
}

TEST(ExperimentClockTest, TheGapIsWhatWasLeftOut) {
    ExperimentClock clock(TimePoint{0s}, 0s);

    clock.advance(60s, 500ms);
    EXPECT_EQ(clock.gap(), 59s + 500ms);
    clock.advance(61s, 1s);
    EXPECT_EQ(clock.gap(), 0s);
}

TEST(HeldCommandsTest, ALeaseDoesNotWaitForTheDisk) {
    HeldCommands held;
    const Command start = send(0, 5);
    const Command alive{Send{NodeId{0}, Alive{7}}, 0};
    const Command abandon{Abandon{NodeId{0}}, 5};

    EXPECT_EQ(held.hold_or_pass(start, 0), std::nullopt);
    EXPECT_EQ(held.hold_or_pass(alive, 0), alive);
    EXPECT_EQ(held.hold_or_pass(abandon, 0), abandon);
}

TEST(HeldCommandsTest, ALostNodeGetsNothingOfWhatWasHeld) {
    HeldCommands held;
    held.hold_or_pass(send(0, 5), 1);
    held.hold_or_pass(send(1, 5), 1);

    held.forget(NodeId{0});

    EXPECT_EQ(held.release(9), (std::vector<Command>{send(1, 5)}));
}

TEST(HeldCommandsTest, NothingGoesToANodeBeforeTheEpochIsOnDisk) {
    HeldCommands held;

    EXPECT_EQ(held.hold_or_pass(send(0, 0), 0), std::nullopt);
    EXPECT_EQ(held.release(0).size(), 0U);
    EXPECT_EQ(held.release(1).size(), 1U);
    EXPECT_TRUE(held.empty());
}

TEST(HeldCommandsTest, ACommandThatWaitsHoldsBackOnlyItsReceiver) {
    HeldCommands held;

    EXPECT_EQ(held.hold_or_pass(send(0, 5), 3), std::nullopt);
    EXPECT_EQ(held.hold_or_pass(send(0, 0), 3), std::nullopt);
    EXPECT_NE(held.hold_or_pass(send(1, 0), 3), std::nullopt);
    EXPECT_NE(held.hold_or_pass({Ask{1}, 0}, 3), std::nullopt);
    EXPECT_EQ(held.hold_or_pass({Announce{TrialId{0}}, 4}, 3), std::nullopt);

    EXPECT_EQ(held.release(4), (std::vector<Command>{{Announce{TrialId{0}}, 4}}));
    EXPECT_EQ(held.release(5), (std::vector<Command>{send(0, 5), send(0, 1)}));
}

class DirectoryTest : public testing::Test {
  protected:
    DirectoryTest() {
        std::string name = (fs::temp_directory_path() / "mu-test-XXXXXX").string();
        root_ = ::mkdtemp(name.data());
    }
    ~DirectoryTest() override { fs::remove_all(root_); }

    void write(const std::string& name, const std::string& content) const {
        std::ofstream(root_ + "/" + name) << content;
    }

    std::string root_;
};

using RunDirTest = DirectoryTest;

TEST_F(RunDirTest, ItIsPrivateShortAndGoneAfterwards) {
    std::string path;
    {
        const Result<RunDir> directory = RunDir::make();
        ASSERT_TRUE(directory.ok());
        path = directory->path();
        struct stat status {};
        ASSERT_EQ(::stat(path.c_str(), &status), 0);
        EXPECT_EQ(status.st_mode & 0777U, 0700U);
        EXPECT_LT(path.size(), 100U);
    }
    EXPECT_FALSE(fs::exists(path));
}

TEST_F(RunDirTest, ADirectoryThatCanNotBeMadeInTmpdirIsMadeInTmp) {
    // /proc takes no directory, though root may write there by its mode.
    ::setenv("TMPDIR", "/proc", 1);
    const Result<RunDir> directory = RunDir::make();
    ::unsetenv("TMPDIR");

    ASSERT_TRUE(directory.ok()) << directory.error().message;
    EXPECT_EQ(directory->path().rfind("/tmp/muster-", 0), 0U);
}

TEST_F(RunDirTest, WhatADeadRunLeftIsTakenAwayAndALivingOneIsNot) {
    ::setenv("TMPDIR", root_.c_str(), 1);
    // No process has this number: it is above the kernel's limit.
    const std::string dead = root_ + "/muster-" + std::to_string(::getuid()) + "-4194305-abcdef";
    fs::create_directories(dead + "/inside");
    fs::create_directories(root_ + "/muster-" + std::to_string(::getuid()) + "-mine");

    const Result<RunDir> living = RunDir::make();
    const Result<RunDir> another = RunDir::make();
    ::unsetenv("TMPDIR");

    ASSERT_TRUE(living.ok() && another.ok());
    EXPECT_FALSE(fs::exists(dead));
    EXPECT_TRUE(fs::exists(living->path()));
    EXPECT_TRUE(fs::exists(root_ + "/muster-" + std::to_string(::getuid()) + "-mine"));
}

TEST_F(RunDirTest, ItIsTakenAwayWhenItsProcessIsKilled) {
    ::setenv("TMPDIR", root_.c_str(), 1);
    const pid_t child = ::fork();
    if (child == 0) {
        const Result<RunDir> directory = RunDir::make();
        const Result<Spawner> spawner = Spawner::start(directory->path());
        ::kill(::getpid(), SIGKILL);
    }
    ::waitpid(child, nullptr, 0);
    ::unsetenv("TMPDIR");

    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (!fs::is_empty(root_) && std::chrono::steady_clock::now() < deadline) {
        ::poll(nullptr, 0, 1);
    }
    EXPECT_TRUE(fs::is_empty(root_));
}

using ExperimentDirTest = DirectoryTest;

TEST_F(ExperimentDirTest, FreshTakesTheNextNameThatIsFree) {
    ExperimentSpec spec;
    spec.name = "digits";
    spec.storage_path = root_ + "/results";

    EXPECT_EQ(prepare_experiment_dir(spec, false)->name, "digits");
    EXPECT_EQ(prepare_experiment_dir(spec, false)->name, "digits");
    EXPECT_EQ(prepare_experiment_dir(spec, true)->name, "digits-2");
    EXPECT_EQ(prepare_experiment_dir(spec, true)->name, "digits-3");
}

TEST_F(ExperimentDirTest, ANameThatIsAPathIsRefused) {
    ExperimentSpec spec;
    spec.name = "a/b";
    spec.storage_path = root_;

    EXPECT_EQ(prepare_experiment_dir(spec, false).error().code, ErrorCode::InvalidInput);
}

TEST(SignalSourceTest, SignalsAreReadInOrderAndIgnoredOnesStayIgnored) {
    ::signal(SIGHUP, SIG_IGN);
    Result<SignalSource> signals = SignalSource::open();
    ASSERT_TRUE(signals.ok());

    ::raise(SIGHUP);
    ::raise(SIGTERM);

    EXPECT_EQ(signals->receive(), (std::vector<int>{SIGTERM}));
    ::signal(SIGHUP, SIG_DFL);
}

}  // namespace
}  // namespace muster
