#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Several network hosts on this machine, for tests of mpirun. Each has its own network, host name and
# /etc/hosts, and, if wanted, its own /tmp and /dev/shm; a bridge joins them.
#
#   hosts.sh check                   exit 0 when this machine can do it, else one line why not, and 77
#   hosts.sh up DIR [KEY=VALUE]...   hosts h1, h2, …; DIR, which must not be there, holds what is known
#   hosts.sh run DIR N CMD...        CMD on host hN; signals and the exit code are CMD's own
#   hosts.sh agent DIR HOST CMD...   as ssh would: for plm_rsh_agent and `muster launch --agent`
#   hosts.sh cut DIR N               the link goes dead without a word; nothing dies
#   hosts.sh heal DIR N              undoes that
#   hosts.sh crash DIR N             as a power loss: the link goes dead, and all processes of hN
#   hosts.sh pids DIR N              the processes of hN, one a line
#   hosts.sh down DIR                kills what is left on the hosts and removes all; fine when not up
#
# Keys of `up`: hosts=3; private_tmp=1 for a /tmp of each host's own (DIR and the directory that
# shared=PATH names are seen by all); owner=PID: all ends by itself when that process is gone.
#
# Needs root and iproute2. Nothing of the machine's own is changed, and no namespace is named: each
# lives as long as a process in it.
set -euo pipefail
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH
self=$(readlink -f "$0")
readonly self subnet=10.201.78

usage() { sed -n 's/^#   //p' "$self"; }
die() { echo "hosts.sh: $*" >&2 && exit 1; }

# wait_for SECONDS CMD...: until CMD succeeds.
wait_for() {
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.02
    done
}

hosts=3 private_tmp=0 shared='' owner=''
readonly keys=(hosts private_tmp shared owner)

take_settings() {
    local setting key
    for setting; do
        key=${setting%%=*}
        [[ $setting == *=* && " ${keys[*]} " == *" $key "* ]] || die "\"$setting\" is no setting"
        printf -v "$key" '%s' "${setting#*=}"
    done
}

use_hosts() {
    dir=$(readlink -f "${1:?which DIR?}") || die "there is no $1"
    [ -O "$dir/settings" ] || die "$1 holds no hosts"
    # shellcheck source=/dev/null
    . "$dir/settings"
}

