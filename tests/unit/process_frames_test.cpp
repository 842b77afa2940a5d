// SPDX-License-Identifier: Apache-2.0

#include <string>

#include <gtest/gtest.h>

#include "process/frames.hpp"

namespace muster {
namespace {

LaunchPlan full_plan() {
    LaunchPlan plan;
    plan.key = {TrialId{42}, AttemptId{3, 7}, MemberId{1}};
    plan.argv = {"a b", "", "--x"};
    plan.function = "train";
    plan.env = {{"A", "1"}, {"B", ""}};
    plan.workdir = "/w";
    plan.files = {{"/f", std::string("\0x", 2)}};
    plan.remove_at_end = "/f";
    plan.trial_dir = "/t";
    plan.make_trial_dir = true;
    plan.output = OutputMode::Pty;
    plan.output_path = "/t/output";
    plan.processing_units = {0, 5};
    plan.memory_limit_bytes = 1 << 30;
    plan.grace = Duration{12};
    plan.metrics = {{MetricSource::File, "log", "(?P<x>.)"}};
    plan.checkpoints.directory = "/t/checkpoints";
    plan.checkpoints.kept = {3, 4};
    return plan;
}

TEST(FramesTest, PlanArrivesWhole) {
    std::string bytes;
    append_frame(full_plan(), bytes);
    FrameBuffer buffer;
    buffer.append(bytes);

    const std::optional<ToKeeper> frame = buffer.next_to_keeper();

    ASSERT_TRUE(frame.has_value());
    EXPECT_EQ(std::get<LaunchMember>(*frame).plan, full_plan());
    EXPECT_FALSE(buffer.next_to_keeper().has_value());
    EXPECT_FALSE(buffer.broken());
}

TEST(FramesTest, FramesMayComeByteByByte) {
    std::string bytes;
    append_frame(EndNow{true}, bytes);
    append_frame(BindNow{{1, 2}}, bytes);
    FrameBuffer buffer;
    std::vector<ToKeeper> frames;

    for (const char byte : bytes) {
        buffer.append({&byte, 1});
        while (std::optional<ToKeeper> frame = buffer.next_to_keeper()) {
            frames.push_back(*std::move(frame));
        }
    }

    ASSERT_EQ(frames.size(), 2U);
    EXPECT_TRUE(std::get<EndNow>(frames[0]).kill);
    EXPECT_EQ(std::get<BindNow>(frames[1]).processing_units, (std::vector<std::uint32_t>{1, 2}));
}

TEST(FramesTest, ReportsKeepTheirTypes) {
    const std::vector<std::vector<ValueMember>> reports = {
        {{"n", 1}, {"x", 1.0}, {"t", "text"}, {"b", true}, {"none", Value{}}}, {}, {{"n", 2}}};
    std::string bytes;
    append_frame(KeeperReports{reports}, bytes);
    FrameBuffer buffer;
    buffer.append(bytes);

    const std::optional<FromKeeper> frame = buffer.next_from_keeper();

    ASSERT_TRUE(frame.has_value());
    EXPECT_EQ(std::get<KeeperReports>(*frame).reports, reports);
}

TEST(FramesTest, EndArrivesWhole) {
    std::string bytes;
    append_frame(
        KeeperEnded{{EndCause::Signalled, 9, "why"}, {Duration{1}, Duration{2}, 3}}, bytes
    );
    FrameBuffer buffer;
    buffer.append(bytes);

    const std::optional<FromKeeper> frame = buffer.next_from_keeper();

    ASSERT_TRUE(frame.has_value());
    const auto& ended = std::get<KeeperEnded>(*frame);
    EXPECT_EQ(ended.outcome, (Outcome{EndCause::Signalled, 9, "why"}));
    EXPECT_EQ(ended.usage, (Usage{Duration{1}, Duration{2}, 3}));
}

TEST(FramesTest, CutFrameIsBrokenWhereverItIsCut) {
    std::string whole;
    append_frame(full_plan(), whole);
    for (std::size_t length = 0; length + 4 < whole.size(); ++length) {
        // A length that says that this was all.
        std::string cut(4, '\0');
        cut[0] = static_cast<char>(length & 0xFFU);
        cut[1] = static_cast<char>(length >> 8U);
        cut += whole.substr(4, length);
        FrameBuffer buffer;
        buffer.append(cut);

        EXPECT_FALSE(buffer.next_to_keeper().has_value()) << length;
        EXPECT_TRUE(buffer.broken()) << length;
    }
}

}  // namespace
}  // namespace muster
