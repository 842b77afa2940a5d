// SPDX-License-Identifier: Apache-2.0
//
// Functions of the program as trials: each in a process of its own, which is as clean as if it had
// been executed.

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>

#include <dirent.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include "support/process_harness.hpp"

namespace muster::test {
namespace {

using ::testing::HasSubstr;

/// Made before the spawner, and so in every trial.
int inherited = 1;

void print_descriptors() {
    DIR* directory = ::opendir("/proc/self/fd");
    std::string found;
    while (const dirent* entry = ::readdir(directory)) {
        const std::string name = entry->d_name;
        if (name.front() != '.' && name != std::to_string(::dirfd(directory))) {
            found += name + " ";
        }
    }
    ::closedir(directory);
    std::printf("%s", found.c_str());
}

void print_surroundings() {
    std::printf("A=%s in=%d group=%d ", std::getenv("A"), inherited, ::getpgrp() == ::getpid());
    sigset_t blocked;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    std::printf("blocked=%d", sigismember(&blocked, SIGTERM));
}

void use_threads() {
    int sum = 0;
    std::thread other([&sum] { sum = 42; });
    other.join();
    std::thread endless([] {
        while (true) {
            ::pause();
        }
    });
    endless.detach();
    std::cout << sum;
}

TrialFunctions functions() {
    return {
        {"good", [] { std::cout << "all is well"; }},
        {"throws", [] { throw std::runtime_error("no such data"); }},
        {"throws_text", [] { throw 7; }},
        {"exits", [] { std::exit(5); }},
        {"crashes", [] { ::raise(SIGSEGV); }},
        {"descriptors", print_descriptors},
        {"surroundings", print_surroundings},
        {"threads", use_threads},
        {"binding", [] { std::printf("%d", ::sched_getcpu()); }},
        {"random", [] { std::printf("%d", std::rand()); }},
        {"changes", [] { std::printf("%d", ++inherited); }},
        {"endless", [] { ::pause(); }}};
}

TEST(ProcessFunctionTest, ReturningIsSuccessAndOutputIsCaptured) {
    ProcessHarness harness({}, functions());
    const LaunchPlan plan = harness.function("good");

    const Story story = harness.run(plan);

    ASSERT_TRUE(story.started.has_value());
    EXPECT_EQ(story.ended->outcome, (Outcome{EndCause::Exited, 0, ""}));
    EXPECT_EQ(harness.output_of(plan), "all is well");
}

TEST(ProcessFunctionTest, AnExceptionIsAFailureWithItsText) {
    ProcessHarness harness({}, functions());
    LaunchPlan plan = harness.function("throws");

    EXPECT_EQ(
        harness.run(plan).ended->outcome,
        (Outcome{EndCause::Exited, 1, "std::runtime_error: no such data"})
    );
    EXPECT_THAT(harness.output_of(plan), HasSubstr("no such data"));

    plan = harness.function("throws_text");
    EXPECT_EQ(
        harness.run(plan).ended->outcome, (Outcome{EndCause::Exited, 1, "an exception of type int"})
    );
    // Nothing of it is left for the next.
    EXPECT_EQ(harness.run(harness.function("exits")).ended->outcome.detail, "");
}

TEST(ProcessFunctionTest, ExitAndCrashesAreWhatTheyAreForACommand) {
    // exit() must not come here in a trial, nor in the spawner and keepers.
    const pid_t self = ::getpid();
    static pid_t owner = self;
    std::atexit([] {
        if (::getpid() != owner) {
            std::fprintf(stderr, "a handler of the program ran\n");
        }
    });
    ProcessHarness harness({}, functions());
    const LaunchPlan plan = harness.function("exits");

    EXPECT_EQ(harness.run(plan).ended->outcome, (Outcome{EndCause::Exited, 5, ""}));
    EXPECT_EQ(harness.output_of(plan), "");
    const Outcome crash = harness.run(harness.function("crashes")).ended->outcome;
    EXPECT_EQ(crash.cause, EndCause::Signalled);
    EXPECT_EQ(crash.code, SIGSEGV);
}

TEST(ProcessFunctionTest, NothingIsOpenButTheFirstThreeDescriptors) {
    const int left_open = ::open("/dev/null", O_RDONLY);
    ProcessHarness harness({}, functions());
    const LaunchPlan plan = harness.function("descriptors");

    harness.run(plan);

    EXPECT_EQ(harness.output_of(plan), "0 1 2 ");
    ::close(left_open);
}

TEST(ProcessFunctionTest, TheEnvironmentIsThePlansAndSignalsAreAsAfterExec) {
    inherited = 17;
    ProcessHarness harness({}, functions());
    LaunchPlan plan = harness.function("surroundings");
    plan.env = {{"A", "plan"}};

    harness.run(plan);

    EXPECT_EQ(harness.output_of(plan), "A=plan in=17 group=1 blocked=0");
}

TEST(ProcessFunctionTest, WhatOneTrialChangesIsNotSeenByTheNext) {
    inherited = 1;
    ProcessHarness harness({}, functions());
    const LaunchPlan first = harness.function("changes");
    const LaunchPlan second = harness.function("changes");

    harness.run(first);
    harness.run(second);

    EXPECT_EQ(harness.output_of(first), "2");
    EXPECT_EQ(harness.output_of(second), "2");
}

TEST(ProcessFunctionTest, ThreadsMayBeMadeAndLeft) {
    ProcessHarness harness({}, functions());
    const LaunchPlan plan = harness.function("threads");

    EXPECT_EQ(harness.run(plan).ended->outcome, (Outcome{EndCause::Exited, 0, ""}));
    EXPECT_EQ(harness.output_of(plan), "42");
}

TEST(ProcessFunctionTest, ItRunsWhereItIsBoundAndTheKeeperGoesBack) {
    cpu_set_t own;
    CPU_ZERO(&own);
    ::sched_getaffinity(0, sizeof own, &own);
    std::uint32_t last = 0;
    for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        last = CPU_ISSET(cpu, &own) ? cpu : last;
    }
    ProcessHarness harness({}, functions());
    LaunchPlan plan = harness.function("binding");
    plan.processing_units = {last};

