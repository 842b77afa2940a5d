// SPDX-License-Identifier: Apache-2.0

#include "muster/resources.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/check.hpp"

namespace muster {
namespace {

auto find_custom(const std::vector<NamedAmount>& custom, std::string_view name) {
    return std::lower_bound(
        custom.begin(),
        custom.end(),
        name,
        [](const NamedAmount& entry, std::string_view wanted) { return entry.name < wanted; }
    );
}

bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// What is wrong with one bundle, or nothing.
std::optional<std::string> problem_with(const Bundle& bundle) {
    if (bundle.cpu < Amount{}) {
        return fmt::format("cpu: {} is negative", to_string(bundle.cpu));
    }
    if (bundle.gpu < Amount{}) {
        return fmt::format("gpu: {} is negative", to_string(bundle.gpu));
    }
    if (bundle.gpu >= Amount::whole(1) && !bundle.gpu.is_whole()) {
        return fmt::format(
            "gpu: {} is not possible; write a whole number, or a share below 1 of one device",
            to_string(bundle.gpu)
        );
    }
    if (bundle.memory_bytes < 0) {
        return fmt::format("memory: {} is negative", bundle.memory_bytes);
    }
    const std::string* previous = nullptr;
    for (const NamedAmount& entry : bundle.custom) {
        if (!is_custom_resource_name(entry.name)) {
            return fmt::format(
                "\"{}\" cannot name a resource; write a letter, then letters, digits, _ or /",
                entry.name
            );
        }
        if (entry.amount <= Amount{}) {
            return fmt::format("{}: {} is not above 0", entry.name, to_string(entry.amount));
        }
        if (previous != nullptr && *previous >= entry.name) {
            return fmt::format(
                "{} comes after {}; each name once and sorted", entry.name, *previous
            );
        }
        previous = &entry.name;
    }
    return std::nullopt;
}

}  // namespace

bool is_custom_resource_name(std::string_view name) {
    if (name.empty() || !is_letter(name.front())) {
        return false;
    }
    if (name == "cpu" || name == "gpu" || name == "memory") {
        return false;
    }
    return std::all_of(name.begin(), name.end(), [](char c) {
        return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '/';
    });
}

bool ResourceSet::is_zero() const {
    return cpu.is_zero() && gpu.is_zero() && memory_bytes == 0 && custom.empty();
}

Amount ResourceSet::custom_amount(std::string_view name) const {
    const auto entry = find_custom(custom, name);
    return entry != custom.end() && entry->name == name ? entry->amount : Amount{};
}

void ResourceSet::set_custom(std::string_view name, Amount amount) {
    const auto place = custom.begin() + (find_custom(custom, name) - custom.begin());
    const bool present = place != custom.end() && place->name == name;
    if (amount.is_zero()) {
        if (present) {
            custom.erase(place);
        }
    } else if (present) {
        place->amount = amount;
    } else {
        custom.insert(place, NamedAmount{std::string(name), amount});
    }
}

std::string to_string(const ResourceSet& resources) {
    std::string text;
    const auto add = [&text](std::string_view name, const std::string& value) {
        text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", name, value);
    };
    if (!resources.cpu.is_zero()) {
        add("cpu", to_string(resources.cpu));
    }
    if (!resources.gpu.is_zero()) {
        add("gpu", to_string(resources.gpu));
    }
    if (resources.memory_bytes != 0) {
        add("memory", format_bytes(resources.memory_bytes));
    }
    for (const NamedAmount& entry : resources.custom) {
        add(entry.name, to_string(entry.amount));
    }
    return "{" + text + "}";
}

std::string_view to_string(PlacementStrategy strategy) {
    switch (strategy) {
        case PlacementStrategy::Pack:
            return "PACK";
        case PlacementStrategy::Spread:
            return "SPREAD";
        case PlacementStrategy::StrictPack:
            return "STRICT_PACK";
        case PlacementStrategy::StrictSpread:
            return "STRICT_SPREAD";
    }
    check(false, "a placement strategy is one of four");
    return {};
}

std::string to_string(const PlacementGroupSpec& group) {
    if (group.bundles.size() == 1) {
        return to_string(group.bundles.front());
    }
    std::string text;
    for (const Bundle& bundle : group.bundles) {
        text += (text.empty() ? "" : ", ") + to_string(bundle);
    }
    return fmt::format("[{}] {}", text, to_string(group.strategy));
}

Status validate(const PlacementGroupSpec& group) {
    const auto refuse = [](std::string message) {
        return Error{ErrorCode::InvalidInput, std::move(message)};
    };
    if (group.bundles.empty()) {
        return refuse("a placement group needs at least one bundle");
    }
    for (std::size_t i = 0; i < group.bundles.size(); ++i) {
        if (const auto problem = problem_with(group.bundles[i])) {
            return refuse(
                group.bundles.size() == 1 ? *problem : fmt::format("bundle {}: {}", i, *problem)
            );
        }
        if (i > 0 && group.bundles[i].is_zero()) {
            return refuse(fmt::format("bundle {} asks for nothing; only bundle 0 may be empty", i));
        }
    }
    return Ok{};
}

}  // namespace muster
