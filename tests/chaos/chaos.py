# SPDX-License-Identifier: Apache-2.0
"""Runs sweeps on three network hosts, breaks something again and again, and looks at the outcome.

    chaos.py [--seed N] [--seconds S] [--rounds R] [--within MINUTES] [--keep DIR]

Each round has a seed of its own, from N on. For S seconds, each second, by that seed, something is
killed, stopped (SIGSTOP, and SIGCONT later) or cut: an agent, a spawner, a keeper, a trial, the head,
the launcher, mpirun, the link of a host, a whole host, which returns. The run is started again when
it has ended. In the end all is compared with an undisturbed run: the same configs and last results,
each trial completed once, none in two places at once, none that forgot its checkpoint, and no process
left. With --within no round begins after so many minutes, and it says how many there were.

    python3 tests/chaos/chaos.py --seed 7 --seconds 60        MUSTER is the program; else on the PATH

What happens when does not follow from the seed alone, since the machine has its own mind: a seed that
failed once is worth several tries.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from hosts import Hosts, all_processes, skip_reason

HERE = pathlib.Path(__file__).resolve().parent
MUSTER = os.environ.get("MUSTER", "muster")
COUNT = 3
LEASE = 2.0
REJOIN = 4.0
STEPS = 6
STEP_SECONDS = 0.06
# Beyond this a run hangs.
PATIENCE = 90.0
SUCCESS, SKIPPED, FAILURE = 0, 77, 1


class Wrong(Exception):
    """What is not as it must be."""


def wait_until(condition, what, deadline):
    end = time.monotonic() + deadline
    while not condition():
        if time.monotonic() > end:
            raise Wrong(f"waited {deadline:.0f} s in vain for {what}")
        time.sleep(0.02)


class Sweep:
    """One experiment and the runs of it, one after the other."""

    def __init__(self, hosts, work, trials, order):
        self.hosts, self.work, self.order = hosts, work, order
        self.marks = work / "marks"
        self.ends = []
        self.process = None
        self.spec = work / "sweep.yaml"
        trial = [sys.executable, HERE / "trial.py", self.marks, STEPS, STEP_SECONDS]
        spec = {
            "name": "sweep",
            "trial": {
                "command": [str(word) for word in trial],
                "env": {"PYTHONPATH": str(HERE.parent.parent / "python" / "src")},
                "grace": "1s",
            },
            "space": {"x": {"uniform": [0, 1]}},
            "num_samples": trials,
            "seed": 5,
            "resources": {"cpu": 1},
            # A trial that is killed has failed.
            "failures": {"max_failures": 1000},
            "storage": {"path": str(work / "results")},
        }
        self.spec.write_text(json.dumps(spec))

    def start(self):
        run = [MUSTER, "launch", "--hosts", ",".join(self.order), "--interface", "eth0"]
        run += ["--agent", self.hosts.agent_line(), "--start-timeout", "10s", "--"]
        run += ["run", self.spec, "--plain", "--node-resources", "cpu=2"]
        run += ["--start-timeout", "6s", "--lease", f"{LEASE}s", "--rejoin", f"{REJOIN}s"]
        self.output = open(self.work / f"output-{len(self.ends)}", "w+")
        self.process = subprocess.Popen(
            self.hosts.line(1, *run),
            cwd=self.work,
            env=dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1"),
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=subprocess.STDOUT,
        )

    def has_begun(self):
        return self.marks.exists() or self.process.poll() is not None

    def is_over(self):
        """Whether all is done. A run that ended without is begun anew."""
        code = self.process.poll()
        if code is None:
            return False
        self.output.close()
        said = (self.work / f"output-{len(self.ends)}").read_text(errors="replace")
        self.ends.append(code)
        if code == 0:
            return True
        # 75: go on; 5: the system; 1: a refusal since another run seems to be there, or a launcher
        # that was killed. What says that the input is bad never has a place here.
        if code in (2, 3, 4) and "is running" not in said and "another run" not in said:
            raise Wrong(f"a run ended with {code}: {said[-2000:]}")
        self.start()
        return False

    def results(self):
        done = subprocess.run(
            [MUSTER, "results", self.work / "results" / "sweep", "--format", "json"],
            capture_output=True,
            text=True,
            timeout=60,
        )
        if done.returncode != 0:
            raise Wrong(f"muster results: {done.stderr}")
        return json.loads(done.stdout)

    def facts(self):
        """The journal's records of the state, in order; unreadable ones are left out."""
        found = {}
        for segment in sorted((self.work / "results/sweep/journal").glob("state-*.log")):
            for line in segment.read_bytes().split(b"\n"):
                try:
                    record = json.loads(line[9:])
                except ValueError:
                    continue
                found[record["n"]] = record
        return [found[number] for number in sorted(found) if number > 0]

    def marked(self):
        if not self.marks.exists():
            return []
        lines = self.marks.read_text(errors="replace").splitlines()
        return [json.loads(line) for line in lines if line.endswith("}")]


