"""A copy of an op under another distribution's name does whatever the op does.

The copies are made through the hooks alone: the record, kernels, gradients and lowerings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import Op, registry

RNG = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.uniform(0.5, 2.0, shape).astype(np.float32)


X, Y, SQUARE = floats(3, 4), floats(3, 4), floats(4, 4)
LABELS = np.array([0, 3, 1])
IMAGES, FILTERS = floats(2, 6, 6, 3), floats(3, 3, 3, 4)
WINDOWS = {"strides": (1, 1), "padding": "valid"}

#: By op: arrays, and parameters.
CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "add": ((X, Y), {}),
    "multiply": ((X, 2.0), {}),
    "tanh": ((X,), {}),
    "exp": ((X,), {}),
    "maximum": ((X, Y), {}),
    "greater": ((X, Y), {}),
    "where": ((X > 1.0, X, Y), {}),
    "power": ((X, 2), {}),
    "identity": ((X,), {}),
    "stop_gradient": ((X,), {}),
    "cast": ((X,), {"dtype": "float64"}),
    "relu": ((X,), {}),
    "sigmoid": ((X,), {}),
    "softplus": ((X,), {}),
    "softmax": ((X,), {"axis": -1}),
    "sum": ((X,), {"axis": 0, "keepdims": False}),
    "mean": ((X,), {"axis": 1, "keepdims": True}),
    "max": ((X,), {"axis": 0, "keepdims": False}),
    "cumsum": ((X,), {"axis": 0, "reverse": False}),
    "argmax": ((X,), {"axis": 1, "keepdims": False}),
    "reshape": ((X,), {"shape": (2, 6)}),
    "transpose": ((X,), {"axes": (1, 0)}),
    "expand_dims": ((X,), {"axis": 0}),
    "broadcast_to": ((X,), {"shape": (2, 3, 4)}),
    "split": ((X,), {"sections": (1,), "axis": 0}),
    "concatenate": ((X, Y), {"axis": 1}),
    "zeros_like": ((X,), {}),
    "matmul": ((X, SQUARE), {}),
    "sparse_softmax_cross_entropy": ((X, LABELS), {}),
    "conv": ((IMAGES, FILTERS), {**WINDOWS, "dilations": (1, 1), "groups": 1}),
    "max_pool": ((IMAGES,), {**WINDOWS, "window": (2, 2)}),
}

RECORD = (
    "inputs infer broadcasts holomorphic batch jvp effect view identity reads integers "
    "ends_gradients pointwise inline random verified host"
).split()


def copy_of(op: Op) -> Op:
    """Return an op with the same record, but for its name."""
    record: dict[str, Any] = {name: getattr(op, name) for name in RECORD}
    record["params"] = op.defaults
    record["floating"] = op.inputs[: len(op.floating)]
    if op.rules is not None:
        record["gradients"] = {
            name: None if rule is None else rule.plain[0]
            for name, rule in zip(op.inputs, op.rules, strict=True)
        }
    elif op.together is not None:
        record["together"] = op.together
    else:
        record["vjp"] = op.vjp
    return type(op)(f"acme::{op.name}", op.kernel, **record)


def tables(known: Any, ops: Any) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Return the kernels and the lowerings of some ops, for their copies."""
    kernels, lowerings = (
        {(f"acme::{name}", of): item for (name, of), item in table.items() if name in ops}
        for table in (known.kernels, known.lowerings)
    )
    return kernels, lowerings


@pytest.fixture(scope="module", autouse=True)
def acme() -> Iterator[None]:
    known = registry()
    ops = {name: known.op(name) for name in CALLS}
    kernels, lowerings = tables(known, ops)
    copies = [copy_of(op) for op in ops.values()]
    plugin = SimpleNamespace(
        gradtape_ops=gt.hookimpl(lambda: copies),
        gradtape_kernels=gt.hookimpl(lambda: kernels),
        gradtape_lowerings=gt.hookimpl(lambda: lowerings),
    )
    gt.register_plugin(plugin, "acme")
    yield
    gt.unregister_plugin("acme")


