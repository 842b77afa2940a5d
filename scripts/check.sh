#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Looks the tree over, without building or running it. One line a step.
#
#   scripts/check.sh [--all] [--fix] [STEP...]
#
# Steps: format licence size shell arrows links promises headers doxygen lint; all of them by default.
# --fix formats in place. lint looks at the C++ files changed since origin/main, or in the last commits
# where that is the same; --all takes every file. In CI it starts no file after MUSTER_LINT_MINUTES
# (12) and says how many it left out.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() { sed -n 's/^#   //p' "$0"; }

readonly all_steps=(format licence size shell arrows links promises headers doxygen lint)
readonly recent_commits=10
lint_all=false
fix=false
steps=()
for argument in "$@"; do
    case "$argument" in
        --all) lint_all=true ;;
        --fix) fix=true ;;
        -h | --help) usage && exit 0 ;;
        *)
            if [[ " ${all_steps[*]} " != *" $argument "* ]]; then
                echo "check.sh: \"$argument\" is no step" >&2 && usage >&2 && exit 2
            fi
            steps+=("$argument")
            ;;
    esac
done
[ ${#steps[@]} -gt 0 ] || steps=("${all_steps[@]}")

scripts/install-deps.sh lint build test
jobs=$(nproc)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# files PATTERN...: what git tracks, or would track, and is there.
files() {
    git ls-files --cached --others --exclude-standard -- "$@" | sort -u |
        while IFS= read -r path; do [ -f "$path" ] && printf '%s\n' "$path"; done || true
}

mapfile -t cpp_files < <(files '*.cpp' '*.hpp')

# passed STEP DETAIL / failed STEP WHAT_TO_DO, which reads the problems from $work/out.
passed() { printf 'ok    %-8s %s\n' "$1" "$2"; }
failed() {
    head -n 60 "$work/out"
    printf 'FAIL  %-8s %s\n' "$1" "$2"
    failures=$((failures + 1))
}

check_format() {
    if $fix; then
        clang-format-14 -i "${cpp_files[@]}"
    fi
    if clang-format-14 --dry-run --Werror "${cpp_files[@]}" >"$work/out" 2>&1; then
        passed format "${#cpp_files[@]} files"
    else
        grep -E 'error:' "$work/out" | cut -d: -f1 | sort -u >"$work/names" || true
        mv "$work/names" "$work/out"
        failed format "these files differ from .clang-format; run: scripts/check.sh --fix format"
    fi
}

check_licence() {
    local path count=0
    : >"$work/out"
    while IFS= read -r path; do
        count=$((count + 1))
        head -n 3 "$path" | grep -q 'SPDX-License-Identifier: Apache-2.0' || echo "$path" >>"$work/out"
    done < <(files '*.cpp' '*.hpp' '*.py' '*.sh' '*.cmake' '*CMakeLists.txt' .ci/run)
    if [ -s "$work/out" ]; then
        failed licence "begin these files with a line: SPDX-License-Identifier: Apache-2.0"
    else
        passed licence "$count files"
    fi
}

check_size() {
    wc -l "${cpp_files[@]}" | awk '$2 != "total" && $1 > 700 {print $2 ": " $1 " lines"}' >"$work/out"
    if [ -s "$work/out" ]; then
        failed size "no source has more than 700 lines; give a part of it a file of its own"
    else
        passed size "no source above 700 lines"
    fi
}

check_shell() {
    local path count=0
    : >"$work/out"
    while IFS= read -r path; do
        count=$((count + 1))
        bash -n "$path" 2>>"$work/out" || true
        [ -x "$path" ] || echo "$path is not executable: chmod +x" >>"$work/out"
    done < <(files '*.sh' .ci/run)
    if [ -s "$work/out" ]; then
        failed shell "correct what bash -n says above"
    else
        passed shell "$count scripts"
    fi
}

check_arrows() {
    if python3 scripts/check_arrows.py >"$work/out" 2>&1; then
        passed arrows "includes follow scripts/arrows.txt"
    else
        failed arrows "move the code, or, when the design changes, the arrow in scripts/arrows.txt"
    fi
}

check_links() {
    local pages
    mapfile -t pages < <(files '*.md')
    if python3 scripts/check_links.py "${pages[@]}" >"$work/out" 2>&1; then
        passed links "${#pages[@]} pages"
    else
        failed links "correct these links"
    fi
}

check_promises() {
    if python3 scripts/check_promises.py >"$work/out" 2>&1; then
        passed promises "docs/reliability.md names $(cat "$work/out"), all of which exist"
    else
        failed promises "name a test that exists for each promise of docs/reliability.md"
    fi
}

# A header that is the first include of its own source was compiled alone there.
check_headers() {
    local header source name alone=()
    for header in "${cpp_files[@]}"; do
        [[ $header == *.hpp ]] || continue
        name=${header#src/} && name=${name#include/} && name=${name#tests/}
        source=${header%.hpp}.cpp
        if [ ! -f "$source" ] ||
            ! grep -m 1 '^#include' "$source" | grep -qF "\"$name\""; then
            alone+=("$name")
        fi
    done
    : >"$work/out"
    printf '%s\n' "${alone[@]}" | xargs -P "$jobs" -I '{}' bash -c '
        echo "#include \"$1\"" | g++ -std=c++20 -fsyntax-only -Iinclude -Isrc -Itests \
            -x c++ - 2>&1' _ '{}' >"$work/out" || true
    if [ -s "$work/out" ]; then
        failed headers "each header must compile alone; include what it uses"
    else
        passed headers "${#alone[@]} compiled alone, the rest stand first in their sources"
    fi
}

# What is public is described in Doxygen's terms. Members whose names say it all need no words.
check_doxygen() {
    doxygen - >"$work/doxygen" 2>&1 <<SETTINGS || true
INPUT = include/muster
FILE_PATTERNS = *.hpp
EXCLUDE_SYMBOLS = muster::trial::detail
JAVADOC_AUTOBRIEF = YES
QUIET = YES
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
OUTPUT_DIRECTORY = $work
SETTINGS
    grep -v 'Member .* is not documented' "$work/doxygen" >"$work/out" || true
    if [ -s "$work/out" ]; then
        failed doxygen "correct what doxygen says of the public headers"
    else
        passed doxygen "include/muster"
    fi
}

# The sources to lint: changed ones, and those whose own header changed.
lint_files() {
    local base
    if $lint_all; then
        files 'src/*.cpp' 'apps/*.cpp' 'bench/*.cpp' 'examples/*.cpp' 'tests/*.cpp'
        return
    fi
    base=$(git merge-base HEAD origin/main 2>/dev/null || true)
    if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then
        # An empty tree before the first commit.
        base=$(git rev-parse --verify --quiet "HEAD~$recent_commits" ||
            git hash-object -t tree /dev/null)
    fi
    { git diff --name-only "$base" -- '*.cpp' '*.hpp' &&
        git ls-files --others --exclude-standard -- '*.cpp' '*.hpp'; } |
        sed 's/\.hpp$/.cpp/' | sort -u >"$work/changed"
    # Sources before tests, should the time run out.
    { grep -v '^tests/' "$work/changed" || true; grep '^tests/' "$work/changed" || true; } |
        while IFS= read -r path; do [ -f "$path" ] && printf '%s\n' "$path"; done || true
}

check_lint() {
    local wanted done_count
    lint_files >"$work/wanted"
    if ! cmake --preset dev >"$work/out" 2>&1; then
        failed lint "the project does not configure: cmake --preset dev"
        return
    fi
    # Sources that no target builds (a project of a test's own) have no command to lint them by.
    python3 - build/dev/compile_commands.json "$work/wanted" >"$work/files" <<'PYTHON'
import json, os, sys
known = {os.path.relpath(entry["file"]) for entry in json.load(open(sys.argv[1]))}
print("".join(line for line in open(sys.argv[2]) if line.strip() in known), end="")
PYTHON
    wanted=$(wc -l <"$work/files")
    local end=0
    if [ "${CI:-false}" = true ]; then
        end=$(($(date +%s) + ${MUSTER_LINT_MINUTES:-12} * 60))
    fi
    : >"$work/out"
    xargs -r -P "$jobs" -I '{}' bash -c '
        if [ "$2" -eq 0 ] || [ "$(date +%s)" -lt "$2" ]; then
            printf "." >>"$3/done"
            clang-tidy-14 --quiet -p build/dev "$1" 2>/dev/null
        fi' _ '{}' "$end" "$work" <"$work/files" >"$work/out" 2>&1 || true
    done_count=$(wc -c <"$work/done" 2>/dev/null || echo 0)
    if grep -qE 'error:|warning:' "$work/out"; then
        grep -E -A 3 'error:|warning:' "$work/out" >"$work/short" || true
        mv "$work/short" "$work/out"
        failed lint "correct what clang-tidy says above"
    elif [ "$done_count" -lt "$wanted" ]; then
        passed lint "$done_count of $wanted changed files; the time was up: scripts/check.sh lint"
    else
        passed lint "$wanted files"
    fi
}

for step in "${steps[@]}"; do
    "check_$step"
done
if [ "$failures" -gt 0 ]; then
    echo "$failures of ${#steps[@]} steps failed"
    exit 1
fi
