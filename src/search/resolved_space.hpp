// SPDX-License-Identifier: Apache-2.0
//
// resolved_space - a search space with its names turned into places and its formulas parsed, and
// the order in which values can be found.

#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "muster/config.hpp"
#include "muster/error.hpp"
#include "muster/search_space.hpp"

#include "search/expression.hpp"

namespace muster {

/// What one parameter of a space needs. Every place is an index into SearchSpace::parameters.
struct ResolvedParameter {
    /// Where each condition of `when` looks, in their order.
    std::vector<std::size_t> condition_keys;
    /// Where each key of the formula, or each of SampleFrom::depends_on, is.
    std::vector<std::size_t> inputs;
    std::optional<Formula> formula;
    /// A Grid or Constant whose conditions rest on such parameters alone: what it is follows from
    /// the place in the grid, before anything is drawn.
    bool fixed_by_grid = false;
};

struct ResolvedSpace {
    std::vector<ResolvedParameter> parameters;
    /// Every parameter, each after all that it needs.
    std::vector<std::size_t> order;
};

/// Errors: InvalidInput, beginning with the key, for a formula that cannot be read, a name that is
/// no key, and keys that depend on each other in a circle.
/// REQUIRES: no key comes twice.
Result<ResolvedSpace> resolve(const SearchSpace& space);

}  // namespace muster
