// SPDX-License-Identifier: Apache-2.0
//
// session_state - what a Session keeps between one fit() and the next; private to this folder.

#pragma once

#include <memory>
#include <optional>

#include "muster/session.hpp"

#include "cli/commands.hpp"
#include "library/started.hpp"
#include "runtime/roll_call.hpp"
#include "runtime/run_experiment.hpp"

namespace muster {

struct Session::State {
    ~State();

    std::unique_ptr<StartedProgram> started;
    /// What the program's command line and SessionOptions say.
    RunCommand command;
    /// Of the run that goes on.
    std::unique_ptr<Observer> observer;
    /// With a launcher.
    std::optional<RollCall> roll_call;
};

}  // namespace muster
