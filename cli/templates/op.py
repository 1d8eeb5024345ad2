"""An op with its gradient, batching rule and samples."""

from __future__ import annotations

__all__ = ["FILES", "GROUP", "NEEDS", "TEST_NEEDS", "USE", "WHAT"]

WHAT, GROUP, NEEDS, TEST_NEEDS = "An op", "gradtape", "", ""
USE = """\
import gradtape as gt
from $module import soft_abs

x = gt.constant([3.0, -4.0])
assert soft_abs(x, width=4.0).shape == (2,)
assert gt.grad(lambda x: gt.sum(soft_abs(x)))(x).shape == (2,)
"""
FILES = {
    "src/$module/__init__.py": '''\
"""An op for gradtape."""

from .plugin import soft_abs

__all__ = ["soft_abs"]
''',
    "src/$module/plugin.py": '''\
"""The plugin. gradtape imports this module and calls its hooks; the import computes nothing."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gradtape.plugin import F, Op, hookimpl

#: The version of gradtape.plugin that this was written for: see gradtape.plugin.API.
gradtape_api = (1, 0)


def _kernel(xp: Any, x: Any, *, width: float = 1.0) -> Any:
    """Compute the op: xp is the array namespace (NumPy, CuPy, ...), x a raw array of it."""
    return xp.sqrt(x * x + float(width) ** 2) - float(width)


def _gradient(g: Any, x: Any, width: float) -> Any:
    """Return the gradient with respect to x, computed by ops: it is differentiable and saved."""
    return g * F.conj(x / F.sqrt(x * x + float(width) ** 2))


def _infer(x: Any, width: float) -> tuple[Any, Any]:
    """Return the shape and dtype of the result without computing it, for traces."""
    return x.shape, np.result_type(x.dtype, 0.0)


soft_abs = Op(
    "$name::soft_abs",  # its name in files: never change what it computes
    _kernel,
    gradients={"x": _gradient},
    infer=_infer,
    batch="elementwise",
    doc="Return the absolute value, rounded at 0: ``sqrt(x * x + width * width) - width``.",
)


@hookimpl
def gradtape_ops() -> Sequence[Op]:
    return [soft_abs]


@hookimpl
def gradtape_samples() -> Mapping[str, Sequence[Any]]:
    from gradtape.testing import Sample  # only tests need it

    return {
        soft_abs.name: [
            Sample(np.array([-1.5, 0.0, 0.3, 2.0])),
            Sample(np.array([[0.5, -2.0, 1.0]]), width=0.5),
            Sample(np.array([0.5 + 0.3j, -1.0 + 0.2j])),
        ]
    }
''',
    "tests/test_op.py": '''\
"""check_op on the samples: gradients, traces, batches, files and dtypes."""

import gradtape as gt
import numpy as np
from gradtape.testing import check_op

from $module import soft_abs


def test_the_op_does_all_that_an_op_must_do():
    samples = gt.registry().samples[soft_abs.name]
    assert set(check_op(soft_abs, samples).values()) == {"passed"}


def test_values():
    np.testing.assert_allclose(soft_abs([3.0, 0.0], width=4.0), [1.0, 0.0])
    assert soft_abs(gt.constant([1, 2])).dtype == np.float64


def test_gradtape_finds_the_plugin():
    owner = gt.registry().owner("op", "$name::soft_abs")
    assert owner is not None and owner.distribution == "$name"
''',
}
