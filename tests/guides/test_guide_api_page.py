"""What the reference page of ``GradientTape`` states, batch Jacobians apart, in our names."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as gt


def test_derivative_of_a_square() -> None:
    x = gt.constant(3.0)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    gradient = tape.gradient(y, x)
    assert gradient.numpy() == 6.0
    assert gradient.shape == ()
    assert gradient.dtype == np.float32


def test_first_and_second_derivative() -> None:
    x = gt.constant(5.0)
    with gt.GradientTape() as outer:
        outer.watch(x)
        with gt.GradientTape() as inner:
            inner.watch(x)
            y = x * x
        first = inner.gradient(y, x)
    assert first.numpy() == 10.0
    assert outer.gradient(first, x).numpy() == 2.0


def test_persistent() -> None:
    x = gt.constant(3.0)
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = y * y
    assert tape.gradient(z, x).numpy() == 108.0
    assert tape.gradient(y, x).numpy() == 6.0


def test_a_tape_is_not_persistent_by_default() -> None:
    x = gt.Variable(3.0)
    with gt.GradientTape() as tape:
        y = x * x
    tape.gradient(y, x)
    with pytest.raises(RuntimeError, match="persistent=True"):
        tape.gradient(y, x)


def test_only_what_is_watched_is_differentiated() -> None:
    x, w = gt.Variable(2.0), gt.Variable(5.0)
    with gt.GradientTape(watch_accessed_variables=False, persistent=True) as tape:
        tape.watch(x)
        y = x**2
        z = w**3
    assert tape.gradient(y, x).numpy() == 4.0
    assert tape.gradient(z, w) is None


def test_variables_of_layers_that_are_not_built_yet_are_not_watched() -> None:
    a, b = gt.layers.Dense(32), gt.layers.Dense(32)
    inputs = gt.random.normal([4, 8])
    with gt.GradientTape(watch_accessed_variables=False) as tape:
        assert list(a.variables) == []
        tape.watch(a.variables)
        result = b(a(inputs))
    assert len(a.variables) == 2
    assert list(tape.gradient(result, a.variables)) == [None, None]

    with gt.GradientTape(watch_accessed_variables=False) as tape:  # built by now
        tape.watch(a.variables)
        result = b(a(inputs))
    assert [g.shape for g in tape.gradient(result, a.variables)] == [v.shape for v in a.variables]


def test_trainable_variables_are_watched_automatically_others_not() -> None:
    v, fixed = gt.Variable(2.0), gt.Variable(3.0, trainable=False)
    with gt.GradientTape() as tape:
        y = v * fixed
    assert [w is v for w in tape.watched_variables()] == [True]
    gradients = tape.gradient(y, [v, fixed])
    assert gradients[0].numpy() == 3.0
    assert gradients[1] is None


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "bool"])
def test_only_real_and_complex_tensors_are_differentiable(dtype: str) -> None:
    x = gt.constant([1, 0], dtype=dtype)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.cast(x, "float32") * 2.0
    assert tape.gradient(y, x) is None


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_real_and_complex_tensors_are_differentiable(dtype: str) -> None:
    x = gt.constant([1, 0], dtype=dtype)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = x * 2.0
    gradient = tape.gradient(y, x)
    assert gradient.dtype == dtype
    np.testing.assert_array_equal(gradient, [2.0, 2.0])
