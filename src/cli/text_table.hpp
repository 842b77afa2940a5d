// SPDX-License-Identifier: Apache-2.0
//
// text_table - columns that line up, for terminals and logs. Pure.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// Cells a terminal needs for `text`: one for each character (wide ones are counted as one).
std::size_t display_width(std::string_view text);

/// `text` cut to `width` characters, with "…" in place of what is missing; control characters
/// become '?', so that nothing a trial says can steer the terminal.
std::string fit(std::string_view text, std::size_t width);

class TextTable {
  public:
    explicit TextTable(std::vector<std::string> headings);

    /// Missing cells are empty. REQUIRES: no more cells than headings.
    void add_row(std::vector<std::string> cells);

    /// One line each, heading first, columns two blanks apart; numbers to the right. Lines are cut
    /// to `width` when it is not 0.
    std::vector<std::string> lines(std::size_t width = 0) const;

    /// lines() joined, each with its newline.
    std::string text(std::size_t width = 0) const;

  private:
    std::vector<std::string> headings_;
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace muster
