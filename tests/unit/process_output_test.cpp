// SPDX-License-Identifier: Apache-2.0
//
// Where output goes, and the metrics that are found in it.

#include <algorithm>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "process/stream_output.hpp"
#include "support/process_harness.hpp"

namespace muster::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::SizeIs;

TEST(ProcessOutputTest, StdoutAndStderrAreInterleavedAndAttemptsAppended) {
    ProcessHarness harness;
    LaunchPlan plan = harness.shell("echo one; echo two >&2; echo three");
    harness.run(plan);
    plan.key.attempt.number = 100;

    harness.run(plan);

    EXPECT_EQ(harness.output_of(plan), "one\ntwo\nthree\none\ntwo\nthree\n");
}

TEST(ProcessOutputTest, OutputIsThereWhileTheTrialRuns) {
    ProcessHarness harness;
    const LaunchPlan plan = harness.shell("echo early; sleep 1000");
    harness.start(plan);

    EXPECT_TRUE(eventually([&] { return harness.output_of(plan) == "early\n"; }));
    harness.processes().end(plan.key, StopKind::Kill);
    harness.ending(plan.key);
}

TEST(ProcessOutputTest, MuchOutputIsWhole) {
    ProcessHarness harness;
    const LaunchPlan plan = harness.plan({"/usr/bin/head", "-c", "200M", "/dev/zero"});

    const Story story = harness.run(plan);

    EXPECT_EQ(story.ended->outcome.code, 0);
    EXPECT_EQ(std::filesystem::file_size(plan.output_path), std::uintmax_t{200} << 20);
}

TEST(ProcessOutputTest, FullDiskIsARemarkAndNotTheTrialsFailure) {
    ProcessHarness harness;
    LaunchPlan plan = harness.shell("yes filling | head -c 10M; echo the end; exit 3");
    plan.output_path = "/dev/full";
    LaunchPlan searched = plan;
    searched.key.attempt.number = 100;
    searched.metrics = {{MetricSource::Stdout, "", "x=(?P<x>\\d+)"}};

    for (const LaunchPlan& each : {plan, searched}) {
        const Story story = harness.run(each);

        EXPECT_EQ(story.ended->outcome.code, 3);
        EXPECT_THAT(story.ended->outcome.detail, HasSubstr("the end"));
        EXPECT_THAT(
            story.remarks,
            ElementsAre("cannot write '/dev/full': No space left on device; output from here on is "
                        "lost")
        );
    }
}

TEST(ProcessOutputTest, PlaceThatCannotBeWrittenIsARemark) {
    ProcessHarness harness;
    LaunchPlan plan = harness.shell("echo lost");
    plan.output_path = "/proc/no/output";

    const Story story = harness.run(plan);

    EXPECT_EQ(story.ended->outcome.code, 0);
    EXPECT_EQ(story.remarks.size(), 1U);
}

TEST(ProcessOutputTest, StreamHoldsTheOutputOfManyTrialsInOneFile) {
    ProcessHarness harness;
    std::vector<LaunchPlan> plans;
    for (int i = 0; i < 20; ++i) {
        LaunchPlan plan = harness.shell("echo begin $N; echo end $N >&2");
        plan.output = OutputMode::Stream;
        plan.output_path = harness.directory() / "output/node-0";
        plan.env = {{"N", std::to_string(i)}};
        harness.processes().launch(plan);
        plans.push_back(plan);
    }

    for (const LaunchPlan& plan : plans) {
        harness.ending(plan.key);
    }

    for (const LaunchPlan& plan : plans) {
        const std::string number = plan.env[0].value;
        const Result<std::string> output = read_stream_output(plan.output_path, plan.key.trial);
        ASSERT_TRUE(output.ok());
        EXPECT_EQ(output.value(), fmt::format("begin {0}\nend {0}\n", number));
        EXPECT_FALSE(std::filesystem::exists(plan.trial_dir));
    }
}

