# SPDX-License-Identifier: Apache-2.0
"""The Python module against the real report server, and alone."""

import contextlib
import io
import json
import math
import os
import pathlib
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import muster
from muster import _report

PATIENCE = 30
VARIABLES = (
    "MUSTER_SOCKET",
    "MUSTER_TRIAL_ID",
    "MUSTER_ATTEMPT",
    "MUSTER_MEMBER",
    "MUSTER_CONFIG",
    "MUSTER_CHECKPOINT",
    "MUSTER_CHECKPOINT_DIR",
)


class Listener:
    """The program of tests/cli/report_listener.cpp."""

    def __init__(self):
        self.process = subprocess.Popen(
            [os.environ["MUSTER_TEST_LISTENER"]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.lines = queue.Queue()
        self.socket = self.process.stdout.readline().strip()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))

    def next(self):
        return self.lines.get(timeout=PATIENCE)

    def stop(self):
        self.obey("stop")

    def obey(self, word):
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()

    def end(self):
        """Ends the server; everything that it had not said yet."""
        if self.process.stdin.closed:
            return []
        self.process.stdin.close()
        self.reader.join(PATIENCE)
        self.process.stdout.close()
        code = self.process.wait(PATIENCE)
        if code != 0:
            raise AssertionError(f"the server ended with {code}")
        return list(self.lines.queue)


