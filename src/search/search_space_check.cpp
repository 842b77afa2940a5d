// SPDX-License-Identifier: Apache-2.0

#include "search/search_space_check.hpp"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/nearest.hpp"
#include "search/domain.hpp"
#include "search/resolved_space.hpp"

namespace muster {
namespace {

Error refuse(const std::string& place, const std::string& reason) {
    return {ErrorCode::InvalidInput, place + ": " + reason};
}

bool is_well_formed(std::string_view key) {
    return !key.empty() && key.front() != '/' && key.back() != '/' &&
           key.find("//") == std::string_view::npos;
}

Status validate_keys(const SearchSpace& space) {
    std::set<std::string_view> keys;
    for (const Parameter& parameter : space.parameters) {
        if (!is_well_formed(parameter.key)) {
            return refuse(
                "'" + parameter.key + "'", "a key needs a name before and after each '/'"
            );
        }
        if (!keys.insert(parameter.key).second) {
            return refuse(parameter.key, "the key is there twice; rename one of them");
        }
    }
    for (const std::string_view key : keys) {
        for (std::size_t end = key.find('/'); end != std::string_view::npos;
             end = key.find('/', end + 1)) {
            const std::string group(key.substr(0, end));
            if (keys.count(group) != 0) {
                return refuse(
                    group,
                    fmt::format(
                        "it has a value and is also the group of '{}'; rename one of them", key
                    )
                );
            }
        }
    }
    return Ok{};
}

Status
validate_condition(const Parameter& parameter, const Condition& condition, const Domain& domain) {
    if (condition.any_of.empty()) {
        return refuse(
            parameter.key,
            fmt::format("`when` names no value of '{}'; at least one is needed", condition.key)
        );
    }
    for (const Value& value : condition.any_of) {
        const Result<Value> held = value_in(domain, value);
        if (!held) {
            return refuse(
                parameter.key,
                fmt::format(
                    "`when` could never hold for '{}': {}", condition.key, held.error().message
                )
            );
        }
    }
    return Ok{};
}

Status validate_conditions(const SearchSpace& space, const ResolvedSpace& resolved) {
    for (std::size_t place = 0; place < space.parameters.size(); ++place) {
        const Parameter& parameter = space.parameters[place];
        for (std::size_t at = 0; at < parameter.when.size(); ++at) {
            const std::size_t key = resolved.parameters[place].condition_keys[at];
            Status valid =
                validate_condition(parameter, parameter.when[at], space.parameters[key].domain);
            if (!valid) {
                return valid;
            }
        }
    }
    return Ok{};
}

/// How many configs a grid makes must not hang on what is drawn.
Status validate_grid_conditions(const SearchSpace& space) {
    const Result<ResolvedSpace> resolved = resolve(space);
    if (!resolved) {
        return resolved.error();
    }
    for (std::size_t place = 0; place < space.parameters.size(); ++place) {
        const Parameter& parameter = space.parameters[place];
        const std::vector<std::size_t>& keys = resolved->parameters[place].condition_keys;
        const auto drawn = std::find_if(keys.begin(), keys.end(), [&](std::size_t key) {
            return !resolved->parameters[key].fixed_by_grid;
        });
        if (std::holds_alternative<Grid>(parameter.domain) && drawn != keys.end()) {
            const Parameter& other = space.parameters[*drawn];
            return refuse(
                parameter.key,
                fmt::format(
                    "a grid's `when` may rest on grids and constants alone, and '{}' is {}; make "
                    "'{}' a grid, or '{}' a choice",
                    other.key,
                    to_text(other.domain),
                    other.key,
                    parameter.key
                )
            );
        }
    }
    return Ok{};
}

/// Points against one space, whose keys are looked up once.
class PointCheck {
  public:
    explicit PointCheck(const SearchSpace& space) : space_(space) {
        for (const Parameter& parameter : space.parameters) {
            parameters_.emplace(parameter.key, &parameter);
        }
    }

    Status check(const std::vector<ValueMember>& point, const std::string& place) const {
        std::set<std::string_view> given;
        for (const ValueMember& member : point) {
            if (!given.insert(member.key).second) {
                return refuse(place + member.key, "the key is there twice");
            }
        }
        for (const ValueMember& member : point) {
            if (Status done = check_member(member, place + member.key); !done) {
                return done;
            }
            const Parameter& parameter = *parameters_.at(member.key);
            for (const Condition& condition : parameter.when) {
                if (Status done = check_condition(condition, point, place + member.key); !done) {
                    return done;
                }
            }
        }
        return Ok{};
    }

