// SPDX-License-Identifier: Apache-2.0
//
// read_saving - what is kept of trials, and what happens before the time ends: `checkpoints`,
// `end`.

#pragma once

#include "muster/experiment.hpp"

#include "spec/section.hpp"

namespace muster {

/// Fills in spec.checkpoints. The objective has been read.
void read_checkpoints(const Section& top, ExperimentSpec& spec);

void read_end(const Section& top, ExperimentSpec& spec);

/// "USR1" of a signal's number; "none" for 0.
std::string signal_text(std::int32_t signal);

}  // namespace muster
