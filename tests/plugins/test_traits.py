"""Traits of ops: what a record says of an op holds for ops of any plugin, wherever it is read."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pretend_gpu
import pytest

import gradtape as gt
from gradtape.core.extend import NONDIFF, F, Op, UnaryOp
from gradtape.errors import GradientError, PluginError


def same(x: Any, *others: Any, **params: Any) -> Any:
    return x.shape, x.dtype


def made(name: str, kernel: Any, **record: Any) -> Op:
    record.setdefault("infer", same)
    return Op(f"acme::{name}", kernel, **record)


#: An op for each trait, as another distribution would define it.
OPS = {
    op.name.removeprefix("acme::"): op
    for op in (
        made("same", lambda xp, x: x, gradients={"x": lambda g: g}, identity=True),
        made("turned", lambda xp, x: x.T, gradients={"x": lambda g: g.T}, view=True,
             infer=lambda x: (x.shape[::-1], x.dtype)),
        made("flat", lambda xp, x: xp.reshape(x, (-1,)), gradients={"x": NONDIFF}, view="reshape",
             infer=lambda x: ((int(np.prod(x.shape)),), x.dtype)),
        made("doubled", lambda xp, x: xp.sort(x), gradients={"x": NONDIFF}, view=False),
        made("maybe", lambda xp, x: xp.sort(x), gradients={"x": NONDIFF}),
        made("count", lambda xp, x: xp.asarray(float(x.size), dtype=x.dtype),
             gradients={"x": NONDIFF}, reads="shapes", infer=lambda x: ((), x.dtype)),
        made("stopped", lambda xp, x: x + 1, gradients={"x": NONDIFF}, ends_gradients=True),
        made("half", lambda xp, x, y: x + y, gradients={"x": NONDIFF, "y": lambda g: g},
             ends_gradients=["x"]),
        made("lost", lambda xp, x: x + 1, gradients={"x": NONDIFF}),
        made("plus", lambda xp, x, y: x + y, gradients={"x": lambda g: g, "y": lambda g: g},
             broadcasts=True, batch="elementwise", integers=operator.add,
             infer=lambda x, y: (np.broadcast_shapes(getattr(x, "shape", ()),
                                                     getattr(y, "shape", ())),
                                 np.result_type(getattr(x, "dtype", x), getattr(y, "dtype", y)))),
        made("backwards", lambda xp, x: xp.flip(x), gradients={"x": NONDIFF}, integers="moves"),
        made("opaque", lambda xp, x: xp.flip(x), gradients={"x": NONDIFF}),
        made("drawn", lambda xp, key, *, n: xp.astype(key[..., :1], xp.float32)
             if hasattr(xp, "astype") else key[..., :1].astype("float32"),
             gradients={"key": NONDIFF}, random=True,
             infer=lambda key, n: ((*key.shape[:-1], 1), np.dtype("float32"))),
    )
}  # fmt: skip


def providing(*ops: Op) -> Any:
    """Return a plugin with some ops."""
    return SimpleNamespace(gradtape_ops=gt.hookimpl(lambda: list(ops)))


@pytest.fixture(autouse=True)
def acme() -> Iterator[None]:
    gt.register_plugin(providing(*OPS.values()), "acme")
    yield
    gt.unregister_plugin("acme")


def plan_of(function: Any, *args: Any) -> str:
    run = gt.function(function, executor="planned")
    run(*args)
    text: str = run.explain(*args)
    return text


ROWS = gt.constant(np.arange(12, dtype=np.float32).reshape(3, 4))


def test_an_identity_is_left_out_of_runs_without_gradients() -> None:
    text = plan_of(lambda x: OPS["same"](x) * 2.0, ROWS)
    assert "acme::same" not in text
    assert "1 nodes" in text
    assert gt.grad(gt.function(lambda x: OPS["same"](x) * x))(3.0).item() == 6.0


@pytest.mark.parametrize("name", ["turned", "flat"])
def test_a_view_is_planned_as_a_view(name: str) -> None:
    text = plan_of(lambda x: OPS[name](x) * 2.0, ROWS)
    assert "a call of the kernel" not in text
    run = gt.function(lambda x: OPS[name](x * 1.0) * 2.0, executor="planned")
    for _ in range(3):
        np.testing.assert_array_equal(run(ROWS).numpy(), OPS[name](ROWS).numpy() * 2)


def test_a_result_that_is_never_a_view_frees_the_memory_of_its_input() -> None:
    def sizes(name: str) -> int:
        def run(x: Any) -> Any:
            z = OPS[name](gt.exp(x))
            later = gt.cumsum(gt.exp(z * 2.0), axis=0)  # in the memory of exp(x), if it is free
            return gt.sum(z * later)

        text = plan_of(run, gt.zeros((64, 64)))
        return int(text.partition("views of ")[2].partition(" bytes")[0])

    assert sizes("doubled") < sizes("maybe")


def test_what_reads_shapes_is_computed_once() -> None:
    text = plan_of(lambda x: x / OPS["count"](x), ROWS)
    assert "acme::count" not in text
    assert gt.function(lambda x: x / OPS["count"](x))(ROWS).numpy()[2, 3] == np.float32(11 / 12)


@pytest.mark.parametrize(("name", "ends"), [("stopped", True), ("count", True), ("lost", False)])
def test_a_strict_tape_tells_meant_ends_from_gradients_that_are_lost(name: str, ends: bool) -> None:
    with gt.GradientTape(strict=True) as tape:
        tape.watch(ROWS)
        y = gt.sum(ROWS * OPS[name](ROWS))
    if ends:
        assert tape.gradient(y, ROWS).shape == (3, 4)
    else:
        with pytest.raises(GradientError, match=f"acme::{name}"):
            tape.gradient(y, ROWS)


def test_one_input_may_end_gradients() -> None:
    with gt.GradientTape(strict=True) as tape:
        tape.watch(ROWS)
        y = gt.sum(OPS["half"](ROWS, ROWS))
    np.testing.assert_array_equal(tape.gradient(y, ROWS).numpy(), np.ones((3, 4)))


def test_sizes_go_through_ops_that_say_how() -> None:
    @gt.function(input_signature=[gt.TensorSpec([None, 3])])
    def shapes(x: Any) -> Any:
        rows = OPS["plus"](gt.stack([x.shape[0], 2]), 1)
        return gt.zeros(OPS["backwards"](rows))

    (result,) = shapes.get_concrete_function().graph.outputs
    assert str(result.shape[0]) == "3"
    assert shapes(gt.ones((4, 3))).shape == (3, 5)


def test_a_loop_checks_python_integers_that_such_an_op_carries() -> None:
    @gt.function(autograph=True)
    def grow(n: Any) -> Any:
        total = 1
        for _ in range(n):
            total = OPS["plus"](total, total)
        return total

    with pytest.raises(OverflowError, match="int64"):
        grow(gt.constant(70))


def test_what_is_drawn_is_not_exported() -> None:
    def draw(key: Any) -> Any:
        return OPS["drawn"](key, n=1)

    with pytest.raises(gt.export.ExportError, match=r"acme::drawn.*random numbers"):
        gt.export.onnx(draw, gt.TensorSpec([4], "uint32"))


CONTRADICTIONS = {
    "view must be": {"view": "always"},
    "reads must be": {"reads": "nothing"},
    "integers must be": {"integers": 3},
    "identity must be": {"identity": "yes"},
    "contradict": {"view": True, "reads": "shapes"},
    "leave out view=False": {"identity": True, "view": False},
    "has a gradient rule": {"reads": "shapes", "gradients": {"x": lambda g: g}},
    "names 'x', which has": {"ends_gradients": ["x"], "gradients": {"x": lambda g: g}},
    "ends_gradients must be": {"ends_gradients": "x"},
}


@pytest.mark.parametrize("words", CONTRADICTIONS)
def test_contradictions_are_refused_in_words(words: str) -> None:
    with pytest.raises(PluginError, match=f"acme::wrong.*{words}"):
        made("wrong", lambda xp, x: x, **CONTRADICTIONS[words])


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (lambda x: x, r"first parameter is 'x'; write kernel\(xp, x\)"),
        (lambda x, y: x + y, r"first parameter is 'x'; write kernel\(xp, x, y\)"),
        (lambda xp: xp.zeros(3), r"takes no arrays; write kernel\(xp, x\)"),
    ],
)
def test_a_kernel_without_its_namespace_is_refused(kernel: Any, words: str) -> None:
    with pytest.raises(PluginError, match=f"acme::b.*{words}"):
        Op("acme::b", kernel)


# -- results are held to the record at the first run -----------------------------------------------

WRONG = {
    "shape": made("shape", lambda xp, x: xp.sum(x, axis=0, keepdims=True),
                  gradients={"x": NONDIFF}),
    "dtype": made("dtype", lambda xp, x: x > 0, gradients={"x": NONDIFF}),
    "view": made("view", lambda xp, x: xp.transpose(x), gradients={"x": NONDIFF}, view=True),
    "order": made("order", lambda xp, x: xp.reshape(x, (-1,)), gradients={"x": NONDIFF},
                  view="reshape"),
    "count": made("several", lambda xp, x: (x, x), gradients={"x": NONDIFF}),
}  # fmt: skip


@pytest.fixture
def wrong(request: pytest.FixtureRequest) -> Iterator[Op]:
    op = WRONG[request.param]

    gt.register_plugin(providing(op), "wrong")
    yield op
    gt.unregister_plugin("wrong")


@pytest.mark.parametrize("executor", ["eager", "planned", "fused"])
@pytest.mark.parametrize("wrong", WRONG, indirect=True)
def test_a_wrong_shape_rule_is_named_by_its_op(wrong: Op, executor: str) -> None:
    if executor == "eager":
        run: Any = wrong
    else:
        run = gt.function(lambda x: gt.exp(wrong(gt.exp(x))) * 2.0, executor=executor)
    for _ in range(2):  # each call is refused, not the first alone
        with pytest.raises(PluginError, match=rf"{wrong.name}.*shape rule .infer=.*returned"):
            run(ROWS)


def test_a_kernel_that_writes_into_its_input_is_refused() -> None:
    def kernel(xp: Any, x: Any) -> Any:
        x *= 2.0
        return x + 1.0

    op = made("writes", kernel, gradients={"x": NONDIFF})
    with gt.register_plugin(providing(op), "p"):
        for _ in range(2):
            with pytest.raises(PluginError, match=r"acme::writes.*wrote into an input.*new array"):
                op(gt.constant([1.0, 2.0]))


SAID = {
    "identity": made("not_same", lambda xp, x: x * 2, gradients={"x": NONDIFF}, identity=True),
    "view=False": made("seen", lambda xp, x: x[:], gradients={"x": NONDIFF}, view=False),
}


@pytest.mark.parametrize("words", ["identity", "view=False"])
def test_a_trait_that_does_not_hold_is_refused(words: str) -> None:
    op = SAID[words]
    gt.register_plugin(providing(op), "p")
    try:
        with pytest.raises(PluginError, match=f"{op.name}.*{words}"):
            op(ROWS)
    finally:
        gt.unregister_plugin("p")


def test_a_result_of_another_backend_is_refused() -> None:
    def kernel(xp: Any, x: Any) -> Any:
        return x if xp is np else np.zeros(x.shape, np.float32)

    op = made("numpys", kernel, gradients={"x": NONDIFF})
    gt.register_plugin(pretend_gpu.Plugin("pretend", {}), "pretend")
    gt.register_plugin(providing(op), "p")
    try:
        with pytest.raises(PluginError, match=r"acme::numpys.*'pretend'.*numpy.ndarray.*'numpy'"):
            op(ROWS.to("pretend"))
    finally:
        gt.unregister_plugin("p")
        gt.unregister_plugin("pretend")


@pytest.mark.parametrize("verified", [False, True])
def test_rules_of_any_plugin_run_on_the_quick_path(verified: bool) -> None:
    rules = {"x": lambda g, x: F.sum(g * x)}
    op = UnaryOp("acme::quick", lambda xp, x: x * x, gradients=rules, infer=same, verified=verified)
    gt.register_plugin(providing(op), "p")
    try:
        (quick,) = op.quick
        assert quick is not None
        with gt.GradientTape() as tape:
            tape.watch(ROWS)
            y = op(ROWS)
        if not verified:
            with pytest.raises(GradientError, match=r"acme::quick.*'x'.*\(\).*\(3, 4\)"):
                tape.gradient(y, ROWS)
        (quick,) = op.quick  # after a first run that shows whether the rule needs tensors
        assert quick is not None
        assert quick[:2] == (0, rules["x"])
    finally:
        gt.unregister_plugin("p")
