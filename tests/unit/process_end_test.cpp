// SPDX-License-Identifier: Apache-2.0
//
// A member is over when nothing of it is left, whatever its processes do about it.

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/process_harness.hpp"

namespace muster::test {
namespace {

using std::chrono::milliseconds;

/// Waits until the file is there with a line in it.
bool has_line(const std::string& path) {
    return eventually([&] { return read_all(path).find('\n') != std::string::npos; });
}

TEST(ProcessEndTest, GracefulEndSendsSigterm) {
    ProcessHarness harness;
    const LaunchPlan plan =
        harness.shell("trap 'echo saved > saved; exit 7' TERM; echo > up; sleep 1000 & wait");
    harness.start(plan);
    ASSERT_TRUE(has_line(harness.directory() / "up"));

    harness.processes().end(plan.key, StopKind::Graceful);

    const MemberEnded ended = harness.ending(plan.key);
    EXPECT_EQ(ended.outcome.cause, EndCause::Exited);
    EXPECT_EQ(ended.outcome.code, 7);
    EXPECT_EQ(read_all(harness.directory() / "saved"), "saved\n");
    EXPECT_LT(ended.usage.wall, std::chrono::seconds{9});
}

TEST(ProcessEndTest, WhatIgnoresSigtermIsKilledAfterTheGrace) {
    ProcessHarness harness;
    LaunchPlan plan = harness.shell("trap '' TERM; echo > up; while :; do sleep 0.01; done");
    plan.grace = milliseconds{100};
    harness.start(plan);
    ASSERT_TRUE(has_line(harness.directory() / "up"));

    harness.processes().end(plan.key, StopKind::Graceful);

    const MemberEnded ended = harness.ending(plan.key);
    EXPECT_EQ(ended.outcome.cause, EndCause::Signalled);
    EXPECT_EQ(ended.outcome.code, SIGKILL);
    EXPECT_GE(ended.usage.wall, milliseconds{100});
}

TEST(ProcessEndTest, KillHardensAGracefulEnd) {
    ProcessHarness harness;
    LaunchPlan plan = harness.shell("trap '' TERM; echo > up; while :; do sleep 0.01; done");
    plan.grace = std::chrono::hours{1};
    harness.start(plan);
    ASSERT_TRUE(has_line(harness.directory() / "up"));

    harness.processes().end(plan.key, StopKind::Graceful);
    harness.processes().end(plan.key, StopKind::Kill);

    EXPECT_EQ(harness.ending(plan.key).outcome.code, SIGKILL);
}

TEST(ProcessEndTest, ASignalFromOutsideIsNotTheTrialsEnd) {
    ProcessHarness harness;
    const LaunchPlan cancelled = harness.shell("kill -TERM $$; sleep 1000");
    const LaunchPlan warned = harness.shell("kill -USR1 $$; sleep 1000");
    const LaunchPlan says_so = harness.shell("exit 143");
    harness.start(cancelled);
    harness.start(warned);
    harness.start(says_so);

    EXPECT_EQ(
        harness.ending(cancelled.key).outcome,
        (Outcome{EndCause::Lost, 0, "by SIGTERM, which did not come from muster"})
    );
    EXPECT_EQ(
        harness.ending(warned.key).outcome,
        (Outcome{EndCause::Lost, 0, "by SIGUSR1, which did not come from muster"})
    );
    EXPECT_EQ(
        harness.ending(says_so.key).outcome,
        (Outcome{EndCause::Lost, 0, "by SIGTERM, which did not come from muster"})
    );
}

TEST(ProcessEndTest, StoppedTrialEndsToo) {
    ProcessHarness harness;
    const LaunchPlan plan = harness.shell("echo > up; kill -STOP $$; sleep 1000");
    harness.start(plan);
    ASSERT_TRUE(has_line(harness.directory() / "up"));

    harness.processes().end(plan.key, StopKind::Graceful);

    EXPECT_EQ(harness.ending(plan.key).outcome.code, SIGTERM);
}

TEST(ProcessEndTest, OutcomeIsTheFirstProcesssAndLeftoversGo) {
    ProcessHarness harness;
    // One in the group, one with a session of its own, one a daemon by double fork.
    const LaunchPlan plan = harness.shell(
        "sleep 1000 & echo $! > a; setsid sleep 1000 & echo $! > b; "
        "(setsid sh -c 'echo $$ > c; exec sleep 1000' &) ; "
        "while ! [ -s c ]; do sleep 0.01; done; exit 5"
    );

    const Story story = harness.run(plan);

    EXPECT_EQ(story.ended->outcome.cause, EndCause::Exited);
    EXPECT_EQ(story.ended->outcome.code, 5);
    for (const char* name : {"a", "b", "c"}) {
        const pid_t pid = pid_in(harness.directory() / name);
        EXPECT_GT(pid, 0) << name;
        EXPECT_FALSE(is_running(pid)) << name;
    }
}

TEST(ProcessEndTest, LeftoverThatIgnoresSigtermIsKilledAfterTheGrace) {
    ProcessHarness harness;
    LaunchPlan plan = harness.shell(
        "setsid sh -c 'trap \"\" TERM; echo $$ > pid; while :; do sleep 0.01; done' & "
        "while ! [ -s pid ]; do sleep 0.01; done"
    );
    plan.grace = milliseconds{100};

    const Story story = harness.run(plan);

    EXPECT_EQ(story.ended->outcome, (Outcome{EndCause::Exited, 0, ""}));
    EXPECT_FALSE(is_running(pid_in(harness.directory() / "pid")));
}

TEST(ProcessEndTest, ForkBombInItsOwnSessionsEnds) {
    ProcessHarness harness;
    // Each generation is a new session whose parent has gone; as many as 30 at a time.
    const LaunchPlan plan = harness.shell(
        "echo 'echo > up; sleep 0.01; setsid sh ./bomb & setsid sleep 0.05 & exit' > bomb; "
        "for i in 1 2 3 4 5; do setsid sh ./bomb & done; sleep 1000"
    );
    harness.start(plan);
    ASSERT_TRUE(has_line(harness.directory() / "up"));

    harness.processes().end(plan.key, StopKind::Kill);

    EXPECT_EQ(harness.ending(plan.key).outcome.code, SIGKILL);
}

TEST(ProcessEndTest, EndOfAMemberThatEndedIsNoError) {
    ProcessHarness harness;
    const LaunchPlan plan = harness.plan({"/bin/true"});
    harness.run(plan);

    harness.processes().end(plan.key, StopKind::Kill);

    EXPECT_EQ(harness.run(harness.plan({"/bin/true"})).ended->outcome.code, 0);
}

TEST(ProcessEndTest, MemoryPastTheLimitEndsTheMember) {
    ProcessHarness harness;
    LaunchPlan plan = harness.plan(
        {"/usr/bin/python3",
         "-uc",
         "print('loading all'); x = bytearray(200 << 20); import time; time.sleep(1000)"}
    );
    plan.memory_limit_bytes = std::int64_t{100} << 20;

    const Story story = harness.run(plan);

    EXPECT_EQ(story.ended->outcome.cause, EndCause::MemoryLimit);
    EXPECT_THAT(story.ended->outcome.detail, ::testing::StartsWith("asked 100MiB, used "));
    EXPECT_EQ(story.ended->last_lines, "loading all");
    EXPECT_GT(story.ended->usage.max_rss_bytes, std::int64_t{100} << 20);
}

TEST(ProcessEndTest, MemorySharedByAForkCountsOnce) {
    ProcessHarness harness;
    // 60 MiB seen by five processes; and 200 MiB of a file in the page cache.
    LaunchPlan plan = harness.plan(
        {"/usr/bin/python3",
         "-c",
         "import mmap, os, time\n"
         "x = bytearray(60 << 20)\n"
         "f = open('big', 'w+b'); f.truncate(200 << 20)\n"
         "m = mmap.mmap(f.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ)\n"
         "n = sum(m[i] for i in range(0, len(m), 4096))\n"
         "for i in range(4):\n"
         "    if os.fork() == 0: time.sleep(0.5); os._exit(0)\n"
         "for i in range(4): os.wait()\n"}
    );
    plan.memory_limit_bytes = std::int64_t{150} << 20;

    const Story story = harness.run(plan);

    EXPECT_EQ(story.ended->outcome, (Outcome{EndCause::Exited, 0, ""}));
}

TEST(ProcessEndTest, MemoryIsTheSumOfAllProcesses) {
    ProcessHarness harness;
    LaunchPlan plan = harness.plan(
        {"/usr/bin/python3",
         "-c",
         "import os, time\n"
         "for i in range(4):\n"
         "    if os.fork() == 0: x = bytearray(50 << 20); time.sleep(1000)\n"
         "time.sleep(1000)\n"}
    );
    plan.memory_limit_bytes = std::int64_t{150} << 20;

    EXPECT_EQ(harness.run(plan).ended->outcome.cause, EndCause::MemoryLimit);
}

}  // namespace
}  // namespace muster::test
