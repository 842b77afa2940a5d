// SPDX-License-Identifier: Apache-2.0
//
// muster - the command. It has no functions of its own: its trials are commands.

#include "muster/cli_main.hpp"

int main(int argc, char** argv) {
    return muster::cli_main(argc, argv, {});
}
