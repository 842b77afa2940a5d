// SPDX-License-Identifier: Apache-2.0
//
// line_file - the lines of a file, one after the other. Private to this folder.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "muster/error.hpp"

#include "posix/unique_fd.hpp"

namespace muster::journal {

/// Memory is bounded by the longest line, and a line by kLongestLine: what is longer can be no
/// record, and comes in pieces.
class LineFile {
  public:
    static constexpr std::size_t kLongestLine = std::size_t{1} << 26U;

    struct Line {
        /// Without its newline; good until the next call.
        std::string_view text;
        /// From 1.
        std::uint64_t number = 0;
        /// It has its newline. Only the last line has none, or a piece of one that is too long.
        bool whole = true;
    };

    /// Errors: System.
    static Result<LineFile> open(const std::string& path);

    /// Nothing at the end of the file.
    /// Errors: System, when it can't be read.
    Result<std::optional<Line>> next();

    /// Bytes in the lines that next() has given.
    std::uint64_t bytes_read() const { return bytes_read_; }

  private:
    LineFile(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
    /// False at the end of the file.
    Result<bool> read_more();

    UniqueFd fd_;
    std::string path_;
    std::string buffer_;
    std::size_t start_ = 0;
    std::uint64_t number_ = 0;
    std::uint64_t bytes_read_ = 0;
    bool at_end_ = false;
};

}  // namespace muster::journal
