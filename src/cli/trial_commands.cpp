// SPDX-License-Identifier: Apache-2.0
//
// trial_commands - `muster report`, `muster checkpoint` and `muster get`: for trials that are
// scripts.

#include <cstdio>

#include "cli/commands.hpp"
#include "report/report_client.hpp"

namespace muster {
namespace {

int print_outcome(const ClientOutcome& outcome) {
    print(outcome.out);
    std::fputs(outcome.err.c_str(), stderr);
    return outcome.exit_code;
}

}  // namespace

int carry_out(const ReportCommand& command) {
    return print_outcome(report_command(command.metrics, command.wait));
}

int carry_out(const CheckpointCommand& command) {
    return print_outcome(checkpoint_command(command.directory, command.step));
}

int carry_out(const GetCommand& command) {
    return print_outcome(get_command(command.key));
}

}  // namespace muster
