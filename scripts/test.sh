#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and runs the tests; installs what that needs.
#
#   scripts/test.sh [--asan | --no-asan] [ctest arguments]     e.g. scripts/test.sh -L unit
#
# --asan adds the unit and sim tests under AddressSanitizer and UndefinedBehaviorSanitizer; it is
# the default where CI=true.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() { sed -n 's/^#   //p' "$0"; }

asan=${CI:-false}
ctest_arguments=()
for argument in "$@"; do
    case "$argument" in
        --asan) asan=true ;;
        --no-asan) asan=false ;;
        -h | --help) usage && exit 0 ;;
        *) ctest_arguments+=("$argument") ;;
    esac
done

scripts/install-deps.sh build run test slurm
jobs=$(nproc)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=false

# run_stage PRESET BUILD_TARGET... : configures, builds, tests; what ctest said last goes to `closing`.
run_stage() {
    local preset=$1
    shift
    cmake --preset "$preset" >"$log" 2>&1 || { cat "$log" && return 1; }
    cmake --build "build/$preset" --parallel "$jobs" --target "$@" || return 1
    if ! ctest --preset "$preset" --parallel "$jobs" --no-tests=error "${ctest_arguments[@]}" |
        tee "$log"; then
        failed=true
    fi
    closing+=("$preset: $(grep -E 'tests (passed|failed)' "$log" | tail -n 1)")
}

closing=()
run_stage dev all
if [ "$asan" = true ]; then
    run_stage asan tests/unit/all tests/sim/all tests/fuzz/all
fi

printf '%s\n' "${closing[@]}"
if $failed; then
    echo "a test failed; its output is above. Again, alone: ctest --preset dev -R NAME"
    exit 1
fi
