// SPDX-License-Identifier: Apache-2.0

#include "cli/progress.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/results_report.hpp"
#include "cli/text_table.hpp"
#include "support/head_case.hpp"

namespace muster {
namespace {

using std::chrono::seconds;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::HeadCase;
using testing::make_node;
using ::testing::ResultOf;

ExperimentSpec spec() {
    ExperimentSpec spec;
    spec.name = "sweep";
    spec.objective = ObjectiveSpec{"loss", Mode::Min};
    return spec;
}

/// Four trials on two CPUs: 0 completed with loss 0.5, 1 and 2 running, 3 waiting, after 10 s.
HeadCase half_way() {
    HeadCase test(spec(), 4);
    test.begin_with({make_node("n0", 2)});
    test.trial_reports(0, 3, {{"loss", 0.5}});
    test.trial_ends(0);
    test.now = TimePoint{seconds{10}};
    return test;
}

ProgressOptions options() {
    return {.name = "sweep", .objective = spec().objective};
}

TEST(ProgressTest, LineForALogSaysCountsAndBest) {
    const HeadCase test = half_way();

    EXPECT_EQ(
        progress_line(test.head, options()),
        "1/4 done; 2 running, 1 waiting, 1 completed; best 00000: loss 0.5 at step 3 with index=0"
    );
}

TEST(ProgressTest, FrameHasBarCountsUseBestAndRunningTrials) {
    const HeadCase test = half_way();

    const std::vector<std::string> frame = progress_frame(test.head, options(), test.now);

    EXPECT_THAT(
        frame,
        ElementsAre(
            "sweep  █████░░░░░░░░░░░░░░░ 1/4  10.0s, about 30.0s left",
            "2 running, 1 waiting, 1 completed",
            "in use: cpu 2/2",
            "best 00000: loss 0.5 at step 3 with index=0",
            HasSubstr("last result"),
            HasSubstr("00001"),
            HasSubstr("00002")
        )
    );
}

TEST(ProgressTest, FrameNeverOutgrowsTheTerminal) {
    HeadCase test(spec(), 100);
    test.begin_with({make_node("n0", 50)});
    ProgressOptions small = options();
    small.width = 20;
    small.height = 10;

    const std::vector<std::string> frame = progress_frame(test.head, small, test.now);

    EXPECT_LE(frame.size(), 9U);
    EXPECT_THAT(frame, Each(ResultOf(display_width, ::testing::Le(20U))));
    EXPECT_THAT(frame.back(), HasSubstr("more"));
}

TEST(ProgressTest, TimeLeftCountsThisRunAlone) {
    const HeadCase test = half_way();
    ProgressOptions continued = options();
    continued.done_before = 1;

    EXPECT_EQ(time_left(test.head.summary(), continued, test.now), std::nullopt);
    EXPECT_EQ(time_left(test.head.summary(), options(), test.now), Duration{seconds{30}});
}

TEST(ResultsReportTest, TableIsBestFirstAndCsvIsQuoted) {
    HeadCase test(spec(), 2);
    test.begin_with({make_node("n0", 2)});
    test.trial_reports(0, 1, {{"loss", 0.5}, {"note", "a, \"b\""}});
    test.trial_reports(1, 1, {{"loss", 0.25}});
    test.trial_ends(0);
    test.trial_ends(1);

    EXPECT_EQ(
        trials_by_rank(test.head, spec().objective), (std::vector<TrialId>{TrialId{1}, TrialId{0}})
    );
    EXPECT_EQ(
        format_results(test.head, spec(), trials_by_id(test.head), ResultsFormat::Csv),
        "trial,state,attempts,failures,reports,seconds,step,loss,note,config/index,reason\r\n"
        "00000,Completed,1,0,1,1.000,1,0.5,\"a, \"\"b\"\"\",0,\r\n"
        "00001,Completed,1,0,1,1.000,1,0.25,,1,\r\n"
    );
}

}  // namespace
}  // namespace muster
