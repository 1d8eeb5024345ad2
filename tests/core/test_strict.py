"""A broken path is named: by explain, by an error of what is strict, by a warning of the rest."""

from __future__ import annotations

import gc
import re
import warnings
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import NONDIFF, Op
from gradtape.errors import BrokenPathWarning, GradientError

UNRULED = Op(
    "strict::unruled",
    lambda xp, x: x * 2.0,
    infer=lambda x: (x.shape, x.dtype),
    batch="elementwise",
)
HALF = Op(
    "strict::half",
    lambda xp, x, y: x * y,
    gradients={"x": lambda g, y: g * y, "y": NONDIFF},
    infer=lambda x, y: (x.shape, x.dtype),
    batch="elementwise",
)


@pytest.fixture(autouse=True, scope="module")
def plugin():
    ops = SimpleNamespace(gradtape_ops=gt.hookimpl(lambda: [UNRULED, HALF]))
    gt.register_plugin(ops, "strict")
    yield
    gt.unregister_plugin("strict")


X = gt.constant([1.5, -2.5])
#: What breaks a path -> the function, what the reason says, and whether nobody has to be strict.
BROKEN = {
    "an op without rules": (lambda x: gt.sum(UNRULED(x)), "op 'strict::unruled' has no", True),
    "beside another path": (lambda x: gt.sum(UNRULED(x) * x), "op 'strict::unruled' has no", True),
    "in a function": (gt.function(lambda x: gt.sum(UNRULED(x) + x)), "'strict::unruled'", True),
    "in a vmap": (lambda x: gt.sum(gt.vmap(lambda a: UNRULED(a) + a)(x)), "unruled", True),
    "in a recomputation": (gt.recompute_grad(lambda x: gt.sum(UNRULED(x) + x)), "unruled", True),
    "in a loop": (
        lambda x: gt.scan(lambda c, a: (c + UNRULED(a) + a, c), gt.constant(0.0), x)[0],
        "unruled",
        True,
    ),
    "in a branch": (
        gt.function(lambda x: gt.cond(gt.sum(x) > 9, lambda: x[0], lambda: gt.sum(UNRULED(x) + x))),
        "unruled",
        True,
    ),
    "its value": (lambda x: gt.sum(gt.constant(np.sin(x.numpy()))), r"read with .numpy\(\)", True),
    "an input without a rule": (
        lambda x: gt.sum(HALF(x, x)),
        "'strict::half' does not pass",
        False,
    ),
    "rounding": (lambda x: gt.sum(gt.round(x)), "op 'round' does not pass", False),
    "rounding beside another path": (lambda x: gt.sum(x - gt.floor(x)), "op 'floor'", False),
    "integers": (lambda x: gt.sum(x.astype("int32") * x), "op 'cast' gives int32", False),
    "a place as a number": (lambda x: gt.argmax(x) * gt.sum(x), "op 'argmax' gives int64", False),
}
#: What is meant, or depends on nothing.
WHOLE = {
    "a constant": lambda x: gt.constant(1.0),
    "stop_gradient": lambda x: gt.sum(gt.stop_gradient(gt.floor(x)) * x),
    "all of it stopped": lambda x: gt.sum(gt.stop_gradient(x)),
    "a condition": lambda x: gt.sum(gt.where(x > 0, x, 0.0)),
    "a mask": lambda x: gt.sum(x * (x > 0).astype("float32")),
    "a step": lambda x: gt.sum(gt.where(x > 0, 1.0, 0.0)),
    "a place": lambda x: x[gt.argmax(x)],
    "an order": lambda x: gt.sum(gt.take_along_axis(x, gt.argsort(x), axis=0) ** 2),
    "a shape": lambda x: gt.sum(gt.ones_like(x) * x),
    "what is not used": lambda x: (UNRULED(x), gt.floor(x), gt.sum(x))[2],
    "a value that is logged": lambda x: (float(x[0]), gt.sum(x * x))[1],
    "what rules round": lambda x: gt.sum(x % 2.0) + gt.sum(abs(x)),
    "what functions round": lambda x: gt.sum(gt.unwrap(x)) + gt.nanmean(x) + gt.median(x),
    "random numbers": lambda x: gt.sum(x * gt.random.normal((2,))),
}
ASK = {
    "grad": lambda f, s: gt.grad(f, strict=s)(X),
    "value_and_grad": lambda f, s: gt.value_and_grad(f, strict=s)(X),
    "vjp": lambda f, s: gt.vjp(f, X, strict=s)[1](1.0),
    "jvp": lambda f, s: gt.jvp(f, X, gt.ones(2), strict=s)[1],
    "linearize": lambda f, s: gt.linearize(f, X, strict=s)[1](X),
    "hvp": lambda f, s: gt.hvp(f, X, gt.ones(2), strict=s),
    "jacobian": lambda f, s: gt.jacobian(f, strict=s)(X),
    "jacfwd": lambda f, s: gt.jacfwd(f, strict=s)(X),
    "hessian": lambda f, s: gt.hessian(f, strict=s)(X),
}
TAPES = ("gradient", "jacobian")


def by_tape(f, strict, ask="gradient"):
    with gt.GradientTape(strict=strict) as tape:
        tape.watch(X)
        y = f(X)
    return getattr(tape, ask)(y, X)


@pytest.mark.parametrize("ask", [*ASK, *TAPES])
@pytest.mark.parametrize("name", BROKEN)
def test_what_is_strict_raises_and_names_the_break(name, ask) -> None:
    f, reason, _ = BROKEN[name]
    with pytest.raises(GradientError, match=reason):
        ASK[ask](f, True) if ask in ASK else by_tape(f, True, ask)


