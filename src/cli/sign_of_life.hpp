// SPDX-License-Identifier: Apache-2.0
//
// sign_of_life - tells `muster launch` now and then that rank 0 still runs.

#pragma once

#include <memory>

#include "base/time.hpp"
#include "runtime/run_experiment.hpp"

namespace muster {

/// `observer` itself, or, under `muster launch`, one that passes everything on to it and lets the
/// launcher know that it may take rank 0 for lost after `patience` of silence.
std::unique_ptr<Observer> with_sign_of_life(std::unique_ptr<Observer> observer, Duration patience);

}  // namespace muster
