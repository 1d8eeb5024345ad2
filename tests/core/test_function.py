"""``function``: traces, signatures, tapes across them, variables inside, errors that name lines."""

from __future__ import annotations

import copy
import dataclasses
import functools
import gc
import weakref
from pathlib import Path

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import GradientError, TraceError


def counting(f):
    """Return ``f`` as a function that counts its traces, and the list of them."""
    traces = []

    @functools.wraps(f)
    def noted(*args, **kwargs):
        traces.append(1)
        return f(*args, **kwargs)

    return gt.function(noted), traces


# -- signatures ------------------------------------------------------------------------------------


def test_a_trace_per_shape_and_dtype() -> None:
    f, traces = counting(lambda x: x * 2.0)
    for value, expected in [
        ([1.0], 1),
        ([2.0], 1),
        ([1.0, 2.0], 2),
        (1.0, 3),
        ([3.0, 4.0], 3),
        (np.array([1.0]), 4),
        (np.array([1], np.int8), 5),
        ([[1.0]], 6),
    ]:
        x = gt.constant(value)
        np.testing.assert_array_equal(f(x), np.asarray(x) * 2.0)
        assert len(traces) == expected
    assert len(f.concrete_functions) == 6


def test_a_trace_per_python_value() -> None:
    f, traces = counting(lambda x, n: x * n)
    x = gt.constant(3.0)
    results = [f(x, n).item() for n in (1, 1, 2, 2.0, True, 1, 2)]
    assert results == [3.0, 3.0, 6.0, 6.0, 3.0, 3.0, 6.0]
    assert len(traces) == 4


def test_signed_zeros_and_nan_are_values_too() -> None:
    f, traces = counting(lambda s: gt.arctan2(gt.constant(0.0), s))
    assert f(0.0).item() == 0.0
    np.testing.assert_allclose(f(-0.0).item(), np.pi, rtol=1e-6)
    f(float("nan"))
    f(float("nan"))
    assert len(traces) == 3


def test_static_arguments_of_any_hashable_kind() -> None:
    @dataclasses.dataclass(frozen=True)
    class Options:
        scale: float

    f, traces = counting(lambda x, options, mode: x * options.scale if mode == "a" else x)
    x = gt.constant(2.0)
    assert f(x, Options(3.0), "a").item() == 6.0
    assert f(x, Options(3.0), mode="a").item() == 6.0
    assert f(x, Options(3.0), mode="b").item() == 2.0
    assert len(traces) == 2
    with pytest.raises(TypeError, match=r"argument 1 .*set.*hashable"):
        f(x, {1, 2}, "a")


def test_defaults_and_keywords_share_a_trace() -> None:
    def g(x, n=2, *, scale=3.0):
        return x * n * scale

    f, traces = counting(g)
    x = gt.constant(1.0)
    assert [f(x), f(x, 2), f(x, n=2), f(x=x, scale=3.0)] == [6.0] * 4
    assert len(traces) == 1
    assert f(x, scale=gt.constant(5.0)).item() == 10.0
    assert len(traces) == 2
    with pytest.raises(TypeError, match="unexpected"):
        f(x, wrong=1)
    with pytest.raises(TypeError, match="missing"):
        f()


def test_variable_arguments() -> None:
    @gt.function
    def f(*xs, **named):
        return sum(xs) + sum(named.values())

    one = gt.constant(1.0)
    assert f(one, one, one).item() == 3.0
    assert f(one, k=one).item() == 2.0


def test_containers_in_and_out() -> None:
    f, traces = counting(lambda d, pair: {"s": d["a"] + pair[0], "t": (pair[1], "text", None, 3)})
    one, two = gt.constant(1.0), gt.constant(2.0)
    out = f({"a": one}, (two, two))
    assert out["s"].item() == 3.0
    assert isinstance(out["t"], tuple)
    assert out["t"][1:] == ("text", None, 3)
    f({"a": two}, (one, one))
    assert len(traces) == 1
    f({"a": two}, [one, one])
    assert len(traces) == 2