class UnderMuster(unittest.TestCase):
    def setUp(self):
        self.listener = Listener()
        self.addCleanup(self.listener.end)
        self.addCleanup(set_environment, {})
        set_environment(
            {
                "MUSTER_SOCKET": self.listener.socket,
                "MUSTER_TRIAL_ID": "00042",
                "MUSTER_ATTEMPT": "1.7",
                "MUSTER_CHECKPOINT_DIR": os.path.dirname(self.listener.socket) + "/checkpoints",
            }
        )
        self.model = pathlib.Path(tempfile.mkdtemp()) / "model"
        self.addCleanup(shutil.rmtree, self.model.parent)

    def test_reports_arrive_in_order(self):
        self.assertIs(muster.report(step=1, loss=0.25), True)
        self.assertIs(muster.report({"train/loss": 1.0, "note": "ä\n"}, good=True), True)

        self.assertEqual(self.listener.next(), {"report": {"step": 1, "loss": 0.25}})
        self.assertEqual(
            self.listener.next(), {"report": {"train/loss": 1.0, "note": "ä\n", "good": True}}
        )

    def test_numbers_that_are_not_finite_arrive(self):
        muster.report(a=math.nan, b=-math.inf, c=[math.inf, 1], d={"e": math.nan})

        self.assertEqual(
            self.listener.next(),
            {"report": {"a": "nan", "b": "-inf", "c": ["inf", 1], "d/e": "nan"}},
        )

    def test_a_decision_is_waited_for(self):
        self.assertEqual(muster.report(x=1, wait=True), "continue")
        self.listener.stop()
        self.assertEqual(self.listener.next(), {"report": {"x": 1}})
        self.assertEqual(self.listener.next(), {"stop": True})
        self.assertEqual(muster.report(x=2, wait=True), "stop")
        self.assertTrue(muster.should_stop())

    def test_an_earlier_refusal_is_not_taken_for_the_decision(self):
        with silent() as said:
            muster.report(x="\ud800")
            self.assertEqual(muster.report(x=1, wait=True), "continue")
        self.assertIn("not UTF-8", said.getvalue())

    def test_a_report_of_ten_megabytes_is_refused(self):
        with silent() as said:
            muster.report(x="x" * 10_000_000)
            self.assertEqual(muster.report(x=1, wait=True), "continue")
        self.assertIn("longer than 1 MiB", said.getvalue())
        self.assertEqual(self.listener.next(), {"refused": "report refused: a line longer than 1 MiB"})

    def test_a_wrong_attempt_is_said_once_and_not_tried_again(self):
        os.environ["MUSTER_ATTEMPT"] = "1.6"
        with silent() as said:
            self.assertEqual(muster.report(x=1, wait=True), "continue")
            self.assertIs(muster.report(x=2), False)
        self.assertEqual(said.getvalue().count("does not run here"), 1)

    def test_threads_share_one_connection(self):
        def work():
            for _ in range(200):
                muster.report(x=0.5)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)

        self.assertEqual(self.listener.end(), [{"report": {"x": 0.5}}] * 800)

    def test_a_child_after_fork_reports_on_its_own_connection(self):
        muster.report(x=1)
        self.assertEqual(self.listener.next(), {"report": {"x": 1}})
        with _report.connection()._lock:
            child = os.fork()
            if child == 0:
                good = muster.report(x=2, wait=True) == "continue"
                os._exit(0 if good else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        muster.report(x=3)

        self.assertEqual(self.listener.next(), {"report": {"x": 2}})
        self.assertEqual(self.listener.next(), {"report": {"x": 3}})

    def test_what_is_reported_just_before_the_end_arrives(self):
        program = "import muster\nfor i in range(2000): muster.report(step=i)"
        subprocess.run([sys.executable, "-c", program], check=True, timeout=PATIENCE)

        reports = self.listener.end()
        self.assertEqual(len(reports), 2000)
        self.assertEqual(reports[-1], {"report": {"step": 1999}})

    def test_muster_going_away_is_said_once_and_harms_nothing(self):
        muster.report(x=1)
        self.listener.end()
        before = signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        try:
            with silent() as said:
                for _ in range(3):
                    self.assertIs(muster.report(x=2), False)
                self.assertEqual(muster.report(x=3, wait=True), "continue")
                self.assertIs(muster.should_stop(), False)
        finally:
            signal.signal(signal.SIGPIPE, before)
        self.assertEqual(said.getvalue().count("cannot reach muster"), 1)


    def make_model(self, path=None):
        (path or self.model).mkdir()
        ((path or self.model) / "weights").write_text("w")
        ((path or self.model) / "best").symlink_to("weights")

    def test_a_checkpoint_is_moved_and_safe(self):
        muster.report(step=3, x=1)
        self.listener.next()
        self.make_model()

        saved = muster.checkpoint(self.model, step=3)

        self.assertEqual(saved, muster.checkpoint_dir() / "checkpoint_000001")
        self.assertEqual((saved / "best").read_text(), "w")
        self.assertFalse(self.model.exists())
        self.assertEqual(self.listener.next(), {"checkpoint": 3})
        self.assertEqual(os.listdir(muster.checkpoint_dir()), ["checkpoint_000001"])

    @unittest.skipUnless(os.path.isdir("/dev/shm"), "needs another file system")
    def test_a_checkpoint_from_another_file_system_is_copied_and_goes(self):
        other = pathlib.Path(tempfile.mkdtemp(dir="/dev/shm"))
        self.addCleanup(shutil.rmtree, other, True)
        self.make_model(other / "model")

        saved = muster.checkpoint(other / "model")

        self.assertTrue((saved / "best").is_symlink())
        self.assertEqual(os.listdir(other), [])

    def test_what_is_not_kept_goes_back_to_where_it_was(self):
        self.make_model()
        self.listener.obey("refuse")
        self.assertEqual(self.listener.next(), {"refuse": True})

        with silent() as said:
            self.assertIsNone(muster.checkpoint(self.model))

        self.assertIn("the disk is full", said.getvalue())
        self.assertEqual((self.model / "weights").read_text(), "w")
        self.assertEqual(os.listdir(muster.checkpoint_dir()), [])

    def test_a_checkpoint_is_a_directory(self):
        with self.assertRaises(FileNotFoundError):
            muster.checkpoint(self.model)
        self.model.write_text("w")
        with self.assertRaises(NotADirectoryError):
            muster.checkpoint(self.model)

    def test_a_warning_asks_for_a_checkpoint_until_one_is_saved(self):
        self.assertIs(muster.should_checkpoint(), False)
        self.assertIsNone(muster.time_left())
        self.listener.obey("warn")
        self.assertEqual(self.listener.next(), {"warn": True})

        self.assertIs(muster.should_checkpoint(), True)
        self.assertGreater(muster.time_left(), 60)
        self.make_model()
        self.assertIsNotNone(muster.checkpoint(self.model))
        self.assertIs(muster.should_checkpoint(), False)

    def test_muster_going_away_leaves_the_directory(self):
        self.make_model()
        self.listener.end()

        with silent() as said:
            self.assertIsNone(muster.checkpoint(self.model))

        self.assertIn("cannot reach muster", said.getvalue())
        self.assertTrue(self.model.exists())
        shutil.rmtree(muster.checkpoint_dir().parent)


class Alone(unittest.TestCase):
    def setUp(self):
        set_environment({})

    def test_everything_works_and_does_nothing(self):
        with silent() as said:
            self.assertIs(muster.report(loss=1), False)
            self.assertEqual(muster.report(loss=1, wait=True), "continue")
            self.assertIs(muster.should_stop(), False)
        self.assertEqual(said.getvalue(), "")
        self.assertIs(muster.is_active(), False)
        self.assertIsNone(muster.trial_id())
        self.assertIsNone(muster.trial_dir())
        self.assertIsNone(muster.resume_dir())
        self.assertIsNone(muster.checkpoint_dir())
        self.assertIsNone(muster.time_left())
        self.assertIs(muster.should_checkpoint(), False)
        with tempfile.TemporaryDirectory() as directory:
            self.assertIsNone(muster.checkpoint(directory))
            self.assertTrue(os.path.isdir(directory))
        self.assertEqual(muster.config(), {})
        self.assertEqual(muster.get("lr", 0.5), 0.5)
        with self.assertRaisesRegex(KeyError, "give a default"):
            muster.get("lr")

    def test_the_config_is_read_nested(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write('{"lr": 1e-05, "augment": {"flip": true}, "a/b": null}')
            file.flush()
            os.environ["MUSTER_CONFIG"] = file.name

            self.assertEqual(muster.get("lr"), 1e-5)
            self.assertIs(muster.get("augment/flip"), True)
            self.assertIsNone(muster.get("a/b", 1))
            self.assertEqual(muster.config()["augment"], {"flip": True})
            with self.assertRaisesRegex(KeyError, "it has a/b, augment, lr"):
                muster.get("depth")

    def test_values_with_an_item_are_taken_as_that(self):
        class Scalar:
            def __init__(self, value):
                self.value = value

            def item(self):
                if isinstance(self.value, list):
                    raise ValueError("can only convert an array of size 1")
                return self.value

        self.assertEqual(_report._plain(Scalar(0.5), "x"), 0.5)
        self.assertEqual(_report._plain(Scalar(math.inf), "x"), "inf")
        self.assertIs(_report._plain(Scalar(True), "x"), True)
        with self.assertRaisesRegex(TypeError, "'x' is not one value: can only"):
            muster.report(x=Scalar([1, 2]))

    def test_what_is_no_metric_is_named(self):
        with self.assertRaisesRegex(TypeError, "'x' has the type object"):
            muster.report(x=object())
        with self.assertRaisesRegex(ValueError, "at least one"):
            muster.report()
        with self.assertRaisesRegex(TypeError, "must be a str, not 1"):
            muster.report({1: 2})


@contextlib.contextmanager
def silent():
    with contextlib.redirect_stderr(io.StringIO()) as said:
        yield said


def set_environment(values):
    for variable in VARIABLES:
        os.environ.pop(variable, None)
    os.environ.update(values)
    _report.connection().after_fork()


if __name__ == "__main__":
    unittest.main()
