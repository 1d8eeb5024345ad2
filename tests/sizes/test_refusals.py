"""What Python must know of a size to go on is refused: the message has the line and what to write."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

import gradtape as gt

def doubled_until(bound: int, n: Any) -> Any:
    while n < bound: n = 2 * n  # noqa: E701
    return n


# what is written, the expression that is not known, and a part of what the message advises
REFUSED: dict[str, tuple[Any, str, str]] = {
    "if": (lambda x: x if x.shape[0] > 2 else -x, r"n > 2|2 < n", "gradtape.cond"),
    "if of equality": (lambda x: x if x.shape[0] == 1 else 2 * x, "n == 1", "gradtape.cond"),
    "if of itself": (lambda x: x if x.shape[0] else -x, "n", "gradtape.cond"),
    "not": (lambda x: not x.shape[0] % 2, "n % 2", "gradtape.cond"),
    "and": (lambda x: x.shape[0] > 1 and x, "n > 1", "gradtape.cond"),
    "while": (lambda x: doubled_until(9, x.shape[0]), "n < 9", "while_loop"),
    "in": (lambda x: x.shape[0] in (1, 2), "n == 1", "gradtape.cond"),
    "chained comparison": (lambda x: 0 < x.shape[0] < 9, "n > 0|0 < n", "gradtape.cond"),
    "max": (lambda x: max(x.shape[0], 3), "n", "gradtape.maximum"),
    "min": (lambda x: min(3, x.shape[0] // 2), "n // 2", "gradtape.minimum"),
    "sorted": (lambda x: sorted(x.shape), "n", "gradtape"),
    "range": (lambda x: [x[i] for i in range(x.shape[0])], "n", "gradtape.arange"),
    "list": (lambda x: [0.0] * x.shape[0], "n", "gradtape.zeros|zeros"),
    "entry of a list": (lambda x: [1.0, 2.0, 3.0][x.shape[0]], "n", "gradtape"),
    "slice of a list": (lambda x: [1.0, 2.0, 3.0][: x.shape[0]], "n", "gradtape"),
    "int": (lambda x: int(x.shape[0] / 2), "n / 2", "n // 2"),
    "float": (lambda x: float(x.shape[0]), "n", r"n \*\* 0.5|n / 2"),
    "math.sqrt": (lambda x: math.sqrt(x.shape[0]), "n", r"n \*\* 0.5"),
    "math.log": (lambda x: math.log(x.shape[0] + 1), r"n \+ 1", "gradtape"),
    "np.ones of a shape": (lambda x: x + np.ones((x.shape[0], 3)), "n", "gradtape"),
    "np.arange": (lambda x: x * np.arange(x.shape[0]), "n", "gradtape"),
    "NumPy's generator": (
        lambda x: x + np.random.default_rng(0).normal(size=(x.shape[0], 3)),
        "n",
        "gradtape",
    ),
    "np.float32": (lambda x: np.float32(x.shape[0]), "n", "gradtape"),
    "len": (lambda x: x * len(x), "n|len", r"shape\[0\]"),
    "iteration": (lambda x: [2 * row for row in x], "n|iterat", "scan|unstack|shape"),
    "depth of a list": (lambda x: gt.stack([x] * x.shape[0]), "n", "gradtape"),
}


@pytest.mark.parametrize("written", REFUSED)
def test_what_python_must_know_of_a_size_is_refused_at_its_line(written: str) -> None:
    function, shown, advice = REFUSED[written]
    traced = gt.function(function, input_signature=[gt.TensorSpec([None, 3], name="x")])
    with pytest.raises(gt.errors.TraceError) as caught:
        traced(np.ones((2, 3), "float32"))
    message = str(caught.value)
    line = function.__code__.co_firstlineno
    assert f"{__file__}:{line}" in message
    shown = shown.replace("n", r"(?:\w+(?:\.shape\[0\])?)") if shown[0] == "n" else shown
    assert re.search(shown, message), message
    assert re.search(advice, message), message


ACCEPTED: dict[str, tuple[Any, Any]] = {
    "math.floor": (lambda x: x * math.floor(x.shape[0] / 2), lambda n: n // 2),
    "math.ceil": (lambda x: x * math.ceil(x.shape[0] / 2), lambda n: -(-n // 2)),
    "round": (lambda x: x * round(x.shape[0] / 2), lambda n: round(n / 2)),
    "abs": (lambda x: x * abs(1 - x.shape[0]), lambda n: abs(1 - n)),
    "sum": (lambda x: x * sum(x.shape), lambda n: n + 3),
    "math.prod": (lambda x: x * math.prod(x.shape), lambda n: 3 * n),
    "np.prod": (lambda x: x * np.prod(x.shape), lambda n: 3 * n),
    "divmod": (lambda x: x * sum(divmod(x.shape[0], 4)), lambda n: sum(divmod(n, 4))),
    "np.sqrt": (lambda x: x / np.sqrt(x.shape[0]), lambda n: 1 / n**0.5),
    "gt.sqrt": (lambda x: x / gt.sqrt(x.shape[0]), lambda n: 1 / n**0.5),
    "gt.maximum": (lambda x: x * gt.maximum(x.shape[0], 3), lambda n: max(n, 3)),
    "rank": (lambda x: x * len(x.shape), lambda n: 2),
    "proved": (lambda x: x if x.shape[0] + 1 > x.shape[0] else -x, lambda n: 1),
    "equal to itself": (lambda x: x if x.shape[0] == len_of(x) else -x, lambda n: 1),
    "of a known size": (lambda x: x if x.shape[1] == 3 else -x, lambda n: 1),
}


def len_of(x: Any) -> Any:
    return gt.shape(x)[0]


@pytest.mark.parametrize("written", ACCEPTED)
def test_python_functions_that_need_no_value_compute_with_sizes(written: str) -> None:
    function, factor = ACCEPTED[written]
    traced = gt.function(function, input_signature=[gt.TensorSpec([None, 3], "float64")])
    for n in (1, 2, 5):
        x = np.ones((n, 3))
        np.testing.assert_allclose(traced(x).numpy(), x * factor(n), rtol=1e-6)
        np.testing.assert_allclose(function(gt.constant(x)).numpy(), x * factor(n), rtol=1e-6)
    assert len(traced.concrete_functions) == 1
