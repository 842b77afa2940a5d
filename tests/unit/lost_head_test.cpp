// SPDX-License-Identifier: Apache-2.0

#include "runtime/lost_head.hpp"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>

namespace muster {
namespace {

using namespace std::chrono_literals;

/// In a job whose script runs on n1, with a `scontrol` of the test's own that keeps what it is
/// asked.
class LostHeadTest : public testing::Test {
  protected:
    LostHeadTest() {
        std::string name = std::filesystem::temp_directory_path() / "muster-lost-head-XXXXXX";
        directory_ = ::mkdtemp(name.data());
        path_ = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe)
        ::setenv("PATH", (directory_ + ":" + path_).c_str(), 1);
    }
    ~LostHeadTest() override {
        ::setenv("PATH", path_.c_str(), 1);
        std::filesystem::remove_all(directory_);
    }

    void slurm_says(const std::string& job, const std::string& node) const {
        const std::string file = directory_ + "/scontrol";
        std::ofstream(file + ".new") << "#!/bin/sh\necho \"$*\" >> " << directory_ << "/asked\n"
                                     << "case \"$*\" in *job*) echo JobId=7 BatchHost=n1 " << job
                                     << ";; *node*) echo NodeName=n1 " << node << ";; esac\n";
        std::filesystem::permissions(file + ".new", std::filesystem::perms::owner_all);
        std::filesystem::rename(file + ".new", file);
    }
    std::string asked() const {
        std::ifstream file(directory_ + "/asked");
        return {std::istreambuf_iterator<char>(file), {}};
    }
    /// Asks what there is to ask, to the last answer.
    static void look(LostHead& lost, Duration boot) {
        lost.look(boot);
        while (lost.fd() >= 0) {
            pollfd one{lost.fd(), POLLIN, 0};
            ASSERT_EQ(::poll(&one, 1, 20'000), 1);
            lost.look(boot);
        }
    }

    std::vector<std::string> environment_{"SLURM_JOB_ID=7", "MUSTER_MAX_REQUEUES=3"};
    std::string directory_;
    std::string path_;
};

TEST_F(LostHeadTest, NothingIsAskedWhileTheHeadSpeaks) {
    slurm_says("JobState=RUNNING Restarts=0", "State=DOWN");
    LostHead lost(environment_, 45s, 1);
    lost.heard(1000s);
    EXPECT_EQ(lost.longest_wait(1000s), 51s);

    look(lost, 1050s);

    EXPECT_EQ(asked(), "");
}

TEST_F(LostHeadTest, AJobWhoseBatchNodeIsDownGoesBackIntoTheQueue) {
    slurm_says("JobState=RUNNING Restarts=0", "State=DOWN*");
    LostHead lost(environment_, 45s, 1);
    lost.heard(1000s);

    look(lost, 1051s);

    EXPECT_EQ(asked(), "--oneliner show job 7\nshow node n1\nrequeue 7\n");
}

TEST_F(LostHeadTest, AJobWhoseBatchNodeLivesIsLeftAlone) {
    slurm_says("JobState=RUNNING Restarts=0", "State=ALLOCATED");
    LostHead lost(environment_, 45s, 1);
    lost.heard(1000s);

    look(lost, 1051s);

    EXPECT_EQ(asked(), "--oneliner show job 7\nshow node n1\n");
    EXPECT_EQ(lost.longest_wait(1051s), 6s);
}

TEST_F(LostHeadTest, AJobThatBeganAnewIsLeftAlone) {
    slurm_says("JobState=RUNNING Restarts=1", "State=DOWN");
    LostHead lost(environment_, 45s, 1);
    lost.heard(1000s);

    look(lost, 1051s);

    EXPECT_EQ(asked(), "--oneliner show job 7\n");
}

TEST_F(LostHeadTest, NothingIsAskedOnceTheLimitIsReached) {
    environment_.emplace_back("SLURM_RESTART_COUNT=3");
    LostHead lost(environment_, 45s, 1);
    lost.heard(1000s);

    look(lost, 2000s);

    EXPECT_EQ(asked(), "");
}

TEST_F(LostHeadTest, NothingIsAskedWhereNobodyWantsIt) {
    LostHead lost({"SLURM_JOB_ID=7"}, 45s, 1);
    lost.heard(1000s);

    look(lost, 2000s);

    EXPECT_EQ(asked(), "");
}

}  // namespace
}  // namespace muster
