// SPDX-License-Identifier: Apache-2.0
//
// text - small files of /proc and /sys, and the numbers and lists in them.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::probe {

/// The content of a small file; nothing when it cannot be read.
std::optional<std::string> read_small_file(const std::string& path);

/// `text` without blanks and line ends around it.
std::string_view trim(std::string_view text);

/// The parts of `text` between `separator`; one part when there is none.
std::vector<std::string_view> split(std::string_view text, char separator);

/// A whole number and nothing else, after trim(); nothing when it does not fit.
std::optional<std::int64_t> parse_whole(std::string_view text);

/// The numbers of a kernel's list ("0-3,8,10-11"), ascending and each once; an empty text is an
/// empty list. Nothing when the text is no list, or one of numbers above 65,535.
std::optional<std::vector<std::uint32_t>> parse_cpu_list(std::string_view text);

/// What both hold. REQUIRES: both ascending.
std::vector<std::uint32_t>
intersection(const std::vector<std::uint32_t>& left, const std::vector<std::uint32_t>& right);

}  // namespace muster::probe
