"""Digits on backends of third parties: the same network with relu, and the same accuracy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import strict_backend

import gradtape as gt

TORCH = Path(__file__).parents[2] / "docs" / "examples" / "gradtape-torch" / "src"


def trained(backend: str, epochs: int) -> dict[str, Any]:
    """Train on a backend, and return the history."""
    (x, y), held_out = gt.datasets.load_digits()
    gt.random.set_seed(0)
    with gt.backend(backend):
        model = gt.layers.Sequential([gt.layers.Dense(32, activation="relu"), gt.layers.Dense(10)])
        run = gt.training.fit(
            model,
            (x[:512], y[:512]),
            epochs=epochs,
            batch_size=128,
            seed=0,
            verbose=False,
            validation_data=(held_out[0][:100], held_out[1][:100]),
            metrics=["accuracy"],
        )
    return run.history


@pytest.fixture(params=["array-api-strict", "torch", "dask"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    plugin: Any = strict_backend.Plugin()
    if request.param != strict_backend.NAME:
        pytest.importorskip(request.param)
        pytest.importorskip("array_api_compat", reason="pip install array-api-compat")
    if request.param == "torch":
        monkeypatch.syspath_prepend(TORCH)
        import gradtape_torch as plugin
    elif request.param == "dask":
        import dask_backend as plugin
    gt.register_plugin(plugin, "elsewhere")
    try:
        yield request.param
    finally:
        gt.unregister_plugin("elsewhere")


@pytest.mark.filterwarnings("ignore")
def test_a_network_with_relu_learns_digits_as_on_numpy(place: str) -> None:
    wanted, found = trained("numpy", 3), trained(place, 3)
    assert wanted.keys() == found.keys()
    for name, values in wanted.items():
        if "loss" in name or "accuracy" in name:
            np.testing.assert_allclose(found[name], values, rtol=1e-4)
    assert found["accuracy"][-1] > 1.3 * found["accuracy"][0]
