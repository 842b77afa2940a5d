// SPDX-License-Identifier: Apache-2.0
//
// report_client - `muster report`, `muster checkpoint` and `muster get`, for trials that are
// scripts. Built on muster/trial.hpp, the client that C++ programs use.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/error.hpp"
#include "muster/value.hpp"

namespace muster {

/// Reads "loss=0.31 step=4 note=ok": a whole number, a real one (nan, inf, -inf too), true, false,
/// else text. The text begins after the first '='.
/// Errors: InvalidInput, naming the argument: no '=', no name, or a name given twice.
Result<std::vector<ValueMember>> parse_metrics(const std::vector<std::string>& arguments);

/// What a command leaves behind: its exit code and what it prints.
struct ClientOutcome {
    int exit_code = 0;
    std::string out;
    std::string err;

    friend bool operator==(const ClientOutcome&, const ClientOutcome&) = default;
};

/// `muster report loss=0.31 step=4`. With `wait`, prints "continue" or "stop". Not under muster it
/// prints the metrics on stderr and succeeds, so that a script also runs alone. Exit codes: 0; 1
/// when muster refused the report or cannot be reached; 2 for arguments that mean nothing.
/// Never waits longer than a minute.
ClientOutcome report_command(const std::vector<std::string>& arguments, bool wait);

/// `muster checkpoint DIR --step 4`: saves a checkpoint and prints where it lies once it is safe.
/// Without a step (empty) it is that of the last report. Not under muster it prints the directory,
/// which stays as it is, says so on stderr and succeeds. Exit codes: 0; 1 when it is not safe: then
/// the directory is where it was; 2 for no directory, or a step that is no number. Never waits
/// longer than ten minutes.
ClientOutcome checkpoint_command(const std::string& directory, const std::string& step);

/// `muster get lr`: prints the config's value as it would stand on a command line. A group of a
/// nested config is printed as JSON; without a key the whole config is. Exit codes: 0; 2 when not
/// under muster or the config has no such key (the keys are listed).
ClientOutcome get_command(std::string_view key);

}  // namespace muster
