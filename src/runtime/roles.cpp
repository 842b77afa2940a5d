// SPDX-License-Identifier: Apache-2.0

#include "runtime/roles.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "resources/logical_node.hpp"
#include "spec/hostlist.hpp"

namespace muster {
namespace {

/// Two machines may have one name, and one machine may play several (containers).
using HostKey = std::pair<std::string, std::string>;

HostKey host_key(const Enrol& enrol) {
    return {enrol.host, enrol.boot_id};
}

std::string_view short_name(std::string_view host) {
    return host.substr(0, host.find('.'));
}

std::string ranks_text(const std::vector<std::uint32_t>& ranks) {
    std::string text = ranks.size() == 1 ? "rank " : "ranks ";
    constexpr std::size_t kMost = 8;
    for (std::size_t index = 0; index < std::min(ranks.size(), kMost); ++index) {
        text += (index == 0 ? "" : ", ") + std::to_string(ranks[index]);
    }
    return ranks.size() > kMost ? text + fmt::format(" and {} more", ranks.size() - kMost) : text;
}

std::string names_of(const std::vector<NodeInventory>& nodes) {
    std::string text;
    constexpr std::size_t kMost = 8;
    for (std::size_t index = 0; index < std::min(nodes.size(), kMost); ++index) {
        text += (index == 0 ? "" : ", ") + nodes[index].name;
    }
    return nodes.size() > kMost ? text + ", …" : text;
}

class Assignment {
  public:
    Assignment(const std::vector<EnrolledRank>& ranks, const NodeRules& rules)
        : ranks_(ranks),
          rules_(rules) {
        for (const EnrolledRank& rank : ranks) {
            on_host_[host_key(rank.enrol)].push_back(rank.rank);
        }
    }

    Result<Roles> assign() {
        for (const EnrolledRank& rank : ranks_) {
            if (!serves(rank)) {
                roles_.idle.push_back(rank.rank);
                continue;
            }
            if (Status added = add_agent(rank); !added.ok()) {
                return added.error();
            }
        }
        if (Status fits = check_file_is_used_up(); !fits.ok()) {
            return fits.error();
        }
        if (roles_.agents.empty()) {
            return Error{ErrorCode::InvalidInput, no_node_left()};
        }
        say_who_is_idle();
        return std::move(roles_);
    }

  private:
    bool serves(const EnrolledRank& rank) const {
        const std::vector<std::uint32_t>& on_host = on_host_.at(host_key(rank.enrol));
        if (rules_.rank_is_node) {
            return !(rules_.dedicated_head && rank.rank == 0);
        }
        return rank.rank == on_host.front() && !(rules_.dedicated_head && on_host.front() == 0);
    }

    Status add_agent(const EnrolledRank& rank) {
        Result<NodeInventory> node = node_of(rank);
        if (!node.ok()) {
            return node.error();
        }
        if (Status given = give_custom_resources(*node, rules_.custom); !given.ok()) {
            return given;
        }
        if (node->cores.empty() && !rank.enrol.problem.empty()) {
            roles_.remarks.push_back(
                fmt::format("node {} is left out: {}", rank.enrol.host, rank.enrol.problem)
            );
            roles_.idle.push_back(rank.rank);
            return Ok{};
        }
        roles_.agents.push_back({rank.rank, std::move(*node)});
        return Ok{};
    }

    std::string name_of(const EnrolledRank& rank) {
        const std::string& host = rank.enrol.host;
        const bool shared = rules_.rank_is_node && on_host_.at(host_key(rank.enrol)).size() > 1;
        std::string name = shared ? fmt::format("{}#{}", host, rank.rank) : host;
        if (!names_.insert(name).second) {
            name = fmt::format("{}#{}", host, rank.rank);
            names_.insert(name);
        }
        return name;
    }

