// SPDX-License-Identifier: Apache-2.0
//
// The plan that an agent makes of a Start: every field, with literals.

#include "agent/launch_plan.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using ::testing::HasSubstr;

const AgentOptions kOptions{.run_dir = "/tmp/m.x", .socket_path = "/tmp/m.x/s"};

NodeInventory two_gpu_node() {
    return {
        .name = "n1",
        .cpu = Amount::whole(4),
        .cores = {{{0, 4}, 0}, {{1, 5}, 0}, {{2, 6}, 0}, {{3, 7}, 0}},
        .devices = {{.label = "GPU-aa"}, {.label = "GPU-bb"}},
    };
}

NodeInventory logical_node() {
    return {.name = "n2", .cpu = Amount::whole(2), .cores = {{}, {}}};
}

Setup setup_of(TrialSpec trial) {
    if (trial.command.empty() && trial.shell.empty()) {
        trial.command = {"train"};
    }
    if (trial.workdir.empty()) {
        trial.workdir = "/home/me";
    }
    return {.epoch = 1, .experiment = "digits", .experiment_dir = "/x/digits", .trial = trial};
}

Start start_of(Config config) {
    return {
        .key = {TrialId{42}, AttemptId{1, 7}, MemberId{0}},
        .config = std::move(config),
        .cores = {0, 1},
        .cpu = Amount::whole(2),
    };
}

LaunchPlan plan_of(const TrialSpec& trial, const Start& start, const NodeInventory& node) {
    auto plan = make_launch_plan(setup_of(trial), start, node, kOptions);
    EXPECT_TRUE(plan.ok()) << (plan ? "" : plan.error().message);
    return plan ? *plan : LaunchPlan{};
}

std::string error_of(const TrialSpec& trial, const Start& start) {
    auto plan = make_launch_plan(setup_of(trial), start, two_gpu_node(), kOptions);
    return plan ? "no error" : plan.error().message;
}

std::string variable(const LaunchPlan& plan, std::string_view name) {
    std::string found = "(unset)";
    for (const EnvironmentVariable& variable : plan.env) {
        if (variable.name == name) {
            EXPECT_EQ(found, "(unset)") << name << " is set twice";
            found = variable.value;
        }
    }
    return found;
}