def test_variables_as_arguments_are_read_and_differentiated() -> None:
    f = gt.function(lambda v, x: v * x)
    a, b = gt.Variable(2.0), gt.Variable(5.0)
    x = gt.constant(3.0)
    with gt.GradientTape() as tape:
        y = f(a, x) + f(b, x)
    assert [g.item() for g in tape.gradient(y, [a, b])] == [3.0, 3.0]
    a.assign(10.0)
    assert f(a, x).item() == 30.0


def test_an_input_signature_makes_one_trace() -> None:
    traces = []

    @gt.function(input_signature=[gt.TensorSpec([None, 2]), gt.TensorSpec([])])
    def f(x, scale):
        traces.append(x.shape)
        return gt.sum(x * scale, axis=1)

    for n in (1, 3, 5):
        np.testing.assert_array_equal(f(np.ones((n, 2), np.float32), 2.0), np.full(n, 4.0))
    np.testing.assert_array_equal(f([[1.0, 2.0]], 1), [3.0])
    assert traces == [(None, 2)]
    with pytest.raises(ValueError, match=r"argument 0 must be float32\[\?, 2\].*\[1, 3\]"):
        f(gt.constant([[1.0, 2.0, 3.0]]), 1.0)
    with pytest.raises(TypeError, match=r"float32.*float64.*astype\('float32'\)"):
        f(np.ones((1, 2)), 1.0)
    with pytest.raises(ValueError, match=r"argument 1 must be float32\[\], got float32\[2\]"):
        f([[1.0, 2.0]], (1.0, 2.0))
    with pytest.raises(TypeError, match="structure of input_signature"):
        f([[1.0, 2.0]], {"scale": 1.0})


def test_a_signature_in_the_arguments_structure_and_static_rest() -> None:
    @gt.function(input_signature=[{"a": gt.TensorSpec([]), "b": (gt.TensorSpec([None]),)}])
    def f(d, n=2):
        return d["a"] * gt.sum(d["b"][0]) * n

    assert f({"a": 2.0, "b": (gt.constant([1.0, 2.0]),)}).item() == 12.0
    assert f({"a": 2.0, "b": (gt.constant([1.0]),)}, 5).item() == 10.0
    assert len(f.concrete_functions) == 2
    with pytest.raises(TypeError, match="structure"):
        f({"a": 2.0})
    with pytest.raises(TypeError, match="TensorSpecs"):
        gt.function(input_signature=[3])(lambda x: x)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (1, 2, 3), (0,)])
def test_unknown_rank(shape) -> None:
    @gt.function(input_signature=[gt.TensorSpec(None, "float64")])
    def f(x):
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = gt.sum(gt.sin(x) * x)
        return y, tape.gradient(y, x)

    a = np.random.default_rng(0).normal(size=shape)
    y, g = f(a)
    np.testing.assert_allclose(y, np.sum(np.sin(a) * a))
    np.testing.assert_allclose(g, np.cos(a) * a + np.sin(a))
    assert g.shape == shape
    assert len(f.concrete_functions) <= 1


def test_broadcasting_over_unknown_sizes() -> None:
    @gt.function(input_signature=[gt.TensorSpec([None, None]), gt.TensorSpec([None])])
    def f(x, b):
        return x * b

    x, b = gt.constant(np.ones((2, 3), np.float32)), gt.constant([2.0])
    with gt.GradientTape() as tape:
        tape.watch([x, b])
        y = f(x, b)
    dx, db = tape.gradient(y, [x, b])
    np.testing.assert_array_equal(dx, np.full((2, 3), 2.0))
    np.testing.assert_array_equal(db, [6.0])


