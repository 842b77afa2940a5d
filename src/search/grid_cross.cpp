// SPDX-License-Identifier: Apache-2.0

#include "search/grid_cross.hpp"

#include <limits>
#include <variant>

#include <fmt/format.h>

namespace muster {
namespace {

// A trial's id has 32 bits.
constexpr std::uint64_t kMostCells = std::numeric_limits<std::uint32_t>::max();

Error too_many(std::uint64_t most, const char* what) {
    return {
        ErrorCode::InvalidInput,
        fmt::format("the grid has more than {} points{}; shorten its lists", most, what)};
}

}  // namespace

Result<GridCross> GridCross::make(
    const SearchSpace& space,
    const ResolvedSpace& resolved,
    const FixedValues& fixed,
    std::uint64_t& budget
) {
    GridCross cross;
    cross.axes_.resize(space.parameters.size());
    bool conditional = false;
    for (std::size_t place = 0; place < space.parameters.size(); ++place) {
        const auto* grid = std::get_if<Grid>(&space.parameters[place].domain);
        if (grid == nullptr || fixed[place]) {
            continue;
        }
        cross.axes_[place] = {cross.cells_, grid->values.size()};
        if (cross.cells_ > kMostCells / grid->values.size()) {
            return too_many(kMostCells, "");
        }
        cross.cells_ *= grid->values.size();
        conditional = conditional || !space.parameters[place].when.empty();
    }
    if (conditional) {
        if (cross.cells_ > budget) {
            return too_many(budget, " while some of its keys have a `when`");
        }
        budget -= cross.cells_;
        cross.keep_cells(space, resolved, fixed);
    }
    return cross;
}

void GridCross::keep_cells(
    const SearchSpace& space,
    const ResolvedSpace& resolved,
    const FixedValues& fixed
) {
    std::vector<const Value*> values(space.parameters.size());
    const auto holds_in_cell = [&](std::size_t place) {
        const std::vector<std::size_t>& keys = resolved.parameters[place].condition_keys;
        for (std::size_t at = 0; at < keys.size(); ++at) {
            const Value* value = values[keys[at]];
            if (value == nullptr || !meets(space.parameters[place].when[at], *value)) {
                return false;
            }
        }
        return true;
    };
    const auto value_in_cell = [&](std::size_t place, std::uint64_t cell) {
        if (fixed[place]) {
            return &*fixed[place];
        }
        const Domain& domain = space.parameters[place].domain;
        const auto* grid = std::get_if<Grid>(&domain);
        return grid != nullptr ? &grid->values[choice_in_cell(place, cell)]
                               : &std::get<Constant>(domain).value;
    };
    for (std::uint64_t cell = 0; cell < cells_; ++cell) {
        bool counts = true;
        for (const std::size_t place : resolved.order) {
            // What is drawn is of no account here: no grid's condition rests on it.
            if (!resolved.parameters[place].fixed_by_grid) {
                continue;
            }
            const bool has_value = holds_in_cell(place);
            values[place] = has_value ? value_in_cell(place, cell) : nullptr;
            counts = counts && (has_value || choice_in_cell(place, cell) == 0);
        }
        if (counts) {
            kept_.push_back(cell);
        }
    }
}

}  // namespace muster