def both(name: str) -> list[Callable[..., Any]]:
    """Return a function of the op's tensors with the op, and with its copy."""
    arrays, params = CALLS[name]

    def function(op: Op) -> Callable[..., Any]:
        def run(*tensors: Any) -> list[Any]:
            rest = iter(tensors)
            given = [next(rest) if isinstance(x, np.ndarray) else x for x in arrays]
            # more than one step, so that plans can group them
            given = [gt.exp(x) if getattr(x, "dtype", None) == np.float32 else x for x in given]
            found = op(*given, **params)
            found = found if isinstance(found, list) else [found]
            return [gt.exp(y * 0.125) if y.dtype.kind == "f" else y for y in found]

        return run

    return [function(registry().op(of)) for of in (name, f"acme::{name}")]


def tensors_of(name: str) -> list[gt.Tensor]:
    return [gt.constant(x) for x in CALLS[name][0] if isinstance(x, np.ndarray)]


each_op = pytest.mark.parametrize("name", CALLS)


@each_op
@pytest.mark.parametrize("executor", ["planned", "fused"])
def test_the_plan_is_the_same(name: str, executor: str) -> None:
    texts, values = [], []
    for function in both(name):
        run = gt.function(function, executor=executor)
        values.append([y.numpy() for y in run(*tensors_of(name))])
        texts.append(run.explain(*tensors_of(name)).replace("acme::", ""))
    assert texts[0] == texts[1]
    for mine, theirs in zip(*values, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@each_op
def test_values_and_gradients_are_the_same(name: str) -> None:
    found = []
    for function in both(name):
        tensors = tensors_of(name)
        with gt.GradientTape() as tape:
            tape.watch(tensors)
            ys = function(*tensors)
        smooth = [y for y in ys if y.dtype.kind == "f"]
        slopes = tape.gradient(smooth, tensors) if smooth else []
        found.append([None if x is None else x.numpy() for x in [*ys, *slopes]])
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@each_op
def test_onnx_has_the_same_nodes(name: str) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("spox")
    specs = [gt.TensorSpec(x.shape, x.dtype) for x in tensors_of(name)]
    nodes = [
        Counter(node.op_type for node in onnx.load_from_string(model).graph.node)
        for model in (gt.export.onnx(function, *specs) for function in both(name))
    ]
    assert nodes[0] == nodes[1]


@each_op
def test_batches_and_files_take_it(name: str, tmp_path: Any) -> None:
    found = []
    for i, function in enumerate(both(name)):
        module = gt.Module()
        specs = [gt.TensorSpec(x.shape, x.dtype) for x in tensors_of(name)]
        module.run = gt.function(function, input_signature=specs)
        gt.save(module, tmp_path / f"{i}.h5")
        loaded = gt.load(tmp_path / f"{i}.h5").run(*tensors_of(name))
        rows = [gt.stack([x, x]) for x in tensors_of(name)]
        found.append([y.numpy() for y in [*loaded, *gt.vmap(function)(*rows)]])
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(mine, theirs)


# -- a replaced kernel wins over the lowering that was written for the old one ---------------------


@pytest.fixture
def replaced(request: pytest.FixtureRequest) -> Iterator[None]:
    from gradtape.plugins.planned import PlanStep, StepKind

    def steps(lowering: Any, node: Any) -> bool:
        run = lambda x: np.maximum(x, 1.0)  # noqa: E731
        lowering.append(PlanStep(StepKind.FRESH, "at_least_1", run, node.inputs, node.outputs))
        return True

    hooks: dict[str, Any] = {
        "gradtape_kernels": gt.hookimpl(lambda: {("relu", "numpy"): lambda x: np.maximum(x, 1.0)})
    }
    if request.param:
        hooks["gradtape_lowerings"] = gt.hookimpl(lambda: {("relu", "planned"): steps})
    gt.register_plugin(SimpleNamespace(**hooks), "replacing")
    yield
    gt.unregister_plugin("replacing")


@pytest.mark.parametrize(
    ("replaced", "told"),
    [(False, "relu, 1 times: a plugin replaced its kernel"), (True, "at_least_1")],
    indirect=["replaced"],
)
def test_a_replaced_kernel_or_its_own_lowering_is_used(replaced: None, told: str) -> None:
    run = gt.function(lambda x: gt.nn.relu(x * 1.0), executor="planned")
    x = gt.constant([-1.0, 0.5, 3.0])
    assert run(x).tolist() == [1.0, 1.0, 3.0]
    assert told in run.explain(x)


def test_a_lowering_of_another_plugin_replaces_ours() -> None:
    def steps(lowering: Any, node: Any) -> bool:
        return lowering.expand(node) is None

    plugin = SimpleNamespace(
        gradtape_lowerings=gt.hookimpl(lambda: {("sigmoid", "planned"): steps})
    )
    run = gt.function(lambda x: gt.nn.sigmoid(x), executor="planned")
    x = gt.constant(X)
    before = run(x).numpy()
    gt.register_plugin(plugin, "steps")
    try:
        again = gt.function(lambda x: gt.nn.sigmoid(x), executor="planned")
        np.testing.assert_allclose(again(x), before, rtol=1e-6)
        assert again.explain(x) != run.explain(x)
    finally:
        gt.unregister_plugin("steps")


# -- forms of elementwise ops, for compiled loops and other compilers ------------------------------


def _twice(xp: Any, x: Any) -> Any:
    return np.asarray(x) + np.asarray(x)  # a function of NumPy arrays, which no plan can look into


@pytest.fixture
def twice() -> Iterator[Op]:
    op = Op(
        "forms::twice",
        _twice,
        gradients={"x": lambda g: g + g},
        infer=lambda x: (x.shape, x.dtype),
        batch="elementwise",
        host=True,
    )
    lowerings = {
        ("forms::twice", "llvm"): lambda step: (("fadd {t} {0}, {0}",), [step.out.dtype]),
        ("forms::twice", "cuda"): lambda step: ("{0} + {0}", [step.out.dtype]),
        ("forms::twice", "stablehlo"): lambda x: x + x,
        ("forms::twice", "onnx"): lambda xp, x: x + x,
    }
    plugin = SimpleNamespace(
        gradtape_ops=gt.hookimpl(lambda: [op]), gradtape_lowerings=gt.hookimpl(lambda: lowerings)
    )
    gt.register_plugin(plugin, "forms")
    yield op
    gt.unregister_plugin("forms")


def test_a_form_makes_an_op_a_part_of_compiled_loops(twice: Op) -> None:
    run = gt.function(lambda x: gt.sqrt(twice(x * 2.0)) + 1.0, executor="fused")
    found = run(gt.constant(X))
    np.testing.assert_array_equal(found, np.sqrt(X * 2 + X * 2) + 1)
    text = run.explain(gt.constant(X))
    assert "one loop: multiply, forms::twice, sqrt, add" in text
    assert "a call" not in text


def test_a_form_in_cuda_c_is_a_part_of_kernels(twice: Op) -> None:
    from gradtape.core.extend import Graph, TensorSpec
    from gradtape.plugins.cupy.writing.formulas import expression
    from gradtape.plugins.planned import PlanStep, StepKind

    x = Graph("g").input(TensorSpec([3], "float32"))
    step = PlanStep(StepKind.FRESH, "forms::twice", lambda x: x + x, (x,), (x,))
    assert "x + x" in str(expression(step))


@pytest.mark.parametrize("target", ["onnx", "stablehlo"])
def test_a_lowering_exports_an_op_for_the_host(twice: Op, target: str) -> None:
    pytest.importorskip({"onnx": "spox", "stablehlo": "jax.export"}[target])
    assert getattr(gt.export, target)(lambda x: twice(x), gt.TensorSpec([None, 3]))
