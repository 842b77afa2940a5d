// SPDX-License-Identifier: Apache-2.0

#include "runtime/owner_file.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/host.hpp"
#include "runtime/take_over.hpp"
#include "runtime/team_file.hpp"

namespace muster {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using Taken = Result<std::variant<OwnerFile, Holder>>;

/// As the file says who is on another host.
constexpr char kElsewhere[] = R"({"id": "x1", "host": "elsewhere", "pid": 1, "started": 5})";

class OwnerFileTest : public testing::Test {
  protected:
    OwnerFileTest() {
        std::string name = (fs::temp_directory_path() / "mu-owner-XXXXXX").string();
        root_ = ::mkdtemp(name.data());
    }
    ~OwnerFileTest() override { fs::remove_all(root_); }

    void write(const std::string& name, const std::string& content) const {
        std::ofstream(root_ + "/" + name) << content;
    }
    void make_old(const std::string& name, std::chrono::seconds age) const {
        fs::last_write_time(root_ + "/" + name, fs::file_time_type::clock::now() - age);
    }
    std::vector<std::string> names() const {
        std::vector<std::string> names;
        for (const fs::directory_entry& entry : fs::directory_iterator(root_)) {
            names.push_back(entry.path().filename());
        }
        std::sort(names.begin(), names.end());
        return names;
    }
    /// Leaves what a process of this host leaves that was killed.
    void die_as_owner(const std::string& name = "owner") const {
        const pid_t child = ::fork();
        if (child == 0) {
            const Taken taken = OwnerFile::take(root_);
            ::_exit(taken.ok() ? 0 : 1);
        }
        ::waitpid(child, nullptr, 0);
        if (name != "owner") {
            fs::rename(root_ + "/owner", root_ + "/" + name);
        }
    }
    std::string id_in(const std::string& name) const {
        std::ifstream file(root_ + "/" + name);
        std::string text;
        std::getline(file, text);
        const std::size_t at = text.find("\"id\":");
        return text.substr(text.find('"', at + 5) + 1, 16);
    }

    std::string root_;
    std::vector<std::string> said_;
    Waiting waiting_{[this](const std::string& text) { said_.push_back(text); }, [] {}, -1};
};

bool is_owner(const Taken& taken) {
    return taken.ok() && std::holds_alternative<OwnerFile>(*taken);
}

TEST_F(OwnerFileTest, ASecondOwnerIsToldWhoTheFirstIs) {
    const Taken first = OwnerFile::take(root_, 77);
    ASSERT_TRUE(is_owner(first));

    const Taken second = OwnerFile::take(root_);

    ASSERT_TRUE(second.ok() && !is_owner(second));
    const auto& holder = std::get<Holder>(*second);
    EXPECT_EQ(holder.state, Holder::State::Living);
    EXPECT_EQ(holder.who.pid, ::getpid());
    EXPECT_EQ(holder.who.host, host_name());
    EXPECT_EQ(holder.who.spawner, 77);
}

TEST_F(OwnerFileTest, ALivingOwnerIsRefusedAtOnceWithHowToEndIt) {
    const Taken first = OwnerFile::take(root_);

    const auto second = take_ownership(root_, 0, true, waiting_);

    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code, ErrorCode::Conflict);
    const std::string pid = std::to_string(::getpid());
    EXPECT_NE(
        second.error().message.find("process " + pid + " on " + host_name()), std::string::npos
    ) << second.error().message;
    EXPECT_NE(second.error().message.find("`kill -INT " + pid + "`"), std::string::npos);
    EXPECT_TRUE(said_.empty());
}

TEST_F(OwnerFileTest, NothingIsLeftOfAnOwnerThatLeft) {
    { const Taken first = OwnerFile::take(root_); }

    EXPECT_TRUE(fs::is_empty(root_));
}

TEST_F(OwnerFileTest, AProcessThatIsGoneIsSucceededAndTold) {
    die_as_owner();
    make_old("owner", 7s);

    const Taken owner = OwnerFile::take(root_);

    ASSERT_TRUE(is_owner(owner));
    const auto& predecessor = std::get<OwnerFile>(*owner).predecessor();
    ASSERT_TRUE(predecessor.has_value());
    EXPECT_EQ(predecessor->who.host, host_name());
    EXPECT_GE(predecessor->silent, 7s);
    EXPECT_EQ(names(), (std::vector<std::string>{"owner"}));
}

TEST_F(OwnerFileTest, AnotherHostIsDeadAfterAMinuteOfSilence) {
    write("owner", kElsewhere);
    const Taken early = OwnerFile::take(root_);
    ASSERT_TRUE(early.ok() && !is_owner(early));
    EXPECT_EQ(std::get<Holder>(*early).state, Holder::State::Unknown);

    make_old("owner", 2min);

    EXPECT_TRUE(is_owner(OwnerFile::take(root_)));
}

