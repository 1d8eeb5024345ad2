"""Saving, loading and verifying files; importing the package."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

import eager
import files
import numpy as np

import gradtape as gt

from . import comparison
from .comparison import SMALL, Comparison

MEGABYTES = 32
NUMPY = "import numpy"


class Files(Comparison):
    """Weights of 32 MB: ``numpy.save`` with an fsync, and ``numpy.load``, do the same."""

    rows = (
        ("save 32 MB, 1 tensor", "save", "numpy.save"),
        ("load 32 MB, 1 tensor", "load", "numpy.load"),
        ("save 32 MB, 500 tensors", "save many", "numpy.save"),
        ("load 32 MB, 500 tensors", "load many", "numpy.load"),
    )
    rounds = 5

    def times(self) -> dict[str, float]:
        with tempfile.TemporaryDirectory() as self.folder:
            return super().times()

    def programs(self) -> dict[str, Callable[[], Any]]:
        total = MEGABYTES * 2**20
        (data,) = files.arrays(1, total).values()
        path = os.path.join(self.folder, "a.npy")

        def save() -> None:
            with open(path, "wb") as file:
                np.save(file, data)
                file.flush()
                os.fsync(file.fileno())

        found: dict[str, Callable[[], Any]] = {
            "numpy.save": save,
            "numpy.load": lambda: np.load(path),
        }
        for suffix, count in (("", 1), (" many", 500)):
            folder = os.path.join(self.folder, f"{count}")
            os.mkdir(folder)
            made = files.contender("gradtape", count, folder, total)
            found[f"save{suffix}"], found[f"load{suffix}"] = made
        return found

    def setup_cache(self) -> Any:
        return self.measured()


class Models(Comparison):
    """A Dense of 100 by 100 with its traces and golden vectors."""

    rows = (
        ("save a Dense with golden vectors", "save", SMALL),
        ("load a Dense", "load", SMALL),
        ("verify a Dense", "verify", SMALL),
    )
    needs = ("saving.verify", "layers.Dense")
    rounds = 5

    def times(self) -> dict[str, float]:
        with tempfile.TemporaryDirectory() as self.folder:
            return super().times()

    def programs(self) -> dict[str, Callable[[], Any]]:
        path = os.path.join(self.folder, "dense.h5")
        model = gt.layers.Dense(100)
        model(gt.ones((2, 100)))
        gt.save(model, path)
        return {
            **comparison.steps(SMALL),
            "save": lambda: gt.save(model, path),
            "load": lambda: gt.load(path),
            "verify": lambda: gt.saving.verify(path),
        }

    def setup_cache(self) -> Any:
        return self.measured()


class Imports(Comparison):
    """Imports in new processes, compared with that of NumPy."""

    rows = (
        ("import gradtape", "import gradtape", "import numpy"),
        (
            "import gradtape, and a first op",
            "import gradtape; gradtape.constant(1.0) + 1.0",
            "import numpy",
        ),
        ("import gradtape.compat.tensorflow", "import gradtape.compat.tensorflow", "import numpy"),
    )
    needs = ("compat.tensorflow",)
    rounds = 5

    def times(self) -> dict[str, float]:
        return {
            name: eager.import_time(name, self.rounds, "process_time") for name in self.programs()
        }

    def programs(self) -> dict[str, Callable[[], Any]]:
        names = {name for row in self.rows for name in row[1:]}
        return {name: lambda name=name: eager.import_time(name, 1) for name in sorted(names)}

    def setup_cache(self) -> Any:
        return self.measured()
