"""Every layer and metric of a file, its configuration changed: refused, or loaded in no memory."""

from __future__ import annotations

import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forge import forged
from layer_cases import FAMILIES

import gradtape as gt
from gradtape.saving import LoadError
from gradtape.training import metrics

MOST = 30 * 2**20
HUGE = 2**50


#: Whose settings are no integers.
WITHOUT = {
    "Activation", "ActivityRegularization", "Add", "AdditiveAttention", "Attention", "Average",
    "ELU", "Flatten",
    "GlobalAveragePooling1D", "GlobalAveragePooling2D",
    "GlobalAveragePooling3D", "GlobalMaxPooling1D", "GlobalMaxPooling2D", "GlobalMaxPooling3D",
    "Identity", "LeakyReLU", "Masking", "Maximum", "Minimum", "Multiply", "Precision", "ReLU",
    "Rescaling", "Subtract",
    "TimeDistributed",
}  # fmt: skip


def metric(name: str, *settings: Any) -> Any:
    return lambda: getattr(metrics, name)(*settings)


METRICS: dict[str, Any] = {
    "AUC": metric("AUC", 5),
    "ConfusionMatrix": metric("ConfusionMatrix", 2),
    "IoU": metric("IoU", 2, [0]),
    "MeanIoU": metric("MeanIoU", 2),
    "Precision": metric("Precision", [0.2, 0.5]),
    "PrecisionAtRecall": metric("PrecisionAtRecall", 0.5, 5),
    "SparseTopKCategoricalAccuracy": metric("SparseTopKCategoricalAccuracy"),
}


def saved(name: str, path: Path) -> Path:
    """Save a layer that was called, or a metric."""
    if name in METRICS:
        module = METRICS[name]()
    else:
        case = FAMILIES[name]
        module = case.make()
        module(case.inputs(1))
    with warnings.catch_warnings(action="ignore"):
        gt.save(module, path, golden=False)
    return path


def changed(encoded: Any) -> Any:
    """Return a value of a configuration with huge integers in it; the same if it has none."""
    if isinstance(encoded, dict):
        return {key: changed(value) for key, value in encoded.items()}
    if isinstance(encoded, list):
        return [changed(value) for value in encoded]
    return HUGE if type(encoded) is int else encoded


@pytest.mark.parametrize("name", sorted({*FAMILIES, *METRICS}))
def test_huge_settings_take_no_memory_at_load(name: str, tmp_path: Path) -> None:
    path = saved(name, tmp_path / "a.h5")
    keys: list[tuple[int, str]] = []

    def look(manifest: Any) -> None:
        for number, record in enumerate(manifest["modules"]):
            config = record.get("config") or {}
            keys.extend((number, key) for key, x in config.items() if changed(x) != x)

    forged(path, manifest=look)
    for number, key in keys:
        saved(name, path)

        def lie(manifest: Any, number: int = number, key: str = key) -> None:
            config = manifest["modules"][number]["config"]
            config[key] = changed(config[key])

        forged(path, manifest=lie)
        cause = None
        tracemalloc.start()
        try:
            gt.load(path)
        except LoadError as error:
            cause = error.__context__
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert not isinstance(cause, MemoryError), key
        assert peak < MOST, key
    assert keys or name.split()[0] in WITHOUT


X = np.ones((2, 5, 3), "float32")
LAYERS: dict[str, Any] = {
    "dense": lambda: [gt.layers.Dense(2)],
    "steps": lambda: [gt.layers.TimeDistributed(gt.layers.Dense(2))],
    "both ways": lambda: [gt.layers.Bidirectional(gt.layers.GRU(2))],
    "stacked": lambda: [gt.layers.RNN([gt.layers.LSTMCell(2), gt.layers.GRUCell(1)])],
    "stateful": lambda: [gt.layers.LSTM(2, stateful=True)],
    "heads": lambda: [gt.layers.MultiHeadAttention(2, 2)],
}


def of(manifest: Any, class_name: str) -> Any:
    return next(x for x in manifest["modules"] if x["class_name"] == class_name)


def sets(class_name: str, name: str, value: Any) -> Any:
    def lie(manifest: Any) -> None:
        of(manifest, class_name)["attributes"][name] = value

    return lie


def drops(class_name: str, name: str) -> Any:
    def lie(manifest: Any) -> None:
        del of(manifest, class_name)["attributes"][name]

    return lie


def says(class_name: str, name: str, value: Any) -> Any:
    def lie(manifest: Any) -> None:
        of(manifest, class_name)["config"][name] = value

    return lie