TEST(ProcessOutputTest, StreamOfARunningTrialCanBeRead) {
    ProcessHarness harness;
    LaunchPlan plan = harness.shell("echo early; sleep 1000");
    plan.output = OutputMode::Stream;
    plan.output_path = harness.directory() / "node-0";
    harness.start(plan);

    EXPECT_TRUE(eventually([&] {
        const Result<std::string> output = read_stream_output(plan.output_path, plan.key.trial);
        return output.ok() && output.value() == "early\n";
    }));
    harness.processes().end(plan.key, StopKind::Kill);
    harness.ending(plan.key);
}

TEST(ProcessOutputTest, StreamThatIsNotThereIsNotFound) {
    EXPECT_EQ(read_stream_output("/tmp/absent", TrialId{1}).error().code, ErrorCode::NotFound);
}

TEST(ProcessOutputTest, PtyLooksLikeATerminalAndItsOutputIsWhole) {
    ProcessHarness harness;
    LaunchPlan plan =
        harness.shell("[ -t 1 ] && [ -t 2 ] && echo terminal; stty size </dev/tty; seq 1 10000");
    plan.output = OutputMode::Pty;
    std::string expected = "terminal\n24 80\n";
    for (int i = 1; i <= 10000; ++i) {
        expected += std::to_string(i) + "\n";
    }

    const Story story = harness.run(plan);

    EXPECT_EQ(story.ended->outcome.code, 0);
    EXPECT_EQ(harness.output_of(plan), expected);
}

TEST(ProcessOutputTest, DiscardStoresNothingButTellsTheErrorsOfAFailure) {
    ProcessHarness harness;
    LaunchPlan plan = harness.shell("echo plain; echo wrong >&2; exit 1");
    plan.output = OutputMode::Discard;

    const Story story = harness.run(plan);

    EXPECT_EQ(story.ended->outcome.detail, "wrong");
    EXPECT_FALSE(std::filesystem::exists(plan.trial_dir));
}

TEST(ProcessOutputTest, AFailureTellsWholeLinesOrTheEndOfOneThatIsLong) {
    constexpr const char* kLongLines =
        "for i in 1 2 3 4 5 6 7 8 9; do printf \"%0600d $i\\n\" 0; done; exit 1";
    constexpr const char* kOneLine = "printf '%09000d the end\\n' 0; exit 1";
    for (const OutputMode mode : {OutputMode::File, OutputMode::Pty, OutputMode::Stream}) {
        ProcessHarness harness;
        LaunchPlan lines = harness.shell(kLongLines);
        LaunchPlan line = harness.shell(kOneLine);
        for (LaunchPlan* plan : {&lines, &line}) {
            plan->output = mode;
            plan->output_path = harness.directory() / "output";
        }

        const std::string zeros(600, '0');
        std::string last_six;
        for (const char* number : {"4", "5", "6", "7", "8", "9"}) {
            last_six += (last_six.empty() ? "" : "\n") + zeros + " " + number;
        }
        EXPECT_EQ(harness.run(lines).ended->outcome.detail, last_six);
        const std::string end_of_line = harness.run(line).ended->outcome.detail;
        EXPECT_THAT(end_of_line, EndsWith("0 the end"));
        EXPECT_THAT(end_of_line, SizeIs(AllOf(Gt(4000U), Le(4096U))));
    }
}

TEST(ProcessOutputTest, MetricsAreFoundInStdout) {
    ProcessHarness harness;
    LaunchPlan plan = harness.shell("echo epoch 1 acc=0.5; echo nothing; printf 'epoch 2 acc=nan'");
    plan.metrics = {{MetricSource::Stdout, "", R"(epoch (?P<step>\d+) acc=(?P<accuracy>\S+))"}};

    const Story story = harness.run(plan);

    const std::vector<ValueMember> first = {{"step", 1}, {"accuracy", 0.5}};
    const std::vector<ValueMember> second = {
        {"step", 2}, {"accuracy", std::numeric_limits<double>::quiet_NaN()}};
    EXPECT_THAT(story.reports, ElementsAre(first, second));
    EXPECT_EQ(harness.output_of(plan), "epoch 1 acc=0.5\nnothing\nepoch 2 acc=nan");
}

