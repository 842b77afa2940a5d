// SPDX-License-Identifier: Apache-2.0

#include <chrono>

#include <gtest/gtest.h>

#include "slurm/job.hpp"

namespace muster {
namespace {

using namespace std::chrono_literals;

// As Slurm 22.05.8 prints it, shortened.
constexpr const char* kRecord =
    "JobId=12 JobName=muster UserId=root(0) GroupId=root(0) MCS_label=N/A Priority=4294901747 "
    "Nice=0 "
    "Account=(null) QOS=(null) JobState=RUNNING Reason=None Dependency=(null) Requeue=1 Restarts=2 "
    "BatchFlag=2 Reboot=0 ExitCode=0:0 RunTime=00:00:12 TimeLimit=1-02:00:00 TimeMin=N/A "
    "SubmitTime=2026-12-01T05:00:00 StartTime=2026-12-01T05:00:06 EndTime=2026-12-02T07:00:06 "
    "Partition=main AllocNode:Sid=login:77 ReqNodeList=(null) NodeList=n[1-3] BatchHost=n1 "
    "NumNodes=3 NumCPUs=3 Command=/tmp/a=b/muster.sbatch sweep.yaml\n";

TEST(SlurmJobTest, TheEnvironmentNamesTheJobAndItsIncarnation) {
    const auto job = slurm_job_of({"SLURM_JOB_ID=12", "SLURM_RESTART_COUNT=2", "HOME=/root"});

    ASSERT_TRUE(job);
    EXPECT_EQ(job->id, "12");
    EXPECT_EQ(job->restarts, 2U);
    EXPECT_FALSE(job->end_time);
}

TEST(SlurmJobTest, NewerSlurmGivesTheTimesInTheEnvironment) {
    const auto job = slurm_job_of(
        {"SLURM_JOB_START_TIME=1796104806", "SLURM_JOB_END_TIME=1796112006", "SLURM_JOB_ID=7"}
    );

    ASSERT_TRUE(job);
    EXPECT_EQ(job->restarts, 0U);
    EXPECT_EQ(job->start_time, 1'796'104'806);
    EXPECT_EQ(job->end_time, 1'796'112'006);
}

TEST(SlurmJobTest, NoJobWithoutAUsableId) {
    EXPECT_FALSE(slurm_job_of({"HOME=/root"}));
    EXPECT_FALSE(slurm_job_of({"SLURM_JOB_ID="}));
    EXPECT_FALSE(slurm_job_of({"SLURM_JOB_ID=1; reboot"}));
    EXPECT_FALSE(slurm_job_of({"SLURM_JOB_ID"}));
}

TEST(SlurmJobTest, ReadsWhatScontrolSaysOfAJob) {
    const Result<JobRecord> record = parse_job_record(kRecord);

    ASSERT_TRUE(record);
    EXPECT_EQ(
        *record,
        (JobRecord{
            .state = "RUNNING",
            .restarts = 2,
            .may_requeue = true,
            .batch_host = "n1",
            .run_time = 12s,
            .time_limit = 26h,
            .time_left = 26h - 12s})
    );
}

TEST(SlurmJobTest, AnEndThatIsNoWholeMinutesAwayIsExact) {
    const std::string job =
        "JobId=1 JobState=RUNNING RunTime=00:00:10 TimeLimit=00:01:00 "
        "StartTime=2026-12-01T23:59:50 EndTime=";

    EXPECT_EQ(parse_job_record(job + "2026-12-02T00:00:35")->time_left, 35s);
    EXPECT_EQ(parse_job_record(job + "2026-12-02T00:00:50")->time_left, 50s);
}

TEST(SlurmJobTest, ASuspendedJobsTimeStandsStill) {
    const std::string job =
        "JobId=1 JobState=RUNNING RunTime=00:00:10 TimeLimit=00:01:00 "
        "StartTime=2026-12-01T05:00:00 EndTime=2026-12-01T06:01:00";

    EXPECT_EQ(parse_job_record(job)->time_left, 50s);
}

TEST(SlurmJobTest, AJobWithoutLimitHasNone) {
    const auto record =
        parse_job_record("JobId=1 JobState=RUNNING TimeLimit=UNLIMITED RunTime=00:01:00");

    ASSERT_TRUE(record);
    EXPECT_FALSE(record->time_limit);
    EXPECT_FALSE(record->may_requeue);
}

TEST(SlurmJobTest, TheFirstPartOfAJobOfSeveralPartsCounts) {
    const auto record = parse_job_record(
        "slurm_load: warning\nJobId=1 JobState=RUNNING Restarts=0\nJobId=2 JobState=PENDING "
        "Restarts=7\n"
    );

    ASSERT_TRUE(record);
    EXPECT_EQ(record->state, "RUNNING");
    EXPECT_EQ(record->restarts, 0U);
}

TEST(SlurmJobTest, AnAnswerWithoutAJobIsAnErrorThatQuotesIt) {
    const auto record = parse_job_record("slurm_load_jobs error: Invalid job id specified\n");

    ASSERT_FALSE(record);
    EXPECT_NE(record.error().message.find("Invalid job id specified"), std::string::npos);
}

TEST(SlurmJobTest, TimesInEveryForm) {
    EXPECT_EQ(parse_slurm_time("00:12"), Duration(12s));
    EXPECT_EQ(parse_slurm_time("90:00"), Duration(90min));
    EXPECT_EQ(parse_slurm_time("01:02:03"), Duration(1h + 2min + 3s));
    EXPECT_EQ(parse_slurm_time("2-00:00:01"), Duration(48h + 1s));
    for (const char* text :
         {"", "UNLIMITED", "INVALID", "5", "1:2:3:4", "-1:00", "1-", "a:b", "1:"}) {
        EXPECT_FALSE(parse_slurm_time(text)) << text;
    }
}

TEST(SlurmJobTest, ReadsKillWaitFromTheConfiguration) {
    EXPECT_EQ(
        parse_kill_wait("KeepAliveTime           = SYSTEM_DEFAULT\nKillOnBadExit           = 0\n"
                        "KillWait                = 30 sec\nLaunchParameters        = (null)\n"),
        Duration(30s)
    );
    EXPECT_FALSE(parse_kill_wait("KillOnBadExit = 0\n"));
    EXPECT_FALSE(parse_kill_wait("\nKillWait                = \n"));
    EXPECT_FALSE(parse_kill_wait("\nKillWait \nOther = 3\n"));
}

TEST(SlurmJobTest, ANodeIsDownOnlyWhenSlurmSaysSo) {
    EXPECT_TRUE(is_node_down("NodeName=n1 CPUAlloc=0 State=DOWN*+DRAIN ThreadsPerCore=1"));
    EXPECT_TRUE(is_node_down("NodeName=n1\n   State=DOWN ThreadsPerCore=1\n"));
    EXPECT_FALSE(is_node_down("NodeName=n1 State=MIXED* ThreadsPerCore=1"));
    EXPECT_FALSE(is_node_down("NodeName=n1 State=ALLOCATED\n"));
    EXPECT_FALSE(is_node_down(""));
}

}  // namespace
}  // namespace muster
