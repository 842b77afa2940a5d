#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the fuzz targets (tests/fuzz) with clang's libFuzzer and sanitizers, and runs them.
#
#   scripts/fuzz.sh [--keep] [--minimise] [SECONDS] [TARGET...]
#
# SECONDS each, 60 by default, two at once; all targets by default. What ends a target is written to
# build/fuzz/found/ and told at the end; the exit code is then 1. What is found to be of interest
# beyond the corpus in the repository stays in build/fuzz/corpus/; with --keep the next run begins
# with it. --minimise runs nothing: it makes the corpus in the repository the smallest set of inputs
# that reaches what it and build/fuzz/corpus/ together reach.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() { sed -n 's/^#   //p' "$0"; }

at_once=2
seconds=60
keep=false
minimise=false
targets=()
for argument in "$@"; do
    case "$argument" in
        --keep) keep=true ;;
        --minimise) minimise=true ;;
        -h | --help) usage && exit 0 ;;
        *[!0-9]*) targets+=("$argument") ;;
        *) seconds=$argument ;;
    esac
done

scripts/install-deps.sh build fuzz test
log=$(mktemp)
trap 'rm -f "$log"' EXIT
cmake --preset fuzz >"$log" 2>&1 || { cat "$log" && exit 1; }
cmake --build build/fuzz --parallel "$(nproc)" --target tests/fuzz/all >"$log" 2>&1 ||
    { tail -n 40 "$log" && exit 1; }

build=$PWD/build/fuzz
known=()
for path in tests/fuzz/*_fuzz.cpp; do
    name=${path##*/}
    known+=("${name%_fuzz.cpp}")
done
for target in "${targets[@]}"; do
    [[ " ${known[*]} " == *" $target "* ]] ||
        { echo "fuzz.sh: there is no \"$target\"; there are: ${known[*]}" >&2 && exit 2; }
done
[ ${#targets[@]} -gt 0 ] || targets=("${known[@]}")
mkdir -p "$build/found" "$build/corpus"
export ASAN_SYMBOLIZER_PATH=/usr/bin/llvm-symbolizer-14
# Inputs may name sizes; nothing that a target does takes much memory for long.
export ASAN_OPTIONS=allocator_may_return_null=0:detect_stack_use_after_return=0
export UBSAN_OPTIONS=print_stacktrace=1

if $minimise; then
    for target in "${targets[@]}"; do
        smallest=$(mktemp -d)
        mkdir -p "$build/corpus/$target"
        "$build/tests/fuzz/${target}_fuzz" -set_cover_merge=1 -max_len=4096 "$smallest" \
            "tests/fuzz/corpus/$target" "$build/corpus/$target" >"$log" 2>&1 ||
            { tail -n 20 "$log" && exit 1; }
        rm -f "tests/fuzz/corpus/$target"/*
        mv "$smallest"/* "tests/fuzz/corpus/$target/"
        rmdir "$smallest"
        echo "$target: $(find "tests/fuzz/corpus/$target" -type f | wc -l) inputs"
    done
    exit 0
fi

# fuzz_one TARGET: for so many seconds; its last words go to found/TARGET.log.
fuzz_one() {
    local target=$1 own=$build/corpus/$1 dictionary=tests/fuzz/dictionaries/$1.dict options=()
    $keep || rm -rf "$own"
    mkdir -p "$own"
    [ ! -f "$dictionary" ] || options+=("-dict=$dictionary")
    "$build/tests/fuzz/${target}_fuzz" "${options[@]}" -max_total_time="$seconds" -timeout=10 \
        -rss_limit_mb=2048 -max_len=4096 -print_final_stats=1 -verbosity=1 \
        -artifact_prefix="$build/found/$target-" \
        "$own" "tests/fuzz/corpus/$target" >"$build/found/$target.log" 2>&1 ||
        { echo "$target" >>"$build/found/failed" && return 0; }
    local runs
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$build/found/$target.log")
    echo "ok    $target: $runs inputs in $seconds s, $(find "$own" -type f | wc -l) of them new"
}

rm -f "$build/found/failed"
for target in "${targets[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do wait -n; done
    fuzz_one "$target" &
done
wait
[ -e "$build/found/failed" ] || exit 0
while IFS= read -r target; do
    echo "FAIL  $target: its last words (all of them: build/fuzz/found/$target.log)"
    grep -nE -m 1 -A 30 'ERROR: |runtime error|aborted|: check' "$build/found/$target.log" ||
        tail -n 30 "$build/found/$target.log"
done <"$build/found/failed"
echo "again, alone: build/fuzz/tests/fuzz/TARGET_fuzz build/fuzz/found/TARGET-crash-…"
exit 1
