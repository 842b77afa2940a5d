// SPDX-License-Identifier: Apache-2.0
//
// shared - what the commands have in common: printing, complaining, the node.

#include <algorithm>
#include <cstdio>
#include <utility>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/commands.hpp"
#include "resources/logical_node.hpp"
#include "runtime/roles.hpp"
#include "spec/cluster_file.hpp"

namespace muster {
namespace {

int exit_code_of(ErrorCode code) {
    switch (code) {
        case ErrorCode::InvalidInput:
        case ErrorCode::NotFound:
        case ErrorCode::Conflict:
        case ErrorCode::Corrupt:
        case ErrorCode::NotSupported:
            return kExitBadInput;
        case ErrorCode::Infeasible:
            return kExitInfeasible;
        case ErrorCode::System:
            return kExitSystem;
    }
    return kExitSystem;
}

}  // namespace

int complain(const Error& error) {
    // What is infeasible says what is asked, not who asks.
    const bool is_request = error.message.starts_with("asks for ");
    const std::string_view subject = is_request ? "a trial " : "";
    std::fputs(fmt::format("muster: {}{}\n", subject, error.message).c_str(), stderr);
    return exit_code_of(error.code);
}

void print(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
}

std::size_t output_width() {
    winsize size{};
    return ::isatty(STDOUT_FILENO) == 1 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0
               ? size.ws_col
               : 0;
}

Result<NodeInventory>
node_for(const NodeArguments& arguments, const std::vector<NodeResources>& custom) {
    Result<NodeInventory> node = Error{};
    if (arguments.node_resources.empty()) {
        node = probe_node({.cpu_unit = arguments.cpu_unit});
    } else {
        Result<NodeInventory> probed = probe_node({.cpu_unit = arguments.cpu_unit});
        const Result<ResourceSet> resources = parse_node_resources(arguments.node_resources);
        if (!resources) {
            return Error{resources.error().code, "--node-resources: " + resources.error().message};
        }
        node = logical_node(probed ? probed->name : "localhost", *resources);
    }
    if (!node) {
        return node.error();
    }
    if (Status given = give_custom_resources(*node, custom); !given) {
        return given.error();
    }
    return node;
}

Result<std::vector<NodeInventory>> nodes_for(
    const std::string& cluster,
    const NodeArguments& arguments,
    const std::vector<NodeResources>& custom
) {
    if (cluster.empty()) {
        Result<NodeInventory> node = node_for(arguments, custom);
        if (!node) {
            return node.error();
        }
        return std::vector<NodeInventory>{std::move(*node)};
    }
    Result<std::vector<NodeInventory>> nodes = load_cluster(cluster);
    if (!nodes) {
        return nodes.error();
    }
    for (NodeInventory& node : *nodes) {
        if (Status given = give_custom_resources(node, custom); !given) {
            return given.error();
        }
    }
    return nodes;
}

}  // namespace muster
