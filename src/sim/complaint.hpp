// SPDX-License-Identifier: Apache-2.0
//
// complaint - the first promise that was broken, for all who watch one simulation.

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace muster {

class Complaint {
  public:
    /// The promise in a sentence, and what broke it. Only the first counts.
    void say(std::string_view sentence, const std::string& what) {
        if (!first_) {
            first_ = fmt::format("{} But {}", sentence, what);
        }
    }
    const std::optional<std::string>& first() const { return first_; }

  private:
    std::optional<std::string> first_;
};

}  // namespace muster
