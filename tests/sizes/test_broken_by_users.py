"""Programs as users write them that once meant something else in a trace than in Python."""

from __future__ import annotations

import fractions
import math
import numbers
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt

D = "float64"


def traced(function: Any, *shapes: Any) -> Any:
    return gt.function(function, input_signature=[gt.TensorSpec(s, D) for s in shapes])


def by_match(x: Any) -> Any:
    match x.shape:
        case (int() as n, _):
            return n * x
    return x


KINDS = {
    "int": lambda x: 2 * x if isinstance(x.shape[0], int) else x,
    "not a float": lambda x: 2 * x if isinstance(x.shape[0], float) else x,
    "integers of NumPy too": lambda x: 2 * x if isinstance(x.size, (int, np.integer)) else x,
    "Integral": lambda x: 2 * x if isinstance(x.shape[0] + 1, numbers.Integral) else x,
    "a half is a float": lambda x: 2 * x if isinstance(x.shape[0] / 2, float) else x,
    "a comparison is a bool": lambda x: 2 * x if isinstance(x.shape[0] > 2, bool) else x,
    "np.isscalar": lambda x: 2 * x if np.isscalar(x.shape[0]) else x,
    "match": by_match,
}


@pytest.mark.parametrize("name", KINDS)
def test_a_size_is_of_the_kind_that_it_is_in_eager_code(name: str) -> None:
    function = traced(KINDS[name], [None, 2])
    for n in (1, 3):
        x = gt.constant(np.arange(2.0 * n).reshape(n, 2))
        np.testing.assert_array_equal(function(x), KINDS[name](x))


ATTRIBUTES = {
    ".bit_length": lambda x: gt.zeros(1 << (x.shape[0] - 1).bit_length()),
    ".is_integer": lambda x: 2 * x if (x.shape[0] / 2).is_integer() else x,
    ".real": lambda x: x * x.shape[0].real,
    ".numerator": lambda x: x * float(fractions.Fraction(x.shape[0], 2)),
}


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_what_only_pythons_numbers_have_is_refused_in_words(name: str) -> None:
    with pytest.raises(gt.errors.TraceError, match=rf"not known .* and {name} needs its value"):
        traced(ATTRIBUTES[name], [None])(gt.ones(3, D))


def test_what_pythons_numbers_do_not_have_is_missing_in_a_trace_too() -> None:
    with pytest.raises(AttributeError, match="'int' object has no attribute 'numpy'"):
        traced(lambda x: x * x.shape[0].numpy(), [None])(gt.ones(3, D))


RANKS = {
    "equal shapes": lambda x, y: 2 * x if x.shape == y.shape else x,
    "no axes": lambda x, y: 2 * x if x.shape == () else x,
    "truth": lambda x, y: 2 * x if x.shape else x,
    "gt.shape": lambda x, y: 2 * x if gt.shape(x) == gt.shape(y) else x,
    "an axis": lambda x, y: x * x.shape[0],
    "number of axes": lambda x, y: x * len(x.shape),
    "product": lambda x, y: x / math.prod(x.shape),
    "another shape": lambda x, y: gt.zeros((*x.shape, 1)),
}


@pytest.mark.parametrize("name", RANKS)
def test_a_shape_of_open_rank_is_refused_in_words(name: str) -> None:
    with pytest.raises(gt.errors.TraceError, match=r"shape .its rank is unknown.* is not known"):
        traced(RANKS[name], None, None)(gt.ones((2, 3), D), gt.ones(3, D))


@gt.function(input_signature=[gt.TensorSpec(["b", 3], D), gt.TensorSpec(["b"], D)])
def of_one_batch(x: Any, y: Any) -> Any:
    assert x.shape[0] == y.shape[0]
    return gt.sum(x) + gt.sum(y) * y.shape[0]


@gt.function(input_signature=[gt.TensorSpec(["b", "b"], D)])
def of_square(x: Any) -> Any:
    return gt.sum(x) * x.shape[0]


@gt.function(input_signature=[gt.TensorSpec([2, 3], D)])
def of_two(x: Any) -> Any:
    assert x.shape[0] == 2
    return gt.sum(x)


SIGNED = {
    "sizes of one name": lambda x, y: of_one_batch(x, y),
    "sizes of one name in one argument": lambda x, y: of_square(gt.outer(x[:, 0], y)),
    "a known size": lambda x, y: of_two(x) + gt.sum(y),
    "a known size, of a transpose": lambda x, y: of_two(gt.transpose(gt.transpose(x))) + gt.sum(y),
    "a concrete function": lambda x, y: of_one_batch.get_concrete_function()(x, y),
}


@pytest.mark.parametrize("name", SIGNED)
@pytest.mark.parametrize("sizes", [(2, 2), (1, 2), (2, 1), (3, 3), (0, 0), (4, 3)])
def test_the_signature_of_a_function_holds_inside_a_trace(
    name: str, sizes: tuple[int, int]
) -> None:
    def outcome(function: Any) -> Any:
        x, y = gt.ones((sizes[0], 3), D), gt.ones(sizes[1], D)
        try:
            return function(x, y).numpy()
        except ValueError:
            return "refused"

    expected = outcome(SIGNED[name])
    np.testing.assert_array_equal(outcome(traced(SIGNED[name], [None, 3], [None])), expected)


class Recurrent(gt.Module):
    """Takes a state, or starts with one of zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = gt.Variable(np.full((3, 3), 0.1))

    @gt.function
    def __call__(self, x: Any, state: Any = None) -> Any:
        state = gt.zeros((x.shape[0], 3), D) if state is None else state
        return gt.tanh(state @ self.weights + x)


def test_a_module_called_with_and_without_an_optional_tensor_is_saved(tmp_path: Path) -> None:
    module, x = Recurrent(), gt.ones((2, 3), D)
    module(x, module(x))
    gt.save(module, tmp_path / "recurrent.h5")
    loaded = gt.load(tmp_path / "recurrent.h5")
    np.testing.assert_array_equal(loaded(x), module(x))
    np.testing.assert_array_equal(loaded(x, x), module(x, x))


WEAK = {
    "at.set": lambda x: x.at[0:1].set(x.shape[0]),
    "at.add": lambda x: x.at[0].add(x.shape[0]),
    "append": lambda x: gt.append(x, x.shape[0]),
    "diff": lambda x: gt.diff(x, prepend=x.shape[0]),
}


@pytest.mark.parametrize("name", WEAK)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "float16", "float32"])
@pytest.mark.parametrize("n", [1, 100, 300])
def test_a_size_beside_small_dtypes_is_what_a_number_of_pythons_is(
    name: str, dtype: str, n: int
) -> None:
    def outcome(function: Any) -> Any:
        try:
            result = function(gt.zeros(n, dtype))
        except OverflowError:
            return OverflowError
        return result.dtype, result.tolist()

    function = gt.function(WEAK[name], input_signature=[gt.TensorSpec([None], dtype)])
    assert outcome(function) == outcome(WEAK[name])
