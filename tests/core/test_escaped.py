"""A value that left its trace, or its vmap, is an error in words wherever it is used."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import TraceError

ONE = gt.constant(1.0)
YES = gt.constant(True)

USES = {
    "an op": lambda x, p: x * 2.0,
    "an op with several inputs": lambda x, p: gt.stack([x, ONE]),
    "an op beside": lambda x, p: gt.where(p, ONE, ONE),
    "NumPy's function": lambda x, p: np.sin(x),
    "an index": lambda x, p: gt.ones(3)[x.astype("int32")],
    "constant": lambda x, p: gt.constant(x),
    "a predicate": lambda x, p: gt.cond(p, lambda: ONE, lambda: ONE),
    "an operand of cond": lambda x, p: gt.cond(YES, lambda a: a * 2.0, lambda a: a, x),
    "an operand that cond hands through": lambda x, p: gt.cond(YES, lambda a: a, lambda a: a, x),
    "scan": lambda x, p: gt.scan(lambda c, _: (c * x, c), ONE, None, length=2),
    "while_loop": lambda x, p: gt.while_loop(lambda c: c < 3, lambda c: c + 1.0 + x, (ONE,)),
    "the state of while_loop": lambda x, p: gt.while_loop(lambda c: c < 3, lambda c: c + 1.0, (x,)),
    "an argument of a function": lambda x, p: gt.function(lambda a: a * 2.0)(x),
    "an argument that a function returns": lambda x, p: gt.function(lambda a: a)(x),
    "a function around it": lambda x, p: gt.function(lambda a: a * x)(ONE),
    "a branch in a function": lambda x, p: gt.function(
        lambda q: gt.cond(q > 0, lambda: x * 2.0, lambda: q)
    )(ONE),
    "a branch in a vmap": lambda x, p: gt.vmap(
        lambda q: gt.cond(q > 0, lambda: x * 2.0, lambda: q)
    )(gt.ones(3)),
    "another vmap": lambda x, p: gt.vmap(lambda a: a * x)(gt.ones(3)),
    "what a vmap shares": lambda x, p: gt.vmap(lambda a, x: a, in_axes=(0, None))(gt.ones(3), x),
    "what a vmap returns": lambda x, p: gt.vmap(lambda a: x)(gt.ones(3)),
    "grad": lambda x, p: gt.grad(lambda a: a * a)(x),
    "grad of what is around it": lambda x, p: gt.grad(lambda a: a * x)(ONE),
    "a tangent": lambda x, p: gt.jvp(lambda a: a * a, ONE, x),
    "a tape": lambda x, p: by_tape(x),
    "custom_gradient": lambda x, p: gt.custom_gradient(lambda a: (a, lambda g: g))(x),
    "recompute_grad": lambda x, p: gt.recompute_grad(lambda a: a * x)(ONE),
    "a variable": lambda x, p: gt.Variable(x),
    "an assignment": lambda x, p: gt.Variable(1.0).assign(x),
    "its value": lambda x, p: x.numpy(),
    "its truth": lambda x, p: bool(p),
}


def by_tape(x):
    with gt.GradientTape() as tape:
        pass
    return tape.gradient(x, x)


def escaped(run):
    kept = SimpleNamespace()

    def leaky(x):
        kept.x, kept.p = x, x > 0
        return x

    run(leaky)
    return kept.x, kept.p


@pytest.mark.parametrize("use", USES)
def test_a_symbol(use) -> None:
    x, p = escaped(lambda f: gt.function(f)(gt.constant(1.0)))
    with pytest.raises(TraceError, match=r"made while 'leaky' was traced and is used after it"):
        USES[use](x, p)


@pytest.mark.parametrize("use", USES)
def test_a_batch(use) -> None:
    x, p = escaped(lambda f: gt.vmap(f)(gt.ones(3)))
    with pytest.raises(TraceError, match=r"made inside a vmap and is used after it|differs from"):
        USES[use](x, p)


def test_what_left_an_inner_vmap_is_an_error_in_the_outer_one() -> None:
    def outer(row):
        x, _ = escaped(lambda f: gt.vmap(f)(row))
        return x * row

    with pytest.raises(TraceError, match="made inside a vmap"):
        gt.vmap(outer)(gt.ones((2, 3)))


def test_a_vmap_that_failed_leaves_nothing_behind() -> None:
    kept = []

    def fails(x):
        kept.append(x)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        gt.vmap(fails)(gt.ones(3))
    with pytest.raises(TraceError, match="made inside a vmap"):
        kept[0] + 1.0


def test_what_a_tape_kept_of_a_batch_still_serves_its_backward_pass() -> None:
    x = gt.constant([0.5, 1.0], "float64")
    with gt.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with gt.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = gt.vmap(lambda x: gt.sin(x) * gt.exp(x))(x)
        first = tape.gradient(y, x)
    np.testing.assert_allclose(outer.gradient(first, x), 2 * np.cos(x) * np.exp(x), rtol=1e-12)
    assert tape.jacobian(y, x).shape == (2, 2)
    assert "Connected" in tape.explain(y, x)
