"""Samples of ops that run graphs, and of collectives in a group of one.

The functions that make graphs have their own tests. One process has only a group of one rank; the
results in a job of several ranks are tested in ``tests/distributed``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.core.extend import Graph

from ...plugins.ops.control.effects import PythonCall
from ..samples import Sample
from .drawing import complexes, real

# -- graphs ----------------------------------------------------------------------------------------


def graph(f: Any, *shapes: Any) -> Graph:
    """Return a function of float64 tensors as a graph."""
    specs = [gt.TensorSpec(shape, "float64") for shape in shapes]
    return gt.function(f).get_concrete_function(*specs).graph


X, Z = real(3), complexes(3)
TRUTH = np.array(True)
DOUBLE = gt.TensorSpec(None, "float64")
BRANCHES = {
    "true": graph(lambda x: (gt.sin(x) * x, gt.sum(x)), [None]),
    "false": graph(lambda x: (x * x, gt.max(x) * 2.0), [None]),
}
LOOP = {
    "cond": graph(lambda x, a: gt.sum(x * x) < 20.0, [None], []),
    "body": graph(lambda x, a: [x * 1.5 + gt.sin(x * a)], [None], []),
    "count": 1,
}
STEPS = {
    "body": graph(lambda c, x, a: (gt.tanh(c * a + x), c * x), [], [], []),
    "carried": 1,
    "scanned": 1,
}
STRAIGHT = "the gradient is that of the variable, as for any assignment: see tests/adversary"
DTYPE = "its graphs have a fixed dtype"


def one_dtype(*inputs: Any, **params: Any) -> Sample:
    """Return a sample for double precision only, whose graphs do not know sizes."""
    sample = Sample(*inputs, **params).without("float32", "float16", reason=DTYPE)
    return sample.without("known sizes", reason="its graphs do not know the sizes")


EFFECT = "it has an effect, and no value that depends on its inputs"
TEXT = {"pieces": ("", "\n"), "formats": ("",)}


def acting(*inputs: Any) -> Sample:
    """Return a sample of an op that has an effect besides its result."""
    sample = Sample(*inputs, **TEXT).without("gradients", "second order", reason=EFFECT)
    return sample.without("batched", reason="its effect happens once for all examples")


# -- collectives -----------------------------------------------------------------------------------


ALIKE = {
    name: [Sample(real(2, 3)), Sample(complexes(3)), Sample(real())]
    for name in ("share_of_ranks", "sum_over_ranks")
}
OPEN = "a graph serves any number of ranks"
ROWS = {
    name: [
        x.without("known sizes", reason=OPEN) for x in (Sample(real(2, 3)), Sample(complexes(3)))
    ]
    for name in ("rows_of_ranks", "rows_summed_over_ranks")
}
ONE = {
    name: [Sample(real(2, 3), root=0), Sample(complexes(3), root=0)]
    for name in ("kept_on_rank", "value_of_rank")
}


SAMPLES = {
    "check": [acting(TRUTH, TRUTH, X), acting(~TRUTH, ~TRUTH, Z)],
    "print": [acting(TRUTH, X), acting(~TRUTH, Z)],
    "assigned": [
        Sample(x, v).without("gradients", "second order", reason=STRAIGHT)
        for x, v in ((X, X[::-1]), (X[0], X[1]), (Z, Z[::-1]))
    ],
    "cond": [one_dtype(TRUTH, X, **BRANCHES), one_dtype(~TRUTH, X, **BRANCHES)],
    "while_loop": [
        one_dtype(X, np.array(0.7), **LOOP, most=None),
        one_dtype(X, np.array(0.7), **LOOP, most=2),
    ],
    "host_call": [
        Sample(np.array(0), x, call=PythonCall(lambda x: [gt.sin(x) * x], [DOUBLE]))
        .without("batched", reason="the Python function takes one example")
        .without("saved", reason="files hold no Python code")
        .without("float32", "float16", reason="its dtype is an argument")
        .without("known sizes", reason="its argument says that no size is known")
        for x in (X, X[:2])
    ],
    "scan": [
        one_dtype(np.array(0.3), X, np.array(0.7), **STEPS),
        one_dtype(np.array(0.3), X, np.array(0.7), **STEPS, reverse=True),
    ],
    **ALIKE,
    **ROWS,
    **ONE,
    "average_over_ranks": [
        Sample(1.0, real(2, 3), complexes(3)),
        Sample(0.5, real(), real(3), real(2, 2), checked=1),
        Sample(0.5, real(3), mean=False),
    ],
    "begin_average_over_ranks": [Sample(1.0, real(2, 3), real(), checked=1)],
    "end_average_over_ranks": [
        Sample(np.array(0), 1.0, real(2, 3), complexes(3)),
        Sample(np.array(0), 0.5, real(), real(3), checked=1),
        Sample(np.array(0), 0.5, real(3), mean=False),
    ],
}
