// SPDX-License-Identifier: Apache-2.0
//
// command_line - reads the arguments of `muster`. The only file with CLI11 is command_line.cpp.

#pragma once

#include <string>
#include <vector>

#include "cli/commands.hpp"

namespace muster {

/// What was asked for. Help and complaints are printed here and give a PrintedCommand.
ParsedCommand parse_command_line(int argc, const char* const* argv);

/// Takes the options out of `words` that say how a program of the user's runs experiments: those
/// of `muster run` that are about nodes, and --fresh, --retry, --restart, --no-wait,
/// --keep-going, --until, --plain, --quiet. Everything else stays.
/// Errors: InvalidInput, naming the option.
Status take_run_options(std::vector<std::string>& words, RunCommand& command);

}  // namespace muster
