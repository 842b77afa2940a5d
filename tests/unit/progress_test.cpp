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

AttemptStarted ran_on(NodeId node, TrialId trial) {
    AttemptStarted started;
    started.trial = trial;
    started.placement.bundles.push_back(BundlePlacement{.node = node});
    return started;
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
    ExperimentView view{.directory = "", .spec = spec(), .head = nullptr};
    view.head = std::make_unique<Head>(std::move(test.head));
    view.nodes.take(NodeJoined{NodeId{0}, "n0", 1});
    view.nodes.take(NodeJoined{NodeId{1}, "n1", 1});
    view.nodes.take(ran_on(NodeId{0}, TrialId{0}));
    view.nodes.take(ran_on(NodeId{1}, TrialId{1}));
    const std::vector<TrialId> trials = trials_by_id(*view.head);

    EXPECT_EQ(
        format_results(view, trials, ResultsFormat::Csv),
        "trial,state,node,attempts,failures,reports,seconds,step,loss,note,config/index,reason\r\n"
        "00000,Completed,n0,1,0,1,1.000,1,0.5,\"a, \"\"b\"\"\",0,\r\n"
        "00001,Completed,n1,1,0,1,1.000,1,0.25,,1,\r\n"
    );
    EXPECT_THAT(format_results(view, trials, ResultsFormat::Table), HasSubstr("node"));
}

TEST(ResultsReportTest, ATrialIsShownOnTheNodeOfItsLastAttempt) {
    NodesOfTrials nodes;
    nodes.take(RunStarted{1});
    nodes.take(NodeJoined{NodeId{0}, "n0", 1});
    nodes.take(ran_on(NodeId{0}, TrialId{0}));
    nodes.take(ran_on(NodeId{0}, TrialId{2}));
    nodes.take(RunStarted{2});
    nodes.take(NodeJoined{NodeId{0}, "n5", 1});
    nodes.take(ran_on(NodeId{0}, TrialId{0}));

    EXPECT_EQ(nodes.name_of(TrialId{0}), "n5");
    EXPECT_EQ(nodes.name_of(TrialId{1}), "");
    EXPECT_EQ(nodes.name_of(TrialId{2}), "n0");
    EXPECT_EQ(nodes.name_of(TrialId{9}), "");
    EXPECT_EQ(nodes.node_count(), 2U);
}

}  // namespace
}  // namespace muster
