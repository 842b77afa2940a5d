// SPDX-License-Identifier: Apache-2.0
//
// format_simulation - a simulated run as text for people and as JSON.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "muster/value.hpp"

#include "sim/simulate_spec.hpp"

namespace muster {
namespace {

/// Rows of the time line that are shown; the JSON has all.
constexpr std::size_t kMostRows = 64;
constexpr std::size_t kLeastColumns = 20;

std::string figures(const SimulationReport& report) {
    return fmt::format(
        "{}: {} trials on {} {}\n"
        "makespan        {} (one after the other: {})\n"
        "trials at once  {:.1f} in the mean, {} at most\n",
        report.experiment,
        report.trials,
        report.nodes.size(),
        report.nodes.size() == 1 ? "node" : "nodes",
        format_duration(report.makespan),
        format_duration(report.serial),
        report.mean_at_once,
        report.most_at_once
    );
}

std::string use_table(const std::vector<ResourceUse>& resources) {
    std::string text = fmt::format("\n{:<16}{:>8}{:>8}\n", "in use", "mean", "peak");
    for (const ResourceUse& use : resources) {
        text += fmt::format(
            "{:<16}{:>7.1f}%{:>7.1f}%\n", use.resource, use.mean_percent, use.peak_percent
        );
    }
    return text;
}

std::string use_of_node(const SimulatedNodeUse& node) {
    std::string text;
    for (const ResourceUse& use : node.resources) {
        text += fmt::format("  {} {:.1f}%", use.resource, use.mean_percent);
    }
    return text;
}

/// Draws one lane: "[3     ][7   ]"; '#' where several trials meet in one column.
std::string row_of(const std::vector<SimulatedStay>& lane, Duration makespan, std::size_t columns) {
    const auto column_of = [&](TimePoint time) {
        const double share = seconds(time.since_start) / seconds(makespan);
        return static_cast<std::size_t>(std::lround(share * static_cast<double>(columns)));
    };
    std::string row(columns, ' ');
    for (const SimulatedStay& stay : lane) {
        const std::size_t from = std::min(column_of(stay.from), columns - 1);
        const std::size_t to = std::clamp(column_of(stay.to), from + 1, columns);
        if (to - from < 3) {
            std::fill(
                row.begin() + static_cast<std::ptrdiff_t>(from),
                row.begin() + static_cast<std::ptrdiff_t>(to),
                '#'
            );
            continue;
        }
        std::string box = "[" + std::to_string(stay.trial.value).substr(0, to - from - 2);
        box.resize(to - from - 1, ' ');
        box += ']';
        row.replace(from, to - from, box);
    }
    return row;
}

std::string time_line(const SimulationReport& report, std::size_t columns) {
    std::size_t width = 4;
    std::size_t rows = 0;
    for (const SimulatedNodeUse& node : report.nodes) {
        width = std::max(width, node.name.size());
        rows += std::max<std::size_t>(1, node.lanes.size());
    }
    const std::size_t drawn = std::max(kLeastColumns, columns - std::min(columns, width + 3));
    std::string text = fmt::format(
        "\ntime line, a column is {}\n",
        format_duration(report.makespan / static_cast<std::int64_t>(drawn))
    );
    std::size_t shown = 0;
    for (const SimulatedNodeUse& node : report.nodes) {
        std::string name = node.name;
        for (const std::vector<SimulatedStay>& lane : node.lanes) {
            if (shown == kMostRows) {
                return text + fmt::format("({} more rows)\n", rows - shown);
            }
            ++shown;
            text += fmt::format("{:<{}} |{}|\n", name, width, row_of(lane, report.makespan, drawn));
            name.clear();
        }
        if (node.lanes.empty()) {
            ++shown;
            text += fmt::format("{:<{}} |{}|\n", name, width, std::string(drawn, ' '));
        }
    }
    return text;
}

Value uses_value(const std::vector<ResourceUse>& resources) {
    Value::Map uses;
    for (const ResourceUse& use : resources) {
        uses.push_back(
            {use.resource,
             Value::Map{{"mean_percent", use.mean_percent}, {"peak_percent", use.peak_percent}}}
        );
    }
    return uses;
}

Value lanes_value(const std::vector<std::vector<SimulatedStay>>& lanes) {
    Value::List rows;
    for (const std::vector<SimulatedStay>& lane : lanes) {
        Value::List stays;
        for (const SimulatedStay& stay : lane) {
            stays.emplace_back(Value::Map{
                {"trial", std::int64_t{stay.trial.value}},
                {"from", seconds(stay.from.since_start)},
                {"to", seconds(stay.to.since_start)}});
        }
        rows.emplace_back(std::move(stays));
    }
    return rows;
}

}  // namespace

std::string format(const SimulationReport& report, std::size_t columns) {
    std::string text = figures(report) + use_table(report.resources);
    if (report.nodes.size() > 1) {
        text += '\n';
        const std::size_t shown = std::min(report.nodes.size(), kMostRows);
        for (std::size_t index = 0; index < shown; ++index) {
            const SimulatedNodeUse& node = report.nodes[index];
            text += fmt::format("{:<14}{}\n", node.name, use_of_node(node));
        }
        if (shown < report.nodes.size()) {
            text += fmt::format("({} more nodes)\n", report.nodes.size() - shown);
        }
    }
    return report.makespan > Duration{0} ? text + time_line(report, columns) : text;
}

std::string to_json(const SimulationReport& report) {
    Value::List nodes;
    for (const SimulatedNodeUse& node : report.nodes) {
        nodes.emplace_back(Value::Map{
            {"name", node.name},
            {"resources", uses_value(node.resources)},
            {"lanes", lanes_value(node.lanes)}});
    }
    return to_json(Value(Value::Map{
        {"experiment", report.experiment},
        {"trials", static_cast<std::int64_t>(report.trials)},
        {"makespan", seconds(report.makespan)},
        {"serial", seconds(report.serial)},
        {"most_at_once", static_cast<std::int64_t>(report.most_at_once)},
        {"mean_at_once", report.mean_at_once},
        {"resources", uses_value(report.resources)},
        {"nodes", std::move(nodes)}}));
}

}  // namespace muster
