// SPDX-License-Identifier: Apache-2.0

#include "spec/read_rules.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/nearest.hpp"
#include "search/search_space_check.hpp"
#include "spec/scalar.hpp"

namespace muster {
namespace {

constexpr std::string_view kTimeTotal = "time_total";

/// The word at `key` when it is one of `now`; words of `later` are not in this version.
std::optional<std::string> read_algorithm(
    const Section& section,
    const std::vector<std::string>& now,
    const std::vector<std::string>& later
) {
    const YamlNode* node = section.get("algorithm");
    if (node == nullptr) {
        return std::nullopt;
    }
    const std::string path = section.path_of("algorithm");
    const auto is_in = [&](const std::vector<std::string>& words) {
        return node->is_scalar() &&
               std::find(words.begin(), words.end(), node->text) != words.end();
    };
    if (is_in(now)) {
        return node->text;
    }
    if (is_in(later)) {
        section.problems().add_later(node->place, path, "'" + node->text + "'");
        return std::nullopt;
    }
    std::vector<std::string> all = now;
    all.insert(all.end(), later.begin(), later.end());
    section.problems().add(
        node->place, path, expected(listed(now, "or"), *node) + did_you_mean(node->text, all)
    );
    return std::nullopt;
}

/// The place of "points[2]" at the front of a message of validate_points().
Place place_of_point(const std::string& message, const YamlNode& points) {
    constexpr std::string_view kPoints = "points[";
    std::size_t index = 0;
    for (std::size_t at = kPoints.size(); at < message.size() && message[at] >= '0' &&
                                          message[at] <= '9' && index < points.items.size();
         ++at) {
        index = index * 10 + static_cast<std::size_t>(message[at] - '0');
    }
    return index < points.items.size() ? points.items[index].place : points.place;
}

void read_points(const Section& section, const SpaceReading& space, ExperimentSpec& spec) {
    const YamlNode* points = section.get("points");
    if (points == nullptr) {
        return;
    }
    if (!points->is_list()) {
        section.problem(
            *points, "points", expected("a list of configs such as [{lr: 0.1}]", *points)
        );
        return;
    }
    Problems& problems = section.problems();
    const std::size_t before = problems.count();
    for (std::size_t index = 0; index < points->items.size(); ++index) {
        const std::string path = fmt::format("{}[{}]", section.path_of("points"), index);
        spec.search.points.push_back(read_members(points->items[index], path, space.space, problems)
        );
    }
    if (problems.count() != before) {
        return;
    }
    if (const Status status = validate_points(space.space, spec.search.points); !status) {
        problems.add(
            place_of_point(status.error().message, *points), "", "search." + status.error().message
        );
    }
}

/// "<= 0.05" or ">= 0.99".
std::optional<StopRule> comparison_in(const std::string& text) {
    const bool at_least = text.substr(0, 2) == ">=";
    if (!at_least && text.substr(0, 2) != "<=") {
        return std::nullopt;
    }
    const std::size_t start = text.find_first_not_of(' ', 2);
    const Value bound = plain_value(start == std::string::npos ? "" : text.substr(start));
    const std::optional<double> number = bound.as_bool() == nullptr ? bound.number() : std::nullopt;
    if (!number || !std::isfinite(*number)) {
        return std::nullopt;
    }
    return StopRule{"", at_least ? Comparison::AtLeast : Comparison::AtMost, *number};
}

std::string two_ways(const std::string& metric, const std::string& bound) {
    return fmt::format("{0}: \">= {1}\" or {0}: \"<= {1}\"", metric, bound);
}

/// A bare number: at least, and at most for an objective that is minimised.
void read_bare(
    const Entry& entry,
    double bound,
    const ExperimentSpec& spec,
    const Section& section,
    std::vector<StopRule>& rules
) {
    const bool is_objective = spec.objective && spec.objective->metric == entry.key;
    const bool counts_up = entry.key == spec.trial.time_attr || entry.key == kTimeTotal;
    if (!is_objective && !counts_up) {
        std::string message = fmt::format(
            "the bare number {} does not say which way; write {}",
            entry.value.text,
            two_ways(entry.key, entry.value.text)
        );
        if (entry.key == "step") {
            message = fmt::format("the step is called '{0}' here; write {0}", spec.trial.time_attr);
        }
        section.problem(entry.value, entry.key, message);
        return;
    }
    const bool minimised = is_objective && spec.objective->mode == Mode::Min;
    rules.push_back({entry.key, minimised ? Comparison::AtMost : Comparison::AtLeast, bound});
}

void read_rule(
    const Entry& entry,
    const ExperimentSpec& spec,
    const Section& section,
    std::vector<StopRule>& rules
) {
    static const std::vector<std::string> stoppers{
        "plateau", "experiment_plateau", "max_steps", "time_budget", "any", "function"};
    const YamlNode& node = entry.value;
    if (node.is_map() || node.is_list()) {
        if (std::find(stoppers.begin(), stoppers.end(), entry.key) != stoppers.end()) {
            section.problems().add_later(entry.place, section.path_of(entry.key), "this stopper");
        } else {
            section.problem(node, entry.key, expected("a number or a comparison", node));
        }
        return;
    }
    const Value value = to_value(node);
    const std::optional<double> number = value.as_bool() == nullptr ? value.number() : std::nullopt;
    if (number && std::isfinite(*number)) {
        read_bare(entry, *number, spec, section, rules);
    } else if (std::optional<StopRule> rule = comparison_in(node.text); node.is_scalar() && rule) {
        rule->metric = entry.key;
        rules.push_back(std::move(*rule));
    } else if (const auto duration = parse_duration(node.text);
               entry.key == kTimeTotal && node.is_scalar() && duration.ok()) {
        rules.push_back({entry.key, Comparison::AtLeast, seconds(*duration)});
    } else {
        section.problem(
            node, entry.key, expected("a number or a comparison such as \"<= 0.05\"", node)
        );
    }
}

}  // namespace

void read_search(const Section& top, const SpaceReading& space, ExperimentSpec& spec) {
    const Section section(top.get("search"), "search", "search", top.problems());
    const std::optional<std::string> algorithm = read_algorithm(
        section, {"random", "grid"}, {"tpe", "gp", "bohb", "cmaes", "sobol", "halton", "command"}
    );
    spec.search.algorithm = algorithm == "grid" ? SearchAlgorithm::Grid : SearchAlgorithm::Random;
    const std::size_t before = top.problems().count();
    read_points(section, space, spec);
    if (top.problems().count() != before || !validate(space.space)) {
        return;
    }
    if (const Status status = validate(space.space, spec.search); !status) {
        const std::string& message = status.error().message;
        Place place = section.place();
        for (const auto& [key, at] : space.places) {
            place = message.substr(0, key.size() + 2) == key + ": " ? at : place;
        }
        top.problems().add(place, "search.algorithm", message);
    }
}

void read_schedule(const Section& top, ExperimentSpec& spec) {
    const YamlNode* node = top.get("schedule");
    // An algorithm of a later version makes its options later as well: one problem says enough.
    YamlNode alone;
    if (node != nullptr && node->is_map() && node->find("algorithm") != nullptr) {
        alone.kind = YamlNode::Kind::Map;
        alone.place = node->place;
        for (const Entry& entry : node->entries) {
            const std::vector<std::string> known{"algorithm", "time_attr"};
            const bool of_algorithm =
                node->find("algorithm")->text != "fifo" &&
                std::find(known.begin(), known.end(), entry.key) == known.end();
            if (!of_algorithm) {
                alone.entries.push_back(entry);
            }
        }
        node = &alone;
    }
    const Section section(node, "schedule", "schedule", top.problems());
    read_algorithm(
        section,
        {"fifo"},
        {"asha", "hyperband", "median", "pbt", "pb2", "bohb", "resource_changing"}
    );
    spec.trial.time_attr = section.text("time_attr").value_or(spec.trial.time_attr);
    if (spec.trial.time_attr.empty() || spec.trial.time_attr == kTimeTotal) {
        section.problem(
            *section.get("time_attr"), "time_attr", "expected the name of a number in reports"
        );
    }
}

void read_stop(const Section& top, ExperimentSpec& spec) {
    const YamlNode* node = top.get("stop");
    if (node == nullptr) {
        return;
    }
    if (!node->is_map()) {
        top.problem(*node, "stop", expected("a map such as {accuracy: 0.99, step: 20}", *node));
        return;
    }
    // The keys are metrics: none is unknown.
    const Section section(nullptr, "stop", "stop", top.problems());
    for (const Entry& entry : node->entries) {
        read_rule(entry, spec, section, spec.stop);
    }
}

void read_failures(const Section& top, ExperimentSpec& spec) {
    const Section section(top.get("failures"), "failures", "failures", top.problems());
    spec.failures.max_failures =
        section.whole("max_failures", {-1, "a whole number, or -1 for ever"})
            .value_or(spec.failures.max_failures);
    spec.failures.fail_fast = section.truth("fail_fast").value_or(spec.failures.fail_fast);
}

}  // namespace muster
