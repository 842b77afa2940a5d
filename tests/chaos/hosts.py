# SPDX-License-Identifier: Apache-2.0
"""The hosts of the chaos test (tests/cluster/hosts.sh), and who runs on them."""

import os
import pathlib
import subprocess

HOSTS = pathlib.Path(__file__).resolve().parent.parent / "cluster" / "hosts.sh"


def skip_reason():
    """Why there can be no hosts here; nothing when there can."""
    done = subprocess.run([HOSTS, "check"], capture_output=True, text=True, timeout=60)
    return done.stdout.strip() if done.returncode != 0 else None


class Process:
    """One process as /proc tells; it may be gone by now."""

    def __init__(self, pid):
        entry = pathlib.Path(f"/proc/{pid}")
        stat = (entry / "stat").read_text()
        rest = stat.rpartition(")")[2].split()
        self.pid = int(pid)
        self.name = stat[stat.index("(") + 1 : stat.rindex(")")]
        self.state, self.parent = rest[0], int(rest[1])
        self.words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
        self.network = os.readlink(entry / "ns/net")


def all_processes():
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                process = Process(entry)
            except (OSError, ValueError, IndexError):
                continue
            if process.state != "Z":
                found[process.pid] = process
    return found


class Hosts:
    """h1, h2, … until close()."""

    def __init__(self, directory, shared, count):
        self.directory = directory
        self.count = count
        self.do("up", f"hosts={count}", f"owner={os.getpid()}", f"shared={shared}")
        self.anchors = {}
        for host in range(1, count + 1):
            pid = int((directory / f"h{host}").read_text().split()[0])
            self.anchors[host] = (pid, os.readlink(f"/proc/{pid}/ns/net"))

    def close(self):
        self.do("down")

    def do(self, verb, *args):
        done = subprocess.run(
            [HOSTS, verb, self.directory, *map(str, args)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )
        if done.returncode != 0:
            raise RuntimeError(f"hosts.sh {verb} {args}: {done.stdout}")

    def line(self, host, *words):
        return [str(HOSTS), "run", str(self.directory), str(host), *map(str, words)]

    def agent_line(self):
        return f"{HOSTS} agent {self.directory}"

    def on(self, host, among=None):
        """The processes of a host."""
        anchor, network = self.anchors[host]
        among = all_processes() if among is None else among
        return [each for each in among.values() if each.network == network and each.pid != anchor]

    def in_role(self, role, host):
        """Processes of one kind: launcher, mpirun, agent, spawner, keeper, trial."""
        among = all_processes()
        here = self.on(host, among)

        def parent_name(process):
            parent = among.get(process.parent)
            return parent.name if parent else ""

        tests = {
            "launcher": lambda each: each.words[1:2] == ["launch"],
            "mpirun": lambda each: each.name in ("mpirun", "orted"),
            "agent": lambda each: each.name == "muster"
            and parent_name(each) in ("mpirun", "orted"),
            "spawner": lambda each: each.name == "muster-spawner",
            "keeper": lambda each: each.name == "muster-keeper",
            "trial": lambda each: parent_name(each) == "muster-keeper",
        }
        return [each.pid for each in here if tests[role](each)]
