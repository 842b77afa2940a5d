// SPDX-License-Identifier: Apache-2.0
//
// check_command - `muster check`: what a spec means, and whether it could run, without running it.

#include <algorithm>

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/text_table.hpp"
#include "placement/cluster.hpp"
#include "search/searcher.hpp"
#include "spec/load_spec.hpp"

namespace muster {
namespace {

/// How many trials of one shape run at once on the idle cluster.
std::size_t
fits_at_once(Cluster& cluster, const ExperimentSpec& spec, const PlacementGroupSpec& group) {
    // All that a cluster of thousands of nodes runs is not worth counting one by one.
    constexpr std::uint32_t kMost = 10'000;
    const std::int64_t limit = spec.max_concurrent_trials;
    std::uint32_t count = 0;
    while (count < kMost && (limit <= 0 || count < limit)) {
        const std::optional<Placement> placement = cluster.place(group);
        if (!placement) {
            break;
        }
        cluster.reserve(TrialId{count++}, *placement);
    }
    for (std::uint32_t trial = 0; trial < count; ++trial) {
        cluster.release(TrialId{trial});
    }
    return count;
}

std::string conditions_text(const Conditions& conditions, bool is_first) {
    std::string text;
    for (const Condition& condition : conditions) {
        text += fmt::format(
            "{}{}: {}",
            text.empty() ? "when " : ", ",
            condition.key,
            condition.any_of.size() == 1 ? to_argument(condition.any_of.front())
                                         : to_json(Value(condition.any_of))
        );
    }
    if (!text.empty()) {
        return text;
    }
    return is_first ? "every trial" : "every other trial";
}

/// Prints each request and whether it fits; returns the first that does not.
std::optional<Error> print_requests(Cluster& cluster, const ExperimentSpec& spec) {
    std::optional<Error> first;
    TextTable table({"request", "for", "at once"});
    for (const ResourceAlternative& alternative : spec.resources) {
        const Status feasible = cluster.feasible(alternative.group);
        table.add_row(
            {to_string(alternative.group),
             conditions_text(alternative.when, &alternative == &spec.resources.front()),
             feasible ? std::to_string(fits_at_once(cluster, spec, alternative.group)) : "never"}
        );
        if (!feasible && !first) {
            first = feasible.error();
        }
    }
    print(table.text() + "\n");
    return first;
}

Status print_trials(const CheckCommand& command, const ExperimentSpec& spec) {
    Result<BasicSearcher> searcher =
        BasicSearcher::make(spec.space, spec.search, spec.num_samples, spec.seed);
    if (!searcher) {
        return searcher.error();
    }
    const std::optional<std::uint64_t> total = searcher->total_trials();
    const Result<Suggestion> first =
        searcher->suggest(static_cast<std::uint32_t>(std::min<std::size_t>(command.show, 100'000)));
    if (!first) {
        return first.error();
    }
    std::string heading = "trials without end";
    if (total) {
        heading = fmt::format("{} trial{}", *total, *total == 1 ? "" : "s");
    }
    const std::size_t shown = first->configs.size();
    print(
        total && *total == shown ? heading + ":\n"
                                 : fmt::format("{}; the first {}:\n", heading, shown)
    );
    if (first->configs.empty()) {
        return Ok{};
    }
    std::vector<std::string> headings{"trial"};
    const std::vector<std::string>& keys = searcher->schema()->keys;
    headings.insert(headings.end(), keys.begin(), keys.end());
    TextTable table(headings);
    for (std::size_t index = 0; index < first->configs.size(); ++index) {
        std::vector<std::string> row{to_string(TrialId{static_cast<std::uint32_t>(index)})};
        for (const std::string& key : keys) {
            const Value* value = first->configs[index].find(key);
            row.push_back(value == nullptr ? "" : to_argument(*value));
        }
        table.add_row(std::move(row));
    }
    print(table.text());
    return Ok{};
}

}  // namespace

int carry_out(const CheckCommand& command) {
    const Result<ExperimentSpec> spec = load_spec(command.spec.path, command.spec.sets);
    if (!spec) {
        return complain(spec.error());
    }
    const Result<std::vector<NodeInventory>> nodes =
        nodes_for(command.cluster, command.node, spec->nodes);
    if (!nodes) {
        return complain(nodes.error());
    }
    Cluster cluster({spec->reserve, spec->cluster_resources, spec->node_choice});
    std::uint32_t next = 0;
    for (const NodeInventory& node : *nodes) {
        cluster.add_node(NodeId{next++}, node);
    }
    print(fmt::format(
        "experiment {} on {} node{}: {}\n\n",
        spec->name,
        nodes->size(),
        nodes->size() == 1 ? "" : "s",
        to_string(cluster.capacity())
    ));
    const std::optional<Error> infeasible = print_requests(cluster, *spec);
    const Status printed = print_trials(command, *spec);
    if (!printed) {
        return complain(printed.error());
    }
    if (infeasible) {
        return complain(*infeasible);
    }
    return kExitOk;
}

}  // namespace muster
