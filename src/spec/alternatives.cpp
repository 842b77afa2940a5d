// SPDX-License-Identifier: Apache-2.0
//
// alternatives - whether a list of requests has one for every config that can come.

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "spec/read_resources.hpp"

namespace muster {
namespace {

constexpr std::size_t kMostCombinations = 10'000;

/// A key of the conditions and everything that it can be.
struct Axis {
    std::string key;
    std::vector<Value> values;
};

/// Nothing when the values are not listed, or the key may have none.
std::optional<Axis> axis_of(const SearchSpace& space, const std::string& key) {
    const auto found = std::find_if(
        space.parameters.begin(),
        space.parameters.end(),
        [&](const Parameter& parameter) { return parameter.key == key; }
    );
    if (found == space.parameters.end() || !found->when.empty()) {
        return std::nullopt;
    }
    if (const auto* choice = std::get_if<Choice>(&found->domain)) {
        return Axis{key, choice->values};
    }
    if (const auto* grid = std::get_if<Grid>(&found->domain)) {
        return Axis{key, grid->values};
    }
    if (const auto* constant = std::get_if<Constant>(&found->domain)) {
        return Axis{key, {constant->value}};
    }
    return std::nullopt;
}

/// The axes of all conditions, or nothing when not every combination can be tried.
std::optional<std::vector<Axis>>
axes_of(const std::vector<ResourceAlternative>& alternatives, const SearchSpace& space) {
    std::vector<Axis> axes;
    std::size_t combinations = 1;
    for (const ResourceAlternative& alternative : alternatives) {
        for (const Condition& condition : alternative.when) {
            const bool known = std::any_of(axes.begin(), axes.end(), [&](const Axis& axis) {
                return axis.key == condition.key;
            });
            if (known) {
                continue;
            }
            std::optional<Axis> axis = axis_of(space, condition.key);
            if (!axis || axis->values.empty() || axis->values.size() > kMostCombinations) {
                return std::nullopt;
            }
            combinations *= axis->values.size();
            if (combinations > kMostCombinations) {
                return std::nullopt;
            }
            axes.push_back(std::move(*axis));
        }
    }
    return axes;
}

/// The `number`-th combination, the first axis changing fastest.
Config combination(const std::vector<Axis>& axes, std::size_t number) {
    std::vector<ValueMember> members;
    for (const Axis& axis : axes) {
        members.push_back({axis.key, axis.values[number % axis.values.size()]});
        number /= axis.values.size();
    }
    return Config::from_members(std::move(members));
}

}  // namespace

std::string config_without_alternative(
    const std::vector<ResourceAlternative>& alternatives,
    const SearchSpace& space
) {
    const std::optional<std::vector<Axis>> axes = axes_of(alternatives, space);
    if (!axes) {
        return "";
    }
    std::size_t combinations = 1;
    for (const Axis& axis : *axes) {
        combinations *= axis.values.size();
    }
    for (std::size_t number = 0; number < combinations; ++number) {
        const Config config = combination(*axes, number);
        const bool taken = std::any_of(
            alternatives.begin(),
            alternatives.end(),
            [&](const ResourceAlternative& alternative) { return holds(alternative.when, config); }
        );
        if (!taken) {
            return to_text(config);
        }
    }
    return "";
}

}  // namespace muster
