#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian 12 packages that muster needs. Does nothing, not even as an ordinary user
# without sudo, when all of them are there.
#
#   scripts/install-deps.sh [--list] [build|run|test|slurm|lint|fuzz|examples]...    default: all
set -euo pipefail

build_packages=(
    g++ cmake ninja-build ccache pkg-config libboost-serialization-dev libfmt-dev
    nlohmann-json3-dev libyaml-cpp-dev libcli11-dev libhwloc-dev libre2-dev zlib1g-dev
    libopenmpi-dev
)
run_packages=(python3 openmpi-bin)
test_packages=(libgtest-dev libgmock-dev python3 openmpi-bin)
# For a Slurm cluster of the tests' own.
slurm_packages=(slurm-wlm munge iproute2 util-linux procps openmpi-bin libopenmpi-dev)
lint_packages=(git clang-format-14 clang-tidy-14 doxygen python3)
# libFuzzer comes with the compiler's runtime library.
fuzz_packages=(clang-14 libclang-rt-14-dev llvm-14)
examples_packages=(python3-sklearn bzip2 xz-utils)

usage() { sed -n 's/^#   //p' "$0"; }

list_only=false
roles=()
for argument in "$@"; do
    case "$argument" in
        build | run | test | slurm | lint | fuzz | examples) roles+=("$argument") ;;
        --list) list_only=true ;;
        -h | --help) usage && exit 0 ;;
        *) echo "install-deps.sh: \"$argument\" is no role" >&2 && usage >&2 && exit 2 ;;
    esac
done
[ ${#roles[@]} -gt 0 ] || roles=(build run test slurm lint fuzz examples)

packages=()
for role in "${roles[@]}"; do
    declare -n of_role="${role}_packages"
    packages+=("${of_role[@]}")
done

if $list_only; then
    printf '%s\n' "${packages[@]}" | sort -u
    exit 0
fi

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    echo "install-deps.sh: this system has no apt-get; install the equivalents of: ${packages[*]}" >&2
    exit 1
fi

missing=()
for package in "${packages[@]}"; do
    state=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
    [ "$state" = "install ok installed" ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "install-deps.sh: installing needs root, and there is no sudo. As root, run:" >&2
        echo "    apt-get update && apt-get install ${missing[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
fi

apt() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 "$@"
}

# The tests run daemons of their own; none of the machine's is to start because its package came.
policy=/usr/sbin/policy-rc.d
forbids_services=false
forbid_services() {
    [[ " ${missing[*]} " == *" slurm-wlm "* || " ${missing[*]} " == *" munge "* ]] || return 0
    [ ! -e "$policy" ] || return 0
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
    "${as_root[@]}" chmod 755 "$policy"
    forbids_services=true
}

echo "installing: ${missing[*]}"
log=$(mktemp)
clean_up() {
    rm -f "$log"
    ! $forbids_services || "${as_root[@]}" rm -f "$policy"
}
trap clean_up EXIT
forbid_services
if ! { apt update && apt install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 30 "$log" >&2
    echo "install-deps.sh: apt-get failed; its last lines are above" >&2
    exit 1
fi