  private:
    Status check_member(const ValueMember& member, const std::string& place) const {
        const auto found = parameters_.find(member.key);
        if (found == parameters_.end()) {
            std::vector<std::string> known;
            for (const Parameter& parameter : space_.parameters) {
                known.push_back(parameter.key);
            }
            return refuse(
                place, "there is no such key in the space" + did_you_mean(member.key, known)
            );
        }
        const Domain& domain = found->second->domain;
        if (std::holds_alternative<Expression>(domain) ||
            std::holds_alternative<SampleFrom>(domain)) {
            return refuse(
                place, fmt::format("its value is computed ({}); leave it out", to_text(domain))
            );
        }
        const Result<Value> held = value_in(domain, member.value);
        return held ? Status(Ok{}) : Status(refuse(place, held.error().message));
    }

    /// The condition of a given key must be met by what is given, or is always so.
    Status check_condition(
        const Condition& condition,
        const std::vector<ValueMember>& point,
        const std::string& place
    ) const {
        const auto given = std::find_if(point.begin(), point.end(), [&](const ValueMember& one) {
            return one.key == condition.key;
        });
        const Parameter& other = *parameters_.at(condition.key);
        const auto* constant = std::get_if<Constant>(&other.domain);
        const bool computed = std::holds_alternative<Expression>(other.domain) ||
                              std::holds_alternative<SampleFrom>(other.domain);
        const bool met = given != point.end()
                             ? meets(condition, given->value)
                             : computed || (constant != nullptr && other.when.empty() &&
                                            meets(condition, constant->value));
        if (met) {
            return Ok{};
        }
        std::string wanted;
        for (const Value& value : condition.any_of) {
            wanted += (wanted.empty() ? "" : " or ") + to_json(value);
        }
        return refuse(
            place,
            fmt::format(
                "it has a value only where '{}' is {}, and the point {}",
                condition.key,
                wanted,
                given != point.end() ? "says " + to_json(given->value)
                                     : "does not say so; add it to the point"
            )
        );
    }

    const SearchSpace& space_;
    std::unordered_map<std::string_view, const Parameter*> parameters_;
};

Status validate_algorithm(const SearchSpace& space, SearchAlgorithm algorithm) {
    if (algorithm != SearchAlgorithm::Grid) {
        return Ok{};
    }
    for (const Parameter& parameter : space.parameters) {
        if (std::holds_alternative<RealDomain>(parameter.domain) ||
            std::holds_alternative<IntDomain>(parameter.domain) ||
            std::holds_alternative<NormalDomain>(parameter.domain)) {
            return refuse(
                parameter.key,
                fmt::format(
                    "{} is drawn at random, which algorithm grid does not do; list its values in a "
                    "grid or choice, or take algorithm random (it crosses grids as well)",
                    to_text(parameter.domain)
                )
            );
        }
    }
    return Ok{};
}

}  // namespace

SearchSpace choices_as_grids(SearchSpace space) {
    for (Parameter& parameter : space.parameters) {
        if (auto* choice = std::get_if<Choice>(&parameter.domain)) {
            parameter.domain = Grid{std::move(choice->values)};
        }
    }
    return space;
}

Status validate(const SearchSpace& space) {
    if (Status keys = validate_keys(space); !keys) {
        return keys;
    }
    for (const Parameter& parameter : space.parameters) {
        if (Status domain = validate(parameter.domain); !domain) {
            return refuse(parameter.key, domain.error().message);
        }
    }
    const Result<ResolvedSpace> resolved = resolve(space);
    if (!resolved) {
        return resolved.error();
    }
    return validate_conditions(space, *resolved);
}

Status
validate_points(const SearchSpace& space, const std::vector<std::vector<ValueMember>>& points) {
    const PointCheck check(space);
    for (std::size_t at = 0; at < points.size(); ++at) {
        if (Status point = check.check(points[at], fmt::format("points[{}].", at)); !point) {
            return point;
        }
    }
    return Ok{};
}

Status validate(const SearchSpace& space, const SearchOptions& search) {
    if (Status fits = validate_algorithm(space, search.algorithm); !fits) {
        return fits;
    }
    if (Status valid = validate(space); !valid) {
        return valid;
    }
    Status grids = search.algorithm == SearchAlgorithm::Grid
                       ? validate_grid_conditions(choices_as_grids(space))
                       : validate_grid_conditions(space);
    return grids ? validate_points(space, search.points) : grids;
}

}  // namespace muster
