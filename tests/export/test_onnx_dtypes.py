"""Integers and booleans in ONNX: onnxruntime computes what NumPy does, in NumPy's dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from elsewhere import Model

import gradtape as gt

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "argmax": lambda x: gt.argmax(x, axis=1),
    "cumprod": lambda x: gt.cumprod(x, axis=1),
    "cumsum": lambda x: gt.cumsum(x, axis=0),
    "einsum": lambda x: gt.einsum("ij,kj->ik", x, x),
    "max": lambda x: gt.max(x, axis=0),
    "mean": gt.mean,
    "min": lambda x: gt.min(x, axis=1, keepdims=True),
    "power": lambda x: (x + 0) ** x,
    "power of 3": lambda x: 3 ** (x + 0),
    "power by 39": lambda x: (x + 0) ** 39,
    "pad": lambda x: gt.pad(x, 1),
    "prod": lambda x: gt.prod(x, axis=1),
    "std": gt.std,
    "sum": gt.sum,
}
#: What onnxruntime lacks, which is told when a function is exported.
REFUSED = {
    ("einsum", "bool"),
    ("argmax", "uint64"),
    *[(f, "uint64") for f in ("max", "min", "pad")],
}


@pytest.mark.parametrize("dtype", [*map(np.dtype, np.typecodes["AllInteger"]), np.dtype("?")])
def test_integers_are_those_of_numpy(dtype: np.dtype[Any]) -> None:
    rows = [[1, 2, 3], [4, 5, 200 if dtype.kind == "u" else 100]]
    x = gt.constant(np.array(rows).astype(dtype))
    for name, function in FUNCTIONS.items():
        if (name, dtype.name) in REFUSED:
            with pytest.raises(gt.export.ExportError, match=f"op '{name}'"):
                gt.export.onnx(function, x)
            continue
        model = Model(gt.export.onnx(function, x))
        (given,) = (info.name for info in model.proto.graph.input)
        (found,) = model(**{given: x.numpy()}).values()
        wanted = function(x).numpy()
        assert (name, found.dtype, found.shape) == (name, wanted.dtype, wanted.shape)
        np.testing.assert_allclose(found, wanted, rtol=1e-12, err_msg=name)


def test_an_accuracy_is_a_mean_of_booleans() -> None:
    scores, labels = gt.constant([[1.0, 3.0], [2.0, 0.5]]), gt.constant([1, 1])

    def accuracy(scores: Any, labels: Any) -> Any:
        return gt.mean(gt.argmax(scores, axis=1) == labels)

    model = Model(gt.export.onnx(accuracy, scores, labels))
    names = [info.name for info in model.proto.graph.input]
    given = dict(zip(names, (scores.numpy(), labels.numpy()), strict=True))
    assert [y.tolist() for y in model(**given).values()] == [0.5]
