// SPDX-License-Identifier: Apache-2.0
//
// grid_cross - numbers the points of the grids of a space, crossed with each other.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "muster/error.hpp"
#include "muster/search_space.hpp"
#include "muster/value.hpp"

#include "search/resolved_space.hpp"

namespace muster {

/// What a point gives: one value or nothing for each parameter of the space.
using FixedValues = std::vector<std::optional<Value>>;

/// The points of the grid, counted from 0, the first key varying fastest. Without conditions a
/// point is its number in mixed radix; with conditions the numbers that stand for a point of their
/// own are kept in a list: where a grid has no value, only its first counts.
class GridCross {
  public:
    /// Grids that are fixed are not crossed. `budget` is how many points may be looked at to find
    /// those that count; it is lowered by what was used.
    /// Errors: InvalidInput when there are too many points.
    static Result<GridCross> make(
        const SearchSpace& space,
        const ResolvedSpace& resolved,
        const FixedValues& fixed,
        std::uint64_t& budget
    );

    /// At least 1: without any grid there is one point.
    std::uint64_t count() const { return kept_.empty() ? cells_ : kept_.size(); }

    /// Which of its values a grid has at a point. REQUIRES: index < count(), not fixed.
    std::size_t choice(std::size_t parameter, std::uint64_t index) const {
        return choice_in_cell(parameter, kept_.empty() ? index : kept_[index]);
    }

  private:
    /// How often each of a grid's values is repeated before the next one, and how many they are.
    struct Axis {
        std::uint64_t stride = 1;
        std::uint64_t size = 1;
    };

    std::size_t choice_in_cell(std::size_t parameter, std::uint64_t cell) const {
        const Axis& axis = axes_[parameter];
        return static_cast<std::size_t>(cell / axis.stride % axis.size);
    }

    void
    keep_cells(const SearchSpace& space, const ResolvedSpace& resolved, const FixedValues& fixed);

    /// One for each parameter; of size 1 when it is not crossed.
    std::vector<Axis> axes_;
    std::uint64_t cells_ = 1;
    /// Empty: all cells.
    std::vector<std::uint64_t> kept_;
};

}  // namespace muster
