"""What every layer promises: gradients, traces of any batch, configurations, files."""

from __future__ import annotations

import copy
import inspect
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gradcheck import check_gradients
from layer_cases import FAMILIES, Case

import gradtape as gt
from gradtape import layers

#: What is no layer by itself, another name of one, and what has tests of its own: test_lambda.py.
ELSEWHERE = {"BatchNorm", "Lambda", "Layer", "Model", "Sequential"}
CELLS = {"GRUCell", "LSTMCell", "SimpleRNNCell", "StackedRNNCells"}  # inside recurrent layers

NAMES = sorted(FAMILIES)
#: Whose results are the same for all inputs near by, or whose slopes jump.
KINKED = {"MaxPooling1D", "MaxPooling2D", "MaxPooling3D", "Maximum", "Minimum", "ReLU"}


def of(inputs: Any) -> list[Any]:
    return list(inputs) if isinstance(inputs, list) else [inputs]


def test_every_layer_has_a_case() -> None:
    classes = {name for name in layers.__all__ if inspect.isclass(getattr(layers, name))}
    assert classes - ELSEWHERE - CELLS == {name.split()[0] for name in FAMILIES}


def built(name: str, dtype: str = "float32") -> tuple[Any, list[Any], Any]:
    """Return a layer that was called once, its inputs, and what calls it with inputs like these."""
    case: Case = FAMILIES[name]
    gt.random.set_seed(0)
    layer = case.make()
    if dtype == "float64":
        layer.dtype = dtype
    inputs = [x.astype(dtype) if x.dtype.kind == "f" else x for x in of(case.inputs(2))]

    def call(*xs: Any, **keywords: Any) -> Any:
        return layer(list(xs) if case.several else xs[0], **keywords)

    call(*inputs)
    return layer, inputs, call


