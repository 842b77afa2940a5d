// SPDX-License-Identifier: Apache-2.0
//
// trainable - a function of a C++ program that can be a trial.

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "muster/trial_context.hpp"

namespace muster {

/// A function with the name by which a spec asks for it (`trial: {function: train}`).
///
/// Each attempt runs it in a process of its own, forked and not executed anew: it finds everything
/// that the program had made before its Session, and nothing that it does there is seen by others.
/// Returning is Completed, an exception is Failed with its text, exit(n) and a crash are what they
/// are for a command. Handlers of atexit() and destructors of globals do not run in it.
struct Trainable {
    std::string name;
    // A function, since it is called and nothing needs to look inside.
    std::function<void(TrialContext&)> function;
};

using Trainables = std::vector<Trainable>;

}  // namespace muster
