// SPDX-License-Identifier: Apache-2.0
//
// `muster simulate`: what a run would do, exact to the nanosecond.

#include "sim/simulate_spec.hpp"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

NodeInventory node(std::string name, std::int64_t cores, std::int64_t devices = 0) {
    NodeInventory inventory;
    inventory.name = std::move(name);
    inventory.cpu = Amount::whole(cores);
    inventory.cores.resize(static_cast<std::size_t>(cores));
    for (std::int64_t device = 0; device < devices; ++device) {
        inventory.devices.push_back({.label = std::to_string(device)});
    }
    return inventory;
}

ExperimentSpec spec_of(std::int64_t samples, PlacementGroupSpec group) {
    ExperimentSpec spec;
    spec.name = "digits";
    spec.num_samples = samples;
    spec.trial.command = {"train"};
    spec.space.parameters = {{"epochs", Grid{{Value(10), Value(20)}}, {}}};
    spec.resources = {{{}, std::move(group)}};
    return spec;
}

PlacementGroupSpec cpus(std::int64_t count) {
    return {{Bundle{.cpu = Amount::whole(count)}}, PlacementStrategy::Pack};
}

SimulationReport report_of(
    const ExperimentSpec& spec,
    const std::vector<NodeInventory>& nodes,
    const SimulateOptions& options = {}
) {
    auto report = simulate_spec(spec, nodes, options);
    EXPECT_TRUE(report.ok()) << (report ? "" : report.error().message);
    return report ? *report : SimulationReport{};
}

std::string error_of(const ExperimentSpec& spec, const SimulateOptions& options) {
    const auto report = simulate_spec(spec, {node("n0", 4)}, options);
    return report ? "no error" : report.error().message;
}

SimulatedStay stay(std::uint32_t trial, std::int64_t from, std::int64_t to) {
    return {TrialId{trial}, {seconds{from}}, {seconds{to}}};
}

TEST(SimulateSpecTest, FillsANodeAndSaysHowLongThatTakes) {
    const SimulationReport report = report_of(spec_of(3, cpus(2)), {node("n0", 4)});

    EXPECT_EQ(
        report,
        (SimulationReport{
            .experiment = "digits",
            .trials = 6,
            .makespan = seconds{180},
            .serial = seconds{360},
            .most_at_once = 2,
            .mean_at_once = 2,
            .resources = {{"cpu", 100, 100}},
            .nodes =
                {{"n0",
                  {{"cpu", 100, 100}},
                  {{stay(0, 0, 60), stay(2, 60, 120), stay(4, 120, 180)},
                   {stay(1, 0, 60), stay(3, 60, 120), stay(5, 120, 180)}}}},
        })
    );
}

TEST(SimulateSpecTest, ADurationMayDependOnTheConfig) {
    const SimulationReport report =
        report_of(spec_of(1, cpus(4)), {node("n0", 4)}, {.duration = "epochs * 2"});

    EXPECT_EQ(report.makespan, seconds{20 + 40});
    EXPECT_EQ(report.most_at_once, 1U);
}

TEST(SimulateSpecTest, AGroupStaysOnEveryNodeThatItHasABundleOn) {
    const PlacementGroupSpec group{
        {Bundle{.cpu = Amount::whole(1)}, Bundle{.cpu = Amount::whole(2)}},
        PlacementStrategy::StrictSpread};

    const SimulationReport report =
        report_of(spec_of(1, group), {node("n0", 2), node("n1", 2)}, {.duration = "10"});

    EXPECT_EQ(report.makespan, seconds{20});
    EXPECT_EQ(report.nodes[0].lanes[0].size(), 2U);
    EXPECT_EQ(report.nodes[1].lanes[0].size(), 2U);
    EXPECT_EQ(report.resources, (std::vector<ResourceUse>{{"cpu", 75, 75}}));
}