class Chaos:
    """What goes wrong in one round."""

    def __init__(self, hosts, order, seed):
        self.hosts, self.order = hosts, order
        self.random = random.Random(seed)
        self.began = time.monotonic()
        self.log = []
        # (when, what to do)
        self.later = []

    def say(self, text):
        self.log.append(f"{time.monotonic() - self.began:6.2f} {text}")

    def undo(self, everything=False):
        for entry in list(self.later):
            if everything or entry[0] <= time.monotonic():
                self.later.remove(entry)
                self.say(entry[1])
                entry[2]()

    def after(self, seconds, words, action):
        self.later.append((time.monotonic() + seconds, words, action))

    def signal(self, pid, number):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass

    def break_something(self):
        ways = {
            "kill agent": 3,
            "kill head": 2,
            "kill spawner": 2,
            "kill keeper": 2,
            "kill trial": 3,
            "kill launcher": 1,
            "kill mpirun": 1,
            "stop agent": 3,
            "stop head": 2,
            "stop spawner": 2,
            "stop keeper": 1,
            "stop trial": 1,
            "cut": 4,
            "crash": 2,
        }
        verb, _, role = self.random.choices(list(ways), list(ways.values()))[0].partition(" ")
        host = self.random.randrange(1, COUNT + 1)
        seconds = self.random.choice([0.3, 0.5 * LEASE, 1.5 * LEASE])
        which = self.random.random()
        if not role:
            self.lose_host(verb, host, seconds)
            return
        if role == "head":
            role, host = "agent", int(self.order[0][1:])
        if role == "launcher":
            host = 1
        pids = self.hosts.in_role(role, host)
        if not pids:
            self.say(f"no {role} on h{host} to {verb}")
            return
        pid = sorted(pids)[int(which * len(pids))]
        self.say(f"{verb} {role} {pid} on h{host}")
        if verb == "kill":
            self.signal(pid, signal.SIGKILL)
            return
        self.signal(pid, signal.SIGSTOP)
        self.after(seconds, f"continue {pid}", lambda: self.signal(pid, signal.SIGCONT))

    def lose_host(self, verb, host, seconds):
        self.say(f"{verb} h{host} for {seconds} s")
        self.hosts.do(verb, host)
        self.after(seconds, f"heal h{host}", lambda: self.hosts.do("heal", host))


def by_attempt(marks):
    """First and last sign of life of each attempt, by trial."""
    spans = collections.defaultdict(dict)
    for mark in marks:
        attempt = tuple(map(int, mark["attempt"].split(".")))
        first, last, host = spans[mark["trial"]].get(attempt, (mark["at"], 0, mark["host"]))
        spans[mark["trial"]][attempt] = (min(first, mark["at"]), max(last, mark["at"]), host)
    return spans


def check_places(marks):
    for trial, spans in by_attempt(marks).items():
        attempts = sorted(spans)
        for before, after in zip(attempts, attempts[1:]):
            overlap = spans[before][1] - spans[after][0]
            if overlap > 0:
                raise Wrong(
                    f"trial {trial} was in two places for {overlap:.2f} s: attempt {before} on "
                    f"{spans[before][2]} and {after} on {spans[after][2]}"
                )


def check_checkpoints(marks):
    """An attempt begins at the last checkpoint that was said to be safe, or later."""
    saved = collections.defaultdict(int)
    for mark in marks:
        if mark["what"] == "saved":
            saved[mark["trial"]] = max(saved[mark["trial"]], mark["step"])
        elif mark["what"] == "begin" and mark["step"] < saved[mark["trial"]]:
            raise Wrong(
                f"trial {mark['trial']}, attempt {mark['attempt']} begins at step {mark['step']}, "
                f"though a checkpoint of step {saved[mark['trial']]} was safe"
            )


def check_facts(facts, trials):
    ended = collections.Counter()
    for fact in facts:
        if fact["kind"] == "trial_ended" and fact["state"] == "Completed":
            ended[fact["trial"]] += 1
        elif fact["kind"] == "attempt_started" and ended[fact["trial"]]:
            raise Wrong(f"trial {fact['trial']} ran again after it was completed")
    wrong = {trial: ended[trial] for trial in range(trials) if ended[trial] != 1}
    if wrong:
        raise Wrong(f"trials that were not completed once: {wrong}")


def check_outcome(sweep, expected):
    results = sweep.results()
    found = {each["trial"]: each for each in results}
    if found.keys() != expected.keys():
        raise Wrong(f"{len(found)} trials in place of {len(expected)}")
    for trial, other in expected.items():
        mine = found[trial]
        for key in ("state", "config", "last"):
            if mine[key] != other[key]:
                raise Wrong(f"trial {trial}: {key} is {mine[key]} in place of {other[key]}")
    check_facts(sweep.facts(), len(expected))
    marks = sweep.marked()
    check_places(marks)
    check_checkpoints(marks)


