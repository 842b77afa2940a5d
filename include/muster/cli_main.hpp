// SPDX-License-Identifier: Apache-2.0
//
// cli_main - makes a program a whole muster: every command of `muster`, and trials that are its own
// functions.

#pragma once

#include "muster/trainable.hpp"

namespace muster {

/// What main() is to return. The program then takes the words that muster takes: run SPEC, where
/// the spec may name one of `trainables` as trial.function, and check, launch, nodes, status and
/// the rest. To be called first thing, as Session and in place of it.
int cli_main(int argc, char** argv, Trainables trainables);

}  // namespace muster
