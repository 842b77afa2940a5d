# SPDX-License-Identifier: Apache-2.0
"""Runs the built `muster` as a user would, in a directory of the test's own.

Nothing here sleeps for luck: what a test waits for is a condition with a deadline.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

MUSTER = os.environ.get("MUSTER", "muster")
DEADLINE = 30.0


def wait_until(condition, what, deadline=DEADLINE):
    """Waits until condition() is true and returns its value."""
    end = time.monotonic() + deadline
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {deadline} s in vain for {what}")
        time.sleep(0.01)


def processes_with(text):
    """Ids of processes whose environment or arguments hold `text`."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            held = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if text.encode() in held and state != "Z":
            found.append(int(entry.name))
    return found


class CliCase(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="muster-cli-test-"))
        self.tmp = self.dir / "tmp"
        self.tmp.mkdir()
        self.env = dict(os.environ, TMPDIR=str(self.tmp), MUSTER_TEST_MARK=str(self.dir))
        self.env.pop("CUDA_VISIBLE_DEVICES", None)
        self.started = []
        self.addCleanup(self.clean_up)

    def clean_up(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        shutil.rmtree(self.dir, ignore_errors=True)

    def write(self, name, text):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def spec(self, text, name="sweep"):
        """Writes a spec named `name` (JSON or YAML)."""
        if not isinstance(text, str):
            text = json.dumps(dict({"name": name}, **text))
        return self.write(f"{name}.yaml", text)

    def muster(self, *args, timeout=60, **options):
        """Runs muster to its end."""
        return subprocess.run(
            [MUSTER, *map(str, args)],
            cwd=self.dir,
            env=options.pop("env", self.env),
            capture_output=True,
            text=True,
            timeout=timeout,
            **options,
        )

    def start(self, *args, **options):
        """Starts muster and goes on."""
        process = subprocess.Popen(
            [MUSTER, *map(str, args)],
            cwd=self.dir,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )
        self.started.append(process)
        return process

    def run_spec(self, spec, *args, expect=0, timeout=60):
        result = self.muster("run", self.spec(spec), *args, timeout=timeout)
        self.assertEqual(result.returncode, expect, result.stdout + result.stderr)
        return result

    def results(self, name="sweep"):
        """The trials as `muster results --format json` tells them."""
        result = self.muster("results", f"results/{name}", "--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def live(self, name="sweep"):
        """What the run says of itself now; {} before it says anything."""
        try:
            return json.loads((self.dir / "results" / name / "live.json").read_text())
        except (OSError, ValueError):
            return {}

    def wait_for_states(self, running, waiting, name="sweep"):
        """Waits until the run says that so many trials run and at least so many wait."""

        def reached():
            counts = self.live(name).get("counts", {})
            return (
                counts.get("running", 0) == running and counts.get("waiting", 0) >= waiting
            )

        wait_until(reached, f"{running} running and {waiting} waiting; now {self.live(name)}")

    def assert_nothing_left(self):
        """No process that came from this test, and no file in its temporary directory."""
        wait_until(
            lambda: not processes_with(f"MUSTER_TEST_MARK={self.dir}"),
            "every process of the run to be gone",
        )
        self.assertEqual(list(self.tmp.iterdir()), [])

    def stop(self, process, number=signal.SIGINT):
        process.send_signal(number)


def main():
    unittest.main(verbosity=1)