def test_get_concrete_function() -> None:
    f, traces = counting(lambda x, n: x * n)
    concrete = f.get_concrete_function(gt.TensorSpec([None]), 3)
    assert f.get_concrete_function(gt.TensorSpec([None]), 3) is concrete
    assert len(traces) == 1
    np.testing.assert_array_equal(concrete(gt.constant([1.0, 2.0]), 3), [3.0, 6.0])
    np.testing.assert_array_equal(concrete([1.0], 3), [3.0])
    with pytest.raises(TypeError, match="traced as 3, got 4"):
        concrete(gt.constant([1.0]), 4)
    with pytest.raises(ValueError, match="argument 0"):
        concrete(gt.constant(1.0), 3)
    np.testing.assert_array_equal(concrete(gt.constant([1.0])), [3.0])  # which it knows
    with pytest.raises(TypeError, match="expected arguments"):
        concrete()
    assert "float32[?]" in repr(concrete)
    assert "1 traces" in repr(f)
    signed = gt.function(input_signature=[gt.TensorSpec([2])])(lambda x: x)
    np.testing.assert_array_equal(signed.get_concrete_function()([1.0, 2.0]), [1.0, 2.0])


# -- methods and callables -------------------------------------------------------------------------


class Scale(gt.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = gt.Variable(factor)
        self.traces = 0

    @gt.function
    def apply(self, x):
        self.traces += 1
        return x * self.factor


class Shifted(Scale):
    @gt.function
    def apply(self, x):
        return super().apply(x) + 1.0


def test_every_instance_has_traces_of_its_own() -> None:
    a, b = Scale(2.0), Scale(5.0)
    x = gt.constant(3.0)
    assert (a.apply(x).item(), b.apply(x).item(), a.apply(x).item()) == (6.0, 15.0, 6.0)
    assert (a.traces, b.traces) == (1, 1)
    assert a.apply is a.apply
    assert len(Scale.apply.concrete_functions) == 0
    a.factor.assign(7.0)
    assert a.apply(x).item() == 21.0


def test_overridden_methods_and_lambdas_do_not_collide() -> None:
    assert Shifted(2.0).apply(gt.constant(3.0)).item() == 7.0

    class Two:
        f = gt.function(lambda self, x: x * 2.0)
        g = gt.function(lambda self, x: x * 3.0)

    two = Two()
    assert (two.f(gt.constant(1.0)).item(), two.g(gt.constant(1.0)).item()) == (2.0, 3.0)


def test_copies_of_an_object_do_not_run_its_traces() -> None:
    import copy

    a = Scale(2.0)
    x = gt.constant(1.0)
    a.apply(x)
    deep = copy.deepcopy(a)
    deep.factor.assign(10.0)
    shallow = copy.copy(a)
    shallow.factor = gt.Variable(100.0)
    assert [m.apply(x).item() for m in (a, deep, shallow)] == [2.0, 10.0, 100.0]


def test_an_object_goes_with_its_traces() -> None:
    a = Scale(2.0)
    a.apply(gt.constant(1.0))
    gone = weakref.ref(a)
    del a
    gc.collect()
    assert gone() is None


def test_classes_slots_and_static_methods() -> None:
    class Kinds:
        __slots__ = ("k",)

        def __init__(self) -> None:
            self.k = 2.0

        @gt.function
        def method(self, x):
            return x * self.k

        @classmethod
        @gt.function
        def on_class(cls, x):
            return x * len(cls.__name__)

        @staticmethod
        @gt.function
        def static(x):
            return x * 4.0

    x = gt.constant(1.0)
    assert Kinds().method(x).item() == 2.0
    assert Kinds.on_class(x).item() == Kinds().on_class(x).item() == 5.0
    assert Kinds.static(x).item() == Kinds().static(x).item() == 4.0


def test_partials_callable_objects_and_metadata() -> None:
    x = gt.constant(3.0)
    assert gt.function(functools.partial(lambda k, x: x * k, 2.0))(x).item() == 6.0

    class Model(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = gt.Variable(2.0)

        def __call__(self, x):
            return x * self.w

    f = gt.function(Model())
    assert f(x).item() == 6.0
    assert not hasattr(f, "w")

    @gt.function
    def documented(x):
        """Say so."""
        return x

    assert documented.__doc__ == "Say so."
    assert documented.__name__ == "documented"


def test_dataclass_modules() -> None:
    @dataclasses.dataclass
    class Line(gt.Module):
        slope: gt.Variable
        offset: float = 1.0

        @gt.function
        def at(self, x):
            return self.slope * x + self.offset

    line = Line(gt.Variable(2.0))
    v = line.variables[0]
    with gt.GradientTape() as tape:
        y = line.at(gt.constant(3.0))
    assert (y.item(), tape.gradient(y, v).item(), line.name) == (7.0, 3.0, "line")


# -- nesting and recursion -------------------------------------------------------------------------


def test_functions_in_functions_and_recursion() -> None:
    inner = gt.function(lambda x, n: x * n)

    @gt.function
    def outer(x):
        return inner(x, 2) + inner(x, 3)

    assert outer(gt.constant(2.0)).item() == 10.0
    assert len(inner.concrete_functions) == 0  # they became part of the outer trace

    @gt.function
    def fibonacci(n, x):
        return x if n < 2 else fibonacci(n - 1, x) + fibonacci(n - 2, x)

    assert fibonacci(10, gt.constant(1.0)).item() == 89.0


def test_an_inner_function_converts_its_arguments_as_always() -> None:
    @gt.function(input_signature=[gt.TensorSpec([None]), gt.TensorSpec([])])
    def inner(x, s):
        assert isinstance(x, gt.Tensor)
        assert isinstance(s, gt.Tensor)
        return gt.sum(x) * s.astype("float32")

    outer = gt.function(lambda x: inner(x, 2.0) + inner([1.0, 1.0], s=3.0))
    assert outer(gt.constant([1.0, 2.0, 3.0])).item() == 18.0
    unknown = gt.function(lambda x: inner(x, 1.0), input_signature=[gt.TensorSpec(None)])
    assert unknown(gt.constant([1.0, 2.0])).item() == 3.0
    with pytest.raises(ValueError, match="argument 0 must be"):
        gt.function(lambda x: inner(x, 2.0))(gt.constant(1.0))


def test_a_function_in_a_custom_gradient_and_the_other_way_round() -> None:
    square = gt.function(lambda x: x * x)

    @gt.function
    @gt.custom_gradient
    def f(x):
        return square(x), lambda g: square(g) * 7.0

    x = gt.constant(3.0)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = f(x) * 2.0
    assert (y.item(), tape.gradient(y, x).item()) == (18.0, 28.0)


# -- tapes -----------------------------------------------------------------------------------------


def eager_orders(f, at, n):
    x = gt.constant(at, dtype="float64")

    def derivative(k):
        if k == 0:
            return f(x)
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = derivative(k - 1)
        return tape.gradient(y, x)

    return [derivative(k).item() for k in range(n + 1)]


def body(x):
    return gt.sin(x * x) * gt.exp(x) + x**3


def test_a_tape_inside_outside_and_across_to_third_order() -> None:
    expected = eager_orders(body, 0.7, 3)
    assert eager_orders(gt.function(body), 0.7, 3) == expected

    def differentiated(f):
        def g(x):
            with gt.GradientTape() as tape:
                tape.watch(x)
                y = f(x)
            return tape.gradient(y, x)

        return g

    first = gt.function(differentiated(body))
    np.testing.assert_allclose(eager_orders(first, 0.7, 2), expected[1:], rtol=1e-13)
    second = gt.function(differentiated(first))
    np.testing.assert_allclose(eager_orders(second, 0.7, 1), expected[2:], rtol=1e-13)
    third = gt.function(differentiated(differentiated(gt.function(differentiated(body)))))
    np.testing.assert_allclose(eager_orders(third, 0.7, 0), expected[3:], rtol=1e-13)


def test_a_whole_training_step() -> None:
    w = gt.Variable([0.0, 0.0])

    @gt.function
    def step(x, target):
        with gt.GradientTape() as tape:
            loss = gt.mean((gt.sum(x * w, axis=1) - target) ** 2)
        w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss

    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 2)).astype(np.float32)
    target = x @ np.array([1.0, -2.0], np.float32)
    losses = [step(x, target).item() for _ in range(100)]
    assert losses[-1] < 1e-6 < losses[0]
    np.testing.assert_allclose(w, [1.0, -2.0], atol=1e-3)


