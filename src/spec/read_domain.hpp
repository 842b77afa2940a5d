// SPDX-License-Identifier: Apache-2.0
//
// read_domain - one domain of a space: "loguniform" and [1e-4, 1e-1].

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/search_space.hpp"

#include "spec/document.hpp"
#include "spec/problems.hpp"

namespace muster {

/// Every name that read_domain() takes.
const std::vector<std::string>& domain_names();

bool is_domain_name(std::string_view name);

/// Reads the arguments of domain `name`, which stand at `path`. What the numbers must be to each
/// other is checked later, with the space.
std::optional<Domain> read_domain(
    std::string_view name,
    const YamlNode& arguments,
    std::string_view path,
    Problems& problems
);

}  // namespace muster
