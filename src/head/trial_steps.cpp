// SPDX-License-Identifier: Apache-2.0

#include "head/trial_steps.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace muster {
namespace {

constexpr std::size_t kMostRows = 4096;

bool nearly_equal(double left, double right) {
    return std::abs(left - right) <= 1e-9 * std::max(1.0, std::abs(right));
}

}  // namespace

void StepRows::add(double step) {
    if (!rows_.empty()) {
        Row& row = rows_.back();
        const double next = row.first + row.distance * static_cast<double>(row.count);
        if (row.count == 1 && step >= row.first) {
            row.distance = step - row.first;
            row.count = 2;
            return;
        }
        if (row.count > 1 && nearly_equal(next, step)) {
            ++row.count;
            return;
        }
    }
    rows_.push_back({step, 0, 1});
    merge_if_many();
}

void StepRows::add_regular(double last, std::uint64_t count) {
    if (count == 0) {
        return;
    }
    const double distance = std::max(last, 0.0) / static_cast<double>(count);
    rows_.push_back({last - distance * static_cast<double>(count - 1), distance, count});
}

void StepRows::append(StepRows later) {
    rows_.insert(rows_.end(), later.rows_.begin(), later.rows_.end());
    merge_if_many();
}

void StepRows::cut(double step) {
    for (Row& row : rows_) {
        if (row.first >= step) {
            row.count = 0;
        } else if (row.distance > 0) {
            // In floating point, so that a huge number does not overflow.
            const double less = std::ceil((step - row.first) / row.distance - 1e-9);
            if (less < static_cast<double>(row.count)) {
                row.count = static_cast<std::uint64_t>(std::max(less, 1.0));
            }
        }
    }
    std::erase_if(rows_, [](const Row& row) { return row.count == 0; });
}

std::uint64_t StepRows::count() const {
    std::uint64_t sum = 0;
    for (const Row& row : rows_) {
        sum += row.count;
    }
    return sum;
}

void StepRows::merge_if_many() {
    if (rows_.size() <= kMostRows) {
        return;
    }
    double last = 0;
    for (const Row& row : rows_) {
        last = std::max(last, row.first + row.distance * static_cast<double>(row.count - 1));
    }
    const std::uint64_t all = count();
    rows_.clear();
    add_regular(last, all);
}

std::uint64_t TrialSteps::take(AttemptId attempt, double step) {
    if (attempt != attempt_) {
        earlier_.append(std::exchange(own_, {}));
        attempt_ = attempt;
    }
    earlier_.cut(step);
    own_.add(step);
    return earlier_.count() + own_.count();
}

}  // namespace muster