@pytest.mark.parametrize("ask", [*ASK, *TAPES])
@pytest.mark.parametrize("name", WHOLE)
def test_what_is_meant_is_neither_an_error_nor_warned_of(name, ask) -> None:
    run = ASK.get(ask, lambda f, s: by_tape(f, s, ask))
    with warnings.catch_warnings(action="error", category=BrokenPathWarning):
        strict, plain = run(WHOLE[name], True), run(WHOLE[name], False)
    if name != "random numbers":
        for a, b in zip(*map(leaves, (strict, plain)), strict=True):
            assert a == b


def leaves(tree):
    found = tree if isinstance(tree, (list, tuple)) else [tree]
    return [None if x is None else x.tolist() for x in found]


@pytest.mark.parametrize("ask", ASK)
@pytest.mark.parametrize("name", BROKEN)
def test_what_is_not_strict_warns_once_for_each_line(name, ask) -> None:
    f, reason, warned = BROKEN[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        globals().pop("__warningregistry__", None)
        for _ in range(2):
            ASK[ask](f, False)
    told = [w for w in caught if w.category is BrokenPathWarning]
    assert all(w.filename == __file__ for w in told)
    assert bool(told) is warned
    assert len({(w.lineno, str(w.message)) for w in told}) == len(told)
    if warned:
        assert re.search(reason, str(told[0].message))


@pytest.mark.parametrize("name", [name for name in BROKEN if not name.startswith("in a ")])
def test_explain_names_the_break(name) -> None:
    f, reason, _ = BROKEN[name]
    with gt.GradientTape(strict=True) as tape:
        tape.watch(X)
        y = f(X)
    assert re.search(reason, tape.explain(y, X))


def test_explain_names_what_is_lost_beside_another_path() -> None:
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(X)
        y, z = gt.sum(UNRULED(X) * X), gt.sum(X - gt.floor(X))
    assert "Other paths from the source end: op 'strict::unruled'" in tape.explain(y, X)
    assert "may end before it: op 'floor'" in tape.explain(z, X)
    np.testing.assert_array_equal(tape.gradient(y, X), 2 * X)  # as in TensorFlow, without a word


def test_only_the_sources_that_are_asked_for_count() -> None:
    y = gt.constant([1.0, 2.0])
    with gt.GradientTape(persistent=True, strict=True) as tape:
        tape.watch([X, y])
        z = gt.sum(gt.floor(X) * y)
    assert tape.gradient(z, y).tolist() == [1.0, -3.0]
    with pytest.raises(GradientError, match="op 'floor'"):
        tape.gradient(z, X)
    with pytest.raises(GradientError, match="op 'floor'"):
        tape.gradient(z, [y, X])


def test_a_strict_tape_gives_second_orders_of_rules_that_round() -> None:
    with gt.GradientTape(strict=True) as outer:
        outer.watch(X)
        with gt.GradientTape(strict=True) as tape:
            tape.watch(X)
            y = gt.sum((X % 2.0) ** 3 + abs(X) ** 3)
        slope = tape.gradient(y, X)
    np.testing.assert_allclose(outer.gradient(slope, X), 6 * (np.asarray(X) % 2) + 6 * abs(X))


def test_an_assignment_breaks_a_path() -> None:
    v = gt.Variable([0.0, 0.0])

    def f(x):
        v.assign(x * 5.0)
        return gt.sum(v * 3.0)

    with pytest.raises(GradientError, match="assign to variable"):
        by_tape(f, True)
    with pytest.warns(BrokenPathWarning, match="assign to variable"):
        assert gt.grad(f)(X).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("trace", [lambda f: f, gt.function], ids=["eager", "traced"])
@pytest.mark.parametrize("method", ["assign", "assign_add", "assign_sub"])
def test_an_assignment_breaks_a_path_beside_others(method, trace) -> None:
    v = gt.Variable([1.0, 1.0])

    @trace
    def f(x):
        getattr(v, method)(x * 5.0)
        return gt.sum(v * x)

    with gt.GradientTape(strict=True) as tape:
        tape.watch(X)
        y = f(X)
    with pytest.raises(GradientError, match=r"assign.* variable 'Variable' passes no gradient"):
        tape.gradient(y, X)


def test_a_step_inside_a_strict_tape_is_no_step_to_differentiate() -> None:
    v = gt.Variable(2.0)
    with gt.GradientTape(strict=True) as outer:
        with gt.GradientTape() as tape:
            y = v * v
        v.assign_sub(0.1 * tape.gradient(y, v))
        z = v * v
    with pytest.raises(GradientError, match="assign_sub to variable"):
        outer.gradient(z, v)


@pytest.mark.parametrize("trainable", [True, False])
def test_an_assignment_that_nothing_reads_breaks_no_path(trainable) -> None:
    v = gt.Variable([1.0, 1.0], trainable=trainable)
    with gt.GradientTape(strict=True) as tape:
        tape.watch(X)
        new = X * 5.0
        y = gt.sum(v * X)
        v.assign(new)
    assert tape.gradient(y, X).tolist() == [1.0, 1.0]


def test_a_forward_accumulator_may_be_strict() -> None:
    with gt.ForwardAccumulator(X, gt.ones(2), strict=True) as acc:
        whole, lost = X * 2.0, gt.floor(X) * X
    assert acc.jvp(whole).tolist() == [2.0, 2.0]
    with pytest.raises(GradientError, match="op 'floor'"):
        acc.jvp(lost)


@pytest.mark.parametrize("strict", [False, True])
def test_a_tape_that_has_lost_something_is_let_go(strict) -> None:
    gc.collect()
    gc.disable()
    try:
        with gt.GradientTape(strict=strict) as tape:
            tape.watch(X)
            gt.sum(UNRULED(X) * gt.floor(X) * X)
        gone = weakref.ref(tape)
        del tape
        assert gone() is None
    finally:
        gc.enable()
