// SPDX-License-Identifier: Apache-2.0
//
// yaml_text - values and texts as YAML that reads back as the same value.

#pragma once

#include <string>
#include <string_view>

#include "muster/value.hpp"

namespace muster {

/// Plain when that reads back as this text, else in double quotes. On one line.
std::string yaml_text(std::string_view text);

/// In flow style, on one line: [1, 0.5, {a: true}].
std::string yaml_value(const Value& value);

}  // namespace muster
