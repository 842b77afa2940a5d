// SPDX-License-Identifier: Apache-2.0
//
// SIGKILL of any one of agent, spawner and keeper leaves nothing behind.

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "support/process_harness.hpp"

namespace muster::test {
namespace {

using ::testing::HasSubstr;

/// A trial of three processes: itself, a child in a session of its own, and a daemon. Each writes
/// its pid; all ignore SIGTERM.
constexpr const char* kStubborn =
    "trap '' TERM\n"
    "setsid sh -c 'echo $$ > child; while :; do sleep 0.05; done' &\n"
    "(setsid sh -c 'echo $$ > daemon; while :; do sleep 0.05; done' &)\n"
    "echo $$ > self\n"
    "while :; do sleep 0.05; done\n";

constexpr const char* kNames[] = {"self", "child", "daemon"};

std::vector<pid_t> pids_in(const TemporaryDirectory& directory) {
    std::vector<pid_t> pids;
    for (const char* name : kNames) {
        EXPECT_TRUE(eventually([&] { return pid_in(directory / name) > 0; }));
        pids.push_back(pid_in(directory / name));
    }
    return pids;
}

void expect_gone(const std::vector<pid_t>& pids) {
    for (const pid_t pid : pids) {
        EXPECT_TRUE(eventually([&] { return !is_running(pid); })) << pid;
    }
}

pid_t parent_of(pid_t pid) {
    const std::string stat = read_all("/proc/" + std::to_string(pid) + "/stat");
    return static_cast<pid_t>(std::strtol(stat.c_str() + stat.rfind(')') + 4, nullptr, 10));
}

TEST(ProcessLossTest, KilledKeeperTakesItsTrialWithIt) {
    ProcessHarness harness;
    const LaunchPlan plan = harness.shell(kStubborn);
    const LaunchPlan other = harness.plan({"/bin/sleep", "1000"});
    harness.start(plan);
    harness.start(other);
    const std::vector<pid_t> pids = pids_in(harness.directory());

    ::kill(parent_of(pids[0]), SIGKILL);

    const MemberEnded ended = harness.ending(plan.key);
    // Not eventually: when the end is told they are gone.
    for (const pid_t pid : pids) {
        EXPECT_FALSE(is_running(pid));
    }
    EXPECT_EQ(ended.outcome.cause, EndCause::Lost);
    EXPECT_THAT(ended.outcome.detail, HasSubstr("signal 9"));
    EXPECT_TRUE(is_running(harness.story(other.key).started->pid));
    EXPECT_EQ(harness.run(harness.plan({"/bin/true"})).ended->outcome.code, 0);
}

TEST(ProcessLossTest, StoppedKeeperGoesOn) {
    ProcessHarness harness;

    const Story story = harness.run(harness.shell("kill -STOP $PPID"));

    EXPECT_EQ(story.ended->outcome.cause, EndCause::Exited);
    EXPECT_EQ(story.ended->outcome.code, 0);
}

TEST(ProcessLossTest, KilledIdleKeeperIsReplaced) {
    ProcessHarness harness;
    const LaunchPlan plan = harness.shell("echo $PPID > keeper");
    harness.run(plan);
    const pid_t keeper = pid_in(harness.directory() / "keeper");

    ::kill(keeper, SIGKILL);
    ASSERT_TRUE(harness.wait_for([&] { return !is_running(keeper); }));
    harness.processes().receive();

    EXPECT_EQ(harness.run(harness.plan({"/bin/true"})).ended->outcome.code, 0);
}

TEST(ProcessLossTest, KilledSpawnerEndsEverythingAndIsTold) {
    ProcessHarness harness;
    const LaunchPlan plan = harness.shell(kStubborn);
    harness.start(plan);
    const std::vector<pid_t> pids = pids_in(harness.directory());

    ::kill(harness.spawner_pid(), SIGKILL);

    EXPECT_EQ(harness.ending(plan.key).outcome.cause, EndCause::Lost);
    expect_gone(pids);
    EXPECT_FALSE(harness.processes().alive());
    EXPECT_EQ(
        harness.processes().death_reason(),
        "the process that starts its trials (" + std::to_string(harness.spawner_pid()) +
            ") was ended by signal 9 (SIGKILL): see whether memory ran out there"
    );
    EXPECT_EQ(harness.run(harness.plan({"/bin/true"})).ended->outcome.cause, EndCause::Lost);
}

/// Forks a process that is the agent of one stubborn trial and does nothing else.
pid_t fork_agent(const TemporaryDirectory& directory) {
    const pid_t agent = ::fork();
    if (agent != 0) {
        return agent;
    }
    Processes processes(
        Spawner::start().value(), trial_base_environment(current_environment(), {})
    );
    LaunchPlan plan;
    plan.argv = {"/bin/sh", "-c", kStubborn};
    plan.workdir = directory.path();
    plan.output = OutputMode::Discard;
    plan.grace = std::chrono::hours{1};
    processes.launch(plan);
    while (true) {
        processes.receive();
        ::poll(nullptr, 0, 10);
    }
}

TEST(ProcessLossTest, KilledAgentLeavesNothing) {
    const TemporaryDirectory directory;
    const pid_t agent = fork_agent(directory);
    std::vector<pid_t> pids = pids_in(directory);
    const pid_t keeper = parent_of(pids[0]);
    pids.push_back(keeper);
    pids.push_back(parent_of(keeper));
    ASSERT_EQ(parent_of(pids.back()), agent);

    ::kill(agent, SIGKILL);
    ::waitpid(agent, nullptr, 0);

    expect_gone(pids);
}

TEST(ProcessLossTest, SigtermToSpawnerAndKeeperChangesNothing) {
    ProcessHarness harness;
    const LaunchPlan plan = harness.plan({"/bin/sleep", "1000"});
    harness.start(plan);
    const pid_t pid = harness.story(plan.key).started->pid;

    ::kill(parent_of(pid), SIGTERM);
    ::kill(harness.spawner_pid(), SIGTERM);

    EXPECT_EQ(harness.run(harness.plan({"/bin/true"})).ended->outcome.code, 0);
    EXPECT_TRUE(is_running(pid));
}

TEST(ProcessLossTest, ShutdownLeavesNothing) {
    ProcessHarness harness;
    const LaunchPlan plan = harness.shell(kStubborn);
    harness.start(plan);
    const std::vector<pid_t> pids = pids_in(harness.directory());

    EXPECT_TRUE(harness.processes().shutdown(std::chrono::seconds{10}));

    for (const pid_t pid : pids) {
        EXPECT_FALSE(is_running(pid));
    }
    EXPECT_FALSE(is_running(harness.spawner_pid()));
}

}  // namespace
}  // namespace muster::test
