// SPDX-License-Identifier: Apache-2.0

#include "placement/waiting_line.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace muster {

void WaitingLines::push(TrialId trial, std::uint32_t shape, TimePoint now) {
    check(!find(trial), "a trial waits once");
    if (trial.value >= places_.size()) {
        places_.resize(trial.value + 1);
    }
    places_[trial.value] = {++last_order_, shape};
    lines_[shape].trials.push_back({last_order_, now, trial});
    ++lines_[shape].size;
    ++size_;
}

bool WaitingLines::remove(TrialId trial) {
    const std::optional<std::uint32_t> shape = find(trial);
    if (!shape) {
        return false;
    }
    places_[trial.value].order = 0;
    Line& line = lines_[*shape];
    --line.size;
    --size_;
    close_gaps(line);
    return true;
}

/// At the front always; elsewhere once they are more than what waits.
void WaitingLines::close_gaps(Line& line) {
    while (!line.trials.empty() && is_gap(line.trials.front())) {
        line.trials.pop_front();
    }
    constexpr std::size_t kFew = 64;
    if (line.trials.size() > 2 * line.size + kFew) {
        std::erase_if(line.trials, [this](const WaitingTrial& entry) { return is_gap(entry); });
        line.trials.shrink_to_fit();
    }
}

const WaitingTrial* WaitingLines::first(std::uint32_t shape) const {
    const Line& line = lines_[shape];
    return line.trials.empty() ? nullptr : &line.trials.front();
}

std::optional<std::uint32_t> WaitingLines::find(TrialId trial) const {
    if (trial.value >= places_.size() || places_[trial.value].order == 0) {
        return std::nullopt;
    }
    return places_[trial.value].shape;
}

std::size_t WaitingLines::ahead_of(TrialId trial) const {
    const Place& place = places_[trial.value];
    std::size_t ahead = 0;
    for (const WaitingTrial& entry : lines_[place.shape].trials) {
        if (entry.order >= place.order) {
            break;
        }
        ahead += is_gap(entry) ? 0U : 1U;
    }
    return ahead;
}

}  // namespace muster
