// SPDX-License-Identifier: Apache-2.0
//
// resolved_spec - an ExperimentSpec back to YAML, and what of it a continued run must keep.

#pragma once

#include <string>

#include "muster/error.hpp"
#include "muster/experiment.hpp"

namespace muster {

/// The spec with every default shown and every path absolute, for experiment.yaml. Reading it back
/// gives the same spec, from any directory. Functions of a C++ program cannot be written; they
/// appear as comments.
std::string resolved_yaml(const ExperimentSpec& spec);

/// Whether an experiment begun as `before` may go on as `after`. Its space, seed, metric, mode and
/// search must be the same; everything else may change.
/// Errors: Conflict, naming the first key that differs with both values.
Status compare_for_continue(const ExperimentSpec& before, const ExperimentSpec& after);

}  // namespace muster
