// SPDX-License-Identifier: Apache-2.0

#include "head/trials.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include "base/check.hpp"

namespace muster {
namespace {

std::size_t index_of(TrialState state) {
    return static_cast<std::size_t>(state);
}

bool is_active(TrialState state) {
    return state == TrialState::Running || state == TrialState::Stopping;
}

}  // namespace

Trials::Trials(std::optional<ObjectiveSpec> objective) : objective_(std::move(objective)) {}

TrialId Trials::create(Config config, std::uint32_t alternative) {
    Trial trial;
    trial.config = std::move(config);
    trial.alternative = alternative;
    trials_.push_back(std::move(trial));
    ++counts_[index_of(TrialState::Pending)];
    return TrialId{size() - 1};
}

const Trial* Trials::find(TrialId id) const {
    return id.value < trials_.size() ? &trials_[id.value] : nullptr;
}

Trial* Trials::find(TrialId id) {
    return id.value < trials_.size() ? &trials_[id.value] : nullptr;
}

Trial& Trials::at(TrialId id) {
    Trial* trial = find(id);
    check(trial != nullptr, "a trial that is looked up was created");
    return *trial;
}

TrialProgress& Trials::progress(TrialId id) {
    Trial& trial = at(id);
    if (trial.progress == nullptr) {
        trial.progress = std::make_unique<TrialProgress>();
    }
    return *trial.progress;
}

void Trials::set_state(TrialId id, TrialState state) {
    Trial& trial = at(id);
    --counts_[index_of(trial.state)];
    ++counts_[index_of(state)];
    if (is_active(trial.state) && !is_active(state)) {
        active_.erase(id);
    }
    if (!is_active(trial.state) && is_active(state)) {
        active_.insert(id);
    }
    trial.state = state;
}

void Trials::forgive(TrialId id, std::uint32_t forgiven) {
    TrialProgress& progress = this->progress(id);
    check(forgiven <= progress.failures, "only failures that were counted are forgiven");
    progress.failures -= forgiven;
    failures -= forgiven;
    if (at(id).state == TrialState::Failed) {
        progress.ended = TimePoint{};
        progress.reason.clear();
        set_state(id, TrialState::Pending);
    }
}

std::uint64_t Trials::count(TrialState state) const {
    return counts_[index_of(state)];
}

std::optional<double> Trials::objective_of(const TrialResult& result) const {
    const std::optional<double> value =
        objective_ ? result.metric(objective_->metric) : std::nullopt;
    return value && std::isfinite(*value) ? value : std::nullopt;
}

void Trials::offer_best(TrialId id, const TrialResult& result) const {
    const std::optional<double> value = objective_of(result);
    if (value && (!best_ || better(*value, best_value_, objective_->mode))) {
        best_ = id;
        best_value_ = *value;
    }
}

std::optional<TrialId> Trials::best() const {
    if (best_is_void_) {
        best_is_void_ = false;
        best_.reset();
        for (std::uint32_t value = 0; value < size(); ++value) {
            const TrialProgress* progress = trials_[value].progress.get();
            if (progress != nullptr && progress->best) {
                offer_best(TrialId{value}, *progress->best);
            }
        }
    }
    return best_;
}

double Trials::worth(TrialId id) const {
    const Trial* trial = find(id);
    const bool has_best = trial != nullptr && trial->progress && trial->progress->best;
    const std::optional<double> value =
        has_best ? objective_of(*trial->progress->best) : std::nullopt;
    if (!value) {
        return -std::numeric_limits<double>::infinity();
    }
    return objective_->mode == Mode::Max ? *value : -*value;
}

void Trials::restart(TrialId id, std::uint32_t epoch) {
    TrialProgress& progress = this->progress(id);
    check(!progress.running, "a trial that begins anew holds nothing");
    failures -= progress.failures;
    const std::uint32_t attempts = progress.attempts;
    progress = TrialProgress{};
    progress.attempts = attempts;
    progress.first_epoch = epoch;
    set_state(id, TrialState::Pending);
    best_is_void_ = best_is_void_ || best_ == id;
}

void Trials::record_end(const TrialEnded& ended) {
    TrialProgress& progress = this->progress(ended.trial);
    progress.results = ended.results;
    progress.last = ended.last;
    progress.best = ended.best;
    progress.steps.reset();
    if (ended.last) {
        progress.last_step = ended.last->step;
    }
    if (ended.best) {
        offer_best(ended.trial, *ended.best);
    }
}

void Trials::record(TrialId id, AttemptId attempt, const TrialResult& result) {
    TrialProgress& progress = this->progress(id);
    if (progress.steps == nullptr) {
        // What counted before was reported by attempts that are over.
        progress.steps = progress.results > 0 && progress.last
                             ? std::make_unique<TrialSteps>(progress.last->step, progress.results)
                             : std::make_unique<TrialSteps>();
    }
    progress.results = progress.steps->take(attempt, result.step);
    progress.last_step = result.step;
    if (const std::optional<double> value = objective_of(result)) {
        const std::optional<double> before =
            progress.best ? objective_of(*progress.best) : std::nullopt;
        if (!before || better(*value, *before, objective_->mode)) {
            progress.best = result;
            offer_best(id, result);
        }
    }
    progress.last = result;
}

}  // namespace muster
