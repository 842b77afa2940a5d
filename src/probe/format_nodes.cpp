// SPDX-License-Identifier: Apache-2.0

#include "probe/format_nodes.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "muster/value.hpp"

namespace muster {
namespace {

using Row = std::array<std::string, 6>;

std::string cores_by_numa(const NodeInventory& node) {
    std::map<std::uint32_t, std::size_t> counts;
    for (const Core& core : node.cores) {
        ++counts[core.numa_node];
    }
    std::string text;
    for (const auto& [numa_node, count] : counts) {
        text += fmt::format("{}{}", text.empty() ? "" : "+", count);
    }
    return text.empty() ? "logical" : text;
}

/// "4 (0-3 NVIDIA H200)", "2 (0, 5)"; "-" for none.
std::string devices_text(const std::vector<Device>& devices) {
    if (devices.empty()) {
        return "-";
    }
    std::string labels;
    for (const Device& device : devices) {
        labels += fmt::format("{}{}", labels.empty() ? "" : ",", device.label);
    }
    const std::string& model = devices.front().model;
    const bool all_alike = std::all_of(devices.begin(), devices.end(), [&](const Device& device) {
        return device.model == model;
    });
    const std::string kind =
        devices.front().kind == DeviceKind::Logical ? "logical" : (all_alike ? model : "mixed");
    return fmt::format("{} [{}]{}{}", devices.size(), labels, kind.empty() ? "" : " ", kind);
}

std::string custom_text(const std::vector<NamedAmount>& custom) {
    std::string text;
    for (const NamedAmount& resource : custom) {
        text += fmt::format(
            "{}{}: {}", text.empty() ? "" : ", ", resource.name, to_string(resource.amount)
        );
    }
    return text.empty() ? "-" : text;
}

ResourceSet sum_of(const std::vector<NodeInventory>& nodes) {
    ResourceSet sum;
    for (const NodeInventory& node : nodes) {
        const ResourceSet total = node.total();
        sum.cpu += total.cpu;
        sum.gpu += total.gpu;
        sum.memory_bytes += total.memory_bytes;
        for (const NamedAmount& resource : total.custom) {
            sum.set_custom(resource.name, sum.custom_amount(resource.name) + resource.amount);
        }
    }
    return sum;
}

/// Characters, not bytes: what a name in UTF-8 takes on the screen, near enough.
std::size_t width_of(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char letter) {
        return (static_cast<unsigned char>(letter) & 0xC0U) != 0x80U;
    }));
}

std::string table(const std::vector<Row>& rows) {
    std::array<std::size_t, 6> widths{};
    for (const Row& row : rows) {
        for (std::size_t column = 0; column < row.size(); ++column) {
            widths[column] = std::max(widths[column], width_of(row[column]));
        }
    }
    std::string text;
    for (const Row& row : rows) {
        std::string line;
        for (std::size_t column = 0; column < row.size(); ++column) {
            line += row[column];
            line.append(widths[column] - width_of(row[column]) + 2, ' ');
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
    }
    return text;
}

std::string text_of(const std::vector<NodeInventory>& nodes) {
    std::vector<Row> rows{{"NODE", "CPUS", "CORES/NUMA", "MEMORY", "GPUS", "CUSTOM"}};
    for (const NodeInventory& node : nodes) {
        rows.push_back(
            {node.name,
             to_string(node.cpu),
             cores_by_numa(node),
             format_bytes(node.memory_bytes),
             devices_text(node.devices),
             custom_text(node.custom)}
        );
    }
    if (nodes.size() > 1) {
        const ResourceSet sum = sum_of(nodes);
        rows.push_back(
            {fmt::format("{} nodes", nodes.size()),
             to_string(sum.cpu),
             "",
             format_bytes(sum.memory_bytes),
             to_string(sum.gpu),
             custom_text(sum.custom)}
        );
    }
    return table(rows);
}

/// Whole amounts stay whole numbers.
Value number_of(Amount amount) {
    return amount.is_whole() ? Value(amount.floor()) : Value(amount.real());
}

Value list_of(const std::vector<std::uint32_t>& numbers) {
    Value::List list;
    for (const std::uint32_t number : numbers) {
        list.emplace_back(std::int64_t{number});
    }
    return Value(std::move(list));
}

Value map_of(const std::vector<NamedAmount>& custom) {
    Value::Map map;
    for (const NamedAmount& resource : custom) {
        map.push_back({resource.name, number_of(resource.amount)});
    }
    return Value(std::move(map));
}

std::string_view name_of(DeviceKind kind) {
    switch (kind) {
        case DeviceKind::Cuda:
            return "cuda";
        case DeviceKind::Rocm:
            return "rocm";
        case DeviceKind::Logical:
            return "logical";
    }
    return "";
}

Value value_of(const Core& core) {
    return Value(Value::Map{
        {"numa_node", std::int64_t{core.numa_node}},
        {"processing_units", list_of(core.processing_units)}});
}

Value value_of(const Device& device) {
    return Value(Value::Map{
        {"label", device.label},
        {"kind", std::string(name_of(device.kind))},
        {"model", device.model},
        {"numa_node", std::int64_t{device.numa_node}},
        {"memory_bytes", device.memory_bytes}});
}

Value value_of(const NodeInventory& node) {
    Value::List cores;
    for (const Core& core : node.cores) {
        cores.push_back(value_of(core));
    }
    Value::List devices;
    for (const Device& device : node.devices) {
        devices.push_back(value_of(device));
    }
    return Value(Value::Map{
        {"name", node.name},
        {"cpu", number_of(node.cpu)},
        {"gpu", static_cast<std::int64_t>(node.devices.size())},
        {"memory_bytes", node.memory_bytes},
        {"custom", map_of(node.custom)},
        {"cores", Value(std::move(cores))},
        {"devices", Value(std::move(devices))}});
}

std::string json_of(const std::vector<NodeInventory>& nodes) {
    Value::List list;
    for (const NodeInventory& node : nodes) {
        list.push_back(value_of(node));
    }
    const ResourceSet sum = sum_of(nodes);
    const Value document(Value::Map{
        {"nodes", Value(std::move(list))},
        {"total",
         Value(Value::Map{
             {"cpu", number_of(sum.cpu)},
             {"gpu", number_of(sum.gpu)},
             {"memory_bytes", sum.memory_bytes},
             {"custom", map_of(sum.custom)}})}});
    return to_json(document) + "\n";
}

}  // namespace

std::string format_nodes(const std::vector<NodeInventory>& nodes, NodesFormat format) {
    switch (format) {
        case NodesFormat::Text:
            return text_of(nodes);
        case NodesFormat::Json:
            return json_of(nodes);
    }
    return "";
}

}  // namespace muster
