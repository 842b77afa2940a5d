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
asan_log=$(mktemp)
asan_build=
trap 'rm -f "$log" "$asan_log"; [ -z "$asan_build" ] || kill -- "-$asan_build" 2>/dev/null || true' EXIT
failed=false

readonly asan_targets=(tests/unit/all tests/sim/all tests/fuzz/all)

# build PRESET TARGET...: configures and builds.
build() {
    local preset=$1
    shift
    cmake --preset "$preset" && cmake --build "build/$preset" --parallel "$jobs" --target "$@"
}

# test_stage PRESET: runs its tests; what ctest said last goes to `closing`.
test_stage() {
    local preset=$1
    if ! ctest --preset "$preset" --parallel "$jobs" --no-tests=error "${ctest_arguments[@]}" |
        tee "$log"; then
        failed=true
    fi
    closing+=("$preset: $(grep -E 'tests (passed|failed)' "$log" | tail -n 1)")
}

closing=()
build dev all
if [ "$asan" = true ]; then
    # Tests that wait leave much of the machine to the next build.
    nice -n 10 setsid bash -c "$(declare -f build); jobs=$jobs; build asan ${asan_targets[*]}" \
        >"$asan_log" 2>&1 &
    asan_build=$!
fi
test_stage dev
if [ "$asan" = true ]; then
    wait "$asan_build" || { tail -n 200 "$asan_log" && exit 1; }
    asan_build=
    test_stage asan
fi

printf '%s\n' "${closing[@]}"
if $failed; then
    echo "a test failed; its output is above. Again, alone: ctest --preset dev -R NAME"
    exit 1
fi