    Result<NodeInventory> node_of(const EnrolledRank& rank) {
        if (!rules_.cluster.empty()) {
            return node_of_file(rank);
        }
        if (rules_.node_resources) {
            return logical_node(name_of(rank), *rules_.node_resources);
        }
        const std::size_t sharing = on_host_.at(host_key(rank.enrol)).size();
        if (rules_.rank_is_node && sharing > 1) {
            return Error{
                ErrorCode::InvalidInput,
                fmt::format(
                    "--rank-is-node: {} ranks run on {}, and each would offer all of it; say what "
                    "each has: --node-resources cpu=2,memory=4GiB or --cluster cluster.yaml",
                    sharing,
                    rank.enrol.host
                )};
        }
        NodeInventory node = rank.enrol.inventory;
        node.name = name_of(rank);
        return node;
    }

    Result<NodeInventory> node_of_file(const EnrolledRank& rank) {
        if (rules_.rank_is_node) {
            const std::size_t index = from_file_++;
            if (index < rules_.cluster.size()) {
                return rules_.cluster[index];
            }
            return wrong_count();
        }
        for (const NodeInventory& node : rules_.cluster) {
            if (node.name == rank.enrol.host ||
                short_name(node.name) == short_name(rank.enrol.host)) {
                names_.insert(node.name);
                ++from_file_;
                return node;
            }
        }
        return Error{
            ErrorCode::InvalidInput,
            fmt::format(
                "--cluster: rank {} runs on {}, which is not in the file (it has {}); add it, or "
                "use --rank-is-node to take the file's nodes in order",
                rank.rank,
                rank.enrol.host,
                names_of(rules_.cluster)
            )};
    }

    Error wrong_count() const {
        const std::size_t ranks = ranks_.size() - (rules_.dedicated_head ? 1 : 0);
        return {
            ErrorCode::InvalidInput,
            fmt::format(
                "--cluster: the file has {} node{} and {} rank{} came to be nodes; with "
                "--rank-is-node start one rank for each node{}",
                rules_.cluster.size(),
                rules_.cluster.size() == 1 ? "" : "s",
                ranks,
                ranks == 1 ? "" : "s",
                rules_.dedicated_head ? " and one for --dedicated-head" : ""
            )};
    }

    Status check_file_is_used_up() {
        if (rules_.cluster.empty() || from_file_ >= rules_.cluster.size()) {
            return Ok{};
        }
        if (rules_.rank_is_node) {
            return wrong_count();
        }
        for (const NodeInventory& node : rules_.cluster) {
            if (names_.count(node.name) == 0) {
                roles_.remarks.push_back(
                    fmt::format("--cluster: no rank came from node {}", node.name)
                );
            }
        }
        return Ok{};
    }

    std::string no_node_left() const {
        return rules_.dedicated_head
                   ? fmt::format(
                         "--dedicated-head keeps {} free of trials, and there is no other node: "
                         "start muster on more nodes or leave the option out",
                         ranks_.front().enrol.host
                     )
                   : "no node can run trials: " + ranks_.front().enrol.problem;
    }

    void say_who_is_idle() {
        for (const auto& [host, on_host] : on_host_) {
            if (on_host.size() > 1 && !rules_.rank_is_node && !rules_.dedicated_head) {
                roles_.remarks.push_back(fmt::format(
                    "{} run on {}: one node, served by rank {}; the others stay idle "
                    "(--rank-is-node makes each a node)",
                    ranks_text(on_host),
                    host.first,
                    on_host.front()
                ));
            }
        }
    }

    const std::vector<EnrolledRank>& ranks_;
    const NodeRules& rules_;
    std::map<HostKey, std::vector<std::uint32_t>> on_host_;
    std::set<std::string> names_;
    std::size_t from_file_ = 0;
    Roles roles_;
};

}  // namespace

Result<Roles> assign_roles(const std::vector<EnrolledRank>& ranks, const NodeRules& rules) {
    return Assignment(ranks, rules).assign();
}

Status give_custom_resources(NodeInventory& node, const std::vector<NodeResources>& custom) {
    for (const NodeResources& entry : custom) {
        const Result<std::vector<std::string>> names = expand_hostlist(entry.nodes);
        if (!names) {
            return names.error();
        }
        if (std::find(names->begin(), names->end(), node.name) == names->end()) {
            continue;
        }
        ResourceSet total = node.total();
        for (const NamedAmount& amount : entry.resources) {
            total.set_custom(amount.name, amount.amount);
        }
        node.custom = std::move(total.custom);
    }
    return Ok{};
}

}  // namespace muster
