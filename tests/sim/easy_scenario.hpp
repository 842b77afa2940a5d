// SPDX-License-Identifier: Apache-2.0
//
// easy_scenario - a simulated experiment in which nothing goes wrong, for tests to spoil.

#pragma once

#include <cstdint>
#include <utility>

#include "sim/simulation.hpp"

namespace muster {

/// Three nodes of four cores; every trial reports twice and completes within seconds.
inline Scenario easy_scenario(std::uint64_t seed) {
    using std::chrono::milliseconds;
    using std::chrono::seconds;
    Scenario scenario;
    scenario.seed = seed;
    scenario.spec.name = "easy";
    scenario.spec.objective = ObjectiveSpec{"loss", Mode::Min};
    scenario.spec.num_samples = 40;
    scenario.spec.seed = seed;
    scenario.spec.trial.command = {"train"};
    scenario.spec.trial.grace = seconds{2};
    scenario.spec.space.parameters = {{"x", RealDomain{0, 1, 0, false}, {}}};
    const Bundle core{.cpu = Amount::whole(1)};
    scenario.spec.resources = {{{}, {{core}, PlacementStrategy::Pack}}};
    for (const char* name : {"n0", "n1", "n2"}) {
        NodeInventory node;
        node.name = name;
        node.cpu = Amount::whole(4);
        node.cores.resize(4);
        scenario.nodes.push_back(std::move(node));
    }
    scenario.options.experiment_dir = "/experiments/easy";
    scenario.options.expected_nodes = 3;
    scenario.options.lease = seconds{20};
    scenario.lease = seconds{15};
    scenario.model = [](const LaunchPlan& plan) {
        TrialScript script;
        script.duration = seconds{2 + plan.key.trial.value % 7};
        script.reports = 2;
        return script;
    };
    scenario.message_delay = {milliseconds{0}, milliseconds{20}};
    scenario.disk_delay = {milliseconds{1}, milliseconds{50}};
    scenario.process_delay = {milliseconds{1}, milliseconds{5}};
    scenario.node_start = {milliseconds{0}, milliseconds{500}};
    scenario.bound = std::chrono::hours{1};
    scenario.expected.assign(40, ExpectedEnd::Completes);
    return scenario;
}

}  // namespace muster
