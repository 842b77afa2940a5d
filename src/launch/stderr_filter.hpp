// SPDX-License-Identifier: Apache-2.0
//
// stderr_filter - what a launcher and its ranks write to stderr, without what is not meant for
// people: rank 0's announcements, and what Open MPI 4.1 says of every rank that it lets die. Pure.

#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launch/exit_line.hpp"

namespace muster {

class StderrFilter {
  public:
    explicit StderrFilter(std::string token) : token_(std::move(token)) {}

    /// Takes the next bytes; returns those that are to be shown, in order.
    std::string take(std::string_view bytes);
    /// What is held back: a line that has no end yet, a block whose end did not come. To be called
    /// when nothing came for a while, and at the end.
    std::string flush();
    bool holds_back() const { return !line_.empty() || !block_.empty(); }

    bool has_begun() const { return has_begun_; }
    std::optional<int> exit_code() const { return exit_code_; }
    /// What rank 0 said last of how long it may be silent, since the last call.
    std::optional<std::chrono::seconds> take_patience() {
        return std::exchange(patience_, std::nullopt);
    }

  private:
    /// Whether the announcement at the end of `line` was one of this launch's.
    bool take_announcement(std::string_view line);
    void take_line(std::string_view line, std::string& shown);
    void end_block(std::string& shown);

    std::string token_;
    std::string line_;
    /// Open MPI puts its longer messages between two lines of dashes.
    std::vector<std::string> block_;
    bool has_begun_ = false;
    std::optional<int> exit_code_;
    std::optional<std::chrono::seconds> patience_;
};

}  // namespace muster
