// SPDX-License-Identifier: Apache-2.0
//
// read_space - the `space` section, and what names its keys: conditions and points.
//
// A map is a domain when one of its keys is a domain's name; beside it only `when` may stand. Every
// other map is a group: its keys are joined to its own with '/', its `when` holds for all of them.

#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/config.hpp"
#include "muster/search_space.hpp"

#include "spec/document.hpp"
#include "spec/problems.hpp"

namespace muster {

struct SpaceReading {
    SearchSpace space;
    /// Where each key was written.
    std::map<std::string, Place> places;

    std::vector<std::string> keys() const;
};

/// Reads the section; a null one is an empty space. The space is also checked as a whole.
SpaceReading read_space(const YamlNode* node, Problems& problems);

/// Reads a `when`: each key has one of its values (a value or a list of them). Values that a listed
/// domain never takes are problems.
Conditions read_conditions(
    const YamlNode& node,
    std::string_view path,
    const SearchSpace& space,
    Problems& problems
);

/// Reads {key: value, group: {key: value}} with keys of the space.
std::vector<ValueMember> read_members(
    const YamlNode& node,
    std::string_view path,
    const SearchSpace& space,
    Problems& problems
);

}  // namespace muster