@pytest.mark.parametrize("name", NAMES)
def test_gradients_by_inputs_are_right_at_two_orders(name: str) -> None:
    _, inputs, call = built(name, "float64")
    if all(x.dtype.kind == "f" for x in inputs):
        check_gradients(lambda *xs: gt.sin(call(*xs)), *inputs, order=1 if name in KINKED else 2)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_by_weights_are_right_at_two_orders(name: str) -> None:
    layer, inputs, call = built(name, "float64")
    variables = list(layer.trainable_variables)
    if not variables:
        return
    random = np.random.default_rng(1)
    one, two = ([random.standard_normal(v.shape) for v in variables] for _ in range(2))

    def slopes() -> tuple[float, float, float]:
        """Return the value, its slope along ``one``, and the slope of that along ``two``."""
        with gt.GradientTape() as outer:
            with gt.GradientTape() as inner:
                value = gt.sum(gt.sin(call(*inputs)))
            first = inner.gradient(value, variables)
            along = sum(gt.sum(g * d) for g, d in zip(first, one))
        second = outer.gradient(along, variables, unconnected_gradients="zero")
        return (
            float(value),
            float(along),
            float(sum((g.numpy() * d).sum() for g, d in zip(second, two))),
        )

    def moved(by: list[Any], step: float) -> tuple[float, float, float]:
        for v, d in zip(variables, by):
            v.assign_add(d * step)
        found = slopes()
        for v, d in zip(variables, by):
            v.assign_sub(d * step)
        return found

    h = 1e-5
    _, along, second = slopes()
    measured = (moved(one, h)[0] - moved(one, -h)[0]) / (2 * h)
    np.testing.assert_allclose(along, measured, rtol=1e-5, atol=1e-7)
    measured = (moved(two, h)[1] - moved(two, -h)[1]) / (2 * h)
    np.testing.assert_allclose(second, measured, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_one_trace_serves_every_batch(name: str) -> None:
    case = FAMILIES[name]
    _, inputs, call = built(name)
    specs = [gt.TensorSpec([None, *x.shape[1:]], x.dtype.name) for x in inputs]
    traced = gt.function(call, input_signature=specs)
    for batch in (1, 2, 3, 7, 0):
        xs = of(case.inputs(batch, seed=batch))
        np.testing.assert_allclose(traced(*xs).numpy(), call(*xs).numpy(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", NAMES)
def test_files_and_configurations_bring_the_layer_back(name: str, tmp_path: Path) -> None:
    layer, inputs, call = built(name)
    expected = call(*inputs).numpy()
    if name.split()[0] not in ("RNN", "Bidirectional", "TimeDistributed"):  # made of other layers
        again = type(layer).from_config(layer.get_config())
        assert again.get_config() == layer.get_config()
    gt.save(layer, tmp_path / "a.h5")
    loaded = gt.load(tmp_path / "a.h5")
    assert type(loaded) is type(layer)
    given = inputs if FAMILIES[name].several else inputs[0]
    np.testing.assert_array_equal(loaded(given).numpy(), expected)
    with gt.GradientTape() as tape:
        loss = gt.sum(loaded(given, training=True))
    for gradient in tape.gradient(loss, list(loaded.trainable_variables)):
        assert gradient is not None


@pytest.mark.parametrize("name", NAMES)
def test_weights_load_into_an_unbuilt_layer(name: str, tmp_path: Path) -> None:
    layer, inputs, call = built(name)
    gt.save_weights(layer, tmp_path / "w.h5")
    fresh = FAMILIES[name].make()
    if fresh.variables:  # made in the constructor
        return
    gt.load_weights(tmp_path / "w.h5", fresh)
    given = inputs if FAMILIES[name].several else inputs[0]
    np.testing.assert_array_equal(fresh(given).numpy(), call(*inputs).numpy())


@pytest.mark.parametrize("name", NAMES)
def test_inputs_of_another_rank_are_refused_in_words(name: str) -> None:
    layer, inputs, call = built(name)
    pictures = hasattr(layer, "data_format") and name != "Flatten"  # which takes any rank
    spatial = pictures or name.split()[0] in (
        "LSTM",
        "GRU",
        "SimpleRNN",
        "RNN",
    )
    if spatial:
        with pytest.raises(ValueError, match=f"layer '{layer.name}' .*expected inputs of shape"):
            call(*[x[..., None] for x in inputs])


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_may_be_empty_also_the_first(name: str) -> None:
    case = FAMILIES[name]
    layer = case.make()
    with gt.GradientTape() as tape:
        loss = gt.sum(layer(case.inputs(0)))
    for gradient in tape.gradient(loss, list(layer.trainable_variables)):
        assert np.isfinite(gradient.numpy()).all()
    assert layer(case.inputs(2)).shape[0] == 2


@pytest.mark.parametrize("name", NAMES)
def test_a_frozen_layer_has_nothing_to_train(name: str) -> None:
    case = FAMILIES[name]
    layer = case.make()
    layer.trainable = False
    layer(case.inputs(2))
    assert not list(layer.trainable_variables)
    layer.trainable = True
    whole = case.make()
    whole(case.inputs(2))
    assert len(list(layer.trainable_variables)) == len(list(whole.trainable_variables))


@pytest.mark.parametrize("again", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("name", NAMES)
def test_copies_have_weights_of_their_own(name: str, again: Any) -> None:
    layer, inputs, call = built(name)
    twin = again(layer)
    given = inputs if FAMILIES[name].several else inputs[0]
    np.testing.assert_array_equal(twin(given).numpy(), call(*inputs).numpy())
    assert not {id(v) for v in twin.variables} & {id(v) for v in layer.variables}
    assert again(FAMILIES[name].make())(given).shape == call(*inputs).shape


@pytest.mark.parametrize("name", NAMES)
def test_a_placeholder_tells_the_shape_of_the_result(name: str) -> None:
    case = FAMILIES[name]
    inputs = of(case.inputs(2))
    ends = [gt.Input(x.shape[1:], dtype=x.dtype.name) for x in inputs]
    y = case.make()(ends if case.several else ends[0])
    model = gt.Model(ends if case.several else ends[0], y)
    found = model(inputs if case.several else inputs[0])
    assert model.output_shape == y.shape == (None, *found.shape[1:])


@pytest.mark.parametrize("dtype", ["float64", "float16"])
@pytest.mark.parametrize("name", NAMES)
def test_results_have_the_dtype_of_inputs(name: str, dtype: str) -> None:
    case = FAMILIES[name]
    if name in ("Embedding", "Normalization"):  # whose weights come before
        return
    inputs = [x.astype(dtype) for x in of(case.inputs(2))]
    y = case.make()(inputs if case.several else inputs[0])
    assert y.dtype == dtype
    assert np.isfinite(y.numpy()).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_number_is_taken_or_refused_in_words(name: str) -> None:
    case = FAMILIES[name]
    layer = case.make()
    one = np.float32(3.0)
    said = "taken"
    try:
        layer([one] * len(case.shapes) if case.several else one)
    except (IndexError, TypeError, ValueError) as error:
        said = str(error)
    assert said == "taken" or said.startswith("layer '") or "dimension" in said