TEST(ProcessOutputTest, MetricsComeWhileTheTrialRuns) {
    ProcessHarness harness;
    LaunchPlan plan = harness.shell("echo loss=1; sleep 1000");
    plan.metrics = {{MetricSource::Stdout, "", "loss=(?P<loss>\\S+)"}};
    harness.processes().launch(plan);

    EXPECT_TRUE(harness.wait_for([&] { return harness.story(plan.key).reports.size() == 1; }));
    harness.processes().end(plan.key, StopKind::Kill);
    harness.ending(plan.key);
}

TEST(ProcessOutputTest, MetricsAreFoundInAFileFromWhereTheAttemptBegan) {
    ProcessHarness harness;
    LaunchPlan plan = harness.shell(
        "echo loss=2 >> log; while ! [ -e go ]; do sleep 0.01; done; printf loss=1 >> log"
    );
    plan.files = {};
    plan.metrics = {{MetricSource::File, "log", "loss=(?P<loss>\\S+)"}};
    std::ofstream(harness.directory() / "log") << "loss=3\n";
    harness.processes().launch(plan);

    EXPECT_TRUE(harness.wait_for([&] { return harness.story(plan.key).reports.size() == 1; }));
    std::ofstream(harness.directory() / "go") << "go\n";
    harness.ending(plan.key);

    const std::vector<ValueMember> first = {{"loss", 2}};
    const std::vector<ValueMember> second = {{"loss", 1}};
    EXPECT_THAT(harness.story(plan.key).reports, ElementsAre(first, second));
}

TEST(ProcessOutputTest, ManyReportsAllArriveInOrder) {
    ProcessHarness harness;
    LaunchPlan plan = harness.plan({"/usr/bin/seq", "-f", "n=%.0f", "1", "200000"});
    plan.output = OutputMode::Discard;
    plan.metrics = {{MetricSource::Stdout, "", "n=(?P<n>\\d+)"}};

    const Story story = harness.run(plan);

    ASSERT_EQ(story.reports.size(), 200000U);
    for (int i = 0; i < 200000; ++i) {
        const auto place = static_cast<std::size_t>(i);
        ASSERT_EQ(story.reports[place], (std::vector<ValueMember>{{"n", i + 1}}));
    }
}

TEST(ProcessOutputTest, LineThatIsTooLongIsSaidOnce) {
    ProcessHarness harness;
    LaunchPlan plan =
        harness.shell("for i in 1 2; do head -c 100000 /dev/zero | tr '\\0' x; echo; done; echo n=1"
        );
    plan.metrics = {{MetricSource::Stdout, "", "n=(?P<n>\\d+)"}};

    const Story story = harness.run(plan);

    EXPECT_EQ(story.reports.size(), 1U);
    EXPECT_THAT(story.remarks, ElementsAre(HasSubstr("64 KiB")));
}

TEST(ProcessOutputTest, SilentAgentHoldsTheTrialBackAndLosesNothing) {
    ProcessHarness harness;
    LaunchPlan plan = harness.plan({"/usr/bin/seq", "-f", "n=%.0f", "1", "1000000"});
    plan.output = OutputMode::Discard;
    plan.metrics = {{MetricSource::Stdout, "", "n=(?P<n>\\d+)"}};
    harness.start(plan);
    const pid_t pid = harness.story(plan.key).started->pid;

    // Asleep in a write to its pipe, since nobody takes the reports.
    EXPECT_TRUE(eventually([&] {
        return read_all("/proc/" + std::to_string(pid) + "/wchan").find("pipe") !=
               std::string::npos;
    }));

    harness.ending(plan.key);
    EXPECT_EQ(harness.story(plan.key).reports.size(), 1000000U);
}

}  // namespace
}  // namespace muster::test
