// SPDX-License-Identifier: Apache-2.0
//
// background_output - writes for people, and never waits for them. A pager that is not scrolled, a
// terminal on ^S or a hung connection would otherwise hold up the run: limits of trials, its
// heartbeat, and ^C itself.

#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

namespace muster {

class BackgroundOutput {
  public:
    /// Writes to `fd`, which stays open as long as this lives.
    explicit BackgroundOutput(int fd);
    /// Waits for what is left to be written, at most kPatience.
    ~BackgroundOutput();
    BackgroundOutput(const BackgroundOutput&) = delete;
    BackgroundOutput& operator=(const BackgroundOutput&) = delete;

    /// Passes `text` on, in order, whole or not at all: false when too much is waiting already.
    bool write(const std::string& text);

    /// Whether something is still to be written.
    bool busy() const;

    static constexpr std::chrono::seconds kPatience{5};
    /// More than this does not wait.
    static constexpr std::size_t kMostBytes = std::size_t{1} << 20U;

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace muster
