// SPDX-License-Identifier: Apache-2.0

#include "head/track_record.hpp"

#include <cmath>
#include <utility>

namespace muster {
namespace {

constexpr std::size_t kLeastTrials = 3;
/// How improbable a streak must be, were the node like the others.
constexpr double kSuspicious = 0.05;
/// Failures elsewhere that may clear a node.
constexpr std::uint32_t kLeastRetried = 2;
constexpr std::uint32_t kMostReopened = 3;

}  // namespace

void TrackRecord::worked(NodeId node, TrialId trial, std::uint64_t last) {
    if (last == 0) {
        ++worked_;
    } else {
        for (auto& [other, streak] : streaks_) {
            streak.worked_again += streak.begun > last ? 1U : 0U;
        }
    }
    anything_worked_ = true;
    order_.clear();
    seen_.clear();
    if (!streaks_.empty()) {
        end_streak(node);
    }
    if (!retried_.empty()) {
        end_retrial(trial, true);
    }
}

void TrackRecord::failed(NodeId node, TrialId trial, FailureText text) {
    if (!retried_.empty()) {
        end_retrial(trial, false);
    }
    const auto [found, is_new] = streaks_.try_emplace(node);
    Streak& streak = found->second;
    if (is_new) {
        streak.worked_before = worked_;
        streak.failed_before = failed_;
        streak.begun = ++moment_;
    }
    ++failed_;
    ++streak.failed;
    ++streak.trials[trial];
    streak.last = trial;
    streak.last_failure = std::move(text);
    if (streak.trials.size() >= kLeastTrials) {
        long_streaks_.insert(node);
    }
}

bool TrackRecord::is_suspect(const Streak& streak) const {
    // What worked since the streak began did so elsewhere, for it would have ended the streak.
    const auto worked = static_cast<double>(worked_ - streak.worked_before + streak.worked_again);
    const auto failed = static_cast<double>(failed_ - streak.failed_before - streak.failed);
    // Laplace's estimate, which is never 0 or 1.
    const double rate = (failed + 1) / (worked + failed + 2);
    return worked > 0 && std::pow(rate, static_cast<double>(streak.trials.size())) <= kSuspicious;
}

const Streak* TrackRecord::streak(NodeId node) const {
    const auto found = streaks_.find(node);
    return found == streaks_.end() ? nullptr : &found->second;
}

std::optional<NodeId> TrackRecord::suspect() const {
    if (worked_ == 0) {
        return std::nullopt;
    }
    for (const NodeId node : long_streaks_) {
        if (aside_.count(node) == 0 && excused_.count(node) == 0 && is_suspect(streaks_.at(node))) {
            return node;
        }
    }
    return std::nullopt;
}

void TrackRecord::excuse(NodeId node) {
    excused_.insert(node);
}

bool TrackRecord::may_reopen(TrialId trial) const {
    const auto found = reopened_.find(trial);
    return found == reopened_.end() || found->second < kMostReopened;
}

void TrackRecord::set_aside(NodeId node, const std::vector<TrialId>& reopened) {
    end_streak(node);
    aside_.insert(node);
    retrials_.try_emplace(node);
    for (const TrialId trial : reopened) {
        retried_[trial] = node;
        ++reopened_[trial];
    }
}

void TrackRecord::end_retrial(TrialId trial, bool worked) {
    const auto found = retried_.find(trial);
    if (found == retried_.end()) {
        return;
    }
    const auto retrial = retrials_.find(found->second);
    retried_.erase(found);
    if (retrial != retrials_.end()) {
        ++(worked ? retrial->second.worked : retrial->second.failed);
    }
}

std::optional<NodeId> TrackRecord::acquitted() const {
    for (const auto& [node, retrial] : retrials_) {
        if (retrial.failed >= kLeastRetried && retrial.failed > retrial.worked) {
            return node;
        }
    }
    return std::nullopt;
}

void TrackRecord::end_streak(NodeId node) {
    streaks_.erase(node);
    long_streaks_.erase(node);
}

void TrackRecord::take_back(NodeId node) {
    end_streak(node);
    aside_.erase(node);
    retrials_.erase(node);
}

void TrackRecord::forget(NodeId node) {
    take_back(node);
    excused_.erase(node);
}

void TrackRecord::started(TrialId trial) {
    if (!anything_worked_ && seen_.insert(trial).second) {
        order_.push_back(trial);
    }
}

}  // namespace muster
