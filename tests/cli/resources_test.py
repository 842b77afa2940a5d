# SPDX-License-Identifier: Apache-2.0
"""How many trials run at once, and what each of them sees: by what trials themselves saw."""

import json

from cli_case import CliCase, main, wait_until

# Says that it is up and with what, then waits to be let go.
TRIAL = """
printf '%s\\n' "$CUDA_VISIBLE_DEVICES" > up.new/$MUSTER_TRIAL_ID
printf '%s\\n' "$OMP_NUM_THREADS" >> up.new/$MUSTER_TRIAL_ID
printf '%s\\n' "$MUSTER_BUNDLES" >> up.new/$MUSTER_TRIAL_ID
mv up.new/$MUSTER_TRIAL_ID up/$MUSTER_TRIAL_ID
while [ ! -e go ]; do sleep 0.02; done
"""


class ResourcesTest(CliCase):
    def hold(self, node, trials, at_once, spec):
        """Runs `trials` trials that all wait; checks that exactly `at_once` of them run while the
        others wait for room; returns what those that ran saw, then lets them end."""
        (self.dir / "up").mkdir()
        (self.dir / "up.new").mkdir()
        script = self.write("trial.sh", TRIAL)
        whole = {
            "num_samples": trials,
            "trial": {"command": ["/bin/sh", str(script)]},
            **spec,
        }
        run = self.start("run", self.spec(whole), "--node-resources", node, "--plain")
        wait_until(
            lambda: len(list((self.dir / "up").iterdir())) >= at_once or run.poll() is not None,
            f"{at_once} trials to be up",
        )
        self.wait_for_states(at_once, 1 if trials > at_once else 0)
        seen = [path.read_text().split("\n") for path in sorted((self.dir / "up").iterdir())]
        self.assertEqual(len(seen), at_once)
        (self.dir / "go").touch()
        out, err = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 0, out + err)
        self.assertEqual(len(list((self.dir / "up").iterdir())), trials)
        return seen

    def test_no_request_is_one_cpu(self):
        self.hold("cpu=4", 10, 4, {})

    def test_two_cpus(self):
        seen = self.hold("cpu=4", 5, 2, {"resources": {"cpu": 2}})
        self.assertEqual([trial[1] for trial in seen], ["2", "2"])

    def test_all_cpus(self):
        self.hold("cpu=4", 3, 1, {"resources": {"cpu": 4}})

    def test_half_a_cpu(self):
        self.hold("cpu=4", 12, 8, {"resources": {"cpu": 0.5}})

    def test_three_quarters_of_a_cpu(self):
        self.hold("cpu=4", 8, 5, {"resources": {"cpu": 0.75}})

    def test_nothing_asked_runs_as_many_as_there_are_cores(self):
        self.hold("cpu=4", 8, 4, {"resources": {"gpu": 0}})

    def test_one_gpu_each_and_each_another(self):
        seen = self.hold("cpu=4,gpu=8", 10, 8, {"resources": {"gpu": 1}})
        self.assertEqual(sorted(trial[0] for trial in seen), [str(index) for index in range(8)])

    def test_cpu_and_gpu(self):
        seen = self.hold("cpu=4,gpu=1", 3, 1, {"resources": {"cpu": 2, "gpu": 1}})
        self.assertEqual(seen[0][0], "0")

    def test_large_shares_of_gpus(self):
        seen = self.hold("cpu=4,gpu=2", 4, 2, {"resources": {"gpu": 0.75}})
        self.assertEqual(sorted(trial[0] for trial in seen), ["0", "1"])

    def test_shares_of_one_gpu_are_packed(self):
        seen = self.hold("cpu=4,gpu=2", 6, 4, {"resources": {"cpu": 1, "gpu": 0.5}})
        self.assertEqual(sorted(trial[0] for trial in seen), ["0", "0", "1", "1"])

    def test_many_gpus_each_and_a_limit(self):
        seen = self.hold(
            "cpu=4,gpu=32", 5, 2, {"resources": {"gpu": 16}, "max_concurrent_trials": 10}
        )
        masks = [trial[0].split(",") for trial in seen]
        self.assertEqual(len(set(masks[0] + masks[1])), 32)

    def test_limit_on_concurrency(self):
        self.hold("cpu=4", 6, 3, {"max_concurrent_trials": 3})

    def test_bundles(self):
        group = {"bundles": [{"cpu": 1}, {"cpu": 3, "gpu": 1}]}
        seen = self.hold("cpu=4,gpu=2", 2, 1, {"placement_group": group})
        bundles = json.loads(seen[0][2])
        self.assertEqual([len(bundle["devices"]) for bundle in bundles], [0, 1])

    def test_bundles_with_a_custom_resource(self):
        group = {"bundles": [{"cpu": 1}, {"a": 2}]}
        self.hold("cpu=4,gpu=2,a=2", 2, 1, {"placement_group": group})

    def test_cluster_resources_are_shared(self):
        self.hold(
            "cpu=8",
            4,
            2,
            {"resources": {"cpu": 1, "licence": 2}, "cluster_resources": {"licence": 5}},
        )

    def test_reserve_is_kept_back(self):
        self.hold("cpu=4", 5, 3, {"reserve": {"cpu": 1}})

    def test_a_third_fits_three_times(self):
        self.hold("cpu=1", 4, 3, {"resources": {"cpu": 0.3333}})

    def test_trial_without_gpu_sees_none(self):
        seen = self.hold("cpu=1,gpu=2", 1, 1, {"resources": {"cpu": 1}})
        self.assertEqual(seen[0][0], "")

    def test_request_by_config(self):
        spec = {
            "space": {"use_gpu": {"grid": [True, False]}},
            "resources": [{"when": {"use_gpu": True}, "gpu": 1}, {"cpu": 2}],
        }
        (self.dir / "up").mkdir()
        (self.dir / "up.new").mkdir()
        (self.dir / "go").touch()
        script = self.write("trial.sh", TRIAL)
        self.run_spec(
            {"trial": {"command": ["/bin/sh", str(script)]}, **spec},
            "--node-resources",
            "cpu=4,gpu=1",
        )
        seen = [path.read_text().split("\n") for path in sorted((self.dir / "up").iterdir())]
        self.assertEqual([trial[0] for trial in seen], ["0", ""])


