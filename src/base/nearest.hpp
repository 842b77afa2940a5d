// SPDX-License-Identifier: Apache-2.0
//
// nearest - the known name that a misspelt one was probably meant to be.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// The one of `known` that is fewest edits from `name` (insert, remove, replace, swap neighbours;
/// case counts half), the first of equals. Empty when none is near enough to be worth saying.
std::string nearest(std::string_view name, const std::vector<std::string>& known);

/// "; did you mean 'lr'?", or nothing.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& known);

}  // namespace muster
