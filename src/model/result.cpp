// SPDX-License-Identifier: Apache-2.0

#include "muster/result.hpp"

#include <cmath>

namespace muster {

std::optional<double> TrialResult::metric(std::string_view name) const {
    for (const ValueMember& member : metrics) {
        if (member.key == name) {
            return member.value.number();
        }
    }
    return std::nullopt;
}

bool better(double left, double right, Mode mode) {
    if (!std::isfinite(left)) {
        return false;
    }
    if (!std::isfinite(right)) {
        return true;
    }
    return mode == Mode::Max ? left > right : left < right;
}

}  // namespace muster
