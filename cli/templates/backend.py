"""A backend for arrays of a library; the template has the array API standard's reference one."""

from __future__ import annotations

__all__ = ["FILES", "GROUP", "NEEDS", "TEST_NEEDS", "USE", "WHAT"]

WHAT, GROUP, NEEDS, TEST_NEEDS = "A backend", "gradtape", ', "array-api-strict>=2.3"', ""
USE = """\
import gradtape as gt

with gt.backend("$name"):
    x = gt.constant([1.0, 4.0])
assert gt.grad(lambda x: gt.sum(gt.sqrt(x)))(x).to("numpy").tolist() == [0.5, 0.25]
"""
FILES = {
    "src/$module/__init__.py": '''\
"""A backend for gradtape: with gt.backend("$name"): ..., tensor.to("$name")."""

from .plugin import BACKEND

__all__ = ["BACKEND"]
''',
    "src/$module/plugin.py": '''\
"""The backend of one array library: put yours in the place of array_api_strict.

A library that implements the array API standard needs no kernels of its own.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gradtape.plugin import Backend, BackendUnavailable, hookimpl

#: The version of gradtape.plugin that this was written for: see gradtape.plugin.API.
gradtape_api = (1, 0)


class Arrays(Backend):
    """Arrays of array_api_strict, the reference implementation of the standard."""

    name = "$name"
    array_module = "array_api_strict"  # arrays whose types are defined there are its own

    @property
    def xp(self) -> Any:
        """The namespace that kernels are given; gradtape starts fast, so import it here."""
        try:
            import array_api_strict
        except ImportError as error:
            raise BackendUnavailable(
                f"backend '$name': {error}; pip install array-api-strict"
            ) from error
        return array_api_strict

    def asarray(self, value: Any, dtype: Any = None, device: str | None = None) -> Any:
        """Return a new array, never the memory of another one."""
        return self.xp.asarray(np.array(value, dtype=dtype), copy=True)

    def to_numpy(self, array: Any) -> Any:
        """Return the value in host memory."""
        return np.from_dlpack(array)


BACKEND = Arrays()


@hookimpl
def gradtape_backends() -> Sequence[Backend]:
    return [BACKEND]
''',
    "tests/test_backend.py": '''\
"""check_backend: the samples of all ops, their gradients and the functions built on them."""

import gradtape as gt
import pytest
from gradtape.testing import check_backend

#: What the library computes otherwise than NumPy, with the reason; empty this list if you can.
DIFFERENT = {}


@pytest.mark.parametrize("traced", [False, True])
def test_ops_functions_and_their_gradients_are_as_on_numpy(traced):
    report = check_backend("$name", traced=traced)
    assert set(report.wrong) == set(DIFFERENT)
    assert len(report.passed) > 250  # the others are refused: the library lacks a function


def test_a_model_computes_on_the_backend():
    with gt.backend("$name"):
        model = gt.layers.Dense(3, activation="tanh")
        assert model(gt.ones((2, 4))).device == "$name:cpu"


def test_gradtape_finds_the_plugin():
    owner = gt.registry().owner("backend", "$name")
    assert owner is not None and owner.distribution == "$name"
''',
}
