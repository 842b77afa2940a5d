// SPDX-License-Identifier: Apache-2.0

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "slurm/requeue.hpp"

namespace muster {
namespace {

using namespace std::chrono_literals;

const SlurmJob kJob{"7", 1, std::nullopt, std::nullopt};

JobRecord record(const std::string& state, std::uint32_t restarts) {
    JobRecord record;
    record.state = state;
    record.restarts = restarts;
    return record;
}

TEST(SlurmRequeueTest, OnlyARunningJobThatDidNotBeginAnewIsThisIncarnation) {
    EXPECT_TRUE(is_this_incarnation(record("RUNNING", 1), kJob));
    EXPECT_FALSE(is_this_incarnation(record("RUNNING", 2), kJob));
    EXPECT_FALSE(is_this_incarnation(record("COMPLETING", 1), kJob));
    EXPECT_FALSE(is_this_incarnation(record("PENDING", 1), kJob));
}

TEST(SlurmRequeueTest, ASuspendedJobIsNotOver) {
    EXPECT_FALSE(is_over(record("RUNNING", 1), kJob));
    EXPECT_FALSE(is_over(record("SUSPENDED", 1), kJob));
    EXPECT_TRUE(is_over(record("RUNNING", 2), kJob));
    EXPECT_TRUE(is_over(record("PENDING", 1), kJob));
    EXPECT_TRUE(is_over(record("NODE_FAIL", 1), kJob));
}

/// A `scontrol` of the test's own, first on PATH, that keeps what it was asked.
class RequeueTest : public testing::Test {
  protected:
    RequeueTest() {
        std::string name = std::filesystem::temp_directory_path() / "muster-requeue-XXXXXX";
        directory_ = ::mkdtemp(name.data());
        path_ = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe)
        ::setenv("PATH", (directory_ + ":" + path_).c_str(), 1);
    }
    ~RequeueTest() override {
        ::setenv("PATH", path_.c_str(), 1);
        std::filesystem::remove_all(directory_);
    }

    void scontrol(const std::string& show, const std::string& requeue) const {
        const std::string file = directory_ + "/scontrol";
        std::ofstream(file) << "#!/bin/sh\necho \"$*\" >> " << directory_ << "/asked\n"
                            << "case \"$*\" in *show*) " << show << ";; *) " << requeue
                            << ";; esac\n";
        std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    }
    std::string asked() const {
        std::ifstream file(directory_ + "/asked");
        return {std::istreambuf_iterator<char>(file), {}};
    }

    std::string directory_;
    std::string path_;
};

TEST_F(RequeueTest, ARunningJobGoesBackIntoTheQueue) {
    scontrol("echo JobId=7 JobState=RUNNING Requeue=1 Restarts=1", "true");

    const RequeueEnd end = requeue(kJob, 3, 20s);

    EXPECT_TRUE(end.is_queued);
    EXPECT_EQ(
        end.text, "Slurm job 7 is back in the queue and goes on from there (2 of at most 3 times)"
    );
    EXPECT_EQ(asked(), "--oneliner show job 7\nrequeue 7\n");
}

TEST_F(RequeueTest, NothingIsAskedOnceTheLimitIsReached) {
    scontrol("true", "true");

    const RequeueEnd end = requeue(kJob, 1, 20s);

    EXPECT_FALSE(end.is_queued);
    EXPECT_NE(end.text.find("--max-requeues"), std::string::npos);
    EXPECT_EQ(asked(), "");
}

TEST_F(RequeueTest, ACancelledJobIsLeftAlone) {
    scontrol("echo JobId=7 JobState=COMPLETING Requeue=1 Restarts=1", "true");

    const RequeueEnd end = requeue(kJob, 3, 20s);

    EXPECT_FALSE(end.is_queued);
    EXPECT_EQ(end.text, "");
    EXPECT_EQ(asked(), "--oneliner show job 7\n");
}

TEST_F(RequeueTest, AJobThatMayNotSaysHowItMight) {
    scontrol(
        "echo JobId=7 JobState=RUNNING Requeue=0 Restarts=1",
        "echo 'Requested operation is presently disabled' >&2; exit 1"
    );

    const RequeueEnd end = requeue(kJob, 3, 20s);

    EXPECT_FALSE(end.is_queued);
    EXPECT_NE(end.text.find("presently disabled"), std::string::npos) << end.text;
    EXPECT_NE(end.text.find("#SBATCH --requeue"), std::string::npos) << end.text;
}

TEST_F(RequeueTest, AControllerThatIsAwayForAWhileIsAskedAgain) {
    const std::string gone = directory_ + "/gone";
    std::ofstream(gone) << "";
    scontrol(
        "if [ -e " + gone + " ]; then rm " + gone +
            "; echo away >&2; exit 1; fi; echo JobId=7 JobState=RUNNING Requeue=1 Restarts=1",
        "true"
    );

    EXPECT_TRUE(requeue(kJob, 3, 20s).is_queued);
}

TEST_F(RequeueTest, AQuestionThatIsNeverAnsweredIsAskedAgain) {
    const std::string gone = directory_ + "/gone";
    std::ofstream(gone) << "";
    scontrol(
        "if [ -e " + gone + " ]; then rm " + gone +
            "; sleep 1000; fi; echo JobId=7 JobState=RUNNING Requeue=1 Restarts=1",
        "true"
    );

    EXPECT_TRUE(requeue(kJob, 3, 12s).is_queued);
}

TEST_F(RequeueTest, AControllerThatStaysAwayIsGivenUp) {
    scontrol("sleep 1000", "true");

    const RequeueEnd end = requeue(kJob, 3, 100ms);

    EXPECT_FALSE(end.is_queued);
    EXPECT_NE(end.text.find("does not answer; submit it again"), std::string::npos) << end.text;
}

}  // namespace
}  // namespace muster
