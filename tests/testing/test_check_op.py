"""``check_op``: trusted because each of its checks finds what is planted for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import NONDIFF, F, Op, hookimpl
from gradtape.testing import CHECKS, PASSED, Sample, check_op

X = np.array([[0.5, 1.25, 2.0], [0.75, 1.5, 3.0]])


def same(x: Any) -> Any:
    return x.shape, x.dtype


def cube(name: str, **changes: Any) -> Op:
    """x**3 as an op, with something changed."""
    record: dict[str, Any] = {
        "kernel": lambda xp, x: x * x * x,
        "gradients": {"x": lambda g, x: g * 3.0 * x * x},
        "infer": same,
        "batch": "elementwise",
    }
    return Op(f"planted::{name}", **{**record, **changes})


def spoil(xp: Any, x: Any) -> Any:
    y = x * x * x
    x += 1.0
    return y


def by_row_in_memory(xp: Any, x: Any) -> Any:
    factor = 1.0 if x.flags.c_contiguous else 1.001
    return x * x * x * factor


def at_random(xp: Any, x: Any) -> Any:
    return x * np.random.default_rng().random()


def scaled(name: str, **changes: Any) -> Op:
    """x * y, which broadcast, with something changed."""
    record: dict[str, Any] = {
        "kernel": lambda xp, x, y: x * y,
        "gradients": {"x": lambda g, y: g * y, "y": lambda g, x: g * x},
        "infer": lambda x, y: (np.broadcast_shapes(x.shape, y.shape), x.dtype),
        "broadcasts": True,
        "batch": "elementwise",
    }
    return Op(f"planted::{name}", **{**record, **changes})


def as_they_come(op: Op, arrays: list[Any], batched: list[bool], params: Any) -> Any:
    """A batching rule that is wrong for inputs of different ranks."""
    return op.raw(*arrays)


def not_of_the_second(op: Op, arrays: list[Any], batched: list[bool], params: Any) -> Any:
    """A batching rule that is wrong if the first input is the same for all examples."""
    x, y = arrays
    return op.raw(x if batched[0] else 2.0 * x, F.expand_dims(y, axis=1) if batched[1] else y)


def wrong_in_traces(op: Op, arrays: list[Any], batched: list[bool], params: Any) -> Any:
    (x,) = arrays
    return op.raw(x * 1.001 if getattr(x, "traced", False) else x)


def of_two_ranks(op: Op, arrays: list[Any], batched: list[bool], params: Any) -> Any:
    """A batching rule that is wrong in another batch."""
    (x,) = arrays
    return op.raw(x * 1.001 if getattr(x, "batched", False) else x)


# what is planted: (the op, the check that must find it, what it must say)
PLANTED: list[tuple[Op, str, str]] = [
    (cube("slope", gradients={"x": lambda g, x: g * 3.003 * x * x}), "gradients", "tape says"),
    (
        cube("curvature", gradients={"x": lambda g, x: g * 3.0 * x * F.stop_gradient(x)}),
        "second order",
        "order 2",
    ),
    (
        cube("widened", kernel=lambda xp, x: xp.asarray(x, dtype=xp.float64) ** 3),
        "float32",
        r"gives float32\[2, 3\], but its kernel for the backend 'numpy' returned float64",
    ),
    (
        cube("method", gradients={"x": lambda g, x: g.astype("float64") * 3.0 * x * x}),
        "batched",
        r"'astype'.*operators and F\.cast \(or F\.cast_like\)",
    ),
    (
        cube("ufunc", gradients={"x": lambda g, x: np.multiply(g, 3.0) * x * x}),
        "batched",
        r"operators and functions F\.<op>",
    ),
    (cube("random", kernel=at_random), "gradients", "not deterministic"),
    (
        cube("random without a gradient", kernel=at_random, gradients=None),
        "gradients",
        "not deterministic.*key",
    ),
    (cube("shape", infer=lambda x: ((1, *x.shape), x.dtype)), "traced", "shape"),
    (cube("dtype", infer=lambda x: (x.shape, np.dtype("int32"))), "traced", "shape rule|differ"),
    (
        cube("sizes", infer=lambda x: (tuple(n or 7 for n in x.shape), x.dtype)),
        "unknown sizes",
        "shape rule",
    ),
    (
        cube("rank", infer=lambda x: ((5,) if x.shape is None else x.shape, x.dtype)),
        "unknown rank",
        "shape rule",
    ),
    (cube("spoils", kernel=spoil), "gradients", "wrote into an input"),
    (cube("tangent", jvp="linear"), "forward", "differ.*follows jvp='linear'"),
    (
        cube(
            "along an axis",
            kernel=lambda xp, x: xp.flip(x, axis=-1) ** 3,
            gradients={"x": lambda g, x: F.flip(g, axis=-1) * 3.0 * x * x},
        ),
        "forward",
        "differ.*follows batch='elementwise'",
    ),
    (
        cube("widens", kernel=lambda xp, x: np.asarray(x * x * x, complex)),
        "float32",
        "complex|dtype",
    ),
    (
        cube(
            "half", gradients={"x": lambda g, x: 3.0 * g * x * x if x.dtype != "float16" else g[0]}
        ),
        "float16",
        "shape",
    ),
    (
        cube("widened half", kernel=lambda xp, x: x**3 if x.dtype != "float16" else np.float32(x)),
        "float16",
        r"gives float16\[2, 3\], but its kernel for the backend 'numpy' returned float32",
    ),
    (
        cube("half shape", kernel=lambda xp, x: x**3 if x.dtype != "float16" else x[:1] ** 3),
        "float16",
        "shape",
    ),
    (scaled("ranks", batch=as_they_come), "batched", "batched .*vmap, value or gradient|broadcast"),
    (scaled("second", batch=not_of_the_second), "batched", r"batched \(1,\)"),
    (cube("nested", batch=of_two_ranks), "batched", "vmap of vmap"),
    (cube("in traces", batch=wrong_in_traces), "traced batch", "traced, vmap"),
    (
        cube("elsewhere", kernel=lambda xp, x: np.asarray(x) ** 3),
        "backend",
        r"for the backend 'array-api-strict' returned numpy.ndarray, of the backend 'numpy'",
    ),
    (
        cube("scalars", kernel=lambda xp, x: x**3 if type(x) is np.ndarray else 3.0),
        "backend",
        "its kernel returned 3.0, not an array",
    ),
    (
        cube("other values", kernel=lambda xp, x: x**3 if type(x) is np.ndarray else x * x),
        "backend",
        "on array-api-strict, result 0",
    ),
    (
        cube("clipping", gradients={"x": lambda g, x: 3.0 * F.maximum(g, -1e9) * x * x}),
        "linear",
        "order 1, input 0.*not linear",
    ),
    (cube("strided", kernel=by_row_in_memory), "strided", "every second|transposed"),
    (cube("empty", kernel=lambda xp, x: x**3 + 0 * x.flat[0]), "empty", "IndexError"),
    (
        cube("single", kernel=lambda xp, x: x**3 if x.dtype == "float64" else 1.01 * x**3),
        "float32",
        "result 0",
    ),
]


class Plugin:
    """Provides the planted ops; only registered ops run."""

    @staticmethod
    @hookimpl
    def gradtape_ops() -> list[Op]:
        return [*(op for op, _, _ in PLANTED), right, blunt, public, lazy]

    @staticmethod
    @hookimpl
    def gradtape_samples() -> dict[str, list[Sample]]:
        return {right.name: [Sample(X)]}


right = cube("right")
blunt = cube("blunt", gradients={"x": NONDIFF})
public = cube("public", gradients={"x": lambda g, x: g * 3.0 * gt.square(x)})
lazy = cube("lazy", kernel=lambda xp, x: xp.nan_to_num(x**3))  # which the standard lacks


@pytest.fixture(autouse=True)
def plugin() -> Iterator[None]:
    gt.register_plugin(Plugin(), "planted")
    yield
    gt.unregister_plugin("planted")


def only(check: str, op: Op) -> Sample:
    """A sample for which one check is made, and what it depends on."""
    inputs = (X, X[0]) if len(op.inputs) > 1 else (X,)
    needed = {"traced", "batched"} if check == "traced batch" else set()
    others = set(CHECKS) - {check} - needed
    return Sample(*inputs).without(*others, reason="another is tested")


def test_what_is_right_passes_every_check() -> None:
    assert check_op(right, [Sample(X), Sample(X[0])]) == dict.fromkeys(CHECKS, PASSED)


@pytest.mark.parametrize(
    ("op", "check", "says"),
    PLANTED,
    ids=[op.name.removeprefix("planted::") for op, _, _ in PLANTED],
)
def test_each_check_finds_what_is_planted_for_it(op: Op, check: str, says: str) -> None:
    with pytest.raises(AssertionError, match=rf"{op.name}, Sample\(float64\[2, 3\].*({says})"):
        check_op(op, [only(check, op)])


def test_an_op_without_rules_gives_none_and_says_so() -> None:
    report = check_op(blunt, [Sample(X)])
    assert report["gradients"] == report["second order"] == "not differentiable"
    assert report["saved"] == PASSED


def test_a_check_is_left_out_for_a_reason() -> None:
    op = next(op for op, check, _ in PLANTED if check == "strided")
    report = check_op(op, [Sample(X).without("strided", reason="rows only")])
    assert report["strided"] == "rows only"
    with pytest.raises(ValueError, match="no check 'stridden'"):
        Sample(X).without("stridden", reason="")


def test_functions_of_several_results_numbers_and_integers() -> None:
    def parts(x: Any, factor: float, indices: Any, axis: int) -> list[Any]:
        return [gt.take(x, indices, axis=axis) * factor, gt.argmax(x, axis=axis)]

    report = check_op(parts, [Sample(X, 2.0, [0, 1, 0], axis=1)])
    assert report["second order"] == report["saved"] == report["unknown sizes"] == PASSED


def test_results_that_are_not_unique_are_seen_through_something_that_is() -> None:
    x = np.array([[2.0, 0.5], [0.5, 1.0]])
    flips: Callable[..., Any] = lambda w, v: (w, v * v)  # noqa: E731
    symmetric = lambda x: gt.linalg.eigh(x + gt.linalg.matrix_transpose(x))  # noqa: E731
    assert check_op(symmetric, [Sample(x).seen_through(flips)])["gradients"] == PASSED


def test_no_samples_are_an_error() -> None:
    with pytest.raises(ValueError, match="no samples"):
        check_op(right, [])


def test_samples_come_from_a_plugin() -> None:
    assert check_op(right)["second order"] == PASSED
    with pytest.raises(ValueError, match=r"planted::blunt has no samples.*gradtape_samples"):
        check_op(blunt)
    with pytest.raises(ValueError, match="has no samples; pass a list"):
        check_op(lambda x: x)


def test_a_rule_that_calls_public_functions_passes_every_check() -> None:
    assert check_op(public, [Sample(X)]) == dict.fromkeys(CHECKS, PASSED)


def test_backends_may_refuse_and_be_chosen() -> None:
    told = check_op(lazy, [Sample(X)])["backend"]
    assert told.startswith("refused: array-api-strict: AttributeError")
    assert "array-api-strict" not in gt.registry().backends  # only during the check
    assert check_op(right, [Sample(X)], backends=())["backend"].startswith("no other backend")
    with pytest.raises(LookupError, match="no plugin provides the backend 'cupi'"):
        check_op(right, [Sample(X)], backends=["cupi"])


def test_a_report_tells_refusals_from_checks_that_do_not_apply() -> None:
    report = check_op(right, [Sample(X)], backends=())
    assert report.ok
    assert not report.refused
    assert report.skipped.keys() == {"backend"}
    assert set(report.passed) == set(CHECKS) - {"backend"}
    assert report == {**dict.fromkeys(report.passed, PASSED), **report.skipped}
    for samples in ([X, 1.0], [1.0, X]):  # a sample without arrays does not hide the refusal
        report = check_op(lazy, [Sample(x) for x in samples])
        assert not report.ok
        assert report.refused.keys() == {"backend"}
    report = check_op(lazy, [Sample(X).without("backend", reason="it calls NumPy")])
    assert report.ok
    assert report.skipped["backend"] == "it calls NumPy"


def test_what_ops_print_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    samples = gt.registry().samples["print"]
    check_op(gt.registry().ops["print"], samples, backends=())
    assert capsys.readouterr().out == ""
