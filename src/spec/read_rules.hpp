// SPDX-License-Identifier: Apache-2.0
//
// read_rules - how configs are found and trials are ended: `search`, `schedule`, `stop`,
// `failures`.

#pragma once

#include "muster/experiment.hpp"

#include "spec/read_space.hpp"
#include "spec/section.hpp"

namespace muster {

/// Fills in spec.search, and checks its points and algorithm against the space, `space`.
void read_search(const Section& top, const SpaceReading& space, ExperimentSpec& spec);

/// Fills in spec.trial.time_attr. Algorithms other than fifo are not in this version.
void read_schedule(const Section& top, ExperimentSpec& spec);

/// Fills in spec.stop. The objective and the step's name have been read.
void read_stop(const Section& top, ExperimentSpec& spec);

void read_failures(const Section& top, ExperimentSpec& spec);

}  // namespace muster