TEST(SimulateSpecTest, TheSpecsLimitsHold) {
    ExperimentSpec spec = spec_of(2, cpus(1));
    spec.trial.time_limit = seconds{30};
    spec.max_concurrent_trials = 1;
    // Simulated trials report nothing, and are not held to it.
    spec.trial.report_timeout = seconds{1};

    const SimulationReport report = report_of(spec, {node("n0", 4)}, {.duration = "1h"});

    EXPECT_EQ(report.makespan, seconds{4 * 30});
    EXPECT_EQ(report.resources, (std::vector<ResourceUse>{{"cpu", 25, 25}}));
}

TEST(SimulateSpecTest, OnlyTheFirstTrialsOfASearchWithoutEnd) {
    ExperimentSpec spec = spec_of(-1, cpus(1));

    EXPECT_EQ(
        error_of(spec, {}), "num_samples: -1 never ends; say how many trials to simulate (--trials)"
    );
    EXPECT_EQ(report_of(spec, {node("n0", 4)}, {.trials = 5}).trials, 5U);
}

TEST(SimulateSpecTest, RefusesWhatItCannotSimulate) {
    const ExperimentSpec spec = spec_of(1, cpus(1));

    EXPECT_THAT(error_of(spec, {.duration = "lr * 2"}), HasSubstr("the space has no key lr"));
    EXPECT_THAT(error_of(spec, {.duration = "1 +"}), HasSubstr("nor a formula that gives seconds"));
    EXPECT_THAT(error_of(spec, {.duration = "0s"}), HasSubstr("longer than nothing"));
    EXPECT_THAT(
        error_of(spec, {.duration = "epochs - 15"}),
        HasSubstr("gives -5 for epochs=10; it must be a number of seconds above 0")
    );
    EXPECT_THAT(error_of(spec, {.duration = "1 / (epochs - 10)"}), HasSubstr("--duration: "));
    const auto infeasible = simulate_spec(spec_of(1, cpus(8)), {node("n0", 4)});
    ASSERT_FALSE(infeasible.ok());
    EXPECT_EQ(infeasible.error().code, ErrorCode::Infeasible);
    EXPECT_FALSE(simulate_spec(spec, {}).ok());
}

TEST(SimulateSpecTest, ReadsAsTextAndAsJson) {
    ExperimentSpec spec = spec_of(1, {{Bundle{.gpu = Amount::whole(1)}}, PlacementStrategy::Pack});

    const SimulationReport report =
        report_of(spec, {node("gpu1", 2, 1), node("n2", 2)}, {.duration = "epochs"});

    EXPECT_EQ(
        format(report, 47),
        "digits: 2 trials on 2 nodes\n"
        "makespan        30.0s (one after the other: 30.0s)\n"
        "trials at once  1.0 in the mean, 1 at most\n"
        "\n"
        "in use              mean    peak\n"
        "cpu                 0.0%    0.0%\n"
        "gpu               100.0%  100.0%\n"
        "\n"
        "gpu1            cpu 0.0%  gpu 100.0%\n"
        "n2              cpu 0.0%\n"
        "\n"
        "time line, a column is 750ms\n"
        "gpu1 |[0          ][1                        ]|\n"
        "n2   |                                        |\n"
    );
    EXPECT_EQ(
        to_json(report),
        R"({"experiment": "digits", "trials": 2, "makespan": 30.0, "serial": 30.0, )"
        R"("most_at_once": 1, "mean_at_once": 1.0, "resources": {)"
        R"("cpu": {"mean_percent": 0.0, "peak_percent": 0.0}, )"
        R"("gpu": {"mean_percent": 100.0, "peak_percent": 100.0}}, "nodes": [)"
        R"({"name": "gpu1", "resources": {"cpu": {"mean_percent": 0.0, "peak_percent": 0.0}, )"
        R"("gpu": {"mean_percent": 100.0, "peak_percent": 100.0}}, "lanes": [)"
        R"([{"trial": 0, "from": 0.0, "to": 10.0}, {"trial": 1, "from": 10.0, "to": 30.0}]]}, )"
        R"({"name": "n2", "resources": {"cpu": {"mean_percent": 0.0, "peak_percent": 0.0}}, )"
        R"("lanes": []}]})"
    );
}

}  // namespace
}  // namespace muster