class InfeasibleTest(CliCase):
    def refused(self, node, spec, *words):
        result = self.muster(
            "run",
            self.spec({"trial": {"command": ["/bin/true"]}, **spec}),
            "--node-resources",
            node,
            timeout=10,
        )
        self.assertEqual(result.returncode, 3, result.stdout + result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)
        self.assert_nothing_left()

    def test_too_many_cpus(self):
        self.refused("cpu=4", {"resources": {"cpu": 100}}, "100", "4")

    def test_too_much_memory(self):
        self.refused("cpu=4,memory=8GiB", {"resources": {"memory": "10PB"}}, "10PB", "8GiB")

    def test_resource_that_no_node_has(self):
        self.refused("cpu=4", {"resources": {"foo": 1}}, "foo")

    def test_strict_spread_over_more_nodes_than_there_are(self):
        group = {"bundles": [{"cpu": 2}, {"cpu": 2}], "strategy": "STRICT_SPREAD"}
        self.refused("cpu=8", {"placement_group": group}, "STRICT_SPREAD", "1")

    def test_strict_pack_larger_than_the_node(self):
        group = {"bundles": [{"cpu": 2}, {"cpu": 1}], "strategy": "STRICT_PACK"}
        self.refused("cpu=2", {"placement_group": group}, "STRICT_PACK")

    def test_any_alternative_that_never_fits(self):
        self.refused(
            "cpu=4",
            {
                "space": {"big": {"choice": [True, False]}},
                "resources": [{"when": {"big": True}, "cpu": 64}, {"cpu": 1}],
            },
            "64",
        )


if __name__ == "__main__":
    main()
