"""An error of a kernel names the op that failed, once, and keeps its type."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import F, Op, hookimpl, ops

KINDS = [
    KeyError,
    IndexError,
    LookupError,
    ValueError,
    AttributeError,
    RuntimeError,
    NotImplementedError,
    ZeroDivisionError,
    FloatingPointError,
    MemoryError,
    np.linalg.LinAlgError,
]


class NeedsTwo(KeyError):
    def __init__(self, one, two):
        super().__init__(f"{one} {two}")


@pytest.mark.parametrize("kind", [*KINDS, NeedsTwo])
def test_an_error_of_any_kind_carries_the_name_of_the_op(kind) -> None:
    def kernel(xp, x):
        raise kind("not there", 2) if kind is NeedsTwo else kind("not there")

    op = Op("example::fails", kernel)
    gt.register_plugin(SimpleNamespace(gradtape_ops=gt.hookimpl(lambda: [op])), "example")
    try:
        with pytest.raises(KeyError if kind is NeedsTwo else kind) as caught:
            op(gt.ones(3))
    finally:
        gt.unregister_plugin("example")
    assert "example::fails: not there" in str(caught.value)
    assert "(given float32[3])" in str(caught.value)


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (lambda x: None, r"returned None \(is a return missing\?\), not an array of the backend"),
        (lambda x: 1.0, r"returned 1\.0, not an array"),
        (lambda x: x.tolist(), r"returned \[1\.0, 1\.0\], not several arrays"),
        (lambda x: (x, None), r"None\), not several arrays"),
        (lambda x: gt.constant(x), "not an array of the backend"),
    ],
)
def test_a_kernel_that_returns_no_array_is_named(returned, said) -> None:
    op = Op("example::returns", lambda xp, x: returned(x), gradients={"x": lambda g: g})
    gt.register_plugin(SimpleNamespace(gradtape_ops=gt.hookimpl(lambda: [op])), "example")
    try:
        with pytest.raises(gt.errors.PluginError, match=rf"op 'example::returns': its .*{said}"):
            op(gt.ones(2))
    finally:
        gt.unregister_plugin("example")


def test_kernels_may_return_numpys_scalars_and_several_arrays() -> None:
    both = Op("example::both", lambda xp, x: (xp.sum(x), x + 1.0))
    total = Op("example::total", lambda xp, x: xp.sum(x), gradients={"x": lambda g, x: g + 0.0 * x})
    gt.register_plugin(SimpleNamespace(gradtape_ops=gt.hookimpl(lambda: [both, total])), "example")
    try:
        assert [y.tolist() for y in both(gt.ones(2))] == [2.0, [2.0, 2.0]]
        assert gt.grad(total)(gt.ones(2)).tolist() == [1.0, 1.0]
    finally:
        gt.unregister_plugin("example")


def step(carry, x):
    return carry + x, carry


RUNS = {
    "scan": lambda a, b: gt.scan(step, a, gt.stack([b, b])),
    "while_loop": lambda a, b: gt.while_loop(lambda c: gt.sum(c) < 9, lambda c: c + b, (a,)),
    "cond": lambda a, b: gt.cond(gt.sum(a) > 0, lambda: a + b, lambda: a),
    "vmap": lambda a, b: gt.vmap(lambda x: gt.cond(x > 0, lambda: a + b, lambda: a))(gt.ones(2)),
}


@pytest.mark.parametrize("taped", [False, True])
@pytest.mark.parametrize("sizes", ["eager", "known", "unknown"])
@pytest.mark.parametrize("run", RUNS)
def test_what_fails_in_a_branch_or_a_loop_is_named_once(run, sizes, taped) -> None:
    f, a, b = RUNS[run], gt.ones(3), gt.ones(2)
    unknown = [gt.TensorSpec([None]), gt.TensorSpec([None])]
    if sizes != "eager":
        f = gt.function(f, input_signature=unknown if sizes == "unknown" else None)
    with gt.GradientTape() as tape:
        if taped:
            tape.watch([a, b])
        with pytest.raises(ValueError, match=r"^add: ") as caught:
            f(a, b)
    assert str(caught.value).count("(given") <= 1


def test_an_error_of_the_users_own_code_in_a_loop_is_as_it_was() -> None:
    def body(carry):
        raise ValueError("mine")

    with pytest.raises(ValueError, match=r"^mine$"):
        gt.while_loop(lambda c: c < 3, body, (gt.constant(1.0),))


def test_samples_of_another_kind_are_an_error_in_words() -> None:
    for samples in ([1.0, 2.0], [[1.0, 2.0]]):
        with pytest.raises(TypeError, match=r"check_op: samples must be .*Sample"):
            gt.testing.check_op(gt.sin, samples)


def test_a_parameter_without_its_name_is_an_error_that_says_so() -> None:
    with pytest.raises(TypeError, match=r"pad: expected 1 arrays \(x\), got 2; .*keyword-only"):
        F.pad(gt.ones(2).array, [(1, 0)])


def test_an_op_shows_its_inputs_and_parameters() -> None:
    assert repr(ops["pad"]) == "<op pad(x, *, pad_width, value=0)>"
    assert repr(ops["sin"]) == "<op sin(x)>"
    assert repr(ops["concatenate"]) == "<op concatenate(*arrays, axis=0)>"


def test_a_shape_rule_that_needs_the_rank_is_named() -> None:
    last = Op(
        "tests::without_last", lambda xp, x: x[..., 0], infer=lambda x: (x.shape[:-1], x.dtype)
    )

    class Plugin:
        @staticmethod
        @hookimpl
        def gradtape_ops() -> list[Op]:
            return [last]

    gt.register_plugin(Plugin(), "tests")
    try:
        traced = gt.function(last, input_signature=[gt.TensorSpec(None)])
        with pytest.raises(TypeError, match=r"tests::without_last: .* the rank of x,.*TensorSpec"):
            traced(gt.ones((2, 3)))
    finally:
        gt.unregister_plugin("tests")
