// SPDX-License-Identifier: Apache-2.0

#include "resources/logical_node.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/check.hpp"

namespace muster {
namespace {

Error refuse(std::string_view part, std::string_view why) {
    return Error{
        ErrorCode::InvalidInput,
        fmt::format("\"{}\": {}; write it like cpu=4,gpu=2,memory=8GiB,licence=3", part, why)};
}

Result<Amount> parse_amount(std::string_view text) {
    double value = 0;
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, value);
    if (parsed.ec != std::errc{} || parsed.ptr != end) {
        return Error{ErrorCode::InvalidInput, fmt::format("\"{}\" is not a number", text)};
    }
    return Amount::from_real(value);
}

/// Misspelt names, which would be custom resources that nothing asks for.
std::string_view meant_by(std::string_view name) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kOftenWritten{
        {{"cpus", "cpu"},
         {"cores", "cpu"},
         {"CPU", "cpu"},
         {"gpus", "gpu"},
         {"GPU", "gpu"},
         {"mem", "memory"},
         {"ram", "memory"}}};
    for (const auto& [written, meant] : kOftenWritten) {
        if (name == written) {
            return meant;
        }
    }
    return "";
}

Status set_resource(ResourceSet& resources, std::string_view name, std::string_view value) {
    if (const std::string_view meant = meant_by(name); !meant.empty()) {
        return Error{ErrorCode::InvalidInput, fmt::format("the name is \"{}\"", meant)};
    }
    if (name == "memory") {
        const Result<std::int64_t> bytes = parse_bytes(value);
        if (!bytes) {
            return bytes.error();
        }
        resources.memory_bytes = *bytes;
        return Ok{};
    }
    const Result<Amount> amount = parse_amount(value);
    if (!amount) {
        return amount.error();
    }
    if (name == "cpu") {
        resources.cpu = *amount;
    } else if (name == "gpu") {
        if (!amount->is_whole()) {
            return Error{ErrorCode::InvalidInput, "a node has a whole number of GPUs"};
        }
        resources.gpu = *amount;
    } else if (is_custom_resource_name(name)) {
        resources.set_custom(name, *amount);
    } else {
        return Error{
            ErrorCode::InvalidInput,
            fmt::format(
                "\"{}\" cannot name a resource: a letter, then letters, digits, _ or /", name
            )};
    }
    return Ok{};
}

}  // namespace

Result<ResourceSet> parse_node_resources(std::string_view text) {
    ResourceSet resources;
    std::set<std::string_view> seen;
    std::size_t begin = 0;
    while (begin <= text.size()) {
        const std::size_t comma = std::min(text.find(',', begin), text.size());
        const std::string_view part = text.substr(begin, comma - begin);
        const std::size_t equals = part.find('=');
        if (equals == std::string_view::npos) {
            return refuse(part, "has no \"=\"");
        }
        const std::string_view name = part.substr(0, equals);
        if (!seen.insert(name).second) {
            return refuse(part, "names a resource again");
        }
        if (const Status set = set_resource(resources, name, part.substr(equals + 1)); !set) {
            return refuse(part, set.error().message);
        }
        begin = comma + 1;
    }
    return resources;
}

NodeInventory logical_node(std::string name, const ResourceSet& resources) {
    check(resources.gpu.is_whole(), "a logical node has a whole number of GPUs");
    NodeInventory node;
    node.name = std::move(name);
    node.cpu = resources.cpu;
    node.cores.resize(static_cast<std::size_t>(resources.cpu.ceil()));
    for (std::int64_t i = 0; i < resources.gpu.floor(); ++i) {
        node.devices.push_back(Device{.label = fmt::format("{}", i), .kind = DeviceKind::Logical});
    }
    node.memory_bytes = resources.memory_bytes;
    node.custom = resources.custom;
    return node;
}

}  // namespace muster
