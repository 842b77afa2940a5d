#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A real Slurm cluster of several nodes on this machine, for tests. Every node is a set of
# namespaces: its own host name, address, processes, /dev and /dev/shm, and a real slurmd.
#
#   slurm.sh check                    exit 0 when this machine can do it, else one line why not, and 77
#   slurm.sh up DIR [KEY=VALUE]...    brings a cluster up; DIR, which must not be there, holds all of it
#   slurm.sh run DIR CMD...           CMD on the login node; signals and the exit code are CMD's own
#   slurm.sh on DIR N CMD...          CMD on node nN, outside any job
#   slurm.sh kill DIR N [HOW]         power (default): node nN is gone at once, its link too
#                                     crash: its processes die, its kernel lives and resets connections
#                                     slurmd: only the daemon dies    link: only the link is cut
#   slurm.sh tell DIR N STATE         tells the controller at once: STATE is down or resume
#   slurm.sh start DIR N              brings node nN back, and its link
#   slurm.sh controller DIR stop|start
#   slurm.sh down DIR                 ends everything and removes DIR; fine when nothing is up
#
# Keys of `up`: nodes=4, cpus=8 and memory=4000 (MB) a node, both as many as one likes; gpus=0, or one
# number for each node ("4,2,0"): device files without a device. kill_wait=3, node_timeout=10,
# requeue_delay=5 are Slurm's KillWait, SlurmdTimeout and cred_expire in seconds. conf=TEXT is appended
# to slurm.conf. With owner=PID the cluster ends by itself when that process is gone.
#
# Needs root, namespaces and the packages of `scripts/install-deps.sh slurm`. Nothing of the machine's
# own is changed: no service, nothing in /etc, no named namespace. One process holds it all: when it
# dies the kernel ends the rest.
set -euo pipefail
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH
self=$(readlink -f "$0")
readonly self subnet=10.201.77

usage() { sed -n 's/^#   //p' "$self"; }
die() { echo "slurm.sh: $*" >&2 && exit 1; }

# wait_for SECONDS CMD...: until CMD succeeds.
wait_for() {
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.05
    done
}

# ---- settings -------------------------------------------------------------------------------------

nodes=4 cpus=8 memory=4000 gpus=0 kill_wait=3 node_timeout=10 requeue_delay=5 conf='' owner=''
readonly keys=(nodes cpus memory gpus kill_wait node_timeout requeue_delay conf owner)

take_settings() {
    local setting key
    for setting; do
        key=${setting%%=*}
        [[ $setting == *=* && " ${keys[*]} " == *" $key "* ]] || die "\"$setting\" is no setting"
        printf -v "$key" '%s' "${setting#*=}"
    done
}

use_cluster() {
    dir=$(readlink -f "${1:?which DIR?}") || die "there is no $1"
    [ -O "$dir/settings" ] || die "$1 holds no cluster"
    # shellcheck source=/dev/null
    . "$dir/settings"
    export SLURM_CONF=$dir/etc/slurm.conf
}

