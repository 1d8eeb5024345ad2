"""Saving and loading beside safetensors, what golden vectors cost, and a fresh process.

Every figure is taken in a process of its own; contenders take turns, and the median of the rounds
counts. The page cache is warm. Both save to disk for certain (safetensors by an fsync afterwards),
and gradtape compares the digest of all that it loads; safetensors has none.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

BYTES = 512 * 2**20
COUNTS = (1, 2004)
DENSE = (100, 1600, 6400)


def arrays(count: int, total: int = BYTES) -> dict[str, np.ndarray]:
    """Return so many float32 arrays of so many bytes together."""
    size = total // 4 // count
    random = np.random.default_rng(0)
    return {f"w{i}": random.random(size, dtype=np.float32) for i in range(count)}


def timed(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    kept = action()
    seconds = time.perf_counter() - start
    del kept
    return seconds


def peak(action: Callable[[], Any]) -> float:
    """Return how much the peak of resident memory rises, as a multiple of the data."""
    Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text
    before = next(int(x.split()[1]) for x in status().splitlines() if x.startswith("VmRSS"))
    kept = action()
    after = next(int(x.split()[1]) for x in status().splitlines() if x.startswith("VmHWM"))
    del kept
    return (after - before) * 1024 / BYTES


def contender(
    name: str, count: int, folder: str, total: int = BYTES
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Return what saves and what loads."""
    data = arrays(count, total)
    if name == "safetensors":
        from safetensors.numpy import load_file, save_file

        path = os.path.join(folder, "a.safetensors")

        def save() -> None:
            save_file(data, path)
            with open(path, "rb") as file:
                os.fsync(file.fileno())

        return save, lambda: load_file(path)
    import gradtape as gt

    model = gt.Module("model")
    model.weights = [gt.Variable(array) for array in data.values()]
    data.clear()
    path = os.path.join(folder, "a.h5")
    return lambda: gt.save(model, path), lambda: gt.load(path)


def files(name: str, count: int, folder: str) -> dict[str, float]:
    """Time saving and loading once each, after one of each to warm up."""
    save, load = contender(name, count, folder)
    save()
    load()
    return {"save": timed(save), "load": timed(load)}


def memory(name: str, count: int, folder: str) -> dict[str, float]:
    """Return the peaks of saving and loading."""
    save, load = contender(name, count, folder)
    return {"save": peak(save), "load": peak(load)}


def golden(units: int, folder: str) -> dict[str, float]:
    """Time saving a Dense of ``units`` by ``units`` without golden vectors, and with them."""
    import gradtape as gt

    model = gt.layers.Dense(units)
    model(gt.ones((2, units)))
    path = os.path.join(folder, "dense.h5")
    gt.save(model, path, golden=False)
    found = {}
    for key, wanted in (("without", False), ("with", True)):
        found[key] = statistics.median(
            timed(lambda wanted=wanted: gt.save(model, path, golden=wanted)) for _ in range(3)
        )
    found["bytes"] = float(os.path.getsize(path))
    return found


def first(name: str, folder: str) -> dict[str, float]:
    """Return how long a fresh process takes to its first prediction of ten digits."""
    code = {
        "gradtape": (
            "import gradtape as gt; m = gt.load('digits.h5'); "
            "print(m(gt.zeros((10, 64)), training=False).shape)"
        ),
        "PyTorch": (
            "import torch; from torch import nn; m = nn.Sequential(nn.Linear(64, 128), "
            "nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 10)); "
            "m.load_state_dict(torch.load('digits.pt', weights_only=True)); m.eval(); "
            "print(m(torch.zeros(10, 64)).shape)"
        ),
    }[name]
    run = [sys.executable, "-c", code]
    command: Callable[[], Any] = lambda: subprocess.run(  # noqa: E731
        run, cwd=folder, check=True, capture_output=True
    )
    command()
    return {"seconds": statistics.median(timed(command) for _ in range(5))}


def prepare(folder: str) -> dict[str, float]:
    """Write the models of :func:`first`."""
    import torch
    from torch import nn

    import gradtape as gt
    from gradtape.cli.demo import Digits

    model = Digits()
    model(gt.zeros((10, 64)))
    gt.save(model, os.path.join(folder, "digits.h5"))
    plain = nn.Sequential(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 10))
    torch.save(plain.state_dict(), os.path.join(folder, "digits.pt"))
    return {}


TASKS: dict[str, Callable[..., dict[str, float]]] = {
    "files": files,
    "memory": memory,
    "golden": golden,
    "first": first,
    "prepare": prepare,
}


def apart(task: str, *arguments: Any) -> dict[str, float]:
    """Run a task in a process of its own."""
    command = [sys.executable, __file__, "--task", json.dumps([task, *arguments])]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def medians(runs: list[dict[str, float]]) -> dict[str, float]:
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", help="where to write; a temporary folder by default")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        name, *arguments = json.loads(options.task)
        print(json.dumps(TASKS[name](*arguments)))
        return
    names = ("gradtape", "safetensors")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        print("| 512 MB of float32 | save, s | ÷ safetensors | load, s | ÷ safetensors |")
        print("| --- | ---: | ---: | ---: | ---: |")
        for count in COUNTS:
            runs: dict[str, list[dict[str, float]]] = {name: [] for name in names}
            for _ in range(options.rounds):
                for name in names:
                    runs[name].append(apart("files", name, count, folder))
            found = {name: medians(runs[name]) for name in names}
            base = found["safetensors"]
            for name, x in found.items():
                tensors = f"{count:,} tensor{'s' * (count > 1)}"
                print(
                    f"| {name}, {tensors} | {x['save']:.3f} | {x['save'] / base['save']:.2f} | "
                    f"{x['load']:.3f} | {x['load'] / base['load']:.2f} |"
                )
        print("\n| peak memory, times the data | save | load |\n| --- | ---: | ---: |")
        for count in COUNTS:
            for name in names:
                x = apart("memory", name, count, folder)
                print(f"| {name}, {count:,} | {x['save']:.2f} | {x['load']:.2f} |")
        print("\n| `save` of a Dense | without golden, s | with, s | golden ÷ save | bytes |")
        print("| --- | ---: | ---: | ---: | ---: |")
        for units in DENSE:
            x = apart("golden", units, folder)
            ratio = (x["with"] - x["without"]) / x["without"]
            print(
                f"| {units:,} by {units:,} | {x['without']:.3f} | {x['with']:.3f} | {ratio:.2f} | "
                f"{x['bytes']:,.0f} |"
            )
        apart("prepare", folder)
        seconds = {
            name: apart("first", name, folder)["seconds"] for name in ("gradtape", "PyTorch")
        }
        print("\n| fresh process to ten digits | s | ÷ PyTorch |\n| --- | ---: | ---: |")
        for name, value in seconds.items():
            print(f"| {name} | {value:.3f} | {value / seconds['PyTorch']:.2f} |")


if __name__ == "__main__":
    main()
