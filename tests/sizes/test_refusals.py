"""What Python must know of a size is refused: the message has the line and what to write."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest

import gradtape as gt


def doubled(x: Any) -> Any:
    n = x.shape[0]
    while n < 9:
        n = 2 * n
    return x * n


# what is written, the expression that is not known, and a part of what the message advises
REFUSED: dict[str, tuple[Any, str, str]] = {
    "if": (lambda x: x if x.shape[0] > 2 else -x, "n > 2", "gradtape.cond"),
    "if of equality": (lambda x: x if x.shape[0] == 1 else 2 * x, "n == 1", "gradtape.cond"),
    "if of itself": (lambda x: x if x.shape[0] else -x, "n", "gradtape.cond"),
    "~": (lambda x: gt.where(~(x.shape[0] > 2), x, 0.0), "n > 2", "gradtape.logical_not"),
    "digits": (lambda x: x * round(x.shape[0] / 3, 2), "n / 3", "gradtape.round"),
    "not": (lambda x: not x.shape[0] % 2, "n % 2", "gradtape.cond"),
    "and": (lambda x: x.shape[0] > 1 and x, "n > 1", "gradtape.cond"),
    "while": (doubled, "n < 9", "while_loop"),
    "in": (lambda x: x.shape[0] in (1, 2), "n == 1", "gradtape.cond"),
    "in a set": (lambda x: x.shape[0] in {1, 2}, "n", "gradtape.cond"),
    "key": (lambda x: x * {1: 2.0, 2: 3.0}.get(x.shape[0], 0.0), "n", "gradtape.cond"),
    "key of a shape": (lambda x: {(2, 3): 1}.get(x.shape), "n", "gradtape.cond"),
    "chained comparison": (lambda x: 0 < x.shape[0] < 9, "n > 0", "gradtape.cond"),
    "max": (lambda x: max(x.shape[0], 3), "n < 3", "gradtape.maximum"),
    "min": (lambda x: min(3, x.shape[0] // 2), "n // 2 < 3", "gradtape.minimum"),
    "sorted": (lambda x: sorted(x.shape), "n > 3", "gradtape"),
    "range": (lambda x: [x[i] for i in range(x.shape[0])], "n", "gradtape.arange"),
    "list": (lambda x: [0.0] * x.shape[0], "n", "zeros"),
    "entry of a list": (lambda x: [1.0, 2.0, 3.0][x.shape[0]], "n", "gradtape"),
    "slice of a list": (lambda x: [1.0, 2.0, 3.0][: x.shape[0]], "n", "gradtape"),
    "int": (lambda x: int(x.shape[0] / 2), "n / 2", "n // 2"),
    "float": (lambda x: float(x.shape[0]), "n", "n ** 0.5"),
    "math.sqrt": (lambda x: math.sqrt(x.shape[0]), "n", "n ** 0.5"),
    "math.log": (lambda x: math.log(x.shape[0] + 1), "n + 1", "gradtape"),
    "np.ones of a shape": (lambda x: x + np.ones((x.shape[0], 3)), "n", "gradtape"),
    "np.arange": (lambda x: x * np.arange(x.shape[0]), "n", "gradtape"),
    "NumPy's generator": (
        lambda x: x + np.random.default_rng(0).normal(size=(x.shape[0], 3)),
        "n",
        "gradtape",
    ),
    "np.float32": (lambda x: np.float32(x.shape[0]), "n", "gradtape"),
    "depth of a list": (lambda x: gt.stack([x] * x.shape[0]), "n", "gradtape"),
}


@pytest.mark.parametrize("written", REFUSED)
def test_what_python_must_know_of_a_size_is_refused_at_its_line(written: str) -> None:
    function, shown, advice = REFUSED[written]
    traced = gt.function(function, input_signature=[gt.TensorSpec([None, 3])])
    with pytest.raises(gt.errors.TraceError) as caught:
        traced(np.ones((2, 3), "float32"))
    file, line, message = str(caught.value).split(":", 2)
    source, first = inspect.getsourcelines(function)
    assert file == __file__
    assert first <= int(line) < first + len(source)
    assert f" {shown} is not known while" in message
    assert advice in message


def test_sizes_that_are_always_equal_are_said_to_be_by_one_name() -> None:
    def product(x: Any, y: Any) -> Any:
        assert x.shape[0] == y.shape[0]
        return x * y / x.shape[0]

    x = np.ones((2, 3), "float32")
    unnamed = gt.function(product, input_signature=[gt.TensorSpec([None, 3])] * 2)
    with pytest.raises(gt.errors.TraceError, match=r"one name, as in TensorSpec\(\[\"n\", 3\]\)"):
        unnamed(x, x)
    named = gt.function(product, input_signature=[gt.TensorSpec(["batch", 3])] * 2)
    assert named(x, x).tolist() == [[0.5] * 3] * 2


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (lambda x: x * len(x), r"shape\[0\]"),
        (lambda x: [2 * row for row in x], "scan"),
        (lambda x: x + np.zeros(x.shape[0]), "got 'n'"),  # NumPy's own words
    ],
    ids=["len", "iteration", "np.zeros"],
)
def test_what_asks_a_tensor_or_numpy_for_its_length_is_refused(written: Any, message: str) -> None:
    traced = gt.function(written, input_signature=[gt.TensorSpec([None, 3])])
    with pytest.raises(TypeError, match=message):
        traced(np.ones((2, 3), "float32"))