TEST_F(OwnerFileTest, ASilentOwnerElsewhereIsWaitedForAndSucceeded) {
    write("owner", kElsewhere);
    make_old("owner", 55s);

    const auto owner = take_ownership(root_, 0, true, waiting_);

    ASSERT_TRUE(owner.ok() && *owner) << owner.error().message;
    ASSERT_EQ(said_.size(), 1U);
    EXPECT_NE(said_[0].find("process 1 on elsewhere"), std::string::npos) << said_[0];
    EXPECT_NE(said_[0].find("waiting for "), std::string::npos);
    EXPECT_NE(said_[0].find(" UTC, to see whether it is dead"), std::string::npos);
}

TEST_F(OwnerFileTest, WhoDoesNotWaitIsRefusedAtOnce) {
    write("owner", kElsewhere);

    const auto owner = take_ownership(root_, 0, false, waiting_);

    ASSERT_FALSE(owner.ok());
    EXPECT_EQ(owner.error().code, ErrorCode::Conflict);
    EXPECT_NE(owner.error().message.find("ssh elsewhere kill -INT 1"), std::string::npos);
}

TEST_F(OwnerFileTest, AnOwnerElsewhereThatGivesASignIsRefused) {
    write("owner", kElsewhere);
    make_old("owner", 30s);
    Waiting waiting = waiting_;
    // The other host's heartbeat.
    waiting.breathe = [&] { make_old("owner", 29s); };

    const auto owner = take_ownership(root_, 0, true, waiting);

    ASSERT_FALSE(owner.ok());
    EXPECT_EQ(owner.error().code, ErrorCode::Conflict);
    EXPECT_TRUE(said_.empty());
}

TEST_F(OwnerFileTest, AnEarlierIncarnationOfTheJobIsWaitedForThoughItLives) {
    const auto in_job = [&](const char* restarts, auto act) {
        ::setenv("SLURM_JOB_ID", "7", 1);
        ::setenv("SLURM_RESTART_COUNT", restarts, 1);
        auto result = act();
        ::unsetenv("SLURM_JOB_ID");
        ::unsetenv("SLURM_RESTART_COUNT");
        return result;
    };
    std::optional<Taken> before = in_job("1", [&] { return OwnerFile::take(root_); });
    ASSERT_TRUE(is_owner(*before));
    Waiting waiting = waiting_;
    waiting.breathe = [&] { before.reset(); };

    const auto same = in_job("1", [&] { return take_ownership(root_, 0, true, waiting); });
    const auto refused = in_job("2", [&] { return take_ownership(root_, 0, false, waiting); });
    const auto owner = in_job("2", [&] { return take_ownership(root_, 0, true, waiting); });

    EXPECT_FALSE(same.ok());
    EXPECT_FALSE(refused.ok());
    ASSERT_TRUE(owner.ok() && *owner);
    ASSERT_EQ(said_.size(), 1U);
    EXPECT_NE(said_[0].find("before it was put back"), std::string::npos) << said_[0];
}

TEST_F(OwnerFileTest, AnOwnerLearnsThatItWasSucceededOrItsDirectoryIsGone) {
    const Taken taken = OwnerFile::take(root_);
    const auto& owner = std::get<OwnerFile>(*taken);
    EXPECT_TRUE(owner.touch().ok());

    fs::rename(root_, root_ + "-away");
    const Status gone = owner.touch();
    fs::rename(root_ + "-away", root_);
    const Status back = owner.touch();
    write("owner", kElsewhere);
    const Status succeeded = owner.touch();

    ASSERT_FALSE(gone.ok());
    EXPECT_EQ(gone.error().code, ErrorCode::System);
    EXPECT_TRUE(back.ok());
    ASSERT_FALSE(succeeded.ok());
    EXPECT_EQ(succeeded.error().code, ErrorCode::Conflict);
    EXPECT_NE(succeeded.error().message.find("process 1 on elsewhere"), std::string::npos);
}

TEST_F(OwnerFileTest, AnOwnerMakesItsFileAnewWhenItAloneIsGone) {
    const Taken taken = OwnerFile::take(root_);
    fs::remove(root_ + "/owner");

    EXPECT_TRUE(std::get<OwnerFile>(*taken).touch().ok());

    EXPECT_FALSE(is_owner(OwnerFile::take(root_)));
    EXPECT_EQ(names(), (std::vector<std::string>{"owner"}));
}

TEST_F(OwnerFileTest, WhoDiedWhileTakingOverIsSucceededToo) {
    // The dead owner, the one who died with the claim on it, and the one who died after him.
    die_as_owner("first");
    die_as_owner("owner.after-" + id_in("first"));
    die_as_owner("owner.after-" + id_in("owner.after-" + id_in("first")));
    fs::rename(root_ + "/first", root_ + "/owner");

    EXPECT_TRUE(is_owner(OwnerFile::take(root_)));
}