def test_two_tapes_over_one_call() -> None:
    f = gt.function(lambda x, y: x * y)
    x, y = gt.constant(2.0), gt.constant(3.0)
    with gt.GradientTape() as a, gt.GradientTape() as b:
        a.watch(x)
        b.watch(y)
        z = f(x, y)
    assert a.gradient(z, x).item() == 3.0
    assert b.gradient(z, y).item() == 2.0


def test_a_tape_opened_outside_does_not_see_the_trace_itself() -> None:
    f, traces = counting(lambda x: gt.sin(x))
    x = gt.constant(0.5)
    for _ in range(3):
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        np.testing.assert_allclose(tape.gradient(y, x), np.cos(0.5), rtol=1e-6)
    assert len(traces) == 1


def test_tapes_see_through_closures_over_watched_tensors() -> None:
    x = gt.constant(3.0)
    f = gt.function(lambda y: y * x)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = f(gt.constant(2.0))
    assert y.item() == 6.0
    assert tape.gradient(y, x).item() == 2.0


# -- variables -------------------------------------------------------------------------------------


def test_reads_and_assignments_keep_program_order() -> None:
    v = gt.Variable(1.0)

    @gt.function
    def f(x):
        before = v * 1.0
        v.assign(x)
        between = v * 1.0
        v.assign_add(10.0)
        v.assign_sub(1.0)
        return before, between, v.value, v

    assert [t.item() for t in f(gt.constant(5.0))] == [1.0, 5.0, 14.0, 14.0]
    assert v.item() == 14.0
    assert [t.item() for t in f(gt.constant(2.0))] == [14.0, 2.0, 11.0, 11.0]
    with gt.GradientTape():  # the way through a tape does the same
        assert [t.item() for t in f(gt.constant(3.0))] == [11.0, 3.0, 12.0, 12.0]
    assert v.item() == 12.0


