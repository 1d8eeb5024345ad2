"""What takes floats and gives floats has a gradient, or stands here with the reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from table import FUNCTIONS, SAMPLES, as_called

import gradtape as gt
from gradtape.testing import Sample, check_gradients

FLAT = "piecewise constant: its slope is 0"
SHAPE = "of this input it reads the shape or the dtype alone"
OWN = "each result is made of one input"
#: By op or function: why some float result has no gradient for some float input.
REASONS = {
    **dict.fromkeys("floor ceil trunc round around rint floor_divide spacing".split(), FLAT),
    "divmod": "the quotient is piecewise constant",
    "modf": "the integral part is piecewise constant",
    "stop_gradient": "on purpose",
    "assigned": "gradients reach the variable, not what it held before",
    "from_dlpack": "the memory comes from NumPy, which no tape follows",
    "linalg.matrix_power": "the power 0 is the identity, whatever the matrix",
    **dict.fromkeys(
        "zeros_like ones_like empty_like full_like size_over size_table size_value quantile_rank "
        "one_per_occurrence "
        "pad_ramp cast_like reshape_like shaped_like drop_column_like "
        "broadcast_like unbroadcast_like "
        "unreduce_like diagonal_adjoint untile_like unrepeat_like unpad_picked_like "
        "crop_or_pad_like split_like index_add_like index_add_all_like "
        "take_adjoint take_along_axis_adjoint "
        "matmul_adjoint_x matmul_adjoint_y tensordot_adjoint_x tensordot_adjoint_y "
        "einsum_adjoint conv_to_images conv_to_filters avg_pool_scatter spread_like rfft_adjoint "
        "random_exponential_like random_gumbel_like random_normal_like "
        "random_truncated_normal_like random_uniform_like".split(),
        SHAPE,
    ),
    "difference_adjoint": SHAPE,
    "max_pool_scatter": "it reads where the largest elements are",
    "max_pool_gather": "it reads where the largest elements are",
    "random_gamma_slope": "it refuses in words: the second derivative is not known",
    **dict.fromkeys("broadcast_arrays atleast_1d atleast_2d atleast_3d meshgrid".split(), OWN),
    "histogram": "edges do not depend on weights, nor counts on the values",
    "linalg.lstsq": "singular values do not depend on the right-hand side",
}
TABLES = [(name, SAMPLES[name], gt.registry().ops[name]) for name in sorted(SAMPLES)]
TABLES += [(name, FUNCTIONS[name], as_called(name)) for name in sorted(FUNCTIONS)]


def is_lost(call: Any, sample: Sample) -> bool:
    """Return whether a float result has no gradient for a float input."""
    tensors = [gt.constant(x) if isinstance(x, np.ndarray) else x for x in sample.inputs]
    sources = [x for x in tensors if isinstance(x, gt.Tensor) and x.dtype.kind in "fc" and x.shape]
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(sources)
        fed = sample.feed(*tensors)
        found = call(*(fed if isinstance(fed, tuple) else (fed,)), **sample.params)
        found = found if isinstance(found, (list, tuple)) else [found]
        results = [y for y in found if isinstance(y, gt.Tensor) and y.dtype.kind in "fc"]
    try:
        return any(tape.gradient(y, x) is None for y in results for x in sources)
    except TypeError:  # refused in words
        return True


def test_no_float_result_loses_the_gradient_of_a_float_input_without_a_reason() -> None:
    lost = {
        name
        for name, samples, call in TABLES
        if any(is_lost(call, s) for s in samples if all(np.size(x) for x in s.inputs))
    }
    assert lost == set(REASONS)


X = np.array([3.0, 1.0, 3.5, 2.0])
SELECTIONS = {
    "unique": lambda x: gt.unique(x),
    "unique along an axis": lambda x: gt.unique(gt.reshape(x, (2, 2)), axis=0),
    "unique_all": lambda x: gt.unique_all(x).values,
    "unique_counts": lambda x: gt.unique_counts(x).values,
    "unique_inverse": lambda x: gt.unique_inverse(x).values,
    "unique_values": gt.unique_values,
    "union1d": lambda x: gt.union1d(x, -x),
    "intersect1d": lambda x: gt.intersect1d(x, x[1:]),
    "setdiff1d": lambda x: gt.setdiff1d(x, x[:1]),
    "setdiff1d of unique values": lambda x: gt.setdiff1d(x, x[:1], assume_unique=True),
    "setxor1d": lambda x: gt.setxor1d(x, x[:1]),
    "histogram_bin_edges": lambda x: gt.histogram_bin_edges(x, 3),
    "histogram_bin_edges by a rule": lambda x: gt.histogram_bin_edges(x, "sturges"),
    "a density": lambda x: gt.histogram(x, 3, density=True)[0],
    "nextafter": lambda x: gt.nextafter(x, 2.5),
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_what_selects_or_sorts_values_has_a_gradient_beside_another_path(name: str) -> None:
    select = SELECTIONS[name]
    check_gradients(lambda x: gt.sum(select(x) ** 2) + gt.sum(x), X)


def test_the_gradient_of_a_value_that_occurs_twice_goes_to_the_first() -> None:
    x = gt.constant([3.0, 1.0, 3.0])

    def f(x: Any) -> Any:
        return gt.sum(gt.unique(x) ** 2) + gt.sum(x)

    assert gt.grad(f)(x).tolist() == [7.0, 3.0, 1.0]
    assert gt.function(gt.grad(f))(x).tolist() == [7.0, 3.0, 1.0]
    assert gt.jacfwd(f)(x).tolist() == [7.0, 3.0, 1.0]


def test_as_many_values_as_there_happen_to_be_are_refused_in_a_batch() -> None:
    with pytest.raises(gt.errors.TraceError, match="unique: how many there are differs"):
        gt.vmap(gt.unique)(gt.constant([[1.0, 2.0], [1.0, 1.0]]))


@pytest.mark.parametrize(
    "constants",
    [
        lambda x: 2.0 * x[0],
        lambda x: (x[0], x[1]),
        lambda x: [x[0], 3.0],
        lambda x: x[:2],
        lambda x: ((x[0], 1.0), (x[1], x[2] ** 2)),
    ],
)
def test_padding_with_a_tensor_has_its_gradient(constants: Any) -> None:
    def f(x: Any) -> Any:
        return np.sin(np.pad(np.outer(x, x), ((1, 2), (0, 1)), constant_values=constants(x)))

    x = np.array([0.5, -0.25, 2.0])
    check_gradients(f, x)
    np.testing.assert_array_equal(gt.function(f)(x), f(x))
    np.testing.assert_allclose(
        gt.vmap(gt.jacobian(f))(np.stack([x, 2.0 * x]))[1], gt.jacfwd(f)(2.0 * x), rtol=1e-12
    )


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("pad: end_values", lambda x, n: gt.pad(x, 1, mode="linear_ramp", end_values=n)),
        ("nan_to_num: nan", lambda x, n: gt.nan_to_num(x, nan=n)),
        ("nan_to_num: posinf", lambda x, n: np.nan_to_num(x, posinf=n)),
        ("norm: ord", lambda x, n: np.linalg.norm(x, ord=n)),
        ("norm: ord", lambda x, n: gt.linalg.vector_norm(x, ord=n)),
        ("squareplus: b", gt.nn.squareplus),
        ("soft_shrink: threshold", gt.nn.soft_shrink),
    ],
)
def test_a_number_that_is_a_tensor_with_a_derivative_is_refused(name: str, call: Any) -> None:
    x, number = gt.constant([1.0, 2.0, 4.0]), gt.constant(1.5)
    expected = call(x, 1.5).tolist()
    assert call(x, number).tolist() == expected
    for derivative in (gt.grad, gt.jacfwd):
        assert derivative(lambda x: gt.sum(call(x, number)))(x).shape == x.shape
        with pytest.raises(gt.errors.GradientError, match=f"{name} must be a number"):
            derivative(lambda n: gt.sum(call(x, n)) * n)(number)