/// Runs `count` processes that try at one instant; how many became the owner, each of which waits
/// for all others to have tried.
int race(const std::string& root, int count) {
    int go[2];
    int done[2];
    int end[2];
    EXPECT_EQ(::pipe(go) + ::pipe(done) + ::pipe(end), 0);
    for (int index = 0; index < count; ++index) {
        if (::fork() == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            char byte = 0;
            (void)!::read(go[0], &byte, 1);
            const Taken taken = OwnerFile::take(root);
            byte = !taken.ok() ? 'E' : is_owner(taken) ? 'W' : 'L';
            (void)!::write(done[1], &byte, 1);
            // An owner lives until everybody is done; the others' remains are gone at once.
            if (byte == 'W') {
                (void)!::read(end[0], &byte, 1);
            }
            ::_exit(0);
        }
    }
    const std::string bytes(static_cast<std::size_t>(count), 'g');
    (void)!::write(go[1], bytes.data(), bytes.size());
    int winners = 0;
    for (int index = 0; index < count; ++index) {
        char byte = 0;
        (void)!::read(done[0], &byte, 1);
        winners += byte == 'W' ? 1 : 0;
        EXPECT_NE(byte, 'E');
    }
    (void)!::write(end[1], bytes.data(), bytes.size());
    for (int index = 0; index < count; ++index) {
        ::wait(nullptr);
    }
    for (const int fd : {go[0], go[1], done[0], done[1], end[0], end[1]}) {
        ::close(fd);
    }
    return winners;
}

TEST_F(OwnerFileTest, OfManyThatBeginAtOneInstantExactlyOneWins) {
    for (int round = 0; round < 100; ++round) {
        fs::remove(root_ + "/owner");
        ASSERT_EQ(race(root_, 6), 1) << "round " << round;
    }
}

TEST_F(OwnerFileTest, OfManyThatSucceedADeadOwnerExactlyOneWins) {
    // Each round's winner is the dead owner of the next.
    die_as_owner();
    for (int round = 0; round < 100; ++round) {
        ASSERT_EQ(race(root_, 6), 1) << "round " << round;
    }
}

TEST_F(OwnerFileTest, OldAgentsElsewhereAreWaitedForUntilTheirLeaseIsOver) {
    write("owner", kElsewhere);
    make_old("owner", 69s);
    const TeamFile team{root_ + "/.token-1", 60s, {{1, "n2", "h2", "b2", 5}}};
    ASSERT_TRUE(write_team(root_, team).ok());
    EXPECT_EQ(read_team(root_), team);
    const Taken owner = OwnerFile::take(root_);
    ASSERT_TRUE(is_owner(owner));

    const Result<bool> over = outwait_old_run(root_, std::get<OwnerFile>(*owner), waiting_);

    EXPECT_TRUE(over.ok() && *over);
    ASSERT_EQ(said_.size(), 1U);
    EXPECT_NE(said_[0].find("lease is over: n2; waiting for "), std::string::npos) << said_[0];
    EXPECT_EQ(names(), (std::vector<std::string>{"owner"}));
}

TEST_F(OwnerFileTest, NobodyWaitsForAgentsThatAreKnownToHaveEnded) {
    die_as_owner();
    const TeamFile team{
        root_ + "/.token-1", 1h, {{1, "n2", "h2", "b2", 5}, {2, "n3", "h3", "b3", 5}}};
    ASSERT_TRUE(write_team(root_, team).ok());
    sign_off(team.token_path, 1);
    sign_off(team.token_path, 2);
    const Taken owner = OwnerFile::take(root_);

    const Result<bool> over = outwait_old_run(root_, std::get<OwnerFile>(*owner), waiting_);

    EXPECT_TRUE(over.ok() && *over);
    EXPECT_TRUE(said_.empty());
    EXPECT_EQ(names(), (std::vector<std::string>{"owner"}));
}

TEST_F(OwnerFileTest, SomebodyMayEndAWait) {
    write("owner", kElsewhere);
    int stop[2];
    ASSERT_EQ(::pipe(stop), 0);
    ASSERT_EQ(::write(stop[1], "x", 1), 1);
    Waiting waiting = waiting_;
    waiting.stop_fd = stop[0];

    const auto owner = take_ownership(root_, 0, true, waiting);

    ASSERT_TRUE(owner.ok());
    EXPECT_FALSE(owner->has_value());
    ::close(stop[0]);
    ::close(stop[1]);
}

TEST_F(OwnerFileTest, WhatTrialsOfADeadRunLeftIsEnded) {
    die_as_owner();
    const std::string trial_dir = "MUSTER_TRIAL_DIR=" + root_ + "/00001";
    const pid_t child = ::fork();
    if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        const char* const environment[] = {"A=b", trial_dir.c_str(), nullptr};
        const char* const command[] = {"/bin/sleep", "1000", nullptr};
        ::execve(
            command[0], const_cast<char* const*>(command), const_cast<char* const*>(environment)
        );
        ::_exit(127);
    }
    const Taken owner = OwnerFile::take(root_);
    ASSERT_TRUE(is_owner(owner));

    const Result<bool> over = outwait_old_run(root_, std::get<OwnerFile>(*owner), waiting_);

    EXPECT_TRUE(over.ok() && *over);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    ASSERT_FALSE(said_.empty());
    EXPECT_EQ(said_.back(), "killed 1 processes that the run before had left");
}

}  // namespace
}  // namespace muster