def test_gradients_use_what_was_read_when() -> None:
    v = gt.Variable(2.0)

    @gt.function
    def f():
        y = v * v
        v.assign(10.0)
        return y + v**3

    with gt.GradientTape() as tape:
        y = f()
    assert y.item() == 1004.0
    assert tape.gradient(y, v).item() == 304.0


def test_variables_watch_themselves_through_a_function() -> None:
    a, b = gt.Variable(2.0), gt.Variable(3.0)
    fixed = gt.Variable(4.0, trainable=False)
    f = gt.function(lambda: b * a * fixed)
    f()
    with gt.GradientTape() as tape:
        f()
    assert [v is w for v, w in zip(tape.watched_variables(), (a, b), strict=True)] == [True, True]


def test_an_error_during_a_run_leaves_every_variable_as_it_was() -> None:
    a, b = gt.Variable([1.0]), gt.Variable([1.0])

    @gt.function(input_signature=[gt.TensorSpec([None]), gt.TensorSpec([None])])
    def f(x, y):
        a.assign_add([1.0])
        b.assign(gt.reshape(gt.sum(x * y), (1,)))
        a.assign_add([1.0])

    with pytest.raises(ValueError, match="multiply"):
        f([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="multiply"), gt.GradientTape():
        f([1.0, 2.0], [1.0, 2.0, 3.0])
    assert (a.numpy()[0], b.numpy()[0]) == (1.0, 1.0)
    f([1.0, 2.0], [1.0, 2.0])
    assert (a.numpy()[0], b.numpy()[0]) == (3.0, 5.0)


def test_an_error_during_tracing_leaves_nothing_behind() -> None:
    v = gt.Variable(1.0)
    fail = [True]

    @gt.function
    def f(x):
        v.assign(x)
        if fail:
            raise KeyError("once")
        return v * 2.0

    with pytest.raises(KeyError):
        f(gt.constant(5.0))
    assert v.item() == 1.0
    assert (v * 2.0).item() == 2.0
    fail.clear()
    assert f(gt.constant(5.0)).item() == 10.0


def test_a_wrong_assignment_is_found_while_tracing() -> None:
    v = gt.Variable([1.0, 2.0], name="w")
    with pytest.raises(ValueError, match=r"'w' has shape \(2,\)"):
        gt.function(lambda x: v.assign(x))(gt.constant([1.0, 2.0, 3.0]))
    with pytest.raises(TypeError, match="int"):
        gt.function(lambda x: gt.Variable(1).assign(x))(gt.constant(1.5))


@pytest.mark.parametrize("spec", [gt.TensorSpec([None]), gt.TensorSpec(None)], ids=str)
def test_a_wrong_assignment_is_found_at_run_time_if_the_shape_was_unknown(spec) -> None:
    first, v = gt.Variable(0.0), gt.Variable([1.0, 2.0], name="w")

    @gt.function(input_signature=[spec])
    def f(x):
        first.assign(5.0)
        v.assign(x * 1.0)

    def taped(x):
        with gt.GradientTape():
            f(x)

    for run in (f, taped):
        with pytest.raises(ValueError, match=r"assign.*'w' has shape \(2,\).*\(3,\)"):
            run(gt.constant([1.0, 2.0, 3.0]))
        assert first.item() == 0.0
        np.testing.assert_array_equal(v, [1.0, 2.0])
    f(gt.constant([3.0, 4.0]))
    np.testing.assert_array_equal(v, [3.0, 4.0])


def test_assigning_in_a_gradient_function_is_refused() -> None:
    v = gt.Variable(1.0, trainable=False, name="count")

    @gt.custom_gradient
    def f(x):
        return x * 1.0, lambda g: g * v.assign_add(1.0)

    x = gt.constant(1.0)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.function(f)(x)
    with pytest.raises(GradientError, match="'count' is assigned inside a gradient function"):
        tape.gradient(y, x)


# -- Python reading values -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "read",
    [
        lambda x: 1 if x > 0 else 2,
        lambda x: float(x),
        lambda x: int(x),
        lambda x: x.numpy(),
        lambda x: x.item(),
        lambda x: np.asarray(x),
        lambda x: bool(x),
        lambda x: f"{x:.2f}",
        lambda x: list(range(x.astype("int32"))),
        lambda x: x.tolist(),
        lambda x: complex(x),
        lambda x: np.float64(x),
    ],
)
def test_reading_a_traced_value_names_the_line(read) -> None:
    with pytest.raises(TraceError, match=rf"test_function\.py:{read.__code__.co_firstlineno}: "):
        gt.function(read)(gt.constant(1.0))


