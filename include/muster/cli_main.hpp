// SPDX-License-Identifier: Apache-2.0
//
// cli_main - makes a program a whole muster: every command of `muster`, and trials that are its own
// functions.

#pragma once

#include "muster/trainable.hpp"

namespace muster {

/// What main() is to return: `./my_tuner run sweep.yaml`, with `trial: {function: train}` in it,
/// and check, launch, nodes, status and the rest. Call it first thing, as Session and in place of
/// it.
int cli_main(int argc, char** argv, Trainables trainables);

}  // namespace muster
