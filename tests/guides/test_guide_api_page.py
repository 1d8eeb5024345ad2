"""What the reference page of ``GradientTape`` states: programs, arguments, defaults and errors.

All of it holds in gradtape's names and in TensorFlow's: `lib` is one, then the other.
"""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import gradtape as gt


def test_derivative_of_a_square(lib) -> None:
    x = lib.constant(3.0)
    with lib.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    gradient = tape.gradient(y, x)
    assert gradient.numpy() == 6.0
    assert gradient.shape == ()
    assert gradient.dtype == np.float32


def test_first_and_second_derivative(lib) -> None:
    x = lib.constant(5.0)
    with lib.GradientTape() as outer:
        outer.watch(x)
        with lib.GradientTape() as inner:
            inner.watch(x)
            y = x * x
        first = inner.gradient(y, x)
    assert first.numpy() == 10.0
    assert outer.gradient(first, x).numpy() == 2.0


@pytest.mark.parametrize("source", ["constant", "Variable"])
def test_a_tape_is_not_persistent_by_default(lib, source) -> None:
    x = getattr(lib, source)(3.0)
    with lib.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    tape.gradient(y, x)
    with pytest.raises(RuntimeError, match=r"non-persistent.*persistent=True"):
        tape.gradient(y, x)


def test_only_what_is_watched_is_differentiated(lib) -> None:
    x, w = lib.Variable(2.0), lib.Variable(5.0)
    with lib.GradientTape(watch_accessed_variables=False, persistent=True) as tape:
        tape.watch(x)
        y = x**2
        z = w**3
    assert tape.gradient(y, x).numpy() == 4.0
    assert tape.gradient(z, w) is None


def test_variables_of_layers_that_are_not_built_yet_are_not_watched(lib) -> None:
    a, b = lib.Dense(32), lib.Dense(32)
    inputs = lib.random.normal([4, 8])
    with lib.GradientTape(watch_accessed_variables=False) as tape:
        assert list(a.variables) == []
        tape.watch(a.variables)
        result = b(a(inputs))
        gradients = tape.gradient(result, a.variables)
    assert len(a.variables) == 2
    assert list(gradients) == [None, None]

    with lib.GradientTape(watch_accessed_variables=False) as tape:  # built by now
        tape.watch(a.variables)
        result = b(a(inputs))
    assert [g.shape for g in tape.gradient(result, a.variables)] == [v.shape for v in a.variables]


def test_trainable_variables_are_watched_automatically_others_not(lib) -> None:
    v, fixed = lib.Variable(2.0), lib.Variable(3.0, trainable=False)
    with lib.GradientTape() as tape:
        y = v * fixed
    assert [w is v for w in tape.watched_variables()] == [True]
    gradients = tape.gradient(y, [v, fixed])
    assert gradients[0].numpy() == 3.0
    assert gradients[1] is None


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "bool"])
def test_only_real_and_complex_tensors_are_differentiable(lib, dtype) -> None:
    x = lib.constant(np.array([1, 0], dtype))
    with lib.GradientTape() as tape:
        tape.watch(x)
        y = lib.cast(x, "float32") * 2.0
    assert tape.gradient(y, x) is None


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_real_and_complex_tensors_are_differentiable(lib, dtype) -> None:
    x = lib.constant([1, 0], dtype=dtype)
    with lib.GradientTape() as tape:
        tape.watch(x)
        y = x * 2.0
    gradient = tape.gradient(y, x)
    assert gradient.dtype == dtype
    np.testing.assert_array_equal(gradient, [2.0, 2.0])


NONE = {"unconnected_gradients": gt.UnconnectedGradients.NONE}
ROWS = {**NONE, "parallel_iterations": None, "experimental_use_pfor": True}


@pytest.mark.parametrize(
    ("method", "arguments", "defaults"),
    [
        ("__init__", [], {"persistent": False, "watch_accessed_variables": True}),
        ("watch", ["tensor"], {}),
        ("stop_recording", [], {}),
        ("reset", [], {}),
        ("watched_variables", [], {}),
        ("gradient", ["target", "sources"], {"output_gradients": None, **NONE}),
        ("jacobian", ["target", "sources"], ROWS),
        ("batch_jacobian", ["target", "source"], ROWS),
    ],
)
def test_the_methods_their_arguments_and_defaults(lib, method, arguments, defaults) -> None:
    parameters = inspect.signature(getattr(lib.GradientTape, method)).parameters
    found = {
        name: p.default
        for name, p in parameters.items()
        if p.default is not inspect.Parameter.empty
    }
    assert {name: found[name] for name in defaults} == defaults
    positional = [name for name, p in parameters.items() if p.default is inspect.Parameter.empty]
    assert positional == ["self", *arguments]


