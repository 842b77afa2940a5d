#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds muster and tunes a classifier of handwritten digits with it: by three
# ranks of one mpirun, each a node of its own with a third of this machine's cores.
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

if [ "$(id -u)" -eq 0 ]; then
    # Open MPI wants to hear twice that root means it.
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
nodes=3
cores=$(($(nproc) / nodes))
build/release/bin/muster launch -n "$nodes" -- run examples/digits/digits.yaml --rank-is-node \
    --node-resources "cpu=$((cores > 0 ? cores : 1))" "$@"
