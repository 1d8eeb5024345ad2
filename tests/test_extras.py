"""The base works without each of its extras, and says what is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from without_extras import EXTRAS, build

#: By extra, a use of it, and the words of the error without it.
USES = {
    "autograph": ("gt.function(abs, autograph=True)(gt.ones(2))", "'autograph.running'"),
    "compat": ("gt.compat", "gradtape.compat is not in this installation"),
    "datasets": ("gt.datasets.load('digits')", "gradtape.datasets is not in this installation"),
    "export": ("gt.export.onnx", "gradtape.export is not in this installation"),
    "interop": ("gt.interop.torch", "gradtape.interop is not in this installation"),
    "plot": ("gt.plot.history", "gradtape.plot is not in this installation"),
    "profiler": ("gt.profile", "gradtape.profiler is not in this installation"),
    "reports": ("gt.saving.inspect('model.h5').html()", "'reports.write_page'"),
    "weights": (
        "gt.save_weights(model, 'a.safetensors', layout='pytorch')",
        "got 'pytorch'; if the plugin of that layout is missing",
    ),
    "sklearn": ("gt.sklearn.Classifier", "gradtape.sklearn is not in this installation"),
    "plugins.cupy": ("gt.backend('cupy').__enter__()", "no plugin provides the backend 'cupy'"),
    "plugins.fused": (
        "gt.executor('fused').__enter__()",
        "no plugin provides the executor 'fused'",
    ),
    "plugins.jax": ("gt.backend('jax').__enter__()", "no plugin provides the backend 'jax'"),
    "plugins.mpi": ("gt.registry().engine('mpi')", "no plugin provides the engine 'mpi'"),
}

#: What the base does: it trains, compiles, saves and loads.
PROGRAM = """
import sys
import numpy as np
import gradtape as gt

model = gt.layers.Sequential([gt.layers.Dense(4, activation="tanh"), gt.layers.Dense(1)])
x = np.linspace(-1, 1, 32, dtype="float32").reshape(-1, 1)
settings = {"optimizer": "sgd", "loss": "mse", "batch_size": 8, "checkpoint": "run.h5"}
gt.training.fit(model, (x, x**2), epochs=2, verbose=False, **settings)
gt.save(model, "model.h5")
assert np.array_equal(gt.load("model.h5")(x).numpy(), model(x).numpy())
model.save_weights("weights.h5")
model.load_weights("weights.h5")
gt.saving.inspect("model.h5")
assert gt.jacobian(gt.tanh)(gt.ones(3)).shape == (3, 3)
try:
    USE
except Exception as error:
    print("said:", error)
"""


#: What extras do with other ones, and the words of the error without those.
TOGETHER = {
    "reports": ("gt.plot.model(model)", "gradtape.reports is not in this installation"),
    "plugins.jax": (
        "gt.export.stablehlo(gt.sin, gt.TensorSpec([3]))",
        "no plugin provides the backend 'jax'",
    ),
}


@pytest.mark.parametrize("extra", TOGETHER)
def test_an_extra_says_which_other_one_it_needs(extra: str, tmp_path: Path) -> None:
    use, words = TOGETHER[extra]
    assert words in _said(use, extra, tmp_path)


def test_commands_say_which_extra_they_need(tmp_path: Path) -> None:
    environment = build(tmp_path / "site", ["profiler"])
    done = subprocess.run(
        [sys.executable, "-m", "gradtape", "profile", "script.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "invalid choice: 'profile'" in done.stderr
    assert "pip install --force-reinstall gradtape" in done.stderr


@pytest.mark.parametrize("extra", EXTRAS)
def test_the_base_works_without(extra: str, tmp_path: Path) -> None:
    use, words = USES[extra]
    said = _said(use, extra, tmp_path)
    assert words in said
    # what is missing, why, and how to get it
    assert "pip install --force-reinstall gradtape" in said


def _said(use: str, extra: str, tmp_path: Path) -> str:
    """Run the program without an extra; return what it says about the extra's use."""
    environment = build(tmp_path / "site", [extra])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM.replace("USE", use)],
        cwd=tmp_path,
        env={**environment, "OMP_NUM_THREADS": "1"},  # fit warns of threads on a busy machine
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