@pytest.mark.parametrize("pfor", [True, False])
def test_batch_jacobian_is_the_stack_of_jacobians_per_example(lib, pfor) -> None:
    x = lib.constant([[1.0, 2.0], [3.0, 4.0]], dtype=lib.float32)
    with lib.GradientTape(persistent=not pfor) as tape:
        tape.watch(x)
        y = x * x
    found = tape.batch_jacobian(y, x, experimental_use_pfor=pfor)
    np.testing.assert_array_equal(found, [[[2.0, 0.0], [0.0, 4.0]], [[6.0, 0.0], [0.0, 8.0]]])


@pytest.mark.parametrize("pfor", [True, False])
def test_jacobian_of_a_vector_is_a_matrix(lib, pfor) -> None:
    x = lib.constant([1.0, 2.0])
    with lib.GradientTape(persistent=not pfor) as tape:
        tape.watch(x)
        y = x * x
    found = tape.jacobian(y, x, experimental_use_pfor=pfor, parallel_iterations=1)
    np.testing.assert_array_equal(found, [[2.0, 0.0], [0.0, 4.0]])


@pytest.mark.parametrize("method", ["jacobian", "batch_jacobian"])
def test_rows_one_by_one_ask_for_a_persistent_tape_but_in_a_trace(lib, method) -> None:
    def rows(x):
        with lib.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        return getattr(tape, method)(y, x, experimental_use_pfor=False)

    x = lib.constant([[1.0, 2.0]])
    with pytest.raises(RuntimeError, match="persistent=True"):
        rows(x)
    found = np.reshape(lib.function(rows)(x), (2, 2))
    np.testing.assert_array_equal(found, [[2.0, 0.0], [0.0, 4.0]])


@pytest.mark.parametrize(
    ("y", "x"), [([1.0], [1.0]), ([[1.0]], [1.0]), (1.0, 1.0), ([1.0], [[1.0]])]
)
def test_batch_jacobian_needs_an_axis_beside_that_of_the_examples(lib, y, x) -> None:
    y, x = lib.constant(y), lib.constant(x)
    with lib.GradientTape() as tape:
        tape.watch([y, x])
    with pytest.raises(ValueError, match="got shape"):
        tape.batch_jacobian(y, x)


def test_unknown_ways_to_treat_unconnected_sources_are_errors(lib) -> None:
    x = lib.constant(3.0)
    with lib.GradientTape() as tape:
        tape.watch(x)
    with pytest.raises(ValueError, match="unconnected_gradients"):
        tape.gradient(x, x, unconnected_gradients="nonsense")


def test_a_tape_is_stopped_only_while_recording_and_entered_once(lib) -> None:
    tape = lib.GradientTape()
    with tape:
        pass
    with pytest.raises(RuntimeError, match="not recording"), tape.stop_recording():
        pass
    with pytest.raises(RuntimeError, match="already recording"), tape, tape:
        pass


def test_batch_jacobians_need_as_many_examples_on_both_sides(lib) -> None:
    a, b = lib.ones([2, 3]), lib.ones([4, 3])
    with lib.GradientTape() as tape:
        tape.watch(b)
        c = lib.concat([a, b], 0)
    with pytest.raises(ValueError, match="batch_jacobian"):
        tape.batch_jacobian(c, b)


def test_output_gradients_and_nested_structures(lib) -> None:
    x, y = lib.Variable([1.0, 2.0]), lib.Variable(3.0)
    with lib.GradientTape() as tape:
        z = x * y
    grads = tape.gradient(
        [z], {"x": x, "rest": (y, [x])}, output_gradients=[lib.constant([1.0, 10.0])]
    )
    np.testing.assert_array_equal(grads["x"], [3.0, 30.0])
    assert grads["rest"][0].numpy() == 21.0
    np.testing.assert_array_equal(grads["rest"][1][0], [3.0, 30.0])
