"""Runs exported models with other people's runtimes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import flatten

INSTALL = 'pip install "gradtape[onnx]" onnxruntime'
ort: Any = pytest.importorskip("onnxruntime", reason=INSTALL)
onnx: Any = pytest.importorskip("onnx", reason=INSTALL)
pytest.importorskip("ndonnx", reason=INSTALL)

ort.set_default_logger_severity(4)


class Model:
    """An ONNX model that onnxruntime runs: ``model(x=array)`` gives its outputs by name."""

    def __init__(self, blob: bytes) -> None:
        self.proto = onnx.load_from_string(blob)
        onnx.checker.check_model(self.proto, full_check=True)
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = ort.InferenceSession(blob, options)
        self.inputs = [x.name for x in self.session.get_inputs()]
        self.outputs = [x.name for x in self.session.get_outputs()]

    @property
    def nodes(self) -> list[str]:
        """What its nodes are, constants left out."""
        return [node.op_type for node in self.proto.graph.node if node.op_type != "Constant"]

    def __call__(self, **given: Any) -> dict[str, Any]:
        found = self.session.run(None, {name: np.asarray(x) for name, x in given.items()})
        return dict(zip(self.outputs, found, strict=True))


def compare(fn: Any, specs: Any, *calls: Any, rtol: float = 1e-5, atol: float = 1e-6) -> Model:
    """Export a function, and compare what it gives elsewhere, for each call's arrays."""
    model = Model(gt.export.onnx(fn, *specs))
    for arrays in calls:
        found = model(**dict(zip(model.inputs, arrays, strict=True))).values()
        wanted = [y.numpy() for y in flatten(fn(*map(gt.constant, arrays)))]
        for mine, want in zip(found, wanted, strict=True):
            assert mine.dtype == want.dtype
            assert mine.shape == want.shape
            np.testing.assert_allclose(mine, want, rtol=rtol, atol=atol)
    return model