#: By what is wrong: the layers, the lie, and what the refusal says.
STRUCTURES: dict[str, Any] = {
    "other units": ("dense", says("Dense", "units", {"value": 7}), "Dense.*'kernel' has shape"),
    "huge units": ("dense", says("Dense", "units", {"value": HUGE}), "Dense"),
    "a bias for a kernel": ("dense", sets("Dense", "kernel", {"variable": 1}), "no input has"),
    "a kernel for a bias": ("dense", sets("Dense", "bias", {"variable": 0}), "'bias' has shape"),
    "a list for a bias": ("dense", sets("Dense", "bias", {"list": [{"variable": 0}]}), "be a var"),
    "a kernel that is a layer": ("dense", sets("Dense", "kernel", {"module": 0}), "a variable"),
    "no bias": ("dense", drops("Dense", "bias"), "lacks bias"),
    "a kernel that is a number": ("dense", sets("Dense", "kernel", {"value": 3}), "neither a var"),
    "a kernel that is nothing": ("dense", sets("Dense", "kernel", None), "neither a var"),
    "units that are a variable": ("dense", sets("Dense", "units", {"variable": 0}), "config"),
    "a value that is none": ("dense", says("Dense", "units", {"value": {"tuple": 1}}), "'units'"),
    "layers that are one": ("dense", sets("Sequential", "layers", {"module": 1}), "not a list"),
    "layers that are weights": (
        "dense", sets("Sequential", "layers", {"list": [{"variable": 0}]}), "not a layer",
    ),
    "a model in itself": (
        "dense", sets("Sequential", "layers", {"list": [{"module": 0}]}), "itself",
    ),
    "a wrapper of itself": ("steps", sets("TimeDistributed", "layer", {"module": 1}), "itself"),
    "a wrapper of the whole": ("steps", sets("TimeDistributed", "layer", {"module": 0}), "itself"),
    "a wrapper of nothing": ("steps", drops("TimeDistributed", "layer"), "'layer' is not a layer"),
    "one way twice": (
        "both ways", sets("Bidirectional", "forward_layer", {"module": 3}), "go_backwards",
    ),
    "no way back": ("both ways", drops("Bidirectional", "backward_layer"), "'backward_layer'"),
    "a way that is a weight": (
        "both ways", sets("Bidirectional", "forward_layer", {"variable": 0}), "'forward_layer'",
    ),
    "no cell": ("stacked", drops("RNN", "cell"), "'cell'"),
    "a cell that is a model": ("stacked", sets("RNN", "cell", {"module": 0}), "'cell'"),
    "cells of no cell": ("stacked", drops("StackedRNNCells", "cells"), "'cells'"),
    "cells in themselves": (
        "stacked", sets("StackedRNNCells", "cells", {"list": [{"module": 2}]}), "itself",
    ),
    "a weight for states": (
        "stateful", sets("LSTM", "states", {"list": [{"variable": 2}]}), "'states'",
    ),
    "too many states": (
        "stateful", sets("LSTM", "states", {"list": [{"variable": 0}] * 3}), "'states'",
    ),
    "a head that is a weight": (
        "heads", sets("MultiHeadAttention", "query_dense", {"variable": 0}), "no module",
    ),
}  # fmt: skip


@pytest.mark.parametrize("lie", STRUCTURES)
def test_a_layer_that_is_not_what_its_class_makes_is_refused_by_name(
    lie: str, tmp_path: Path
) -> None:
    layers, change, said = STRUCTURES[lie]
    model = gt.layers.Sequential(LAYERS[layers]())
    model(X)
    path = tmp_path / "a.h5"
    gt.save(model, path, golden=False)
    np.testing.assert_array_equal(gt.load(path)(X).numpy(), model(X).numpy())
    forged(path, manifest=change)
    with pytest.raises(LoadError, match=rf"(?s)module \d+: .*{said}"):
        gt.load(path)


def test_looking_at_weights_makes_none_and_draws_nothing(tmp_path: Path) -> None:
    model = gt.layers.Sequential([gt.layers.LSTM(2, dropout=0.5), gt.layers.Dense(2)])
    model(X)
    gt.save(model, tmp_path / "a.h5", golden=False)
    drawn = []
    for load in (False, True):
        gt.random.set_seed(3)
        if load:
            gt.load(tmp_path / "a.h5")
        drawn.append(gt.random.normal((3,)).numpy().tobytes())
    assert drawn[0] == drawn[1]
