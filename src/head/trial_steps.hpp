// SPDX-License-Identifier: Apache-2.0
//
// trial_steps - how many results of a trial count. An attempt that reports a step which earlier
// attempts have reported, or passed, replaces what they reported from that step on.
//
// Steps are kept as rows with equal distances, which they are for nearly every trial; one with
// thousands of irregular steps is counted as if they were regular.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ids.hpp"

namespace muster {

/// Steps in the order in which they came, as rows of equal distances.
class StepRows {
  public:
    void add(double step);
    /// Adds `count` regular steps up to `last`.
    void add_regular(double last, std::uint64_t count);
    void append(StepRows later);
    /// Takes out every step that is not less than `step`.
    void cut(double step);
    std::uint64_t count() const;

  private:
    struct Row {
        double first = 0;
        /// 0 when there is one alone, or the same several times; never negative.
        double distance = 0;
        std::uint64_t count = 0;
    };

    void merge_if_many();

    std::vector<Row> rows_;
};

class TrialSteps {
  public:
    /// Begins with so many results, the last at `last`, of attempts that are over.
    TrialSteps(double last, std::uint64_t count) { earlier_.add_regular(last, count); }
    TrialSteps() = default;

    /// A result that counts. Returns how many count now.
    std::uint64_t take(AttemptId attempt, double step);

  private:
    StepRows earlier_;
    StepRows own_;
    AttemptId attempt_;
};

}  // namespace muster
