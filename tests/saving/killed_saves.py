"""Kill processes in the middle of ``gt.save``, and look at what they leave.

``python tests/saving/killed_saves.py 500`` prints the counts for so many kills.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import gradtape as gt
from gradtape.saving.container import replace

#: How many variables, and how many float32 each has.
SIZES = ((1, 10), (3, 50_000), (40, 2_500), (2, 1_000_000), (5, 2_000_000))


def model_of(count: int, size: int, value: float) -> gt.Module:
    """Return a module of which every number is ``value``."""
    model = gt.Module(name="m")
    model.parts = [gt.Variable(np.full(size, value, np.float32)) for _ in range(count)]
    return model


def value_of(path: Path) -> float:
    """Return the value that a file's numbers have; they are all the same in a whole one."""
    found = {float(x) for v in gt.load(path).variables for x in np.unique(v.numpy())}
    (value,) = found
    return value


def kill_one(path: Path, count: int, size: int, after: float) -> None:
    """Kill a process some time after it began to save over a file again and again."""
    ready, told = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            models = [model_of(count, size, value) for value in (2.0, 3.0)]
            os.write(told, b"x")
            while True:
                for model in models:
                    gt.save(model, path)
        finally:
            os._exit(1)
    os.close(told)
    os.read(ready, 1)
    os.close(ready)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "a save failed"


def kill_saves(folder: Path, kills: int, seed: int = 0) -> Counter[str]:
    """Return how many of so many kills left a whole file, and how many left litter."""
    draw = random.Random(seed)
    counts: Counter[str] = Counter(kills=kills)
    for i in range(kills):
        count, size = SIZES[i % len(SIZES)]
        path = folder / f"model-{count}-{size}.h5"
        begin = time.perf_counter()
        gt.save(model_of(count, size, 1.0), path)
        duration = time.perf_counter() - begin
        kill_one(path, count, size, draw.uniform(0.0, 2.5 * duration))
        value = value_of(path)
        counts["whole"] += value in (1.0, 2.0, 3.0)
        counts["old"] += value == 1.0
        left = litter(folder)
        counts["litter after the kill"] += len(left)
        counts["half-written after the kill"] += sum(not is_whole(folder / name) for name in left)
        gt.save(model_of(count, size, 4.0), path)
        assert value_of(path) == 4.0
        counts["litter after the next save"] += len(litter(folder))
    return counts


def is_whole(path: Path) -> bool:
    """Whether a file can be read, and holds the values of one save."""
    try:
        return value_of(path) in (2.0, 3.0)
    except gt.saving.LoadError:
        return False


def litter(folder: Path) -> list[str]:
    """Return the names in a folder that are no models."""
    return [name for name in os.listdir(folder) if not name.startswith("model-")]


def without_unnamed_files() -> Any:
    """Return what takes the place of opening an unnamed file where there is no such thing."""
    return lambda self, mode: False


if __name__ == "__main__":
    for way in ("unnamed", "named"):
        if way == "named":
            replace._New._without_name = without_unnamed_files()  # type: ignore[method-assign]
        with tempfile.TemporaryDirectory() as name:
            print(way, dict(kill_saves(Path(name), int(sys.argv[1]))), flush=True)