@pytest.mark.parametrize("read", [len, list, lambda x: x.ndim * 1.0, lambda x: [*x]])
def test_reading_an_unknown_shape_names_the_line(read) -> None:
    f = gt.function(lambda x: read(x), input_signature=[gt.TensorSpec(None)])
    with pytest.raises(TraceError, match=r"test_function\.py:\d+: .*not known"):
        f(gt.constant([1.0, 2.0]))


def test_known_shapes_can_be_read() -> None:
    f = gt.function(lambda x: sum(x) * len(x) * x.ndim * x.shape[0] + x.size)
    assert f(gt.constant([1.0, 2.0])).item() == 14.0


def test_print_and_repr_of_a_traced_value_do_not_fail() -> None:
    seen = []
    gt.function(lambda x: seen.append((repr(x), str(x))) or x)(gt.constant([1.0]))
    assert "float32[1]" in seen[0][0]


def test_a_symbol_that_leaks_says_where_it_is_from() -> None:
    leaked = []

    @gt.function
    def leaky(x):
        leaked.append(x * 2.0)
        return x

    leaky(gt.constant(1.0))
    with pytest.raises(TraceError, match="made while 'leaky' was traced"):
        leaked[0] + 1.0
    with pytest.raises(TraceError, match="made while 'leaky' was traced"):
        gt.function(lambda x: x + leaked[0])(gt.constant(1.0))
    with pytest.raises(TraceError):
        leaked[0].numpy()


# -- other surprises -------------------------------------------------------------------------------


