// SPDX-License-Identifier: Apache-2.0
//
// serve_node - the life of every rank but 0: an agent's loop, or idle waiting.

#pragma once

#include "muster/error.hpp"

#include "protocol/roll_call.hpp"
#include "transport/transport.hpp"

namespace muster {

class RunDir;
class Spawner;
class SignalSource;

struct ServeRequest {
    Transport* transport = nullptr;
    /// Started before anything else. It is empty once this rank serves no further run.
    Spawner* spawner = nullptr;
    /// Made before the spawner.
    const RunDir* run_dir = nullptr;
    /// What it reads is left to rank 0, which gets the same.
    SignalSource* signals = nullptr;
    /// This rank's first word.
    Enrol enrol;
};

struct ServeEnd {
    /// No rank was lost: all leave together, by MPI_Finalize. Else nobody may wait for the others.
    bool orderly = false;
    /// The head sent it away, and so knows that it is gone.
    bool dismissed = false;
};

/// Answers the roll call, serves the node until the head dismisses it, is gone, or does not take it
/// back. No process of a trial is left afterwards.
/// Errors: System, when it could not serve, or rank 0 was gone before the run began.
Result<ServeEnd> serve_node(const ServeRequest& request);

}  // namespace muster
