"""gradtape's own plugins, as if another distribution had them: everything must be the same.

Only reserved names may tell them apart, so the disguise allows these.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = """
import json, sys, warnings
disguised, folder = sys.argv[1] == "disguised", sys.argv[2]
from gradtape.core.registry import host, info, loading
if disguised:
    find = loading.installed_plugins
    def found(hooks):
        plugins, notes = find(hooks)
        for each in plugins:
            each.info.distribution, each.info.version = "acme", "7.0"
        return plugins, notes
    host.installed_plugins = found
    info.PluginInfo.may_use_reserved_names = property(lambda self: True)

import numpy as np
import gradtape as gt

told = {}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    gt.random.set_seed(1)
    x = gt.random.normal((6, 3))
    w = gt.Variable(gt.random.normal((3, 3)))

    @gt.function
    def step(x):
        with gt.GradientTape() as tape:
            loss = gt.sum(gt.nn.softmax(gt.tanh(x @ w)) ** 2) + gt.mean(gt.nn.relu(x))
        return loss, tape.gradient(loss, w)

    told["step"] = [y.tolist() for y in step(x)]
    told["explain"] = step.explain(x)
    told["batched"] = gt.vmap(gt.grad(lambda v: gt.sum(gt.sin(v) * v)))(x).tolist()
    told["hessian"] = gt.hessian(lambda v: gt.sum(v**3))(x[0]).tolist()
    told["erf"] = gt.grad(gt.erf)(0.3).item()
    model = gt.layers.Sequential([
        gt.layers.Dense(4, activation="relu", kernel_regularizer="l2"),
        gt.layers.BatchNorm(),
        gt.layers.Dense(2, kernel_initializer="he_normal"),
    ])
    data = np.linspace(-1, 1, 24, dtype="float32").reshape(8, 3), np.arange(8) % 2
    fitted = gt.training.fit(
        model, data, loss="sparse_categorical_crossentropy", optimizer="adam",
        metrics=["accuracy"], epochs=3, verbose=0,
    )
    told["history"] = {k: v for k, v in fitted.history.items() if "time" not in k}
    gt.save(model, folder + "/m.h5")
    loaded = gt.load(folder + "/m.h5")
    told["loaded"] = [type(v).__name__ for v in loaded.layers]
    told["equal"] = bool(np.array_equal(loaded(data[0]), model(data[0])))
    model.save_weights(folder + "/w.safetensors")
    model.load_weights(folder + "/w.safetensors")
    unit = gt.function(lambda v: gt.exp(v) + gt.where(v > 0, v, 0.0))
    told["unit"] = unit(x).tolist()
    for name in ("plain", "planned"):
        with gt.executor(name):
            told[name] = unit(x).tolist()
    told["status"] = {x.name: x.problem for x in gt.registry().plugins}
    told["notes"] = [x.notes + x.clashes for x in gt.registry().plugins]
told["warnings"] = sorted({str(x.message) for x in caught})
print(json.dumps(told))
"""


def told(tmp_path: Path, way: str) -> dict[str, Any]:
    folder = tmp_path / way
    folder.mkdir()
    command = [sys.executable, "-c", PROGRAM, way, str(folder)]
    alone = {**os.environ, "OMP_NUM_THREADS": "1"}  # fit measures threads if there are several
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, env=alone
    )
    assert done.returncode == 0, done.stderr
    text = done.stdout.replace("acme 7.0", "gradtape 0.1.0").replace(f"/{way}/", "/")
    found: dict[str, Any] = json.loads(text)
    return found


def test_nothing_depends_on_who_ships_a_plugin(tmp_path: Path) -> None:
    ours, disguised = (told(tmp_path, way) for way in ("plain", "disguised"))
    assert ours["equal"]
    for what, found in ours.items():
        assert disguised[what] == found, what
