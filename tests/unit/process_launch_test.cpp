// SPDX-License-Identifier: Apache-2.0
//
// What a trial is given, byte for byte, and how its end is told.

#include <cerrno>
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include "support/process_harness.hpp"

namespace muster::test {
namespace {

using ::testing::HasSubstr;

TEST(ProcessLaunchTest, ArgumentsArriveUnchanged) {
    ProcessHarness harness;
    const std::vector<std::string> arguments = {
        "a b", "\"quoted\"", "it's", "$X", "line\nbreak", "größe", "--leading", "-", "", "*", "\\"};
    // The first argument after the script is its $0.
    LaunchPlan plan = harness.plan({"/usr/bin/printf", "%s|"});
    plan.argv.insert(plan.argv.end(), arguments.begin(), arguments.end());
    std::string expected;
    for (const std::string& argument : arguments) {
        expected += argument + "|";
    }

    const Story story = harness.run(plan);

    EXPECT_EQ(story.ended->outcome, (Outcome{EndCause::Exited, 0, ""}));
    EXPECT_EQ(harness.output_of(plan), expected);
}

TEST(ProcessLaunchTest, VariablesOfThePlanLieOnTopOfTheBase) {
    ProcessHarness harness;
    harness.processes().set_environment({"PATH=/usr/bin:/bin", "A=base", "B=base"});
    LaunchPlan plan = harness.plan({"env"});
    plan.env = {{"A", "plan = x"}, {"C", "new\nline"}};

    harness.run(plan);

    EXPECT_EQ(harness.output_of(plan), "PATH=/usr/bin:/bin\nA=plan = x\nB=base\nC=new\nline\n");
}

TEST(ProcessLaunchTest, ProgramIsLookedUpOnTheTrialsOwnPath) {
    ProcessHarness harness;
    LaunchPlan plan = harness.plan({"tool"});
    // A script without "#!" runs all the same, as in a shell.
    plan.files = {{harness.directory() / "bin/tool", "echo found it\n"}};
    plan.env = {{"PATH", harness.directory() / "bin"}};

    const Story refused = harness.run(plan);
    EXPECT_EQ(refused.ended->outcome.cause, EndCause::SpawnFailed);
    EXPECT_EQ(refused.ended->outcome.code, EACCES);
    EXPECT_THAT(refused.ended->outcome.detail, HasSubstr("chmod +x"));

    plan.key.attempt.number = 100;
    plan.files.clear();
    std::filesystem::permissions(
        harness.directory() / "bin/tool", std::filesystem::perms::owner_all
    );
    const Story story = harness.run(plan);
    EXPECT_EQ(story.ended->outcome.code, 0);
    EXPECT_EQ(harness.output_of(plan), "found it\n");
}

TEST(ProcessLaunchTest, MissingProgramSaysWhatToDo) {
    ProcessHarness harness;
    const LaunchPlan plan = harness.plan({"no-such-program"});

    const Story story = harness.run(plan);

    EXPECT_FALSE(story.started.has_value());
    EXPECT_EQ(story.ended->outcome.cause, EndCause::SpawnFailed);
    EXPECT_EQ(story.ended->outcome.code, ENOENT);
    EXPECT_THAT(
        story.ended->outcome.detail, HasSubstr("cannot run 'no-such-program': not found on PATH")
    );
    EXPECT_FALSE(std::filesystem::exists(plan.trial_dir));
}

TEST(ProcessLaunchTest, MissingWorkdirIsNamed) {
    ProcessHarness harness;
    LaunchPlan plan = harness.plan({"/bin/true"});
    plan.workdir = harness.directory() / "absent";

    const Story story = harness.run(plan);

    EXPECT_EQ(story.ended->outcome.cause, EndCause::SpawnFailed);
    EXPECT_THAT(story.ended->outcome.detail, HasSubstr("absent"));
}

TEST(ProcessLaunchTest, TooLongArgumentIsRefusedWithTheWayOut) {
    ProcessHarness harness;
    const Story story =
        harness.run(harness.plan({"/bin/true", std::string(std::size_t{3} << 20U, 'x')}));

    EXPECT_EQ(story.ended->outcome.code, E2BIG);
    EXPECT_THAT(story.ended->outcome.detail, HasSubstr("MUSTER_CONFIG"));
}

TEST(ProcessLaunchTest, BigEnvironmentArrives) {
    ProcessHarness harness;
    LaunchPlan plan = harness.shell("echo ${#BIG1} ${#BIG9}");
    for (int i = 0; i < 10; ++i) {
        plan.env.push_back({"BIG" + std::to_string(i), std::string(100'000, 'x')});
    }

    harness.run(plan);

    EXPECT_EQ(harness.output_of(plan), "100000 100000\n");
}

TEST(ProcessLaunchTest, FilesAreThereBeforeAndTheLocalOneGoesAfter) {
    ProcessHarness harness;
    const std::string params = harness.directory() / "run/7/params.json";
    LaunchPlan plan = harness.plan({"/bin/cat", params, "deep/er/input"});
    plan.files = {{params, "{}\n"}, {harness.directory() / "deep/er/input", "deck\n"}};
    plan.remove_at_end = params;

    harness.run(plan);

    EXPECT_EQ(harness.output_of(plan), "{}\ndeck\n");
    EXPECT_FALSE(std::filesystem::exists(params));
    EXPECT_TRUE(std::filesystem::exists(harness.directory() / "deep/er/input"));
}

TEST(ProcessLaunchTest, TrialDirectoryIsMadeWhenAskedFor) {
    ProcessHarness harness;
    LaunchPlan plan = harness.plan({"/bin/pwd"});
    plan.make_trial_dir = true;
    plan.workdir = plan.trial_dir;

    harness.run(plan);

    EXPECT_EQ(harness.output_of(plan), plan.trial_dir + "\n");
}

TEST(ProcessLaunchTest, SilentTrialLeavesNothing) {
    ProcessHarness harness;
    const LaunchPlan plan = harness.plan({"/bin/true"});

    harness.run(plan);

    EXPECT_FALSE(std::filesystem::exists(plan.trial_dir));
}

TEST(ProcessLaunchTest, ExitCodeComesWithTheLastLines) {
    ProcessHarness harness;
    const Story story = harness.run(
        harness.shell("for i in $(seq 1 20); do echo line $i; done; printf 'bad \\377' >&2; exit 3")
    );

    EXPECT_EQ(story.ended->outcome.cause, EndCause::Exited);
    EXPECT_EQ(story.ended->outcome.code, 3);
    EXPECT_EQ(
        story.ended->outcome.detail,
        "line 12\nline 13\nline 14\nline 15\nline 16\nline 17\nline 18\nline 19\nline 20\n"
        "bad \xEF\xBF\xBD"
    );
}

TEST(ProcessLaunchTest, SignalIsTold) {
    ProcessHarness harness;
    const Story story = harness.run(harness.shell("kill -SEGV $$"));

    EXPECT_EQ(story.ended->outcome.cause, EndCause::Signalled);
    EXPECT_EQ(story.ended->outcome.code, SIGSEGV);
}

TEST(ProcessLaunchTest, TrialSeesThreeDescriptorsAndCleanSignals) {
    ProcessHarness harness;
    // ls opens the directory as one more.
    LaunchPlan plan = harness.shell(
        "ls /proc/self/fd | tr '\\n' ' '; readlink /proc/self/fd/0; "
        "grep -E 'SigBlk|SigIgn' /proc/self/status; cat /proc/self/oom_score_adj"
    );

    harness.run(plan);

    EXPECT_EQ(
        harness.output_of(plan),
        "0 1 2 3 /dev/null\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n500\n"
    );
}

TEST(ProcessLaunchTest, ProcessesRunWhereTheyAreBound) {
    cpu_set_t allowed;
    ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
    std::uint32_t last = 0;
    for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        last = CPU_ISSET(cpu, &allowed) ? cpu : last;
    }
    ProcessHarness harness;
    LaunchPlan plan = harness.shell("grep Cpus_allowed_list /proc/self/status");
    plan.processing_units = {last};

    const Story story = harness.run(plan);

    EXPECT_EQ(story.started->binding_problem, "");
    EXPECT_EQ(harness.output_of(plan), "Cpus_allowed_list:\t" + std::to_string(last) + "\n");
}

TEST(ProcessLaunchTest, UnboundTrialsRunWhereTheSpawnerWasToldTo) {
    cpu_set_t allowed;
    ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
    std::vector<std::uint32_t> units;
    for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &allowed)) {
            units.push_back(cpu);
        }
    }
    // As a launcher does to a rank.
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(units.front(), &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    ProcessHarness harness(units);
    EXPECT_EQ(::sched_setaffinity(0, sizeof allowed, &allowed), 0);
    const LaunchPlan plan = harness.shell("grep Cpus_allowed: /proc/self/status");

    harness.run(plan);

    EXPECT_THAT(read_all("/proc/self/status"), HasSubstr("\n" + harness.output_of(plan)));
}

TEST(ProcessLaunchTest, BindingThatFailsIsARemark) {
    ProcessHarness harness;
    LaunchPlan plan = harness.plan({"/bin/true"});
    plan.processing_units = {4000};

    const Story story = harness.run(plan);

    EXPECT_EQ(story.ended->outcome.code, 0);
    EXPECT_THAT(story.started->binding_problem, HasSubstr("asked to run on CPUs 4000"));
}

TEST(ProcessLaunchTest, RunningMemberIsMovedToOtherCores) {
    ProcessHarness harness;
    const LaunchPlan plan = harness.plan({"/bin/sleep", "1000"});
    harness.start(plan);
    const pid_t pid = harness.story(plan.key).started->pid;

    harness.processes().bind(plan.key, {0});

    EXPECT_TRUE(eventually([&] {
        cpu_set_t set;
        ::sched_getaffinity(pid, sizeof set, &set);
        return CPU_COUNT(&set) == 1 && CPU_ISSET(0, &set);
    }));
    harness.processes().end(plan.key, StopKind::Kill);
    EXPECT_EQ(harness.ending(plan.key).outcome.code, SIGKILL);
}

TEST(ProcessLaunchTest, UsageCountsAllProcesses) {
    ProcessHarness harness;
    const Story story = harness.run(harness.plan(
        {"/bin/bash", "-c", "(i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done); true"}
    ));

    EXPECT_GT(story.ended->usage.wall, std::chrono::milliseconds{10});
    EXPECT_GT(story.ended->usage.cpu, std::chrono::milliseconds{10});
    EXPECT_GT(story.ended->usage.max_rss_bytes, 500'000);
}

TEST(ProcessLaunchTest, ThousandQuickTrialsAllEnd) {
    ProcessHarness harness;
    std::vector<MemberKey> keys;
    std::size_t next = 0;
    constexpr std::size_t kTrials = 1000;
    for (std::size_t i = 0; i < kTrials; ++i) {
        keys.push_back(harness.plan({}).key);
    }
    const auto launch_some = [&] {
        while (next < kTrials && harness.processes().running() < 16) {
            LaunchPlan plan = harness.plan({"/bin/true"});
            plan.key = keys[next++];
            harness.processes().launch(plan);
        }
        return next == kTrials && harness.processes().running() == 0;
    };

    ASSERT_TRUE(harness.wait_for(launch_some));
    // Events of the last call are taken in by the next.
    harness.wait_for([&] { return harness.story(keys.back()).ended.has_value(); });
    for (const MemberKey& key : keys) {
        EXPECT_EQ(harness.story(key).ended->outcome, (Outcome{EndCause::Exited, 0, ""}));
    }
}

TEST(ProcessLaunchTest, HundredAtOnceEachHaveAKeeper) {
    ProcessHarness harness;
    std::vector<LaunchPlan> plans;
    for (int i = 0; i < 100; ++i) {
        plans.push_back(harness.plan({"/bin/sleep", "1000"}));
        harness.processes().launch(plans.back());
    }

    EXPECT_TRUE(harness.wait_for([&] {
        return std::all_of(plans.begin(), plans.end(), [&](const LaunchPlan& plan) {
            return harness.story(plan.key).started.has_value();
        });
    }));
    EXPECT_TRUE(harness.processes().shutdown(std::chrono::seconds{10}));
    for (const LaunchPlan& plan : plans) {
        EXPECT_FALSE(is_running(harness.story(plan.key).started->pid));
    }
}

}  // namespace
}  // namespace muster::test
