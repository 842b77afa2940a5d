# SPDX-License-Identifier: Apache-2.0
"""Trains a small neural network on 1,797 handwritten digits, reporting after every epoch.

The settings come from the command line, so the same script runs by hand:

    python3 train.py --lr 0.01 --hidden 64 --epochs 5

Under muster, muster.report() sends accuracy and loss to the run, and a checkpoint is saved every five
epochs; a trial that runs again goes on from there.
"""

import argparse
import os
import pickle
import sys
import warnings

# Run from the source tree: the module need not be installed.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python", "src"))

import muster
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier


def settings():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lr", type=float, default=0.01, help="learning rate")
    parser.add_argument("--hidden", type=int, default=64, help="neurons in the hidden layer")
    parser.add_argument("--batch", type=int, default=64, help="digits in a batch")
    parser.add_argument("--optimizer", choices=["sgd", "adam"], default="adam")
    parser.add_argument("--momentum", default="", help="of sgd; empty for adam")
    parser.add_argument("--alpha", type=float, default=1e-4, help="strength of the L2 penalty")
    parser.add_argument("--epochs", type=int, default=20)
    return parser.parse_args()


def load():
    """The last epoch and the network of the checkpoint to resume from; epoch 0 if there is none."""
    if not muster.resume_dir():
        return 0, None
    with open(muster.resume_dir() / "network", "rb") as file:
        return pickle.load(file)


def save(epoch, network):
    if muster.checkpoint_dir():
        new = muster.checkpoint_dir() / "new"
        new.mkdir(parents=True)
        with open(new / "network", "wb") as file:
            pickle.dump((epoch, network), file)
        muster.checkpoint(new)


def main():
    chosen = settings()
    warnings.filterwarnings("ignore")
    digits = load_digits()
    train_x, test_x, train_y, test_y = train_test_split(
        digits.data / 16.0, digits.target, test_size=0.25, random_state=0, stratify=digits.target
    )
    done, network = load()
    network = network or MLPClassifier(
        hidden_layer_sizes=(chosen.hidden,),
        solver=chosen.optimizer,
        learning_rate_init=chosen.lr,
        momentum=float(chosen.momentum or 0.9),
        alpha=chosen.alpha,
        batch_size=chosen.batch,
        random_state=1,
    )
    for epoch in range(done + 1, chosen.epochs + 1):
        network.partial_fit(train_x, train_y, classes=range(10))
        muster.report(
            step=epoch,
            accuracy=network.score(test_x, test_y),
            loss=log_loss(test_y, network.predict_proba(test_x)),
        )
        if epoch % 5 == 0 or muster.should_checkpoint():
            save(epoch, network)
        if muster.should_stop():
            break


if __name__ == "__main__":
    main()
