// SPDX-License-Identifier: Apache-2.0

#include "runtime/live_view.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/head_case.hpp"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::HeadCase;
using ::testing::Lt;
using testing::make_node;
using ::testing::SizeIs;

ExperimentSpec spec() {
    ExperimentSpec spec;
    spec.name = "sweep";
    spec.objective = ObjectiveSpec{"loss", Mode::Min};
    return spec;
}

TEST(LiveViewTest, SaysWhatTheHeadSaysAndIsReadBackWhole) {
    HeadCase test(spec(), 4);
    test.begin_with({make_node("n0", 2)});
    test.trial_reports(0, 3, {{"loss", 0.5}});
    test.trial_ends(0);

    const LiveView view = make_live_view(test.head, "sweep", test.now);

    EXPECT_THAT(view.running, SizeIs(2));
    EXPECT_THAT(view.waiting, SizeIs(1));
    ASSERT_TRUE(view.best.has_value());
    EXPECT_EQ(view.best->trial, TrialId{0});
    const Result<LiveView> read = live_view_from_json(to_json(view));
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(read->running.front().why, view.running.front().why);
    EXPECT_EQ(read->counts, view.counts);
}

TEST(LiveViewTest, MegabytesOfAMetricStayOutOfIt) {
    HeadCase test(spec(), 1);
    test.begin_with({make_node("n0", 1)});

    test.trial_reports(0, 1, {{"loss", 0.5}, {"note", std::string(1 << 20, 'x')}});

    const std::string json = to_json(make_live_view(test.head, "sweep", test.now));
    EXPECT_THAT(json, SizeIs(Lt(5'000U)));
    EXPECT_THAT(json, HasSubstr("xxx…"));
}

TEST(LiveViewTest, TextThatIsNoViewIsAnError) {
    EXPECT_FALSE(live_view_from_json("").ok());
    EXPECT_FALSE(live_view_from_json("{}").ok());
    EXPECT_FALSE(live_view_from_json("[1]").ok());
}

}  // namespace
}  // namespace muster