    const Story story = harness.run(plan);

    EXPECT_EQ(story.started->binding_problem, "");
    EXPECT_EQ(harness.output_of(plan), std::to_string(last));
}

TEST(ProcessFunctionTest, EachSeedGivesItsOwnNumbers) {
    ProcessHarness harness({}, functions());
    const auto random = [&harness](const std::string& seed) {
        LaunchPlan plan = harness.function("random");
        plan.env = {{"MUSTER_SEED", seed}};
        harness.run(plan);
        return harness.output_of(plan);
    };

    EXPECT_EQ(random("1234567890123"), random("1234567890123"));
    EXPECT_NE(random("1234567890123"), random("1234567890124"));
}

TEST(ProcessFunctionTest, AnUnknownFunctionAndAMissingDirectoryAreTold) {
    ProcessHarness harness({}, functions());
    LaunchPlan plan = harness.function("unknown");
    EXPECT_EQ(
        harness.run(plan).ended->outcome,
        (Outcome{EndCause::SpawnFailed, ENOENT, "this program has no function 'unknown'"})
    );

    plan = harness.function("good");
    plan.workdir = harness.directory() / "missing";
    const Outcome outcome = harness.run(plan).ended->outcome;
    EXPECT_EQ(outcome.cause, EndCause::SpawnFailed);
    EXPECT_THAT(outcome.detail, HasSubstr("cannot enter the working directory"));
}

TEST(ProcessFunctionTest, OneThatDoesNotEndIsEnded) {
    ProcessHarness harness({}, functions());
    const LaunchPlan plan = harness.function("endless");
    harness.start(plan);

    harness.processes().end(plan.key, StopKind::Graceful);

    EXPECT_EQ(harness.ending(plan.key).outcome.code, SIGTERM);
}

}  // namespace
}  // namespace muster::test