TEST(LaunchPlanTest, HoldsEverythingThatAKeeperNeeds) {
    const TrialSpec trial{
        .command = {"python3", "train.py", "--lr={lr}", "{muster.trial_dir}/model"},
        .env = {{"MODEL", "small-{lr}"}},
        .files = {{.target = "run.nml", .source = "run.nml.in", .content = "lr = {lr}\n"}},
        .grace = std::chrono::seconds{3},
        .metrics = {{MetricSource::File, "log-{lr}", "x=(?P<x>.*)"}},
    };
    Start start = start_of(Config::from_members({{"lr", 0.5}}));
    start.devices = {1};
    start.gpu = Amount::whole(1);
    start.memory_limit_bytes = 1024;
    start.bundles = {{"n1", {0, 1}, {"GPU-bb"}}, {"n2", {3}, {}}};
    start.kept_checkpoints = {2, 3};
    start.resume_from = 3;
    start.next_checkpoint = 5;

    const LaunchPlan plan = plan_of(trial, start, two_gpu_node());

    EXPECT_EQ(
        plan,
        (LaunchPlan{
            .key = {TrialId{42}, AttemptId{1, 7}, MemberId{0}},
            .argv = {"python3", "train.py", "--lr=0.5", "/x/digits/00042/model"},
            .env =
                {
                    {"MUSTER_TRIAL_ID", "00042"},
                    {"MUSTER_ATTEMPT", "1.7"},
                    {"MUSTER_EXPERIMENT", "digits"},
                    {"MUSTER_TRIAL_DIR", "/x/digits/00042"},
                    {"MUSTER_CONFIG", "/tmp/m.x/00042-1.7-0.json"},
                    {"MUSTER_SOCKET", "/tmp/m.x/s"},
                    {"MUSTER_CHECKPOINT_DIR", "/x/digits/00042/checkpoints"},
                    {"MUSTER_CHECKPOINT", "/x/digits/00042/checkpoints/checkpoint_000003"},
                    {"MUSTER_BUNDLES",
                     R"([{"host": "n1", "cores": [0, 1], "devices": ["GPU-bb"]}, )"
                     R"({"host": "n2", "cores": [3], "devices": []}])"},
                    {"CUDA_VISIBLE_DEVICES", "GPU-bb"},
                    {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"},
                    {"OMP_NUM_THREADS", "2"},
                    {"MUSTER_SEED", "7259395788662502240"},
                    {"MODEL", "small-0.5"},
                },
            .workdir = "/home/me",
            .files =
                {
                    {"/tmp/m.x/00042-1.7-0.json", "{\"lr\": 0.5}\n"},
                    {"/x/digits/00042/run.nml", "lr = 0.5\n"},
                },
            .remove_at_end = "/tmp/m.x/00042-1.7-0.json",
            .trial_dir = "/x/digits/00042",
            .make_trial_dir = true,
            .output = OutputMode::File,
            .output_path = "/x/digits/00042/output",
            .processing_units = {0, 4, 1, 5},
            .memory_limit_bytes = 1024,
            .grace = std::chrono::seconds{3},
            .metrics = {{MetricSource::File, "/home/me/log-0.5", "x=(?P<x>.*)"}},
            .checkpoints =
                {.directory = "/x/digits/00042/checkpoints",
                 .kept = {2, 3},
                 .resume_from = 3,
                 .fetch_from = std::nullopt,
                 .next = 5},
        })
    );
}

TEST(LaunchPlanTest, AShellLineIsGivenToTheShellWithItsValuesQuoted) {
    const LaunchPlan plan = plan_of(
        {.shell = "train {name} | tee out"},
        start_of(Config::from_members({{"name", "it's; rm"}})),
        logical_node()
    );

    EXPECT_EQ(
        plan.argv, (std::vector<std::string>{"/bin/sh", "-c", R"(train 'it'\''s; rm' | tee out)"})
    );
}

TEST(LaunchPlanTest, ALogicalNodeBindsNothingAndATrialWithoutDevicesSeesNone) {
    const LaunchPlan plan = plan_of({}, start_of({}), logical_node());

    EXPECT_TRUE(plan.processing_units.empty());
    EXPECT_EQ(variable(plan, "CUDA_VISIBLE_DEVICES"), "");
    EXPECT_EQ(variable(plan, "MUSTER_CHECKPOINT"), "(unset)");
    EXPECT_FALSE(plan.make_trial_dir);
}

TEST(LaunchPlanTest, OnAnAmdNodeTheMaskIsRocrAndCudaIsLeftAlone) {
    NodeInventory node = logical_node();
    node.devices = {
        {.label = "0", .kind = DeviceKind::Rocm}, {.label = "1", .kind = DeviceKind::Rocm}};
    Start start = start_of({});

    EXPECT_EQ(variable(plan_of({}, start, node), "ROCR_VISIBLE_DEVICES"), "");
    EXPECT_EQ(variable(plan_of({}, start, node), "CUDA_VISIBLE_DEVICES"), "(unset)");

    start.devices = {0, 1};

    EXPECT_EQ(variable(plan_of({}, start, node), "ROCR_VISIBLE_DEVICES"), "0,1");
}

TEST(LaunchPlanTest, ThreadsAreTheWholeCoresAtLeastOneUnlessTheSpecSetsThem) {
    Start start = start_of({});
    const auto threads = [&](const TrialSpec& trial) {
        return variable(plan_of(trial, start, two_gpu_node()), "OMP_NUM_THREADS");
    };

    start.cpu = Amount::ten_thousandths(25'000);
    EXPECT_EQ(threads({}), "2");
    start.cpu = Amount::ten_thousandths(5'000);
    EXPECT_EQ(threads({}), "1");
    // Only a GPU was booked: as many threads as there are cores to run on.
    start.cpu = {};
    start.gpu = Amount::whole(1);
    start.cores = {1, 2, 3};
    EXPECT_EQ(threads({}), "3");
    EXPECT_EQ(threads({.env = {{"OMP_NUM_THREADS", "8"}}}), "8");
    // Nothing was booked.
    start.gpu = {};
    EXPECT_EQ(threads({}), "1");
}

TEST(LaunchPlanTest, TheTrialDirectoryIsMadeWhenSomethingNamesIt) {
    const Start start = start_of({});
    const auto made = [&](const TrialSpec& trial) {
        return plan_of(trial, start, logical_node()).make_trial_dir;
    };

    EXPECT_FALSE(made({}));
    EXPECT_TRUE(made({.command = {"train", "{muster.trial_dir}"}}));
    EXPECT_FALSE(made({.command = {"train", "{{muster.trial_dir}}"}}));
    EXPECT_TRUE(made({.shell = "cd $MUSTER_TRIAL_DIR && train"}));
    EXPECT_TRUE(made({.env = {{"OUT", "{muster.trial_dir}/out"}}}));
    EXPECT_TRUE(made({.workdir_is_trial_dir = true}));
    EXPECT_TRUE(made({.trial_dir = TrialDir::Always}));
    EXPECT_FALSE(made({.trial_dir = TrialDir::Never, .output = OutputMode::Discard}));
}

TEST(LaunchPlanTest, ATrialThatHasNoDirectoryCannotWriteThere) {
    const Start start = start_of({});

    EXPECT_EQ(
        error_of({.trial_dir = TrialDir::Never}, start),
        "trial.trial_dir: never, but output: file (or pty) needs the trial's directory"
    );
    EXPECT_EQ(
        error_of(
            {.workdir_is_trial_dir = true,
             .trial_dir = TrialDir::Never,
             .output = OutputMode::Discard},
            start
        ),
        "trial.trial_dir: never, but workdir: trial needs the trial's directory"
    );
    const LaunchPlan plan = plan_of(
        {.trial_dir = TrialDir::Never, .output = OutputMode::Stream}, start, logical_node()
    );
    EXPECT_EQ(plan.output_path, "/x/digits/output-n2");
    EXPECT_EQ(variable(plan, "MUSTER_TRIAL_DIR"), "(unset)");
}

TEST(LaunchPlanTest, ATrialThatWorksInItsDirectoryHasItsMetricFilesThere) {
    const LaunchPlan plan = plan_of(
        {.workdir_is_trial_dir = true,
         .metrics = {{MetricSource::File, "log", "x"}, {MetricSource::File, "/abs/log", "x"}}},
        start_of({}),
        logical_node()
    );

    EXPECT_EQ(plan.workdir, "/x/digits/00042");
    EXPECT_EQ(plan.metrics[0].path, "/x/digits/00042/log");
    EXPECT_EQ(plan.metrics[1].path, "/abs/log");
}

TEST(LaunchPlanTest, WhatCannotBeFilledInIsRefusedWithItsPlace) {
    Start start = start_of({});

    EXPECT_THAT(error_of({.command = {"train", "{lr"}}, start), HasSubstr("trial.command[1]: "));
    EXPECT_THAT(error_of({.shell = "train {lr"}, start), HasSubstr("trial.shell: "));
    EXPECT_THAT(error_of({.env = {{"A", "{"}}}, start), HasSubstr("trial.env.A: "));
    EXPECT_THAT(error_of({.files = {{"a", "a.in", "{"}}}, start), HasSubstr("a.in: "));
    start.cores = {9};
    EXPECT_EQ(error_of({}, start), "core 9 was given, but node n1 has 4");
    start.cores = {};
    start.devices = {2};
    EXPECT_EQ(error_of({}, start), "device 2 was given, but node n1 has 2");
}

}  // namespace
}  // namespace muster
