// SPDX-License-Identifier: Apache-2.0
//
// source_text - bytes of a file as text that the YAML reader takes as it is meant.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "muster/error.hpp"

#include "spec/problems.hpp"

namespace muster {

/// `text` without a byte order mark, with lines that end in \n alone, and, when it is JSON (it
/// begins with '{' or '['), with pairs of \u escapes as the character that they mean.
/// Errors: InvalidInput, told to `problems` with the place, for more than 8 MiB, bytes that are not
/// UTF-8 and control characters.
Result<std::string> prepare_source(std::string_view text, Problems& problems, std::uint32_t set);

/// Line and column (in characters, from 1) of `at`.
Place place_of(std::string_view text, std::size_t at);

/// Reads a whole file of at most 8 MiB.
/// Errors: NotFound, System, InvalidInput (too large); the message names the path.
Result<std::string> read_text_file(const std::string& path);

}  // namespace muster