def test_constants_are_what_they_were_when_traced() -> None:
    a = np.array([1.0, 2.0], np.float32)
    f = gt.function(lambda x: x * a + a)
    x = gt.constant([1.0, 1.0])
    np.testing.assert_array_equal(f(x), [2.0, 4.0])
    a[:] = 100.0
    np.testing.assert_array_equal(f(x), [2.0, 4.0])
    with gt.GradientTape():
        np.testing.assert_array_equal(f(x), [2.0, 4.0])


def test_returning_arguments_constants_and_nothing() -> None:
    x = gt.constant(2.0)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y, c, n = gt.function(lambda x: (x, gt.constant(5.0), None))(x)
    assert (y.item(), c.item(), n) == (2.0, 5.0, None)
    assert tape.gradient([y, c], x).item() == 1.0
    assert gt.function(lambda: gt.constant(3.0) * 2.0)().item() == 6.0
    assert gt.function(lambda x: None)(x) is None


def test_no_arguments_and_python_numbers_only() -> None:
    f, traces = counting(lambda a, b: a + b)
    assert f(1, 2) == 3
    assert f(1, 2) == 3
    assert len(traces) == 1


def test_random_state_goes_on_from_call_to_call() -> None:
    draw = gt.function(lambda: gt.random.normal([4]))
    first, second = draw().numpy(), draw().numpy()
    assert not np.array_equal(first, second)
    with gt.GradientTape():
        third = draw().numpy()
    assert not np.array_equal(second, third)

    pair = gt.function(lambda: (gt.random.normal([4]), gt.random.normal([4])))
    a, b = pair()
    assert not np.array_equal(a, b)  # equal calls are not one


def test_several_outputs_of_one_op() -> None:
    f = gt.function(lambda x: gt.split(x, 2)[::-1])
    x = gt.constant([1.0, 2.0, 3.0, 4.0])
    with gt.GradientTape() as tape:
        tape.watch(x)
        b, a = f(x)
        y = gt.sum(b * 2.0) + gt.sum(a)
    np.testing.assert_array_equal(tape.gradient(y, x), [1.0, 1.0, 2.0, 2.0])


def test_a_callable_without_known_parameters_is_refused_in_words() -> None:
    class Opaque:
        __signature__ = property(lambda self: (_ for _ in ()).throw(ValueError("none")))

        def __call__(self, x):
            return x

    with pytest.raises(TypeError, match=r"parameters of .* are unknown; wrap it"):
        gt.function(Opaque())
    with pytest.raises(TypeError, match="use gradtape's op instead of NumPy's"):
        gt.function(np.sin)


@pytest.mark.parametrize("kind", ["a generator", "a coroutine", "an asynchronous generator"])
def test_what_runs_after_its_call_cannot_be_traced(kind: str) -> None:
    def numbers(x):
        yield x

    async def later(x):
        return x

    async def numbers_later(x):
        yield x

    function = {"a generator": numbers, "a coroutine": later}.get(kind, numbers_later)
    with pytest.raises(TypeError, match=f"function '{function.__name__}' is {kind}, which runs"):
        gt.function(function)


def test_a_function_that_has_run_lets_go_of_what_it_held() -> None:
    def run():
        outside, state = gt.constant(np.ones(3)), gt.Variable(np.ones(3))
        function = gt.function(lambda x: x * outside + state)
        assert function(outside).tolist() == [2.0, 2.0, 2.0]
        return weakref.ref(outside.array), weakref.ref(state)

    held = run()
    gc.collect()
    assert [kept() for kept in held] == [None, None]


def test_a_copy_of_a_loaded_model_that_has_run_has_variables_of_its_own(tmp_path: Path) -> None:
    class Scale(gt.Module):
        def __init__(self):
            super().__init__()
            self.factor = gt.Variable(2.0)

        @gt.function
        def __call__(self, x):
            return x * self.factor

    model = Scale()
    one = gt.constant(1.0)
    model(one)
    gt.save(model, tmp_path / "model.h5")
    loaded = gt.load(tmp_path / "model.h5")
    assert loaded(one).item() == 2.0
    twin = copy.deepcopy(loaded)
    twin.variables[0].assign(5.0)
    assert (twin(one).item(), loaded(one).item()) == (5.0, 2.0)
