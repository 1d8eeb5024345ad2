"""Train on a file that is larger than the memory used: the resident memory along an epoch.

``python docs/benchmarks/larger_than_memory.py`` writes 4 GB of data to a temporary folder, trains
on them through ``gt.data.Dataset``, prints the memory along the way, and exits with 1 if its peak
is above 300 MB. ``--gigabytes`` and ``--folder`` say how much, and where.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from timing import as_markdown, resident

import gradtape as gt

MOST = 300e6
FEATURES, BATCH = 1024, 256
BLOCK = 8192


def write(path: Path, rows: int) -> None:
    """Write inputs, and labels that a linear rule gives them, block by block."""
    random = np.random.default_rng(0)
    rule = random.standard_normal(FEATURES, dtype="float32")
    with h5py.File(path, "w") as file:
        x = file.create_dataset("x", (rows, FEATURES), "float32")
        y = file.create_dataset("y", (rows,), "int64")
        for start in range(0, rows, BLOCK):
            stop = min(start + BLOCK, rows)
            part = random.standard_normal((stop - start, FEATURES), dtype="float32")
            x[start:stop] = part
            y[start:stop] = part @ rule > 0


class Curve(gt.training.Callback):
    """Notes the resident memory as batches go by."""

    def __init__(self, every: int) -> None:
        self.every = every
        self.noted: list[tuple[int, int]] = []

    def on_train_batch_end(self, batch: int, logs: dict[str, float]) -> None:
        """Note it after some batches."""
        if (batch + 1) % self.every == 0:
            self.noted.append((batch + 1, resident()))


def trained(path: Path, batches: int) -> tuple[Curve, float]:
    """Train for an epoch; return the memory along it, and the accuracy of the epoch."""
    data = gt.data.Dataset.from_hdf5(path, "x", "y").batch(BATCH).shuffle(16, seed=0).prefetch(2)
    layers = gt.layers
    model = layers.Sequential([layers.Dense(32, activation="relu"), layers.Dense(2)])
    curve = Curve(max(1, batches // 10))
    run = gt.training.fit(
        model, data, optimizer=gt.training.Adam(1e-3), callbacks=[curve], verbose=False
    )
    return curve, run.history["accuracy"][0]


def main() -> int:
    """Measure, and print; return 1 if it took too much."""
    options = argparse.ArgumentParser()
    options.add_argument("--gigabytes", type=float, default=4.0)
    options.add_argument("--folder")
    given: Any = options.parse_args()
    rows = round(given.gigabytes * 1e9 / (4 * FEATURES))
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        path = Path(folder) / "data.h5"
        write(path, rows)
        size = path.stat().st_size
        resident(reset=True)
        before, start = resident(), time.perf_counter()
        curve, accuracy = trained(path, -(-rows // BATCH))
        seconds = time.perf_counter() - start
    lines = [
        ["batches", "data gone through", "resident"],
        ["0", "0.00 GB", f"{before / 1e6:.0f} MB"],
    ]
    for batches, used in curve.noted:
        seen = batches * BATCH * FEATURES * 4 / 1e9
        lines.append([f"{batches:,}", f"{seen:.2f} GB", f"{used / 1e6:.0f} MB"])
    print(as_markdown(lines))
    peak = resident(peak=True)
    print(
        f"\n{size / 1e9:.2f} GB in {seconds:.0f} s, peak {peak / 1e6:.0f} MB resident, accuracy of "
        f"the epoch {accuracy:.1%}"
    )
    return int(peak > MOST)


if __name__ == "__main__":
    sys.exit(main())
