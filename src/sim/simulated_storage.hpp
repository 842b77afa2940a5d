// SPDX-License-Identifier: Apache-2.0
//
// simulated_storage - the checkpoints that lie on the disks of a simulated cluster, by directory.
// It outlives agents, heads and runs; a node's own disk is lost only when that is simulated.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"

namespace muster {

/// What a trial has saved of itself.
struct SavedState {
    TrialId trial;
    /// By whom it was saved.
    AttemptId attempt;
    std::uint32_t reports_made = 0;
    /// How much of its work is done.
    Duration done{0};
};

class SimulatedStorage {
  public:
    void write(const std::string& directory, std::uint32_t number, const SavedState& state) {
        directories_[directory].insert_or_assign(number, state);
    }
    void remove(const std::string& directory, std::uint32_t number) {
        directories_[directory].erase(number);
    }
    void remove_all(const std::string& directory) { directories_.erase(directory); }

    /// nullptr when it is not there.
    const SavedState* find(const std::string& directory, std::uint32_t number) const {
        const auto found = directories_.find(directory);
        if (found == directories_.end()) {
            return nullptr;
        }
        const auto state = found->second.find(number);
        return state == found->second.end() ? nullptr : &state->second;
    }

    using Directories = std::map<std::string, std::map<std::uint32_t, SavedState>>;
    const Directories& directories() const { return directories_; }

  private:
    Directories directories_;
};

}  // namespace muster
