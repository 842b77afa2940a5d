// SPDX-License-Identifier: Apache-2.0
//
// utf8 - where text is UTF-8 and where it is not.

#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace muster {

/// Bytes in the UTF-8 character that begins at `text[at]`, or 0 when there is none (overlong
/// forms, surrogates and anything past U+10FFFF included).
std::size_t utf8_length(std::string_view text, std::size_t at);

/// The place of the first byte that belongs to no UTF-8 character, if there is one.
std::optional<std::size_t> find_not_utf8(std::string_view text);

}  // namespace muster
