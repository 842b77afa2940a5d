# SPDX-License-Identifier: Apache-2.0
"""Runs muster over several network hosts on this machine (tests/cluster/hosts.sh).

Nothing here sleeps for luck: what a test waits for is a condition with a deadline.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from cli_case import MUSTER, CliCase, wait_until  # noqa: E402

HOSTS = pathlib.Path(__file__).resolve().parent / "hosts.sh"


def skip_reason():
    """Why there can be no hosts here; nothing when there can."""
    done = subprocess.run([HOSTS, "check"], capture_output=True, text=True, timeout=60)
    return done.stdout.strip() if done.returncode != 0 else None


class HostsCase(CliCase):
    """Tests of one class share hosts h1, h2, …; each test heals what it cut."""

    # As `hosts.sh up` takes them.
    hosts = {"hosts": 3}

    @classmethod
    def setUpClass(cls):
        cls.base = pathlib.Path(tempfile.mkdtemp(prefix="muster-hosts-"))
        cls.addClassCleanup(shutil.rmtree, cls.base, ignore_errors=True)
        cls.hosts_dir = cls.base / "hosts"
        settings = [f"{key}={value}" for key, value in cls.hosts.items()]
        cls.on_hosts("up", f"owner={os.getpid()}", f"shared={cls.base}", *settings)
        cls.addClassCleanup(cls.on_hosts, "down")

    @classmethod
    def on_hosts(cls, verb, *args):
        """A verb of hosts.sh; returns what it printed."""
        done = subprocess.run(
            [HOSTS, verb, cls.hosts_dir, *map(str, args)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        if done.returncode != 0:
            raise AssertionError(f"hosts.sh {verb} {args}: {done.stdout}{done.stderr}")
        return done.stdout

    def setUp(self):
        super().setUp()
        # What all hosts see, whatever their /tmp is.
        self.work = pathlib.Path(tempfile.mkdtemp(dir=self.base))
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        self.env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        self.env.pop("TMPDIR")

    def on_host(self, number, *words):
        return [HOSTS, "run", self.hosts_dir, str(number), *map(str, words)]

    def launch_line(self, *args, hosts="h1,h2,h3", options=()):
        """`muster launch` on h1 over the hosts."""
        agent = f"{HOSTS} agent {self.hosts_dir}"
        flags = ["--hosts", hosts, "--agent", agent, "--interface", "eth0", *options]
        return self.on_host(1, MUSTER, "launch", *flags, "--", *args)

    def start_line(self, line):
        process = subprocess.Popen(
            list(map(str, line)),
            cwd=self.work,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def launch(self, *args, timeout=60, **options):
        """Launches to its end."""
        process = self.start_line(self.launch_line(*args, **options))
        out, err = process.communicate(timeout=timeout)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def write_spec(self, spec, name="sweep"):
        path = self.work / f"{name}.yaml"
        path.write_text(json.dumps(dict({"name": name}, **spec)))
        return path

    def results(self, name="sweep"):
        """The trials as `muster results --format json` tells them."""
        done = subprocess.run(
            [MUSTER, "results", self.work / "results" / name, "--format", "json"],
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def live(self, name="sweep"):
        try:
            return json.loads((self.work / "results" / name / "live.json").read_text())
        except (OSError, ValueError):
            return {}

    def wait_for_trials(self, count):
        wait_until(
            lambda: dict(self.live().get("counts", [])).get("completed", 0) >= count,
            f"{count} completed trials",
        )

    def agent_pid(self, number):
        """The rank of muster on a host."""
        for pid in self.on_hosts("pids", number).split():
            try:
                parent = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
                names = [
                    pathlib.Path(f"/proc/{each}/comm").read_text().strip() for each in (pid, parent)
                ]
            except OSError:
                continue
            if names[0] == "muster" and names[1] in ("mpirun", "orted"):
                return int(pid)
        return None

    def heal_after(self, number):
        self.addCleanup(self.on_hosts, "heal", number)

    def assert_each_completed_once(self, count):
        trials = self.results()
        self.assertEqual(len(trials), count)
        self.assertEqual({trial["state"] for trial in trials}, {"Completed"})
        self.assertEqual({trial["failures"] for trial in trials}, {0})
        return trials


def main():
    reason = skip_reason()
    if reason:
        print(reason)
        sys.exit(77)
    unittest.main()