def check_nothing_left(hosts):
    among = {}

    def is_empty():
        among.clear()
        found = all_processes()
        for host in range(1, COUNT + 1):
            for process in hosts.on(host, found):
                among[process.pid] = (f"h{host}", process.name)
        return not among

    try:
        wait_until(is_empty, "the end of all processes", LEASE + REJOIN + 20)
    except Wrong as problem:
        raise Wrong(f"{problem}; left are {among}") from None


def undisturbed(hosts, base, trials):
    work = base / f"undisturbed-{trials}"
    work.mkdir()
    sweep = Sweep(hosts, work, trials, ["h1", "h2", "h3"])
    sweep.start()
    wait_until(sweep.is_over, "the undisturbed run", PATIENCE + trials)
    if len(sweep.ends) != 1:
        raise Wrong(f"the undisturbed run ended with {sweep.ends}")
    expected = {each["trial"]: each for each in sweep.results()}
    check_outcome(sweep, expected)
    check_nothing_left(hosts)
    return expected


def play(sweep, chaos, seconds):
    """Breaks things for so many seconds, then lets the run come to its end."""
    sweep.start()
    # How long it takes to get so far says more of the machine than of muster. What is started again
    # is disturbed from its first moment.
    wait_until(sweep.has_begun, "the first trial", PATIENCE)
    chaos.began = next_fault = time.monotonic()
    end = next_fault + seconds
    while not sweep.is_over():
        now = time.monotonic()
        chaos.undo(everything=now > end)
        if next_fault <= now < end:
            next_fault += 1
            chaos.break_something()
        if now > end + PATIENCE:
            raise Wrong(f"the run does not end; so far {sweep.ends}")
        time.sleep(0.02)
    chaos.undo(everything=True)


def show(sweep, chaos):
    print("\n".join(chaos.log))
    for number in range(len(sweep.ends) + 1):
        path = sweep.work / f"output-{number}"
        if path.exists():
            ended = sweep.ends[number] if number < len(sweep.ends) else "no end"
            lines = path.read_text(errors="replace").splitlines()
            print(f"--- run {number} ({ended})", *lines[-25:], sep="\n")


def play_round(hosts, base, seed, seconds, expected):
    """True when all is as it must be."""
    work = base / f"seed-{seed}"
    work.mkdir()
    order = random.Random(seed).choice([["h1", "h2", "h3"], ["h2", "h1", "h3"]])
    sweep = Sweep(hosts, work, len(expected), order)
    chaos = Chaos(hosts, order, seed)
    began = time.monotonic()
    try:
        play(sweep, chaos, seconds)
        check_nothing_left(hosts)
        check_outcome(sweep, expected)
    except Wrong as problem:
        chaos.undo(everything=True)
        sweep.process.kill()
        show(sweep, chaos)
        print(f"seed {seed}: {problem}", flush=True)
        return False
    took = time.monotonic() - began
    attempts = sum(len(spans) for spans in by_attempt(sweep.marked()).values())
    faults = len([line for line in chaos.log if " no " not in line])
    print(
        f"seed {seed}: fine after {took:.1f} s; {faults} faults and cures, "
        f"runs ended with {sweep.ends}, {attempts} attempts of {len(expected)} trials",
        flush=True,
    )
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--within", type=float, help="minutes after which no round begins")
    parser.add_argument("--keep", type=pathlib.Path, help="a directory that stays afterwards")
    options = parser.parse_args()
    reason = skip_reason()
    if reason:
        print(reason)
        return SKIPPED
    base = options.keep or pathlib.Path(tempfile.mkdtemp(prefix="muster-chaos-"))
    base.mkdir(parents=True, exist_ok=True)
    hosts = Hosts(base / "hosts", base, COUNT)
    began = time.monotonic()
    good = bad = 0
    try:
        # Losses make it take some times longer.
        expected = undisturbed(hosts, base, max(12, round(options.seconds * 5)))
        for seed in range(options.seed, options.seed + options.rounds):
            if options.within and time.monotonic() - began > options.within * 60:
                print(f"{options.rounds - good - bad} rounds are left out: the time was up")
                break
            if play_round(hosts, base, seed, options.seconds, expected):
                good += 1
            else:
                bad += 1
                if not options.keep:
                    # What is left of it would disturb the next.
                    break
    finally:
        hosts.close()
        if not options.keep:
            shutil.rmtree(base, ignore_errors=True)
    print(f"{good} rounds were fine, {bad} were not")
    return FAILURE if bad else SUCCESS


if __name__ == "__main__":
    sys.exit(main())
