"""What is computed with a size has the value and dtype in a trace that it has without one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import gradtape as gt

# of an x of 4 columns, whose number of rows n the trace leaves open
EXPRESSIONS = """
x / n
x * n
n - x
-n * x
x ** n
n ** x
x // n
x % n
x * n ** -0.5
x / n ** 0.5
x * (2 ** n)
x * 2.0 ** -n
x * (n / 2)
x * divmod(n, 2)[1]
x * abs(2 - n)
x * round(n / 2)
x * math.floor(n / 2)
x * math.ceil(n / 2)
x * math.prod(x.shape)
x * sum(x.shape)
x * len(x.shape)
x * (n == 2)
x * (n > 1)
x * (n / 2 > 1.2)
x * x.size
x * gt.size(x)
x * gt.shape(x)[0]
x * np.shape(x)[0]
x * np.size(x)
x * np.sqrt(n)
x * np.log(n)
x * np.ceil(n / 2)
x * np.float64(3) * n
x * (np.float64(3) * n)
x * (n / np.float32(3))
x * (np.int32(3) * n)
np.arange(4) * n * x
x * gt.arange(4) / n
gt.arange(4) % n * x
gt.arange(4) * n
gt.arange(4) / n
gt.Variable(2.0) * n
gt.sqrt(n) * x
gt.log(n + 1) * x
gt.maximum(n, 3) * x
gt.minimum(x, n)
gt.clip(x, 0, n)
gt.where(x > n, x, n)
gt.where(n > 2, x, 2 * x)
gt.where((n > 1) & (n < 4), x, n)
gt.where(gt.logical_not(n > 2), x, 0.0)
gt.power(x, n)
gt.add(n, 1) * x
gt.full((2, 4), n)
gt.full((2, 4), 1 / n)
gt.full_like(x, n)
gt.cast(n, x.dtype) * x
gt.cast(n / 3, "float64")
gt.constant(n) * x
gt.constant(n, "float32") * x
gt.constant([n, 1, 2, 3]) * x
gt.constant([n, 2.0])
gt.constant([[n, 1], [2, n // 2]])
gt.as_tensor(n / 3)
gt.stack([n, 4])
gt.stack([x[0, 0], n])
gt.concatenate([x[0], [n, 2]])
gt.add(x, [n, 2, 3, 4])
gt.isclose(x, n)
x == n
n < x
np.add(x, n)
np.reshape(x, (n * 2, 2))
x.reshape(n * 4)
x.T.shape[-1] * x
gt.zeros(4, "int32") + n
gt.zeros(4, "float16") / n
gt.zeros(4, "complex64") * n
n
n + 1
n // 2
x.shape
n > 1
[n, x]
""".strip().splitlines()


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression_of_a_size_has_the_value_and_dtype_of_eager_code(text: str) -> None:
    space = {"gt": gt, "np": np, "math": math}
    function = eval(f"lambda x: (lambda n: {text})(x.shape[0])", space)
    traced = gt.function(function, input_signature=[gt.TensorSpec([None, 4])])
    for n in (1, 2, 3, 5):
        x = gt.constant(np.random.default_rng(n).uniform(1.0, 4.0, (n, 4)).astype("float32"))
        found, expected = parts(traced(x)), parts(function(x))
        assert len(found) == len(expected)
        for got, want in zip(found, expected, strict=True):
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            np.testing.assert_allclose(got, want, rtol=1e-6)
    assert len(traced.concrete_functions) == 1


def parts(result: Any) -> list[np.ndarray]:
    leaves = result if isinstance(result, (tuple, list)) else [result]
    return [np.asarray(leaf) for leaf in leaves]


def test_a_variable_takes_a_size_in_its_dtype() -> None:
    count = gt.Variable(0.0)

    @gt.function(input_signature=[gt.TensorSpec([None])])
    def counted(x: Any) -> Any:
        count.assign_add(x.shape[0])
        return x

    counted(np.ones(3, "float32"))
    counted(np.ones(2, "float32"))
    assert (count.dtype, count.item()) == (np.dtype("float32"), 5.0)


def test_a_layer_within_a_trace_of_open_sizes_is_built_and_remembers_unknown_sizes_as_none() -> (
    None
):
    seen = []

    class Scale(gt.layers.Layer):
        def build(self, input_shape: Any) -> None:
            seen.append(input_shape)

        def call(self, x: Any) -> Any:
            return 2.0 * x

    layer = Scale()
    gt.function(layer, input_signature=[gt.TensorSpec([None, 3])]).get_concrete_function()
    ((args, _),) = layer.call_signatures()
    assert [seen[0][0] is None, args[0].shape[0] is None] == [True, True]
    assert args[0] == gt.TensorSpec([None, 3])
