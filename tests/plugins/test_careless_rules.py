"""What an op of a plugin gets wrong is an error that names the op, at the first run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import GradientError, PluginError, TraceError
from gradtape.plugin import F, Op, hookimpl

EXECUTORS = ["eager", "plain", "planned", "fused"]


def registered(op: Op) -> AbstractContextManager[Any]:
    return gt.register_plugin(SimpleNamespace(gradtape_ops=hookimpl(lambda: [op])), "acme")


@pytest.fixture
def made() -> Iterator[Callable[..., Op]]:
    """Make one op of a plugin: an identity, unless the record says something else."""

    def make(kernel: Any = lambda xp, x: x * 1.0, **record: Any) -> Op:
        record.setdefault("infer", lambda x: (x.shape, x.dtype))
        op = Op("acme::careless", kernel, **record)
        registered(op)
        return op

    yield make
    with suppress(PluginError, LookupError):  # registration may have failed
        gt.unregister_plugin("acme")


def run(op: Op, executor: str) -> Any:
    return op if executor == "eager" else gt.function(lambda x: op(x) + 0.0, executor=executor)


def written(xp: Any, x: Any) -> Any:
    x *= 2.0
    return x.copy()  # a method, so that plans call the kernel


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("shape", [(2,), (1024, 1024)], ids=["small", "large"])
def test_a_kernel_that_writes_into_a_tensor(made: Any, executor: str, shape: Any) -> None:
    with pytest.raises(PluginError, match=r"acme::careless.*wrote into an input"):
        run(made(written), executor)(gt.ones(shape))


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("infer", [None, lambda x: (x.shape, x.dtype)])
@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (lambda xp, x: x.astype(object), "dtype object, which tensors cannot have"),
        (lambda xp, x: x.astype(x.dtype.newbyteorder()), "the machine's byte order"),
        (lambda xp, x: np.ma.array(x), r"returned a MaskedArray.*numpy\.asarray"),
    ],
)
def test_a_result_that_no_tensor_can_hold(
    made: Any, kernel: Any, words: str, infer: Any, executor: str
) -> None:
    if infer is None and executor != "eager":
        pytest.skip("no trace without a shape rule")
    with pytest.raises(PluginError, match=f"acme::careless.*{words}"):
        run(made(kernel, infer=infer), executor)(gt.ones(2))


@pytest.mark.parametrize(
    ("kernel", "infer", "words"),
    [
        (lambda xp, x: [x * 1.0], lambda x: (x.shape, x.dtype), "a tuple or list of outputs"),
        (lambda xp, x: x * 1.0, lambda x: [(x.shape, x.dtype)], "kernel returned one array"),
    ],
)
def test_one_output_in_calls_and_several_in_traces(
    made: Any, kernel: Any, infer: Any, words: str
) -> None:
    with pytest.raises(PluginError, match=f"acme::careless.*{words}"):
        made(kernel, infer=infer)(gt.ones(2))


@pytest.mark.parametrize("executor", ["eager", "plain"])
@pytest.mark.parametrize(
    ("found", "words"),
    [
        (None, "is a return missing"),
        ((3,), r"\(3,\); it must return \(shape, dtype\)"),
        ([(3,), np.dtype("float32")], "must return"),
        ((3, "float32"), "must return"),
        (((-1,), "float32"), "a size is an integer from 0"),
        (((3.0,), "float32"), "a size is an integer from 0"),
    ],
)
def test_a_shape_rule_of_another_form(made: Any, found: Any, words: str, executor: str) -> None:
    with pytest.raises(PluginError, match=rf"acme::careless.*\(infer=\) returned .*{words}"):
        run(made(infer=lambda x: found), executor)(gt.ones(3))


def test_a_shape_rule_that_forgets_python_numbers(made: Any) -> None:
    op = made(lambda xp, x, y: x * y, infer=lambda x, y: (x.shape, y.dtype), batch="elementwise")
    with pytest.raises(TraceError, match=r"the Python number 2\.0 as it is.*getattr"):
        gt.function(lambda x: op(x, 2.0))(gt.ones(3))


@pytest.mark.parametrize("mode", ["eager", "traced", "nested"])
@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (lambda op, arrays, batched, params: None, "returned None"),
        (lambda op, arrays, batched, params: 1.0, r"returned 1\.0"),
        (lambda op, arrays, batched, params: arrays[0][0], "for 2 examples"),
        (lambda op, arrays, batched, params: F.sum(arrays[0], axis=0), "for 2 examples"),
        (lambda op, arrays, batched, params: (arrays[0],), "1 results, but the op has one output"),
        (
            lambda op, arrays, batched, params: F.cast(arrays[0], dtype="float64"),
            r"returned float64\[3\] for each",
        ),
        (lambda op, arrays, batched, params: arrays[0][:, :2], r"returned float32\[2\] for each"),
    ],
)
def test_a_batching_rule_with_a_wrong_result(made: Any, rule: Any, words: str, mode: str) -> None:
    mapped = gt.vmap(made(batch=rule))
    mapped = {"eager": mapped, "traced": gt.function(mapped), "nested": gt.vmap(mapped)}[mode]
    x = gt.ones((2, 3))
    with pytest.raises(PluginError, match=rf"acme::careless.*\(batch=\).*{words}"):
        mapped(x[None] if mode == "nested" else x)


def test_a_batching_rule_that_is_right_for_one_combination_only(made: Any) -> None:
    def rule(op: Op, arrays: Any, batched: Any, params: Any) -> Any:
        return op.raw(*arrays) if batched[0] else arrays[0]

    op = made(
        lambda xp, x, y: x * y,
        infer=lambda x, y: (x.shape, x.dtype),
        batch=rule,
    )
    x = gt.ones((2, 3))
    assert gt.vmap(op)(x, x).shape == (2, 3)
    with pytest.raises(PluginError, match="for 2 examples"):
        gt.vmap(op, in_axes=(None, 0))(x[0], x)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (lambda tangents, inputs, outputs: 1.0, r"returned 1\.0, not a tensor"),
        (
            lambda tangents, inputs, outputs: tangents[0][:2],
            r"returned a tangent of shape \(2,\) for an output of shape \(3,\)",
        ),
        (lambda tangents, inputs, outputs: tangents * 2, "returned 2 tangents for 1 outputs"),
    ],
)
def test_a_forward_rule_with_a_wrong_result(made: Any, rule: Any, words: str) -> None:
    op = made(gradients={"x": lambda g: g}, jvp=rule)
    with pytest.raises(GradientError, match=rf"acme::careless.*\(jvp=\) {words}"):
        gt.jvp(op, gt.ones(3), gt.ones(3))


def test_a_tangent_gets_the_dtype_of_the_output(made: Any) -> None:
    op = made(
        gradients={"x": lambda g: g},
        jvp=lambda tangents, inputs, outputs: F.cast(tangents[0], dtype="float64"),
    )
    assert gt.jvp(op, gt.ones(3), gt.ones(3))[1].dtype == np.float32


@pytest.mark.parametrize("argument", ["jvp", "batch"])
def test_a_rule_that_is_no_function(argument: str) -> None:
    with pytest.raises(PluginError, match=f"{argument} must be a function or .*, got 3"):
        Op("acme::careless", lambda xp, x: x, **{argument: 3})  # type: ignore[arg-type]


def scaled(g: Any) -> Any:
    g *= 2.0
    return g


def spoilt(gs: Any, inputs: Any, outputs: Any, needed: Any) -> Any:
    inputs[0][...] = 0.0
    return [gs[0] * inputs[0]]


@pytest.mark.parametrize(
    "rules", [{"gradients": {"x": scaled}}, {"vjp": spoilt}], ids=["gradients", "vjp"]
)
def test_a_gradient_rule_that_writes_into_a_tensor(made: Any, rules: Any) -> None:
    op, x, upstream = made(**rules), gt.constant([1.0, 2.0]), gt.constant([1.0, 1.0])
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = op(x)
    with pytest.raises(GradientError, match=r"acme::careless.*gradient rule wrote into"):
        tape.gradient(y, x, output_gradients=upstream)


def test_a_gradient_rule_that_writes_into_a_view_of_one_number(made: Any) -> None:
    op = made(gradients={"x": scaled})
    with pytest.raises(GradientError, match=r"acme::careless.*gradient rule wrote into"):
        gt.grad(lambda x: gt.sum(op(x)))(gt.ones(3))


def test_a_list_among_the_parameters_that_changes_before_the_gradient(made: Any) -> None:
    op = made(
        lambda xp, x, *, weights: x * weights[0],
        gradients={"x": lambda g, weights: g * weights[0]},
        infer=lambda x, weights: (x.shape, x.dtype),
    )
    x, weights = gt.constant(3.0), [2.0]
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = op(x, weights=weights)
    weights[0] = 100.0
    assert tape.gradient(y, x).item() == 2.0


def test_a_tensor_as_a_parameter(made: Any) -> None:
    op = made(lambda xp, x, *, by: x * by, infer=lambda x, by: (x.shape, x.dtype))
    with pytest.raises(TypeError, match=r"the parameter 'by' is a Variable"):
        op(gt.ones(3), by=gt.Variable(2.0))
    for run in (op, gt.function(op)):
        with pytest.raises(
            TypeError, match=r"acme::careless: the parameter 'by' is a Tensor.*an input"
        ):
            run(gt.ones(3), by=gt.constant(2.0))


def test_gradients_of_inputs_that_broadcast(made: Any) -> None:
    op = made(
        lambda xp, x, y: x * y,
        gradients={"x": lambda g, y: g * y, "y": lambda g, x: g * x},
        infer=lambda x, y: (x.shape, x.dtype),
    )
    with pytest.raises(GradientError, match="if the op's inputs broadcast, say broadcasts=True"):
        gt.grad(lambda y: gt.sum(op(gt.ones((2, 3)), y)))(gt.ones(3))


def ignored(x: Any, *, out: Any = None) -> Any:
    found = np.logaddexp(x, x.dtype.type(0))
    return found if out is None else out


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (lambda x: written(np, x), "wrote into an input"),
        (ignored, "parameter 'out', but does not write its result"),
    ],
)
def test_a_kernel_for_an_op_of_another_plugin(kernel: Any, words: str) -> None:
    plugin = SimpleNamespace(gradtape_kernels=hookimpl(lambda: {("softplus", "numpy"): kernel}))
    fn = gt.function(lambda x: gt.sum(gt.nn.softplus(gt.exp(x)) * 2.0))
    with (
        gt.register_plugin(plugin, "acme"),
        pytest.raises(PluginError, match=f"softplus.*{words}"),
    ):
        fn(gt.constant([0.5, -0.5]))


@pytest.mark.parametrize("name", ["acme::", "::op", " acme::op", "acme::op\n", "acme:: op"])
def test_a_name_that_nobody_could_write(name: str) -> None:
    op = Op(name, lambda xp, x: x * 1.0)
    with pytest.raises(PluginError, match="without spaces around them"):
        registered(op)


def test_a_gradient_rule_may_name_parameters_before_arrays(made: Any) -> None:
    op = made(
        lambda xp, x, *, n=2: x**n,
        gradients={"x": lambda g, n, out, x: g * n * out / x},
        infer=lambda x, n: (x.shape, x.dtype),
        batch="elementwise",
    )
    assert gt.grad(lambda x: op(x, n=3))(2.0).item() == 12.0
    assert gt.grad(gt.function(lambda x: op(x)))(2.0).item() == 4.0
    assert gt.vmap(gt.grad(lambda x: op(x, n=3)))(gt.constant([1.0, 2.0])).tolist() == [3.0, 12.0]
