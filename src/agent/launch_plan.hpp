// SPDX-License-Identifier: Apache-2.0
//
// launch_plan - from the head's Start to everything that a keeper needs to know. Pure.

#pragma once

#include <cstdint>
#include <vector>

#include "muster/error.hpp"

#include "agent/agent.hpp"
#include "protocol/launch.hpp"
#include "protocol/messages.hpp"
#include "resources/node_inventory.hpp"

namespace muster {

/// How to run the member that `start` asks for on the node of `inventory`.
///
/// Variables that the spec sets replace those that muster would set. The trial's directory is
/// `<experiment_dir>/<trial>`; with TrialDir::Auto it is made before the start when the command, a
/// variable, a file or the path of a metric names it or the trial works in it.
/// Errors: InvalidInput for a template that cannot be filled in, for a core or device that the node
/// does not have, and for a spec that writes to the directory of a trial that has none.
Result<LaunchPlan> make_launch_plan(
    const Setup& setup,
    const Start& start,
    const NodeInventory& inventory,
    const AgentOptions& options
);

/// The trial's checkpoint directory on the node: `<experiment_dir>/<trial>/checkpoints`, or with
/// node storage `<path>/muster-<user>/<experiment>-<hash of its directory>/<node>/<trial>`.
std::string checkpoint_dir(
    const Setup& setup,
    const NodeInventory& inventory,
    TrialId trial,
    const AgentOptions& options
);

/// With node storage, the directory that the trials' checkpoint directories lie in.
std::string
checkpoint_root(const Setup& setup, const NodeInventory& inventory, const AgentOptions& options);

/// The operating system's numbers of the hardware threads of `cores`, in order; empty when the
/// node's cores are logical.
/// Errors: InvalidInput for a core that the node does not have.
Result<std::vector<std::uint32_t>>
processing_units_of(const NodeInventory& inventory, const std::vector<std::uint32_t>& cores);

}  // namespace muster
