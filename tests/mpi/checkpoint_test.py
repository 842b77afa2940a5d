# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in node storage move with their trial, between ranks that play nodes."""

import os
import pathlib
import unittest

from team_test import TeamCase, wait_until

# Three trials on two nodes of one core. Trial 0 saves and fails; trial 2 then holds its node, so that
# trial 0 goes on where trial 1 was. Each tells where it is.
TRIAL = r"""
wait_for() { n=0; until [ -e $1 ]; do sleep 0.05; n=$((n + 1)); [ $n -lt 600 ] || exit 8; done; }
case $MUSTER_TRIAL_ID in
00001) wait_for third; exit 0;;
00002) touch third; wait_for moved; exit 0;;
esac
echo $MUSTER_CHECKPOINT_DIR >> places
new="$MUSTER_CHECKPOINT_DIR/new"
if [ -z "$MUSTER_CHECKPOINT" ]; then
    mkdir -p $new/layers/empty
    head -c 3000000 /dev/urandom > $new/layers/weights
    ln -s layers/weights $new/best
    touch $new/nothing
    sha256sum < $new/best > before
    muster report x=1
    muster checkpoint $new || exit 9
    exit 1
fi
sha256sum < $MUSTER_CHECKPOINT/best > after
[ -d $MUSTER_CHECKPOINT/layers/empty ] && [ -f $MUSTER_CHECKPOINT/nothing ] && touch moved
for step in 2 3; do
    mkdir $new; echo $step > $new/at
    muster report x=$step
    muster checkpoint $new || exit 9
done
"""


class NodeStorageTest(TeamCase):
    def test_a_checkpoint_moves_with_its_trial(self):
        place = self.dir / "scratch"
        spec = self.spec(
            {
                "num_samples": 3,
                "trial": {"shell": TRIAL.replace("{", "{{").replace("}", "}}")},
                "failures": {"max_failures": 1},
                "checkpoints": {"keep": 2, "storage": "node", "path": str(place)},
            }
        )

        run = self.ranks(
            2, "run", spec, "--rank-is-node", "--node-resources", "cpu=1", "--plain", timeout=120
        )

        said = run.stdout + run.stderr
        self.assertEqual({each["state"] for each in self.results()}, {"Completed"}, said)
        places = [pathlib.Path(line) for line in (self.dir / "places").read_text().split()]
        self.assertEqual(len(set(places)), 2, said)
        self.assertEqual((self.dir / "before").read_text(), (self.dir / "after").read_text())
        # The last two, on the second node; the first is gone from both.
        left = {where: sorted(os.listdir(where)) for where in places if where.exists()}
        self.assertEqual(left[places[1]], ["checkpoint_000002", "checkpoint_000003"], said)
        self.assertEqual(left.get(places[0], []), [], said)

    def test_a_lost_node_takes_its_checkpoints_along_and_the_trial_begins_anew(self):
        place = self.dir / "scratch"
        shell = (
            'echo "$MUSTER_CHECKPOINT_DIR ${{MUSTER_CHECKPOINT:-none}}" >> places; '
            '[ $(wc -l < places) -lt 2 ] || exit 0; '
            'mkdir -p "$MUSTER_CHECKPOINT_DIR/new"; muster checkpoint "$MUSTER_CHECKPOINT_DIR/new"; '
            "touch saved; sleep 60"
        )
        spec = self.spec(
            {
                "trial": {"shell": shell},
                "checkpoints": {"storage": "node", "path": str(place)},
            }
        )
        run = self.start_ranks(
            3,
            "run",
            spec,
            *["--rank-is-node", "--dedicated-head", "--node-resources", "cpu=1", "--plain"],
        )
        wait_until(lambda: (self.dir / "saved").exists(), "the checkpoint")
        first = (self.dir / "places").read_text().split()[0]
        lost = next(rank for rank in (1, 2) if f"#{rank}/" in first)
        os.kill(self.rank_pids()[lost], 9)

        out, err = run.communicate(timeout=90)

        self.assertEqual(self.results()[0]["state"], "Completed", out + err)
        attempts = (self.dir / "places").read_text().split("\n")[:2]
        self.assertTrue(attempts[1].endswith(" none"), attempts)


if __name__ == "__main__":
    unittest.main(verbosity=1)
