// SPDX-License-Identifier: Apache-2.0

#include "base/ids.hpp"

#include <fmt/format.h>

namespace muster {

std::string to_string(TrialId trial) {
    return fmt::format("{:05}", trial.value);
}

std::string to_string(AttemptId attempt) {
    return fmt::format("{}.{}", attempt.epoch, attempt.number);
}

}  // namespace muster
