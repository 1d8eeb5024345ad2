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
    "compat": ("import gradtape.compat.tensorflow", "gradtape.compat"),
    "datasets": ("gt.datasets.load('digits')", "gradtape.datasets is not in this installation"),
    "export": ("gt.export.onnx", "gradtape.export is not in this installation"),
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


@pytest.mark.parametrize("extra", EXTRAS)
def test_the_base_works_without(extra: str, tmp_path: Path) -> None:
    environment = build(tmp_path / "site", [extra])
    use, words = USES[extra]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM.replace("USE", use)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert words in done.stdout, done.stdout
