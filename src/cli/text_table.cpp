// SPDX-License-Identifier: Apache-2.0

#include "cli/text_table.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/check.hpp"

namespace muster {
namespace {

bool begins_character(char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
}

bool is_control(char byte) {
    const auto value = static_cast<unsigned char>(byte);
    return value < 0x20 || value == 0x7F;
}

/// Cells such as "0.97", "-3", "1e-05", "12.3s", "45%".
bool looks_numeric(std::string_view cell) {
    const std::size_t digits = cell.find_first_of("0123456789");
    return digits != std::string_view::npos && digits <= 1 &&
           (digits == 0 || cell.front() == '-' || cell.front() == '.') &&
           cell.find_first_of(" =/") == std::string_view::npos;
}

std::string padded(std::string_view cell, std::size_t width, bool to_the_right) {
    const std::string blanks(width - std::min(width, display_width(cell)), ' ');
    return to_the_right ? blanks + std::string(cell) : std::string(cell) + blanks;
}

void trim_end(std::string& line) {
    const std::size_t last = line.find_last_not_of(' ');
    line.erase(last == std::string::npos ? 0 : last + 1);
}

}  // namespace

std::size_t display_width(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string fit(std::string_view text, std::size_t width) {
    std::string clean(text);
    std::replace_if(clean.begin(), clean.end(), is_control, '?');
    if (display_width(clean) <= width) {
        return clean;
    }
    std::size_t bytes = 0;
    for (std::size_t characters = 0; bytes < clean.size(); ++bytes) {
        if (begins_character(clean[bytes]) && ++characters >= std::max<std::size_t>(width, 1)) {
            break;
        }
    }
    return width == 0 ? "" : clean.substr(0, bytes) + "…";
}

TextTable::TextTable(std::vector<std::string> headings) : headings_(std::move(headings)) {}

void TextTable::add_row(std::vector<std::string> cells) {
    check(cells.size() <= headings_.size(), "a row has no more cells than the table has columns");
    cells.resize(headings_.size());
    for (std::string& cell : cells) {
        cell = fit(cell, 200);
    }
    rows_.push_back(std::move(cells));
}

std::vector<std::string> TextTable::lines(std::size_t width) const {
    std::vector<std::size_t> widths;
    std::vector<bool> numeric;
    for (std::size_t column = 0; column < headings_.size(); ++column) {
        std::size_t widest = display_width(headings_[column]);
        bool all_numeric = !rows_.empty();
        for (const auto& row : rows_) {
            widest = std::max(widest, display_width(row[column]));
            all_numeric = all_numeric && (row[column].empty() || looks_numeric(row[column]));
        }
        widths.push_back(widest);
        numeric.push_back(all_numeric);
    }
    const auto line_of = [&](const std::vector<std::string>& cells) {
        std::string line;
        for (std::size_t column = 0; column < cells.size(); ++column) {
            line += column == 0 ? "" : "  ";
            line += padded(cells[column], widths[column], numeric[column]);
        }
        trim_end(line);
        return width == 0 ? line : fit(line, width);
    };
    std::vector<std::string> lines{line_of(headings_)};
    for (const auto& row : rows_) {
        lines.push_back(line_of(row));
    }
    return lines;
}

std::string TextTable::text(std::size_t width) const {
    std::string text;
    for (const std::string& line : lines(width)) {
        text += line + "\n";
    }
    return text;
}

}  // namespace muster
