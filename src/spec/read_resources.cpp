// SPDX-License-Identifier: Apache-2.0

#include "spec/read_resources.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "spec/hostlist.hpp"
#include "spec/read_space.hpp"

namespace muster {
namespace {

const std::vector<std::string> kOwnAmounts{"cpu", "gpu", "memory"};

std::optional<Amount>
read_amount(const YamlNode& node, const std::string& path, Problems& problems) {
    const Value value = to_value(node);
    const std::optional<double> number = value.as_bool() == nullptr ? value.number() : std::nullopt;
    if (!number) {
        problems.add(node.place, path, expected("a number", node));
        return std::nullopt;
    }
    const Result<Amount> amount = Amount::from_real(*number);
    if (!amount) {
        problems.add(node.place, path, amount.error().message);
        return std::nullopt;
    }
    return *amount;
}

std::int64_t read_bytes(const YamlNode& node, const std::string& path, Problems& problems) {
    if (!node.is_scalar()) {
        problems.add(node.place, path, expected("bytes such as 2GiB", node));
        return 0;
    }
    const Result<std::int64_t> bytes = parse_bytes(node.text);
    if (!bytes) {
        problems.add(node.place, path, bytes.error().message);
        return 0;
    }
    return *bytes;
}

void read_custom(
    const Entry& entry,
    const std::string& path,
    ResourceSet& resources,
    Problems& problems
) {
    if (!is_custom_resource_name(entry.key)) {
        problems.add(
            entry.place,
            path,
            fmt::format(
                "'{}' is no resource; a custom one is named by a letter, then letters, digits, _ "
                "and /",
                entry.key
            )
        );
        return;
    }
    if (const std::optional<Amount> amount = read_amount(entry.value, path, problems)) {
        resources.set_custom(entry.key, *amount);
    }
}

/// The key that a custom resource was probably meant to be: CPU, gpus, mem. Likeness alone says
/// nothing: nvme is no misspelt name.
std::string meant_key(const std::string& key) {
    static const std::vector<std::pair<std::string, std::string>> often_meant{
        {"cpus", "cpu"},
        {"gpus", "gpu"},
        {"cores", "cpu"},
        {"num_cpus", "cpu"},
        {"mem", "memory"},
        {"ram", "memory"},
        {"num_gpus", "gpu"},
        {"bundles", "placement_group"},
        {"strategy", "placement_group"}};
    std::string lower = key;
    std::transform(lower.begin(), lower.end(), lower.begin(), [](char letter) {
        return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
    });
    for (const std::string& known : kOwnAmounts) {
        if (lower == known) {
            return known;
        }
    }
    for (const auto& [written, meant] : often_meant) {
        if (lower == written) {
            return meant;
        }
    }
    return "";
}

Bundle one_cpu() {
    return {.cpu = Amount::whole(1)};
}

/// Bundles and strategy, found at `path`.
PlacementGroupSpec read_group(const YamlNode& node, const std::string& path, Problems& problems) {
    PlacementGroupSpec group{.bundles = {}};
    const std::size_t before = problems.count();
    const Section section(&node, path, "placement_group", problems);
    if (const auto strategy = section.one_of<PlacementStrategy>(
            "strategy",
            {{"PACK", PlacementStrategy::Pack},
             {"SPREAD", PlacementStrategy::Spread},
             {"STRICT_PACK", PlacementStrategy::StrictPack},
             {"STRICT_SPREAD", PlacementStrategy::StrictSpread}}
        )) {
        group.strategy = *strategy;
    }
    const YamlNode* bundles = section.get("bundles");
    if (bundles == nullptr || !bundles->is_list()) {
        const Place place = bundles == nullptr ? node.place : bundles->place;
        if (problems.count() == before || bundles != nullptr) {
            problems.add(
                place,
                section.path_of("bundles"),
                "expected a list of bundles such as [{cpu: 1}, {cpu: 4, gpu: 1}], found " +
                    (bundles == nullptr ? std::string("nothing") : describe(*bundles))
            );
        }
        return group;
    }
    for (std::size_t index = 0; index < bundles->items.size(); ++index) {
        const std::string item = fmt::format("{}[{}]", section.path_of("bundles"), index);
        group.bundles.push_back(read_amounts(bundles->items[index], item, {}, problems));
    }
    if (const Status status = validate(group); problems.count() == before && !status) {
        problems.add(bundles->place, section.path_of("bundles"), status.error().message);
    }
    return group;
}

/// One alternative: amounts, or a placement group, and when it applies.
ResourceAlternative read_alternative(
    const YamlNode& node,
    const std::string& path,
    const SearchSpace& space,
    Problems& problems
) {
    ResourceAlternative alternative;
    if (!node.is_map()) {
        problems.add(node.place, path, expected("a map such as {cpu: 2, gpu: 1}", node));
        return alternative;
    }
    if (const YamlNode* when = node.find("when"); when != nullptr && !when->is_null()) {
        alternative.when = read_conditions(*when, path + ".when", space, problems);
    }
    const std::size_t before = problems.count();
    const ResourceSet amounts = read_amounts(node, path, {"when", "placement_group"}, problems);
    const auto is_amount = [](const Entry& entry) {
        return entry.key != "when" && entry.key != "placement_group";
    };
    const bool asks = std::any_of(node.entries.begin(), node.entries.end(), is_amount);
    if (const YamlNode* group = node.find("placement_group");
        group != nullptr && !group->is_null()) {
        if (asks) {
            problems.add(
                group->place,
                path + ".placement_group",
                "amounts stand beside it; put them into its bundles"
            );
        }
        alternative.group = read_group(*group, path + ".placement_group", problems);
        return alternative;
    }
    alternative.group.bundles = {asks ? amounts : one_cpu()};
    if (const Status status = validate(alternative.group); problems.count() == before && !status) {
        problems.add(node.place, path, status.error().message);
    }
    return alternative;
}

void read_list(const YamlNode& list, ExperimentSpec& spec, Problems& problems) {
    if (list.items.empty()) {
        problems.add(list.place, "resources", "an empty list has no alternative to take");
        return;
    }
    const std::size_t before = problems.count();
    spec.resources.clear();
    for (std::size_t index = 0; index < list.items.size(); ++index) {
        const std::string path = fmt::format("resources[{}]", index);
        spec.resources.push_back(read_alternative(list.items[index], path, spec.space, problems));
        const YamlNode& item = list.items[index];
        const bool is_for_all = item.is_map() && item.find("when") == nullptr;
        if (is_for_all && index + 1 < list.items.size()) {
            problems.add(item.place, path, "without `when` those after it are never taken");
        }
    }
    if (problems.count() == before) {
        const std::string missed = config_without_alternative(spec.resources, spec.space);
        if (!missed.empty()) {
            problems.add(
                list.place,
                "resources",
                fmt::format("no alternative is for {}; add a last one without `when`", missed)
            );
        }
    }
}

void read_requests(const Section& top, ExperimentSpec& spec) {
    const YamlNode* resources = top.get("resources");
    const YamlNode* group = top.get("placement_group");
    Problems& problems = top.problems();
    if (resources != nullptr && group != nullptr) {
        top.problem(*group, "placement_group", "`resources` is there as well; keep one of the two");
        return;
    }
    if (group != nullptr) {
        spec.resources = {{{}, read_group(*group, "placement_group", problems)}};
    } else if (resources != nullptr && resources->is_list()) {
        read_list(*resources, spec, problems);
    } else if (resources != nullptr) {
        const std::size_t before = problems.count();
        spec.resources = {read_alternative(*resources, "resources", spec.space, problems)};
        const std::string missed = problems.count() == before
                                       ? config_without_alternative(spec.resources, spec.space)
                                       : std::string();
        if (!missed.empty()) {
            top.problem(
                *resources, "resources", fmt::format("nothing is asked for {}; give a list", missed)
            );
        }
    }
}

/// Custom resources alone, at `path`.
std::vector<NamedAmount>
read_custom_only(const YamlNode& node, const std::string& path, Problems& problems) {
    if (!node.is_map()) {
        problems.add(node.place, path, expected("a map such as {licence: 5}", node));
        return {};
    }
    ResourceSet resources;
    for (const Entry& entry : node.entries) {
        const std::string full = path + "." + entry.key;
        if (std::find(kOwnAmounts.begin(), kOwnAmounts.end(), entry.key) != kOwnAmounts.end()) {
            problems.add(
                entry.place,
                full,
                "only custom resources are declared here; a node's own come from the node, or from "
                "--node-resources"
            );
        } else {
            read_custom(entry, full, resources, problems);
        }
    }
    return resources.custom;
}

void read_nodes(const Section& top, ExperimentSpec& spec) {
    const YamlNode* nodes = top.get("nodes");
    if (nodes == nullptr) {
        return;
    }
    if (!nodes->is_map()) {
        top.problem(*nodes, "nodes", expected("a map such as {\"gpu[01-04]\": {nvme: 4}}", *nodes));
        return;
    }
    for (const Entry& entry : nodes->entries) {
        const std::string path = "nodes." + entry.key;
        const Result<std::vector<std::string>> names = expand_hostlist(entry.key);
        if (!names) {
            top.problems().add(entry.place, path, names.error().message);
            continue;
        }
        spec.nodes.push_back({entry.key, read_custom_only(entry.value, path, top.problems())});
    }
}

}  // namespace

ResourceSet read_amounts(
    const YamlNode& map,
    const std::string& path,
    const std::vector<std::string>& other_keys,
    Problems& problems
) {
    ResourceSet resources;
    if (!map.is_map()) {
        problems.add(map.place, path, expected("a map such as {cpu: 2, gpu: 1}", map));
        return resources;
    }
    for (const Entry& entry : map.entries) {
        const std::string full = path + "." + entry.key;
        const std::string meant = meant_key(entry.key);
        if (std::find(other_keys.begin(), other_keys.end(), entry.key) != other_keys.end()) {
            continue;
        }
        if (entry.key == "memory") {
            resources.memory_bytes = read_bytes(entry.value, full, problems);
        } else if (entry.key == "cpu" || entry.key == "gpu") {
            const std::optional<Amount> amount = read_amount(entry.value, full, problems);
            (entry.key == "cpu" ? resources.cpu : resources.gpu) = amount.value_or(Amount());
        } else if (!meant.empty()) {
            problems.add(
                entry.place,
                full,
                fmt::format("unknown key '{}'; did you mean '{}'?", entry.key, meant)
            );
        } else {
            read_custom(entry, full, resources, problems);
        }
    }
    return resources;
}

void read_resources(const Section& top, ExperimentSpec& spec) {
    read_requests(top, spec);
    read_nodes(top, spec);
    Problems& problems = top.problems();
    if (const YamlNode* reserve = top.get("reserve")) {
        const std::size_t before = problems.count();
        spec.reserve = read_amounts(*reserve, "reserve", {}, problems);
        if (problems.count() == before && !spec.reserve.gpu.is_whole()) {
            top.problem(*reserve, "reserve", "gpu must be whole: devices are kept back whole");
        }
    }
    if (const YamlNode* shared = top.get("cluster_resources")) {
        spec.cluster_resources = read_custom_only(*shared, "cluster_resources", problems);
    }
}

}  // namespace muster