use_host() { # N, hN or an address
    host=${1#h} && host=${host#"$subnet."}
    [[ $host =~ ^[1-9][0-9]?$ && $host -le $hosts ]] || die "there is no host \"$1\""
}

# ---- processes ------------------------------------------------------------------------------------

# starting_time PID: fails when there is no such process.
starting_time() {
    local line
    { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
    read -ra line <<<"${line##*) }"
    echo "${line[19]}"
}

# remember NAME: this very process is NAME from now on.
remember() {
    local pid=$BASHPID
    echo "$pid $(starting_time "$pid")" >"$dir/$1.new"
    mv "$dir/$1.new" "$dir/$1"
}

# pid_of NAME: fails when it is gone, also when another process has its pid now.
pid_of() {
    local pid started
    { read -r pid started <"$dir/$1"; } 2>/dev/null || return 1
    [ "$(starting_time "$pid")" = "$started" ] && echo "$pid"
}

# pids_on N: all processes in the network of host N but the one that holds it.
pids_on() {
    local anchor network process
    anchor=$(pid_of "h$1") || return 0
    network=$(readlink "/proc/$anchor/ns/net")
    for process in /proc/[0-9]*; do
        if [ "${process#/proc/}" != "$anchor" ] &&
            [ "$(readlink "$process/ns/net" 2>/dev/null)" = "$network" ]; then
            echo "${process#/proc/}"
        fi
    done
}

# What is being started while one looks is found by looking again.
kill_on() {
    local pids
    while pids=$(pids_on "$1") && [ -n "$pids" ]; do
        # shellcheck disable=SC2086
        kill -KILL $pids 2>/dev/null || true
        sleep 0.02
    done
}

in_switch() { nsenter -t "$(pid_of switch)" -n "$@"; }

# ---- what holds the namespaces --------------------------------------------------------------------

# Runs as a process of its own in the switch's network.
hold_switch() {
    local index
    remember switch
    ip link set lo up
    ip link add br0 type bridge forward_delay 0 stp_state 0
    ip link set br0 up
    for ((index = 1; index <= hosts; index++)); do
        unshare -n -u -m --propagation slave setpriv --pdeathsig KILL \
            "$self" __host "$dir" "$index" &
        wait_for 10 test -e "$dir/h$index"
        ip link add "v$index" type veth peer name "w$index"
        ip link set "v$index" master br0 up
        ip link set "w$index" netns "$(pid_of "h$index")"
    done
    : >"$dir/ready"
    while [ -z "$owner" ] || [ -e "/proc/$owner" ]; do
        sleep 1 &
        wait $! || true
    done
    # The owner left without a word.
    for ((index = 1; index <= hosts; index++)); do kill_on "$index"; done
    rm -rf "$dir"
}

# Runs as the process that holds host $1.
hold_host() {
    hostname "h$1"
    mount --bind "$dir/etc-hosts" /etc/hosts
    if [ "$private_tmp" = 1 ]; then
        mkdir -p "$dir/tmp/h$1"
        chmod 1777 "$dir/tmp/h$1"
        local path
        for path in "$dir" $shared; do
            [[ $path != /tmp/* ]] || {
                mkdir -p "$dir/tmp/h$1/${path#/tmp/}"
                mount --bind "$path" "$dir/tmp/h$1/${path#/tmp/}"
            }
        done
        mount --rbind "$dir/tmp/h$1" /tmp
        mount -t tmpfs -o mode=1777 tmpfs /dev/shm
    fi
    remember "h$1"
    wait_for 10 ip link show "w$1"
    ip link set "w$1" name eth0
    ip link set lo up
    ip addr add "$subnet.$1/24" dev eth0
    ip link set eth0 up
    : >"$dir/h$1.up"
    exec sleep infinity
}

# ---- verbs ----------------------------------------------------------------------------------------

check() {
    local why
    if [ "$(id -u)" -ne 0 ]; then
        why="needs root"
    elif ! command -v ip >/dev/null || ! command -v nsenter >/dev/null; then
        why="there is no ip or nsenter; scripts/install-deps.sh test"
    elif ! unshare -n -u -m sh -c 'hostname try && ip link add br0 type bridge &&
        ip link add v0 type veth peer name v1 && mount -t tmpfs tmpfs /mnt' >/dev/null 2>&1; then
        why="this machine allows no network or mount namespaces"
    else
        return 0
    fi
    echo "hosts.sh: no network hosts here: $why"
    return 77
}

is_up() {
    local index
    for ((index = 1; index <= hosts; index++)); do [ -e "$dir/h$index.up" ] || return 1; done
    [ -e "$dir/ready" ]
}

up() {
    local index
    check || exit
    take_settings "${@:2}"
    [[ $hosts =~ ^[1-9][0-9]?$ ]] || die "hosts=$hosts: a number from 1 to 99"
    mkdir -m 755 "$1" || exit
    dir=$(readlink -f "$1")
    for key in "${keys[@]}"; do printf '%s=%q\n' "$key" "${!key}"; done >"$dir/settings"
    {
        echo "127.0.0.1 localhost"
        for ((index = 1; index <= hosts; index++)); do echo "$subnet.$index h$index"; done
    } >"$dir/etc-hosts"
    setsid unshare -n "$self" __switch "$dir" </dev/null >"$dir/log" 2>&1 &
    if ! wait_for 20 is_up; then
        cat "$dir/log" >&2
        down "$dir"
        die "the hosts did not come up; what they said is above"
    fi
}

enter() {
    local anchor
    anchor=$(pid_of "h$host") || die "host h$host is gone"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    exec nsenter -t "$anchor" -n -u -m --wd="$PWD" -- "$@"
}

agent() {
    while [[ ${1:-} == -* ]]; do shift; done
    use_host "${1:?which HOST?}"
    shift
    enter /bin/sh -c "$*"
}

down() {
    [ -e "$1" ] || return 0
    use_hosts "$1"
    local index pid
    for ((index = 1; index <= hosts; index++)); do kill_on "$index"; done
    if pid=$(pid_of switch); then
        kill -KILL "$pid"
        wait_for 10 test ! -e "/proc/$pid" || die "process $pid does not end"
    fi
    # The hosts' own processes end with that one; their mounts with them.
    for ((index = 1; index <= hosts; index++)); do
        if pid=$(pid_of "h$index"); then kill -KILL "$pid" 2>/dev/null || true; fi
    done
    wait_for 5 rm -rf "$dir" || die "cannot remove $dir"
}

verb=${1:-}
[ $# -eq 0 ] || shift
case $verb in
    check) check ;;
    up) up "${1:?which DIR?}" "${@:2}" ;;
    run) use_hosts "${1:-}" && use_host "${2:?which host?}" && enter "${@:3}" ;;
    agent) use_hosts "${1:-}" && agent "${@:2}" ;;
    cut) use_hosts "${1:-}" && use_host "${2:-}" && in_switch bridge link set dev "v$host" state 0 ;;
    heal) use_hosts "${1:-}" && use_host "${2:-}" && in_switch bridge link set dev "v$host" state 3 ;;
    crash)
        use_hosts "${1:-}" && use_host "${2:-}"
        in_switch bridge link set dev "v$host" state 0
        kill_on "$host"
        ;;
    pids) use_hosts "${1:-}" && use_host "${2:-}" && pids_on "$host" ;;
    down) down "${1:?which DIR?}" ;;
    __switch) use_hosts "$1" && hold_switch ;;
    __host) use_hosts "$1" && hold_host "$2" ;;
    -h | --help) usage ;;
    *) usage >&2 && exit 2 ;;
esac
