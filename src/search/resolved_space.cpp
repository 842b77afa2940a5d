// SPDX-License-Identifier: Apache-2.0

#include "search/resolved_space.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/nearest.hpp"

namespace muster {
namespace {

using Places = std::unordered_map<std::string_view, std::size_t>;

Error refuse(const std::string& key, const std::string& reason) {
    return {ErrorCode::InvalidInput, key + ": " + reason};
}

/// ", which is no key of the space; did you mean …"
std::string no_key(const SearchSpace& space, const std::string& name, bool in_formula) {
    std::vector<std::string> known;
    for (const Parameter& parameter : space.parameters) {
        known.push_back(parameter.key);
    }
    if (in_formula) {
        known.insert(known.end(), {"true", "false", "null", "and", "or", "not"});
    }
    return fmt::format("'{}', which is no key of the space{}", name, did_you_mean(name, known));
}

Status resolve_conditions(
    const SearchSpace& space,
    const Places& places,
    const Parameter& parameter,
    ResolvedParameter& resolved
) {
    for (const Condition& condition : parameter.when) {
        const auto found = places.find(condition.key);
        if (found == places.end()) {
            return refuse(parameter.key, "`when` names " + no_key(space, condition.key, false));
        }
        resolved.condition_keys.push_back(found->second);
    }
    return Ok{};
}

Status resolve_inputs(
    const SearchSpace& space,
    const Places& places,
    const Parameter& parameter,
    ResolvedParameter& resolved
) {
    std::vector<std::string> names;
    std::string user = "the function";
    if (const auto* expression = std::get_if<Expression>(&parameter.domain)) {
        Result<Formula> formula = Formula::parse(expression->text);
        if (!formula) {
            return refuse(parameter.key, formula.error().message);
        }
        resolved.formula = *std::move(formula);
        names = resolved.formula->keys();
        user = "'" + expression->text + "'";
    } else if (const auto* function = std::get_if<SampleFrom>(&parameter.domain)) {
        names = function->depends_on;
    }
    for (const std::string& name : names) {
        const auto found = places.find(name);
        if (found == places.end()) {
            return refuse(
                parameter.key,
                fmt::format("{} names {}", user, no_key(space, name, resolved.formula.has_value()))
            );
        }
        resolved.inputs.push_back(found->second);
    }
    return Ok{};
}

std::vector<std::size_t> needs(const ResolvedParameter& parameter) {
    std::vector<std::size_t> all = parameter.condition_keys;
    all.insert(all.end(), parameter.inputs.begin(), parameter.inputs.end());
    return all;
}

/// "a -> b -> a", given parameters of which each needs at least one of the others.
Error circle(
    const SearchSpace& space,
    const ResolvedSpace& resolved,
    const std::vector<bool>& found
) {
    const auto first_missing = [&](std::size_t place) {
        const std::vector<std::size_t> all = needs(resolved.parameters[place]);
        return *std::find_if(all.begin(), all.end(), [&](std::size_t need) {
            return !found[need];
        });
    };
    std::vector<std::size_t> path{
        static_cast<std::size_t>(std::find(found.begin(), found.end(), false) - found.begin())};
    auto start = path.end();
    while (start == path.end()) {
        const std::size_t next = first_missing(path.back());
        start = std::find(path.begin(), path.end(), next);
        if (start == path.end()) {
            path.push_back(next);
            start = path.end();
        }
    }
    const std::string& key = space.parameters[*start].key;
    std::string text;
    for (auto place = start; place != path.end(); ++place) {
        text += space.parameters[*place].key + " -> ";
    }
    return refuse(key, "its value depends on itself: " + text + key);
}

/// Kahn's algorithm: what needs nothing more comes next.
Status find_order(const SearchSpace& space, ResolvedSpace& resolved) {
    const std::size_t count = space.parameters.size();
    std::vector<std::size_t> missing(count);
    std::vector<std::vector<std::size_t>> needed_by(count);
    std::vector<bool> found(count);
    for (std::size_t place = 0; place < count; ++place) {
        const std::vector<std::size_t> all = needs(resolved.parameters[place]);
        missing[place] = all.size();
        for (const std::size_t need : all) {
            needed_by[need].push_back(place);
        }
        if (all.empty()) {
            resolved.order.push_back(place);
        }
    }
    for (std::size_t done = 0; done < resolved.order.size(); ++done) {
        const std::size_t place = resolved.order[done];
        found[place] = true;
        for (const std::size_t waiting : needed_by[place]) {
            if (--missing[waiting] == 0) {
                resolved.order.push_back(waiting);
            }
        }
    }
    return resolved.order.size() == count ? Status(Ok{}) : circle(space, resolved, found);
}

void mark_fixed_by_grid(const SearchSpace& space, ResolvedSpace& resolved) {
    for (const std::size_t place : resolved.order) {
        const Domain& domain = space.parameters[place].domain;
        ResolvedParameter& parameter = resolved.parameters[place];
        parameter.fixed_by_grid =
            (std::holds_alternative<Grid>(domain) || std::holds_alternative<Constant>(domain)) &&
            std::all_of(
                parameter.condition_keys.begin(),
                parameter.condition_keys.end(),
                [&](std::size_t key) { return resolved.parameters[key].fixed_by_grid; }
            );
    }
}

}  // namespace

Result<ResolvedSpace> resolve(const SearchSpace& space) {
    Places places;
    for (const Parameter& parameter : space.parameters) {
        places.emplace(parameter.key, places.size());
    }
    ResolvedSpace resolved;
    for (const Parameter& parameter : space.parameters) {
        ResolvedParameter& one = resolved.parameters.emplace_back();
        if (const Status done = resolve_conditions(space, places, parameter, one); !done) {
            return done.error();
        }
        if (const Status done = resolve_inputs(space, places, parameter, one); !done) {
            return done.error();
        }
    }
    if (const Status done = find_order(space, resolved); !done) {
        return done.error();
    }
    mark_fixed_by_grid(space, resolved);
    return resolved;
}

}  // namespace muster
