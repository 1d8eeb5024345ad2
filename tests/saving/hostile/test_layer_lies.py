"""Every layer and metric of a file, its configuration changed: refused, or loaded in no memory."""

from __future__ import annotations

import tracemalloc
import warnings
from pathlib import Path
from typing import Any

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
