// SPDX-License-Identifier: Apache-2.0

#include "head/checkpoints.hpp"

#include <algorithm>
#include <cmath>

#include "muster/result.hpp"

namespace muster {
namespace {

auto place_of(std::vector<Checkpoint>& kept, std::uint32_t number) {
    return std::lower_bound(
        kept.begin(),
        kept.end(),
        number,
        [](const Checkpoint& checkpoint, std::uint32_t wanted) {
            return checkpoint.number < wanted;
        }
    );
}

}  // namespace

const Checkpoint* TrialCheckpoints::find(std::uint32_t number) const {
    const auto found = std::find_if(kept.begin(), kept.end(), [&](const Checkpoint& checkpoint) {
        return checkpoint.number == number;
    });
    return found == kept.end() ? nullptr : &*found;
}

const TrialCheckpoints* Checkpoints::find(TrialId trial) const {
    const auto found = trials_.find(trial);
    return found == trials_.end() ? nullptr : &found->second.of_trial;
}

void Checkpoints::keep(TrialId trial, Checkpoint checkpoint) {
    used_number(trial, checkpoint.number);
    any_ = true;
    Entry& entry = trials_[trial];
    take_out(trial, entry);
    std::vector<Checkpoint>& kept = entry.of_trial.kept;
    bytes_ += checkpoint.bytes;
    ++kept_so_far_;
    const auto place = place_of(kept, checkpoint.number);
    if (place != kept.end() && place->number == checkpoint.number) {
        bytes_ -= place->bytes;
        *place = std::move(checkpoint);
    } else {
        entry.since = kept.empty() ? kept_so_far_ : entry.since;
        kept.insert(place, std::move(checkpoint));
    }
    put_in(trial, entry);
}

bool Checkpoints::drop(TrialId trial, std::uint32_t number) {
    used_number(trial, number);
    Entry& entry = trials_[trial];
    std::vector<Checkpoint>& kept = entry.of_trial.kept;
    const auto place = place_of(kept, number);
    if (place == kept.end() || place->number != number) {
        return false;
    }
    take_out(trial, entry);
    bytes_ -= place->bytes;
    if (place == kept.begin()) {
        entry.since = kept_so_far_;
    }
    kept.erase(place);
    put_in(trial, entry);
    return true;
}

void Checkpoints::used_number(TrialId trial, std::uint32_t number) {
    std::uint32_t& next = trials_[trial].of_trial.next;
    next = std::max(next, number + 1);
}

void Checkpoints::set_ended(TrialId trial, double worth) {
    const auto found = trials_.find(trial);
    if (found == trials_.end()) {
        return;
    }
    take_out(trial, found->second);
    found->second.of_trial.ended = true;
    found->second.of_trial.worth = std::isfinite(worth) ? worth : -HUGE_VAL;
    put_in(trial, found->second);
}

void Checkpoints::set_open(TrialId trial) {
    const auto found = trials_.find(trial);
    if (found == trials_.end()) {
        return;
    }
    take_out(trial, found->second);
    found->second.of_trial.ended = false;
    put_in(trial, found->second);
}

std::vector<std::uint32_t> Checkpoints::surplus(TrialId trial) const {
    const TrialCheckpoints* of_trial = find(trial);
    const std::size_t most = options_.keep;
    if (of_trial == nullptr || most == 0 || of_trial->kept.size() <= most) {
        return {};
    }
    std::vector<const Checkpoint*> order;
    for (const Checkpoint& checkpoint : of_trial->kept) {
        order.push_back(&checkpoint);
    }
    std::sort(order.begin(), order.end(), [this](const Checkpoint* left, const Checkpoint* right) {
        return is_better(*left, *right);
    });
    std::vector<std::uint32_t> numbers;
    for (std::size_t index = most; index < order.size(); ++index) {
        if (order[index] != of_trial->latest()) {
            numbers.push_back(order[index]->number);
        }
    }
    std::sort(numbers.begin(), numbers.end());
    return numbers;
}

std::optional<CheckpointRef> Checkpoints::excess() const {
    if (!is_over_budget()) {
        return std::nullopt;
    }
    for (const auto* trial :
         {ended_.empty() ? nullptr : &ended_.begin()->second,
          spare_.empty() ? nullptr : &spare_.begin()->second}) {
        if (trial != nullptr) {
            return CheckpointRef{*trial, least(*find(*trial)).number};
        }
    }
    return std::nullopt;
}

bool Checkpoints::is_better(const Checkpoint& left, const Checkpoint& right) const {
    if (!options_.score.empty()) {
        const double left_score = left.score.value_or(NAN);
        const double right_score = right.score.value_or(NAN);
        if (better(left_score, right_score, options_.mode)) {
            return true;
        }
        if (better(right_score, left_score, options_.mode)) {
            return false;
        }
    }
    return left.number > right.number;
}

const Checkpoint& Checkpoints::least(const TrialCheckpoints& of_trial) const {
    const Checkpoint* least = &of_trial.kept.front();
    for (const Checkpoint& checkpoint : of_trial.kept) {
        const bool may_go = of_trial.ended || &checkpoint != of_trial.latest();
        if (may_go && is_better(*least, checkpoint)) {
            least = &checkpoint;
        }
    }
    return *least;
}

void Checkpoints::take_out(TrialId trial, const Entry& entry) {
    ended_.erase({entry.of_trial.worth, trial});
    spare_.erase({entry.since, trial});
}

void Checkpoints::put_in(TrialId trial, const Entry& entry) {
    const std::size_t count = entry.of_trial.kept.size();
    if (entry.of_trial.ended && count > 0) {
        ended_.insert({entry.of_trial.worth, trial});
    } else if (!entry.of_trial.ended && count > 1) {
        spare_.insert({entry.since, trial});
    }
}

}  // namespace muster