use_node() {
    node=${1#n}
    [[ $node =~ ^[1-9][0-9]?$ && $node -le $nodes ]] || die "there is no node \"$1\""
}

gpus_of() {
    local counts
    IFS=, read -ra counts <<<"$gpus"
    if [ ${#counts[@]} -eq 1 ]; then echo "${counts[0]}"; else echo "${counts[$1 - 1]:-0}"; fi
}

write_files() {
    local index count
    mkdir -p "$dir"/{etc,munge,state,spool,log,run,tmp}
    chmod 711 "$dir/munge"
    (umask 077 && head -c 1024 /dev/urandom >"$dir/munge/key")
    for key in "${keys[@]}"; do printf '%s=%q\n' "$key" "${!key}"; done >"$dir/settings"
    {
        echo "127.0.0.1 localhost"
        echo "$subnet.1 login"
        for ((index = 1; index <= nodes; index++)); do echo "$subnet.$((10 + index)) n$index"; done
    } >"$dir/etc/hosts"
    # This plugin alone starts everywhere: with either version of cgroups, or without any.
    echo "CgroupPlugin=cgroup/v1" >"$dir/etc/cgroup.conf"
    : >"$dir/etc/gres.conf"
    write_slurm_conf >"$dir/etc/slurm.conf"
    for ((index = 1; index <= nodes; index++)); do
        mkdir -p "$dir/spool/n$index" "$dir/tmp/n$index"
        count=$(gpus_of "$index")
        [ "$count" -eq 0 ] ||
            echo "NodeName=n$index Name=gpu File=/dev/nvidia[0-$((count - 1))] Flags=nvidia_gpu_env"
    done >"$dir/etc/gres.conf"
}

# TmpFS is the node's own: mpi/pmix makes a directory there whose name is the same on all nodes.
# MinJobAge keeps finished jobs in `scontrol show job`, as there is no accounting.
write_slurm_conf() {
    local index count
    cat <<END
ClusterName=muster
SlurmctldHost=login($subnet.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket,cred_expire=$requeue_delay
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool/%n
SlurmctldPidFile=$dir/run/slurmctld.pid
SlurmdPidFile=$dir/run/slurmd.%n.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/slurmd.%n.log
TmpFS=$dir/tmp/%n
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
PropagateResourceLimits=CORE
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
GresTypes=gpu
DefMemPerCPU=100
JobRequeue=1
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2,sched_min_interval=0
SlurmdTimeout=$node_timeout
SlurmctldTimeout=30
MessageTimeout=10
TCPTimeout=2
KillWait=$kill_wait
BatchStartTimeout=60
UnkillableStepTimeout=10
CompleteWait=0
EpilogMsgTime=0
MinJobAge=3600
MaxArraySize=2001
END
    for ((index = 1; index <= nodes; index++)); do
        count=$(gpus_of "$index")
        echo "NodeName=n$index NodeAddr=$subnet.$((10 + index)) CPUs=$cpus Boards=1 SocketsPerBoard=1" \
            "CoresPerSocket=$cpus ThreadsPerCore=1 RealMemory=$memory Gres=gpu:$count"
    done | sed 's/ Gres=gpu:0$//'
    echo "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO"
    printf '%b\n' "$conf"
}

# ---- processes ------------------------------------------------------------------------------------

# Reads pid, state and starting time of a process into `stat`; fails when there is none. The shell
# reads by itself, so "self" is this very shell.
stat_of() {
    local line
    { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
    read -ra stat <<<"${line##*) }"
    stat=("${line%% *}" "${stat[0]}" "${stat[19]}")
}

# become NAME CMD...: runs CMD in this process's place, so that pid_of NAME finds it. The login node
# shows the machine's own /proc, so the pid is the machine's and not that of a namespace.
become() {
    local name=$1 stat
    shift
    stat_of self
    # By the shell itself: init_of must find no other child of this process than that of unshare.
    echo "${stat[0]} ${stat[2]}" >"$dir/run/$name"
    exec setsid "$@" </dev/null >>"$dir/log/$name.out" 2>&1
}

# pid_of NAME: fails when it is gone, also when another process has its pid now.
pid_of() {
    local pid started stat
    { read -r pid started <"$dir/run/$1"; } 2>/dev/null || return 1
    stat_of "$pid" && [ "${stat[1]}" != Z ] && [ "${stat[2]}" = "$started" ] && echo "$pid"
}
is_gone() { ! pid_of "$1" >/dev/null; }

# init_of NAME: the first process in the namespaces that the `unshare` called NAME made.
init_of() {
    local pid children
    pid=$(pid_of "$1") || return 1
    children=$(cat "/proc/$pid/task/$pid/children" 2>/dev/null)
    [ -n "$children" ] && echo "${children%% *}"
}

end_process() {
    local pid
    pid=$(pid_of "$1") || return 0
    kill -"${2:-KILL}" "$pid"
    wait_for 10 is_gone "$1" || die "$1 (pid $pid) does not end"
}

# in_login CMD...: on the login node; in_cluster CMD...: there too, so that it ends with the cluster.
in_login() { nsenter -t "$(init_of cluster)" -n -u -i -m "$@"; }
in_cluster() { nsenter -t "$(init_of cluster)" -n -u -i -m -p "$@"; }

# ---- inside the namespaces ------------------------------------------------------------------------

# Runs as the first process of the cluster: the login node with the controller, and the network.
hold_cluster() {
    hostname login
    mount --bind "$dir/etc/hosts" /etc/hosts
    mount -t tmpfs -o mode=1777 tmpfs /dev/shm
    ip link set lo up
    ip link add br0 type bridge
    ip addr add "$subnet.1/24" dev br0
    ip link set br0 up
    cd /
    # --force: it dislikes sockets below a directory that everybody may write to, such as /tmp.
    (become munged munged --foreground --force --key-file="$dir/munge/key" \
        --socket="$dir/munge/socket" --pid-file="$dir/run/munged.pid" \
        --log-file="$dir/log/munged.log" --seed-file="$dir/munge/seed" --num-threads=4) &
    wait_for 10 test -S "$dir/munge/socket"
    (become controller slurmctld -D) &
    local index
    for ((index = 1; index <= nodes; index++)); do begin_node "$index"; done
    : >"$dir/run/ready"
    while [ -z "$owner" ] || [ -e "/proc/$owner" ]; do
        sleep 1 &
        wait -n || true
    done
    # The owner left without a word; when this process ends the kernel kills what is left.
    rm -rf "$dir"
}

# Runs on the login node: makes the link and the namespaces of node $1.
begin_node() {
    local pid
    (become "n$1" unshare -n -u -i -m -p --fork --kill-child --mount-proc "$self" __node "$dir" "$1") &
    wait_for 10 init_of "n$1"
    pid=$(init_of "n$1")
    ip link del "v$1" 2>/dev/null || true
    # A namespace is named by a file, for this shell may know the pid by another number.
    ip link add "v$1" type veth peer name "w$1"
    ip link set "v$1" master br0 up
    nsenter --net="/proc/$pid/ns/net" true
    ip link set "w$1" netns "/proc/$pid/ns/net"
    nsenter --net="/proc/$pid/ns/net" "$self" __link "$1"
}

# Runs in the node's network.
set_link_up() {
    # The address that it had before: others remember it.
    ip link set "w$1" name eth0 address "$(printf '02:00:00:00:00:%02x' "$1")"
    ip link set lo up
    ip addr add "$subnet.$((10 + $1))/24" dev eth0
    ip link set eth0 up
}

# Runs as the first process of a node, and reaps its orphans; the daemon's death is not the node's.
hold_node() {
    hostname "n$node"
    mount --bind "$dir/etc/hosts" /etc/hosts
    make_devices
    cd /
    wait_for 10 ip link show eth0
    slurmd -D &
    while true; do
        sleep 1000 &
        wait -n || true
    done
}

# A /dev of the node's own: what every program expects, and its GPUs' files.
make_devices() {
    local name index
    mount -t tmpfs -o mode=755 tmpfs "$dir/tmp/n$node"
    for name in null zero full random urandom tty; do
        : >"$dir/tmp/n$node/$name"
        mount --bind "/dev/$name" "$dir/tmp/n$node/$name"
    done
    mkdir "$dir/tmp/n$node"/{pts,shm}
    mount --rbind /dev/pts "$dir/tmp/n$node/pts"
    mount -t tmpfs -o mode=1777 tmpfs "$dir/tmp/n$node/shm"
    ln -s pts/ptmx "$dir/tmp/n$node/ptmx"
    ln -s /proc/self/fd "$dir/tmp/n$node/fd"
    ln -s fd/0 "$dir/tmp/n$node/stdin"
    ln -s fd/1 "$dir/tmp/n$node/stdout"
    ln -s fd/2 "$dir/tmp/n$node/stderr"
    for ((index = 0; index < $(gpus_of "$node"); index++)); do
        mknod -m 666 "$dir/tmp/n$node/nvidia$index" c 240 "$index"
    done
    mount --move "$dir/tmp/n$node" /dev
    # What a real driver says of this machine is not this node's.
    [ ! -d /proc/driver/nvidia ] || mount -t tmpfs tmpfs /proc/driver/nvidia
}

# ---- verbs ----------------------------------------------------------------------------------------

check() {
    local command why
    if [ "$(id -u)" -ne 0 ]; then
        why="needs root"
    elif ! for command in slurmctld slurmd sbatch munged ip unshare nsenter; do
        command -v "$command" >/dev/null || { why="there is no $command; scripts/install-deps.sh slurm" && false; }
    done; then
        true
    elif ! unshare -n -u -i -m -p --fork --mount-proc "$self" __try >/dev/null 2>&1; then
        why="this machine allows no network, mount or device namespaces"
    else
        return 0
    fi
    echo "slurm.sh: no Slurm cluster here: $why"
    return 77
}

try_namespaces() {
    hostname try
    ip link add br0 type bridge
    ip link add v0 type veth peer name v1
    mount -t tmpfs tmpfs /mnt
    mknod /mnt/nvidia0 c 240 0
}

nodes_are_up() { # [NODE]
    local states
    states=$(in_login sinfo -h -N -o '%T' ${1:+-n "n$1"}) && [ -n "$states" ] &&
        ! grep -qvxE 'idle|mixed|allocated' <<<"$states"
}

up() {
    check || exit
    take_settings "${@:2}"
    [[ $nodes =~ ^[1-9][0-9]?$ ]] || die "nodes=$nodes: a number from 1 to 99"
    mkdir -m 755 "$1" || exit
    dir=$(readlink -f "$1")
    write_files
    export SLURM_CONF=$dir/etc/slurm.conf
    (become cluster unshare -n -u -i -m -p --fork --kill-child "$self" __cluster "$dir") &
    if ! wait_for 30 test -e "$dir/run/ready" || ! wait_for 30 nodes_are_up; then
        tail -n 20 "$dir"/log/* >&2
        down "$dir"
        die "the cluster did not come up; its logs are above"
    fi
}

run() {
    local init
    init=$(init_of cluster) || die "the cluster is not up"
    # Root may start MPI programs here, and nobody spins: there are more ranks than cores.
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1
    # shellcheck disable=SC2016
    exec nsenter -t "$init" -n -u -i -m bash -c 'cd "$0" && exec "$@"' "$PWD" "$@"
}

on() {
    local init
    init=$(init_of "n$node") || die "node n$node is gone"
    # shellcheck disable=SC2016
    exec nsenter -t "$init" -n -u -i -m -p bash -c 'cd "$0" && exec "$@"' "$PWD" "$@"
}

kill_node() {
    local init
    case $1 in
        power)
            in_login ip link set "v$node" down
            end_process "n$node"
            ;;
        crash)
            init=$(init_of "n$node")
            nsenter -t "$init" -m -p bash -c 'kill -KILL -1' || true
            ;;
        slurmd)
            init=$(init_of "n$node") && nsenter -t "$init" -m -p pkill -KILL -x slurmd
            ;;
        link) in_login ip link set "v$node" down ;;
        *) die "\"$1\" is no way for a node to die" ;;
    esac
}

tell() {
    in_login scontrol update "NodeName=n$node" "State=${1:?which STATE?}" Reason=told
}

start_node() {
    local init
    if is_gone "n$node"; then
        # It comes back as a rebooted one: the jobs that it had are gone.
        in_login scontrol update "NodeName=n$node" State=DOWN Reason=rebooted
        in_cluster "$self" __begin "$dir" "$node"
    else
        in_login ip link set "v$node" up
        init=$(init_of "n$node")
        nsenter -t "$init" -m -p pgrep -x slurmd >/dev/null ||
            (nsenter -t "$init" -n -u -i -m -p setsid slurmd -D </dev/null >>"$dir/log/n$node.out" 2>&1 &)
    fi
    wait_for 60 nodes_are_up "$node" || die "node n$node does not come back; see $dir/log"
}

controller() {
    case ${1:-} in
        stop) end_process controller TERM ;;
        start)
            is_gone controller || return 0
            in_cluster "$self" __controller "$dir"
            wait_for 60 in_login scontrol ping || die "the controller does not come back"
            ;;
        *) die "controller: stop or start" ;;
    esac
}

down() {
    [ -e "$1" ] || return 0
    use_cluster "$1"
    local init
    init=$(init_of cluster) || true
    end_process cluster
    [ -z "$init" ] || wait_for 10 test ! -e "/proc/$init" || die "process $init does not end"
    rm -rf "$dir"
}

verb=${1:-}
[ $# -eq 0 ] || shift
case $verb in
    check) check ;;
    up) up "$@" ;;
    down) down "$@" ;;
    run | on | kill | tell | start | controller | __*)
        case $verb in __try | __link) ;; *) use_cluster "$@" && shift ;; esac
        case $verb in on | kill | tell | start | __node | __begin) use_node "${1:-}" && shift ;; esac
        case $verb in
            run) run "$@" ;;
            on) on "$@" ;;
            kill) kill_node "${1:-power}" ;;
            tell) tell "$@" ;;
            start) start_node ;;
            controller) controller "$@" ;;
            __try) try_namespaces ;;
            __link) set_link_up "$1" ;;
            __cluster) hold_cluster ;;
            __node) hold_node ;;
            __begin) begin_node "$node" ;;
            __controller) become controller slurmctld -D & ;;
        esac
        ;;
    *) usage && exit 2 ;;
esac
