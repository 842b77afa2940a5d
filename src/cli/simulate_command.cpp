// SPDX-License-Identifier: Apache-2.0
//
// simulate_command - `muster simulate`: what a run would do, in virtual time.

#include "cli/commands.hpp"
#include "sim/simulate_spec.hpp"
#include "spec/load_spec.hpp"

namespace muster {
int carry_out(const SimulateCommand& command) {
    const Result<ExperimentSpec> spec = load_spec(command.spec.path, command.spec.sets);
    if (!spec) {
        return complain(spec.error());
    }
    const Result<std::vector<NodeInventory>> nodes =
        nodes_for(command.cluster, {.node_resources = command.node_resources}, spec->nodes);
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
