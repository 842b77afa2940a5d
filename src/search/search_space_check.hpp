// SPDX-License-Identifier: Apache-2.0
//
// search_space_check - refuses a space, or points in it, that could not mean what they say.

#pragma once

#include <vector>

#include "muster/error.hpp"
#include "muster/experiment.hpp"
#include "muster/search_space.hpp"

namespace muster {

/// Refuses bounds that hold nothing or do not fit q, empty lists, keys that meet twice or are both
/// a value and a group, a `when` or formula over unknown keys, and keys that depend on each other
/// in a circle.
/// Errors: InvalidInput. The message begins with the key ("lr: …") and says the value and what
/// would be right.
Status validate(const SearchSpace& space);

/// Refuses points that name unknown keys, values outside their domain, values of computed keys, and
/// values whose `when` the point does not meet.
/// REQUIRES: validate(space).
/// Errors: InvalidInput. The message begins with the place: "points[0].lr: …", counted from 0.
Status
validate_points(const SearchSpace& space, const std::vector<std::vector<ValueMember>>& points);

/// All of the above by one call, and what the algorithm asks of the space: `grid` takes a choice as
/// a grid and refuses what is drawn from a range; a grid has no `when` over what is drawn, so that
/// the number of configs is known.
Status validate(const SearchSpace& space, const SearchOptions& search);

/// The space as `algorithm: grid` sees it.
SearchSpace choices_as_grids(SearchSpace space);

}  // namespace muster
