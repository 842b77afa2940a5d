# SPDX-License-Identifier: Apache-2.0
"""Runs over network hosts that die, are cut off and come back."""

import os
import signal
import time

from hosts_case import HOSTS, MUSTER, HostsCase, main, wait_until

# Each trial writes where it ran: how often it came to its end is seen from that. All but the first
# wait until the test has done to the run what it does.
SHELL = """
[ $MUSTER_TRIAL_ID -lt 12 ] || until [ -e WORK/go ]; do sleep 0.05; done
sleep 0.4; echo $(hostname) >> $MUSTER_TRIAL_DIR/ran
"""
SPEC = {
    "space": {"x": {"uniform": [0, 1]}},
    "resources": {"cpu": 1},
}


class HostsTest(HostsCase):
    def spec(self, trials, **changes):
        trial = {"shell": SHELL.replace("WORK", str(self.work))}
        return self.write_spec(dict(SPEC, trial=trial, num_samples=trials, **changes))

    def go_on(self):
        (self.work / "go").touch()

    def start_run(self, trials, *options, **launch):
        spec = self.spec(trials)
        args = ["run", spec, "--plain", "--node-resources", "cpu=2", *options]
        return self.start_line(self.launch_line(*args, **launch))

    def finish(self, run, expect=0, within=40):
        out, err = run.communicate(timeout=within)
        self.assertEqual(run.returncode, expect, out + err)
        return out + err

    def runs_of(self, trials):
        """How often each trial came to its end, by what the trials themselves wrote."""
        counts = []
        for trial in trials:
            path = self.work / "results" / "sweep" / trial["trial"] / "ran"
            counts.append(len(path.read_text().split()))
        return counts

    def test_trials_run_on_all_hosts(self):
        self.go_on()
        said = self.finish(self.start_run(18))

        trials = self.assert_each_completed_once(18)
        self.assertEqual({trial["node"] for trial in trials}, {"h1", "h2", "h3"})
        self.assertEqual(self.runs_of(trials), [1] * 18)
        self.assertIn("3 nodes: h1, h2, h3", said)

    def test_a_killed_agent_is_lost_at_once(self):
        run = self.start_run(24)
        self.wait_for_trials(4)
        os.kill(self.agent_pid(2), signal.SIGKILL)
        self.go_on()
        # Long before any lease runs out.
        said = self.finish(run)

        self.assertIn("node h2 was lost", said)
        self.assert_each_completed_once(24)
        wait_until(lambda: self.on_hosts("pids", 2) == "", "an empty host")

    def test_a_host_without_power_is_lost_when_its_lease_runs_out(self):
        self.heal_after(3)
        run = self.start_run(30, "--lease", "3s")
        self.wait_for_trials(4)
        self.on_hosts("crash", 3)
        self.go_on()
        said = self.finish(run)

        self.assertIn("node h3 was lost: it was silent for 3.0s", said)
        trials = self.assert_each_completed_once(30)
        self.assertGreater(max(trial["attempts"] for trial in trials), 1)
        for host in (1, 2):
            wait_until(lambda: self.on_hosts("pids", host) == "", f"the end of all on h{host}")

    def test_a_short_cut_condemns_nobody(self):
        self.heal_after(2)
        run = self.start_run(60)
        self.wait_for_trials(4)
        self.on_hosts("cut", 2)
        began = time.monotonic()
        while time.monotonic() < began + 3:
            self.assertIsNone(run.poll())
            time.sleep(0.1)
        self.on_hosts("heal", 2)
        self.go_on()
        said = self.finish(run, within=60)

        self.assertNotIn("was lost", said)
        trials = self.assert_each_completed_once(60)
        self.assertEqual({trial["attempts"] for trial in trials}, {1})
        self.assertEqual(self.runs_of(trials), [1] * 60)

    def test_a_node_that_was_cut_off_comes_back(self):
        self.heal_after(2)
        # The head is on another host than the launcher, and gets its signal there.
        run = self.start_run(1000, "--lease", "2s", hosts="h3,h1,h2")
        self.wait_for_trials(4)
        self.on_hosts("cut", 2)
        wait_until(lambda: self.live().get("nodes") == 2, "the loss of h2")
        self.on_hosts("heal", 2)
        self.go_on()
        # As soon as TCP tries again.
        wait_until(lambda: self.live().get("nodes") == 3, "h2 to come back")
        at = dict(self.live()["counts"])["completed"]
        self.wait_for_trials(at + 12)
        run.send_signal(signal.SIGTERM)
        said = self.finish(run, expect=75)

        self.assertIn("node h2 was lost: it was silent for 2.0s", said)
        trials = self.results()
        self.assertEqual({trial["failures"] for trial in trials}, {0})
        later = [t for t in trials if t["node"] == "h2" and int(t["trial"]) > at + 4]
        self.assertTrue(later, "h2 was not used again")

    def test_without_recovery_a_loss_ends_the_run_and_keeps_all(self):
        spec = self.spec(30)
        agent = f"{HOSTS} agent {self.hosts_dir}"
        mpirun = ["mpirun", "--host", "h1,h2,h3", "--map-by", "ppr:1:node", "--bind-to", "none"]
        mpirun += ["--mca", "plm", "rsh", "--mca", "plm_rsh_agent", agent]
        mpirun += ["--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0"]
        line = [*mpirun, MUSTER, "run", spec, "--plain", "--node-resources", "cpu=2"]
        run = self.start_line(self.on_host(1, *line))
        self.wait_for_trials(4)
        os.kill(self.agent_pid(2), signal.SIGKILL)
        self.go_on()
        out, err = run.communicate(timeout=40)
        self.assertEqual((out + err).count("this mpirun ends the whole run"), 1, out + err)
        done = {t["trial"] for t in self.results() if t["state"] == "Completed"}
        self.assertGreaterEqual(len(done), 4)

        self.finish(self.start_line(self.launch_line(*line[len(mpirun) + 1 :])))
        trials = self.assert_each_completed_once(30)
        again = {t["trial"] for t in trials if t["attempts"] > 1}
        self.assertFalse(again & done, "a completed trial ran again")

    def test_without_the_heads_host_all_agents_leave(self):
        self.heal_after(2)
        run = self.start_run(24, "--lease", "2s", "--rejoin", "1s", hosts="h2,h1,h3")
        self.wait_for_trials(4)
        self.on_hosts("crash", 2)
        self.go_on()
        for host in (1, 3):
            wait_until(lambda: self.agent_pid(host) is None, f"the agent of h{host} to leave")
        # Nobody tells mpirun.
        said = self.finish(run, expect=75)
        self.assertIn("rank 0 is silent", said)
        for host in (1, 3):
            wait_until(lambda: self.on_hosts("pids", host) == "", f"the end of all on h{host}")

        # The journal is whole, and the same command goes on: on another host once the owner has been
        # silent for a minute, which is put into the past here.
        a_minute_ago = time.time() - 61
        os.utime(self.work / "results/sweep/owner", (a_minute_ago, a_minute_ago))
        self.finish(self.start_run(24, hosts="h1,h3"))
        self.assert_each_completed_once(24)

    def test_a_killed_launcher_leaves_nothing_on_any_host(self):
        run = self.start_run(1000, hosts="h2,h1,h3")
        self.wait_for_trials(2)
        run.send_signal(signal.SIGKILL)
        run.communicate(timeout=20)

        for host in (1, 2, 3):
            wait_until(lambda: self.on_hosts("pids", host) == "", f"the end of all on h{host}")

    def test_a_host_that_cannot_be_reached_is_no_hang(self):
        never = self.work / "never-answers"
        never.write_text("#!/bin/sh\nexec sleep 1000\n")
        never.chmod(0o755)
        line = [MUSTER, "launch", "--hosts", "h1,h2", "--agent", never, "--start-timeout", "2s"]
        run = self.start_line(self.on_host(1, *line, "--", "nodes"))
        out, err = run.communicate(timeout=30)

        self.assertEqual(run.returncode, 5, out + err)
        self.assertIn("waits for a host that it can't reach", err)
        wait_until(lambda: self.on_hosts("pids", 1) == "", "the end of all on h1")


class PrivateStorageTest(HostsCase):
    hosts = {"hosts": 2, "private_tmp": 1}

    def test_storage_that_a_node_does_not_see_is_said(self):
        spec = self.write_spec(
            dict(
                SPEC,
                trial={"command": ["true"]},
                num_samples=2,
                storage={"path": "/tmp/muster-private-storage"},
            )
        )
        done = self.launch("run", spec, "--plain", "--start-timeout", "6s", hosts="h1,h2")

        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("node h2 does not see", done.stderr)
        self.assertIn("storage.path", done.stderr)


if __name__ == "__main__":
    main()
