// SPDX-License-Identifier: Apache-2.0
//
// team - what `muster run` and `muster nodes` do under a launcher, where several ranks run the same
// command line: rank 0 carries it out, the others serve it.

#include <array>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/commands.hpp"
#include "resources/logical_node.hpp"
#include "runtime/host.hpp"
#include "runtime/roll_call.hpp"
#include "runtime/serve_node.hpp"
#include "runtime/signals.hpp"
#include "spec/cluster_file.hpp"

namespace muster {
namespace {

std::string boot_id() {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string id;
    std::getline(file, id);
    return id;
}

/// The nodes of all ranks.
Result<std::vector<NodeInventory>> gather_nodes(RollCall& roll_call, const NodesCommand& command) {
    const Result<NodeRules> rules = node_rules_of(command.team, command.node, {});
    if (!rules) {
        return rules.error();
    }
    const Result<std::vector<EnrolledRank>> ranks =
        roll_call.gather(enrol_here(command.node), command.team.start_timeout);
    if (!ranks) {
        return ranks.error();
    }
    const Result<Roles> roles = assign_roles(*ranks, *rules);
    if (!roles) {
        return roles.error();
    }
    std::vector<NodeInventory> nodes;
    for (const AgentRank& agent : roles->agents) {
        nodes.push_back(agent.inventory);
    }
    for (const std::string& remark : roles->remarks) {
        std::fputs(fmt::format("muster: {}\n", remark).c_str(), stderr);
    }
    return nodes;
}

}  // namespace

Enrol enrol_here(const NodeArguments& arguments) {
    Enrol enrol;
    enrol.boot_id = boot_id();
    enrol.pid = static_cast<std::int32_t>(::getpid());
    Result<NodeInventory> node = probe_node({.cpu_unit = arguments.cpu_unit});
    if (node) {
        enrol.inventory = std::move(*node);
    } else {
        enrol.problem = node.error().message;
    }
    enrol.host = node_name();
    return enrol;
}

Result<NodeRules> node_rules_of(
    const TeamArguments& team,
    const NodeArguments& node,
    const std::vector<NodeResources>& custom
) {
    NodeRules rules{
        .rank_is_node = team.rank_is_node,
        .dedicated_head = team.dedicated_head,
        .node_resources = std::nullopt,
        .cluster = {},
        .custom = custom};
    if (!node.node_resources.empty() && !team.cluster.empty()) {
        return Error{
            ErrorCode::InvalidInput,
            "--node-resources and --cluster both say what nodes have; leave one out"};
    }
    if (!node.node_resources.empty()) {
        const Result<ResourceSet> resources = parse_node_resources(node.node_resources);
        if (!resources) {
            return Error{resources.error().code, "--node-resources: " + resources.error().message};
        }
        rules.node_resources = *resources;
    }
    if (!team.cluster.empty()) {
        Result<std::vector<NodeInventory>> nodes = load_cluster(team.cluster);
        if (!nodes) {
            return nodes.error();
        }
        rules.cluster = std::move(*nodes);
    }
    return rules;
}

CommandEnd carry_out(const NodesCommand& command, const Surroundings& surroundings) {
    Result<std::vector<NodeInventory>> nodes = Error{};
    bool lost_ranks = false;
    if (surroundings.transport != nullptr) {
        RollCall roll_call(
            *surroundings.transport,
            [](const std::string& text) {
                std::fputs(fmt::format("muster: {}\n", text).c_str(), stderr);
            },
            surroundings.signals->fd()
        );
        nodes = gather_nodes(roll_call, command);
        roll_call.dismiss();
        lost_ranks = roll_call.lost_any();
    } else {
        nodes = nodes_for(command.team.cluster, command.node, {});
    }
    if (!nodes) {
        return {complain(nodes.error()), lost_ranks};
    }
    print(format_nodes(*nodes, command.format));
    return {kExitOk, lost_ranks};
}

CommandEnd serve(const NodeArguments& node, const Surroundings& surroundings) {
    const Result<ServeEnd> end = serve_node(
        {.transport = surroundings.transport,
         .spawner = surroundings.spawner,
         .run_dir = surroundings.run_dir,
         .signals = surroundings.signals,
         .enrol = enrol_here(node)}
    );
    if (!end) {
        const std::uint32_t rank = surroundings.transport->rank();
        std::fputs(
            fmt::format("muster: rank {} on {}: {}\n", rank, node_name(), end.error().message)
                .c_str(),
            stderr
        );
        return {kExitSystem, true};
    }
    return {kExitOk, !end->orderly};
}

}  // namespace muster
