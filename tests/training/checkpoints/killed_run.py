"""A training run that may be killed at any moment and started again.

python killed_run.py FOLDER    # train, or go on from the folder's last checkpoint; write result.npz
python killed_run.py --kills N # kill N runs, and compare each with one left alone

What is compared is bit for bit: weights, the optimizer's state, random states and the history.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import gradtape as gt

EPOCHS = 5


class Patience:
    """Halve the learning rate when the loss does not fall, and stop when it never does."""

    def __init__(self, optimizer: gt.training.Optimizer) -> None:
        self.optimizer, self.best, self.waited = optimizer, float("inf"), 0

    def on_train_begin(self) -> None:
        self.best, self.waited = float("inf"), 0

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> bool:
        self.waited = 0 if logs["val_loss"] < self.best else self.waited + 1
        self.best = min(self.best, logs["val_loss"])
        if self.waited:
            self.optimizer.learning_rate = float(self.optimizer.learning_rate) / 2
        return self.waited > 3


class Noisy(gt.layers.Layer):
    """Noise from the generator that all share: its state is part of the run."""

    def call(self, x: Any, training: bool = False) -> Any:
        return x + 0.1 * gt.random.normal(x.shape) if training else x


def run(folder: Path) -> None:
    """Train, or go on, and write what came of it."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(203, 6)).astype("float32")
    y = (x[:, 0] * x[:, 1] > 0).astype(int)
    gt.random.set_seed(0)
    layers = gt.layers
    model = layers.Sequential(
        [
            layers.Dense(16, "tanh"),
            layers.BatchNorm(),
            layers.Dropout(0.2),
            Noisy(),
            layers.Dense(2),
        ]
    )
    optimizer = gt.training.Adam(0.02)
    checkpoint = gt.training.Checkpoint(model=model, optimizer=optimizer)
    history = gt.training.fit(
        model,
        (x, y),
        epochs=EPOCHS,
        batch_size=8,
        optimizer=optimizer,
        validation_split=0.2,
        seed=4,
        verbose=False,
        callbacks=[Patience(optimizer)],
        checkpoint=gt.training.CheckpointManager(checkpoint, folder, keep=3, best="val_loss"),
        save_every=2,
        resume=True,
    )
    state = {
        **model.named_variables,
        **{f"optimizer/{k}": v for k, v in optimizer.named_variables.items()},
    }
    arrays = {name.replace("/", "."): variable.numpy() for name, variable in state.items()}
    arrays["drawn"] = gt.random.normal(4).numpy()
    np.savez(folder / "result.npz", history=json.dumps([history.epoch, history.history]), **arrays)


def start(folder: Path) -> subprocess.Popen[bytes]:
    folder.mkdir(exist_ok=True)
    command = [sys.executable, __file__, str(folder)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def whole(folder: Path) -> dict[str, bytes]:
    """Train without being killed, and return what came of it."""
    with start(folder) as process:
        _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said.decode()
    return result(folder)


def killed(folder: Path, kills: int, seed: int) -> tuple[dict[str, bytes], list[str]]:
    """Train with kills at random moments of it; return what came of it and where they fell."""
    rng, places = random.Random(seed), []
    for _ in range(kills):
        before = set(folder.glob("checkpoint-*.h5"))
        with start(folder) as process:
            # wait until it has got somewhere; then any moment
            deadline = time.monotonic() + 60
            while process.poll() is None and time.monotonic() < deadline:
                if set(folder.glob("checkpoint-*.h5")) - before:
                    break
                time.sleep(0.001)
            time.sleep(rng.uniform(0, 0.25))
            process.kill()
            process.wait()
        names = sorted(path.stem for path in folder.glob("checkpoint-*.h5"))
        places.append(names[-1] if names else "nothing")
        if process.returncode == 0:
            break
    return whole(folder), places


def result(folder: Path) -> dict[str, bytes]:
    with np.load(folder / "result.npz") as found:
        return {name: bytes(str(x.dtype), "ascii") + x.tobytes() for name, x in found.items()}


def main(kills: int) -> int:
    equal = 0
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        expected = whole(root / "whole")
        for i in range(kills):
            found, places = killed(root / f"run{i}", 1 + i % 3, i)
            same = found == expected
            equal += same
            left = [path.name for path in (root / f"run{i}").iterdir() if path.name[0] == "."]
            said = "equal" if same else "DIFFERS"
            print(f"{i + 1:3d}: killed at {', '.join(places)}: {said}; left behind: {left}")
    print(f"{equal} of {kills} equal")
    return equal != kills


if __name__ == "__main__":
    if sys.argv[1] == "--kills":
        sys.exit(main(int(sys.argv[2])))
    run(Path(sys.argv[1]))
