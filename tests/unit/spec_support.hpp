// SPDX-License-Identifier: Apache-2.0
//
// spec_support - specs from literals, for the tests of src/spec.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "spec/load_spec.hpp"

namespace muster {

/// A line that every spec needs, for texts about something else.
inline const std::string kRuns = "trial: {command: [run]}\n";

inline Result<ExperimentSpec>
parsed(std::string_view text, const std::vector<std::string>& sets = {}) {
    return parse_spec(text, "sweep.yaml", sets, LoadOptions{"/here"});
}

/// The spec of a text that must be right.
inline ExperimentSpec spec_of(std::string_view text, const std::vector<std::string>& sets = {}) {
    Result<ExperimentSpec> spec = parsed(text, sets);
    EXPECT_TRUE(spec.ok()) << spec.error().message;
    return spec.ok() ? *spec : ExperimentSpec{};
}

/// The message of a text that must be wrong.
inline std::string refused(std::string_view text, const std::vector<std::string>& sets = {}) {
    const Result<ExperimentSpec> spec = parsed(text, sets);
    return spec.ok() ? "nothing is wrong" : spec.error().message;
}

}  // namespace muster
