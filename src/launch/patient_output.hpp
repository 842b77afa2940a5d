// SPDX-License-Identifier: Apache-2.0
//
// patient_output - text for a descriptor whose reader may be slow, stopped or gone: kept until it
// can be written without waiting. The descriptor itself is left as it is, for others share it.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {

class PatientOutput {
  public:
    explicit PatientOutput(int fd) : fd_(fd) {}

    /// Puts `text` behind what is kept, and writes what can be written now.
    void show(std::string_view text);
    void write();

    bool is_empty() const { return kept_.empty(); }
    /// No more should be given to it for now.
    bool is_full() const { return kept_.size() >= kMost; }
    /// The descriptor to poll for POLLOUT; -1 when nothing is kept.
    int waits_for() const { return kept_.empty() ? -1 : fd_; }

  private:
    static constexpr std::size_t kMost = 1U << 20U;

    int fd_;
    std::string kept_;
};

}  // namespace muster
