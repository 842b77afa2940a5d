// SPDX-License-Identifier: Apache-2.0
//
// launcher_process - starts mpirun or srun and stays with it to its end: passes signals on, filters
// its stderr, ends it when it does not end by itself, and says how the run ended.

#pragma once

#include <string>
#include <vector>

#include "muster/error.hpp"

#include "base/time.hpp"

namespace muster {

/// Runs the line to its end. SIGINT, SIGTERM, SIGUSR1 and SIGHUP go to rank 0: the first asks the
/// run to end cleanly, a second SIGINT at once, a third one kills the launcher; before rank 0 has
/// begun the first ends it. stdout passes through; a
/// reader of it that went away is nothing to end a run for. Returns within 5 s of the run's end,
/// whatever the launcher waits for, unless that is a reader of stdout or stderr that still lives.
///
/// Returns the exit code: what rank 0 said; or 75 when it was there and is gone without a word, and
/// 5 when it never was, and then says why on stderr.
///
/// When rank 0 has not begun within `patience`, or has been silent for longer than it said that it
/// would, the launcher is ended: mpirun itself waits for ever for a host that it can't reach.
///
/// REQUIRES: one thread, and that token_for_launch() is in the environment.
/// Errors: NotFound, when the program is not there; System.
Result<int>
run_launcher(const std::vector<std::string>& line, const std::string& token, Duration patience);

/// A new token, put into this process's environment with what else the ranks are to know.
std::string token_for_launch();

/// The whole path of a program on PATH; empty when there is none.
std::string find_program(const std::string& name);

}  // namespace muster
