// SPDX-License-Identifier: Apache-2.0
//
// problems - everything that is wrong with one file, gathered so that it is told at once.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/error.hpp"

namespace muster {

/// Where something was written: in the file, or in the n-th --set (counted from 1).
struct Place {
    std::uint32_t line = 1;
    std::uint32_t column = 1;
    std::uint32_t set = 0;
};

class Problems {
  public:
    /// `file` as the user named it; `sets` as given.
    Problems(std::string file, std::vector<std::string> sets);

    /// Something wrong at `place`; `path` is the key ("trial.command[2]") and may be empty.
    void add(Place place, std::string_view path, std::string_view message);

    /// A key or value that a later version will know.
    void add_later(Place place, std::string_view path, std::string_view what);

    bool empty() const { return problems_.empty(); }
    std::size_t count() const { return problems_.size(); }

    /// The first ten in the order of the file, one a line, and how many more there are.
    /// REQUIRES: !empty().
    Error error() const;

  private:
    struct Problem {
        Place place;
        std::string text;
    };

    std::string where(Place place) const;

    std::string file_;
    std::vector<std::string> sets_;
    std::vector<Problem> problems_;
    bool all_later_ = true;
};

}  // namespace muster
