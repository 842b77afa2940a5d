// SPDX-License-Identifier: Apache-2.0
//
// simulate_command - `muster simulate`: what a run would do, in virtual time.

#include "cli/commands.hpp"
#include "resources/logical_node.hpp"
#include "sim/simulate_spec.hpp"
#include "spec/cluster_file.hpp"
#include "spec/load_spec.hpp"

namespace muster {
namespace {

Result<std::vector<NodeInventory>>
nodes_of(const SimulateCommand& command, const ExperimentSpec& spec) {
    if (!command.cluster.empty()) {
        return load_cluster(command.cluster);
    }
    Result<NodeInventory> node = node_for({.node_resources = command.node_resources}, spec.nodes);
    if (!node) {
        return node.error();
    }
    return std::vector<NodeInventory>{std::move(*node)};
}

}  // namespace

int carry_out(const SimulateCommand& command) {
    const Result<ExperimentSpec> spec = load_spec(command.spec.path, command.spec.sets);
    if (!spec) {
        return complain(spec.error());
    }
    const Result<std::vector<NodeInventory>> nodes = nodes_of(command, *spec);
    if (!nodes) {
        return complain(nodes.error());
    }
    const Result<SimulationReport> report =
        simulate_spec(*spec, *nodes, {.duration = command.duration, .trials = command.trials});
    if (!report) {
        return complain(report.error());
    }
    print(command.json ? to_json(*report) + "\n" : format(*report));
    return kExitOk;
}

}  // namespace muster
