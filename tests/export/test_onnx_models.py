"""ONNX models as others meet them: layers, gradients, training steps, names, refusals."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elsewhere import Model, compare
from layer_cases import FAMILIES

import gradtape as gt
from gradtape.core import extend
from layers import BATCHES, LAYERS, batches, draws, rng, slopes_of, training_step

g = gt.layers

# -- layers ----------------------------------------------------------------------------------------


#: What others are made of: bases, cells of recurrent layers, any function.
PARTS = {"GRUCell", "Lambda", "LSTMCell", "Layer", "Model", "SimpleRNNCell"}
PARTS |= {"StackedRNNCells"}


def test_every_layer_is_here() -> None:
    layers = {name for name, x in vars(g).items() if isinstance(x, type) and issubclass(x, g.Layer)}
    assert layers - PARTS == {*LAYERS, *(name.partition(" ")[0] for name in FAMILIES)}


@pytest.mark.parametrize("name", FAMILIES)
def test_a_layer_of_a_family_gives_the_same_elsewhere(name: str) -> None:
    case = FAMILIES[name]
    layer = case.make()
    runs = [case.inputs(n) if case.several else [case.inputs(n)] for n in (3, 1)]
    batch = None
    if name == "Dot":  # its reshape asks for the size
        batch, runs = 3, runs[:1]

    def call(*inputs: Any) -> Any:
        return layer(list(inputs) if case.several else inputs[0])

    call(*runs[0])
    specs = [gt.TensorSpec([batch, *x.shape[1:]], x.dtype) for x in runs[0]]
    compare(call, specs, *map(tuple, runs))


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_gives_the_same_elsewhere_for_any_batch(name: str) -> None:
    make, shape = LAYERS[name]
    compare(make(), [gt.TensorSpec([None, *shape])], *batches(*shape))


@pytest.mark.parametrize("name", LAYERS)
def test_the_gradients_of_a_layer_are_the_same_elsewhere(name: str) -> None:
    make, shape = LAYERS[name]
    layer = make()
    layer(draws(2, *shape))
    compare(slopes_of(layer), [gt.TensorSpec(["batch", *shape])], *batches(*shape))


@pytest.mark.parametrize("axis", [-1, 1])
def test_batch_norm_of_images_is_the_same_elsewhere(axis: int) -> None:
    layer = g.BatchNorm(axis=axis)
    layer(draws(5, 3, 4, 3), training=True)
    compare(layer, [gt.TensorSpec([None, 3, 4, 3])], *batches(3, 4, 3))


def images(x: Any, w: Any) -> Any:
    y = gt.nn.relu(gt.nn.conv2d(x, w, strides=2, padding="same"))
    y = gt.nn.avg_pool2d(gt.nn.max_pool2d(y, 2, padding="same"), 2, 1, padding=1)
    return gt.reshape(y, (y.shape[0], -1))


def test_images_of_any_size_are_convolved_and_pooled_elsewhere() -> None:
    specs = [gt.TensorSpec([None, None, None, 3]), gt.TensorSpec([3, 3, 3, 4])]
    w = draws(3, 3, 3, 4)
    model = compare(images, specs, (draws(1, 9, 8, 3), w), (draws(3, 6, 11, 3), w))
    assert {"Conv", "MaxPool", "AveragePool", "Relu"} <= set(model.nodes)


def test_the_gradients_of_convolutions_and_pools_are_the_same_elsewhere() -> None:
    def slopes(x: Any, w: Any) -> Any:
        with gt.GradientTape() as tape:
            tape.watch([x, w])
            loss = gt.sum(images(x, w) ** 2)
        return tape.gradient(loss, [x, w])

    specs = [gt.TensorSpec([None, 6, 5, 2]), gt.TensorSpec([3, 3, 2, 2])]
    calls = [(draws(n, 6, 5, 2), draws(3, 3, 2, 2)) for n in (1, 3)]
    compare(slopes, specs, *calls, rtol=1e-4, atol=1e-5)


# -- what others expect to see ---------------------------------------------------------------------


def test_inference_is_made_of_the_nodes_that_others_write() -> None:
    model = g.Sequential(
        [g.Dense(4, activation="relu"), g.BatchNorm(), g.Dense(2, activation="softmax")]
    )
    found = compare(model, [gt.TensorSpec(["batch", 3])], *batches(3))
    assert found.nodes == ["Gemm", "Relu", "BatchNormalization", "Gemm", "Softmax"]
    graph = found.proto.graph
    assert graph.name == "sequential"
    assert found.proto.producer_name == "gradtape"
    assert {"layers/0/kernel", "layers/1/moving_mean"} <= {x.name for x in graph.initializer}
    assert [x.name for x in graph.input] == ["x"]
    sizes = graph.output[0].type.tensor_type.shape.dim
    assert (sizes[0].dim_param, sizes[1].dim_value) == ("batch", 2)


def test_arguments_and_results_keep_their_names() -> None:
    def head(x: Any, more: Any) -> Any:
        return {"sum": x + more["a"], "parts": [x, (more["b"], x * 2.0)], "none": None}

    spec = gt.TensorSpec([2])
    model = Model(gt.export.onnx(head, spec, {"a": spec, "b": spec}))
    assert model.inputs == ["x", "more.a", "more.b"]
    assert model.outputs == ["parts.0", "parts.1.0", "parts.1.1", "sum"]
    found = model(**{"x": draws(2), "more.a": np.ones(2, "f4"), "more.b": np.zeros(2, "f4")})
    assert found["parts.1.0"].tolist() == [0.0, 0.0]


def test_what_returns_its_argument_or_a_variable_is_a_model() -> None:
    v = gt.Variable([1.0, 2.0])
    model = Model(gt.export.onnx(lambda x: (x, x, v, gt.constant([3.0])), gt.TensorSpec([2])))
    found = list(model(x=np.array([5.0, 6.0], np.float32)).values())
    assert [y.tolist() for y in found] == [[5.0, 6.0], [5.0, 6.0], [1.0, 2.0], [3.0]]


def test_a_model_is_written_where_it_is_asked_for(tmp_path: Path) -> None:
    blob = gt.export.onnx(gt.function(gt.sin), gt.TensorSpec([3]), path=tmp_path / "sin.onnx")
    assert (tmp_path / "sin.onnx").read_bytes() == blob


def test_a_trace_is_exported_as_it_is() -> None:
    trace = gt.function(lambda x: x * 2.0).get_concrete_function(gt.TensorSpec([None]))
    assert Model(gt.export.onnx(trace))(x=np.ones(3, "f4"))["output"].tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(TypeError, match="without any"):
        gt.export.onnx(trace, gt.TensorSpec([3]))


def test_a_model_from_a_file_is_exported(tmp_path: Path) -> None:
    model = g.Sequential([g.Dense(2)])
    model(draws(1, 3))
    gt.save(model, tmp_path / "model.h5")
    x = draws(3, 3)
    found = Model(gt.export.onnx(gt.load(tmp_path / "model.h5"), gt.TensorSpec([None, 3])))(x=x)
    np.testing.assert_allclose(found["output"], model(x).numpy(), rtol=1e-5, atol=1e-6)


# -- training --------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [("batch", "batch"), (7, 7), (None,)], ids=str)
def test_a_training_step_is_one_model(sizes: Any) -> None:
    model, step = training_step()
    specs = [gt.TensorSpec([sizes[0], 4]), *[gt.TensorSpec([n], "int64") for n in sizes[1:]]]

    exported = Model(gt.export.onnx(step, *specs))
    updates = json.loads(
        next(x.value for x in exported.proto.metadata_props if x.key == "gradtape.updates")
    )
    assert updates["model/layers/0/kernel"] == "model/layers/0/kernel_next"
    assert "optimizer/learning_rate" not in updates
    own = ["x", "y"][: len(specs)]
    assert set(exported.inputs) == {*own, *updates}
    state: Any = gt.export.variables(step, *specs)
    for _ in range(5):
        given = {"x": draws(7, 4), "y": rng.integers(0, 3, 7)}
        given = {name: given[name] for name in own}
        found = exported(**given, **state)
        want = step(**{name: gt.constant(x) for name, x in given.items()})["loss"]
        assert found["loss"] == pytest.approx(want.item(), abs=1e-5)
        state = {name: found[after] for name, after in updates.items()}
    for path, v in model.named_variables.items():
        np.testing.assert_allclose(state[f"model/{path}"], v.numpy(), rtol=1e-5, atol=1e-5)
    assert state["optimizer/iterations"] == 5


@pytest.mark.parametrize("dtype", ["int64", "float32"])
def test_a_label_that_is_no_class_gives_nan(dtype: str) -> None:
    def loss(y: Any, logits: Any) -> Any:
        labels = extend.ops["class_labels"](y)
        return gt.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)

    model = Model(gt.export.onnx(loss, gt.TensorSpec([3], dtype), gt.TensorSpec([3, 2])))
    labels = np.array([1, 2, -1] if dtype == "int64" else [1.0, 0.5, np.inf], dtype)
    found = model(y=labels, logits=draws(3, 2))["output"]
    assert np.isnan(found).tolist() == [False, True, True]


# -- control flow ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fn", "node"),
    [
        (lambda x: gt.cond(gt.sum(x) > 0, lambda: gt.sin(x), lambda: 2 * x), "If"),
        (lambda x: gt.while_loop(lambda a: gt.sum(a * a) < 99, lambda a: [a * 1.5], [x]), "Loop"),
        (lambda x: gt.while_loop(lambda a: gt.sum(a) > -1, lambda a: [a + 1], [x], 3), "Loop"),
        (lambda x: gt.scan(lambda c, r: (c / 2 + r, c * r), gt.zeros(2), x), "Loop"),
        (lambda x: gt.scan(lambda c, r: (c + r, c), gt.zeros(2), x, reverse=True), "Loop"),
        (lambda x: gt.map(lambda r: gt.sum(r) * r, x), "Loop"),
    ],
    ids=["cond", "while", "while at most", "scan", "scan in reverse", "map"],
)
def test_control_flow_runs_elsewhere(fn: Any, node: str) -> None:
    calls = [(draws(n, 2),) for n in BATCHES]
    assert node in compare(fn, [gt.TensorSpec([None, 2])], *calls).nodes


def test_a_branch_that_uses_a_size_runs_elsewhere() -> None:
    def fn(x: Any) -> Any:
        n = x.shape[0]
        return gt.cond(gt.sum(x) > 0, lambda: gt.ones((n, 2)) * x, lambda: x / n) + gt.zeros((n, 2))

    compare(fn, [gt.TensorSpec([None, 2])], *batches(2))


# -- refusals --------------------------------------------------------------------------------------

OPEN = gt.TensorSpec([None, 3])
SQUARE = gt.TensorSpec([3, 3])


@pytest.mark.parametrize(
    ("fn", "spec", "words"),
    [
        (gt.linalg.svd, SQUARE, r"op 'svd'.*linalg\.svd"),
        (lambda x: gt.linalg.solve(x, x), SQUARE, r"op 'solve'.*linalg\.solve"),
        (gt.fft.fft, SQUARE, "op 'fftn'.*complex"),
        (gt.digamma, SQUARE, "op 'digamma'"),
        (lambda x: x + gt.random.normal((3,)), SQUARE, "op 'random_normal'.*draw them outside"),
        (lambda x: x, gt.TensorSpec([3], "complex64"), "'x' has dtype complex64"),
        (
            lambda x: gt.real(x * gt.constant([1j, 2.0, 0.0])),
            SQUARE,
            "a constant has dtype complex",
        ),
        (gt.sin, gt.TensorSpec(None), "argument 'x'.*number of its axes"),
        (gt.erf, gt.TensorSpec([3], "float64"), "op 'erf'.*float32.*cast"),
        (lambda x: 3.0, SQUARE, "returns no tensor"),
    ],
)
def test_what_has_no_form_in_onnx_is_refused_by_name(fn: Any, spec: Any, words: str) -> None:
    def called(x: Any) -> Any:
        return fn(x)

    with pytest.raises(gt.export.ExportError, match=words):
        gt.export.onnx(called, spec)


def test_a_refusal_leaves_other_libraries_as_they_are() -> None:
    spox: Any = pytest.importorskip("spox._value_prop")
    before = spox._VALUE_PROP_BACKEND
    with pytest.raises(gt.export.ExportError):
        gt.export.onnx(gt.linalg.inv, SQUARE)
    assert before is spox._VALUE_PROP_BACKEND


def test_a_size_may_have_any_name() -> None:
    def fn(x: Any, y: Any) -> Any:
        return gt.concat([gt.reshape(x, (-1, 2)), gt.reshape(y, (-1, 2))], axis=0)

    specs = [gt.TensorSpec(["size_0", 4]), gt.TensorSpec(["size_1", 2])]
    compare(fn, specs, (draws(3, 4), draws(5, 2)), (draws(1, 4), draws(1, 2)))


def test_a_kernel_that_decides_by_an_open_size_says_what_to_give() -> None:
    def slope(x: Any, y: Any) -> Any:
        return gt.grad(lambda y: gt.sum(x * y))(y)

    specs = [gt.TensorSpec([None, 3]), gt.TensorSpec([None, 3])]
    with pytest.raises(gt.export.ExportError, match=r"unbroadcast_like.*size"):
        gt.export.onnx(slope, *specs)
    one = gt.TensorSpec(["batch", 3])
    compare(slope, [one, one], *[(draws(n, 3), draws(n, 3)) for n in BATCHES])


def test_a_kernel_of_a_plugin_is_exported_if_it_is_portable() -> None:
    double = extend.Op(
        "acme::double", lambda xp, x: xp.add(x, x), infer=lambda x: (x.shape, x.dtype)
    )
    odd = extend.Op("acme::odd", lambda xp, x: xp.unheard_of(x), infer=lambda x: (x.shape, x.dtype))

    class Acme:
        @staticmethod
        @gt.hookimpl
        def gradtape_ops() -> list[Any]:
            return [double, odd]

    gt.register_plugin(Acme(), "acme")
    try:
        compare(lambda x: double(x), [OPEN], *batches(3))
        with pytest.raises(gt.export.ExportError, match=r"'acme::odd'.*unheard_of"):
            gt.export.onnx(lambda x: odd(x), OPEN)
    finally:
        gt.unregister_plugin("acme")


def test_what_is_not_installed_is_named_with_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "ndonnx", None)
    with pytest.raises(ImportError, match=r'pip install "gradtape\[onnx\]"'):
        gt.export.onnx(gt.sin, SQUARE)


def test_a_path_among_the_arguments_is_answered_with_what_to_write() -> None:
    model = gt.layers.Dense(2)
    model(gt.ones((1, 3)))
    with pytest.raises(TypeError, match=r"'dense': missing a required argument.*TensorSpec"):
        gt.export.onnx(gt.layers.Dense(2))
    with pytest.raises(
        TypeError, match=r"\(None, 3\) looks like a shape.*TensorSpec\(\[None, 3\]\)"
    ):
        gt.export.onnx(gt.sin, (None, 3))
    with pytest.raises(TypeError, match=r"first argument is the function or module.*'m.onnx'"):
        gt.export.onnx("m.onnx", gt.layers.Dense(2))
    with pytest.raises(TypeError, match=r"'m.onnx' looks like a file.*path='m.onnx'"):
        gt.export.onnx(model, "m.onnx")
