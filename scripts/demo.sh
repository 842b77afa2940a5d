#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds muster and tunes a classifier of handwritten digits with it.
#
#   scripts/demo.sh [arguments of muster run]     e.g. scripts/demo.sh --set num_samples=8
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install-deps.sh build run examples
log=$(mktemp)
trap 'rm -f "$log"' EXIT
cmake --preset release -DMUSTER_BUILD_TESTS=OFF -DMUSTER_BUILD_BENCH=OFF >"$log" 2>&1 || {
    cat "$log"
    exit 1
}
cmake --build build/release --parallel "$(nproc)" --target muster

build/release/bin/muster run examples/digits/digits.yaml "$@"
