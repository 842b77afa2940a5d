// SPDX-License-Identifier: Apache-2.0
//
// keys - every key that a spec may hold. docs/spec.md lists the same ones, and a test compares.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

struct KnownKey {
    /// "trial.command": dots between sections, no list indices.
    std::string_view path;
    /// Known, and refused as not in this version.
    bool later = false;
};

const std::vector<KnownKey>& known_keys();

/// The names directly below `section` ("" is the top): those of this version first.
std::vector<std::string> keys_below(std::string_view section);

/// Whether `path` is known and of a later version.
bool is_later_key(std::string_view path);

}  // namespace muster
