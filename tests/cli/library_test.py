# SPDX-License-Identifier: Apache-2.0
"""A C++ program with functions as trials, as its users would write it."""

import csv
import os
import subprocess

from cli_case import CliCase, main

PROGRAM = os.environ.get("LIBRARY_PROGRAM", "library_program")
NODE = ("--plain", "--node-resources", "cpu=4,gpu=2")


class LibraryTest(CliCase):
    def program(self, *words, code=0):
        done = subprocess.run(
            [PROGRAM, *words],
            cwd=self.dir,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def told(self, done):
        """What the program said of its trials: their words by their ids."""
        lines = [line.split() for line in done.stdout.splitlines()]
        return {words[0]: words[1:] for words in lines if words and words[0].isdigit()}

    def records(self, done):
        lines = done.stdout.splitlines()
        first = next(n for n, line in enumerate(lines) if line.startswith("trial,status"))
        return list(csv.DictReader(lines[first:]))

    def test_one_program_runs_one_experiment_after_the_other(self):
        done = self.program("quadratic", *NODE)

        self.assertEqual(done.stdout.count("10 trials, 0 failed, exit 0"), 2)
        self.assertTrue((self.dir / "results/first").is_dir())
        self.assertTrue((self.dir / "results/second").is_dir())

    def test_every_way_to_end_is_told_with_its_reason(self):
        done = self.program("ends", *NODE, code=1)

        told = self.told(done)
        self.assertEqual([words[0] for words in told.values()].count("Failed"), 4)
        self.assertEqual(told["00000"][0], "Completed")
        self.assertEqual(told["00005"][:2], ["Completed", "results=2"])
        errors = {row["config/how"]: row["error"] for row in self.records(done)}
        self.assertIn("std::runtime_error: the matrix is singular", errors["throw"])
        self.assertIn("an exception of type int", errors["throw-int"])
        self.assertIn("exit code 3", errors["exit"])
        self.assertIn("signal 6 (SIGABRT)", errors["crash"])
        output = (self.dir / "results/ends/00000/output").read_text()
        self.assertEqual(output, "a line of return\n")

    def test_a_function_is_alone_in_its_process(self):
        done = self.program("surroundings", *NODE)

        [row] = self.records(done)
        self.assertEqual(row["descriptors"], "0")
        self.assertEqual(row["leader"], "true")
        self.assertEqual(row["id"], "true")
        self.assertEqual(row["bundles"], "1")

    def test_a_trial_that_fails_goes_on_from_its_checkpoint(self):
        done = self.program("saves", *NODE)

        self.assertEqual(self.told(done)["00000"][:2], ["Completed", "results=4"])
        self.assertIn("runs again from checkpoint 2", done.stdout + done.stderr)

    def test_what_failed_is_tried_again_as_with_muster_run(self):
        self.program("ends", *NODE, code=1)

        done = self.program("ends", *NODE, "--retry", "failed", "--restart", code=1)

        told = self.told(done)
        self.assertEqual([words[0] for words in told.values()].count("Failed"), 4)
        attempts = [trial["attempts"] for trial in self.results("ends")]
        self.assertEqual(attempts, [1, 2, 2, 2, 2, 1])

    def test_a_program_with_threads_is_refused_with_the_way_out(self):
        done = self.program("threads")

        self.assertIn("before anything that makes threads", done.stdout)

    def test_a_program_that_called_mpi_is_refused_with_the_way_out(self):
        said = self.program("mpi").stdout

        self.assertIn("MPI_Init", said)
        self.assertIn("before", said)

    def test_a_program_that_opened_a_gpu_is_refused_with_the_way_out(self):
        # A directory of its own stands in for /dev.
        (self.dir / "dev").mkdir()
        for name in ("null", "nvidia0"):
            (self.dir / "dev" / name).touch()
        line = f"mount --bind /dev/null dev/null && mount --rbind dev /dev && {PROGRAM} device"
        done = subprocess.run(
            ["unshare", "--mount", "--map-root-user", "sh", "-c", line],
            cwd=self.dir,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=60,
        )
        if done.returncode != 0:
            self.skipTest(f"no namespace for mounts here: {done.stderr.strip()}")

        self.assertIn("/dev/nvidia0", done.stdout)
        self.assertIn("before the first call of CUDA", done.stdout)

    def test_much_memory_before_the_session_is_warned_of(self):
        done = self.program("memory", *NODE)

        self.assertIn("make the Session before loading", done.stderr)
        self.assertEqual(self.told(done)["00000"][0], "Completed")

    def test_openmp_takes_the_trials_cores(self):
        [row] = self.records(self.program("openmp", *NODE))

        # -1 where the compiler has none.
        self.assertIn(float(row["loss"]), (2, -1))

    def test_a_second_session_is_refused(self):
        self.assertIn("there is a Session already", self.program("twice").stdout)

    def test_an_option_that_is_wrong_is_told(self):
        done = self.program("quadratic", "--lease", "never", code=2)

        self.assertIn("--lease", done.stderr)

    def test_a_request_that_no_node_can_meet_ends_the_program(self):
        done = self.program("surroundings", "--plain", "--node-resources", "cpu=4", code=3)

        self.assertIn("gpu", done.stderr)

    def test_a_function_of_the_config_says_what_each_trial_gets(self):
        done = self.program("asks", *NODE, code=1)

        rows = {row["config/cores"]: row for row in self.records(done)}
        for cores in ("1", "2", "3"):
            self.assertEqual(float(rows[cores]["loss"]), float(cores))
        self.assertIn("cpu: 100", rows["100"]["error"])
        self.assertIn("resources: cpu: -1", rows["-1"]["error"])
        shown = (self.dir / "results/asks/experiment.yaml").read_text()
        self.assertIn("# resources: by a function of the program", shown)

    def test_the_program_is_a_muster_with_functions(self):
        (self.dir / "sweep.yaml").write_text(
            "metric: loss\nmode: min\nnum_samples: 4\n"
            "trial: {function: quadratic}\nspace: {x: {uniform: [-1, 1]}}\n"
        )

        done = self.program("cli", "run", "sweep.yaml", *NODE)

        self.assertIn("4", done.stdout)
        best = self.program("cli", "results", "results/sweep", "--best").stdout
        self.assertIn("loss", best)

    def test_the_plain_command_knows_no_functions(self):
        (self.dir / "sweep.yaml").write_text("trial: {function: quadratic}\n")

        done = self.muster("run", "sweep.yaml")

        self.assertEqual(done.returncode, 2)
        self.assertIn("function", done.stderr)

    def test_a_function_that_is_not_there_is_told_with_those_that_are(self):
        (self.dir / "sweep.yaml").write_text("trial: {function: quadratric}\n")

        done = self.program("cli", "run", "sweep.yaml", code=2)

        self.assertIn("quadratic", done.stderr)


if __name__ == "__main__":
    main()
