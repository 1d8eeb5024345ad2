"""A third-party backend, registered by hand: dispatch, transfers, mixing, and what saves memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pretend_gpu
import pytest

import gradtape as gt
from gradtape.errors import BackendMismatch

calls: list[int] = []
PLUGIN = pretend_gpu.Plugin(
    "pretend", {("cos", "pretend"): lambda x: calls.append(1) or PLUGIN.library.cos(x)}
)
library = PLUGIN.library


@pytest.fixture(autouse=True)
def plugin() -> Iterator[None]:
    calls.clear()
    gt.register_plugin(PLUGIN, "pretend")
    yield
    gt.unregister_plugin("pretend")


def test_constants_and_variables_are_made_on_the_selected_backend() -> None:
    with gt.backend("pretend"):
        x, v = gt.constant([1.0, 2.0]), gt.Variable([3.0, 4.0])
    assert type(x.array) is type(v.array) is library.ndarray
    assert x.device == "pretend:0"
    assert type(gt.constant(1.0).array) is np.ndarray


def test_a_device_is_chosen_by_number() -> None:
    with gt.backend("pretend:1"):
        x = gt.constant([1.0])
    assert x.device == "pretend:1"
    assert (x * 2.0).device == "pretend:1"
    assert x.to("pretend:0").device == "pretend:0"
    assert x.to("pretend").device == "pretend:1"


def test_random_numbers_are_made_on_the_selected_backend() -> None:
    gt.random.set_seed(5)
    with gt.backend("pretend"):
        there = gt.random.normal((3,))
        order = gt.random.permutation(4)
    assert there.device.startswith("pretend")
    assert order.device.startswith("pretend")
    gt.random.set_seed(5)
    here = gt.random.normal((3,))
    assert here.device == "numpy:cpu"
    np.testing.assert_array_equal(here, there.to("numpy"))


def test_a_seed_is_set_whichever_backend_is_selected() -> None:
    gt.random.set_seed(5)
    here, generator = gt.random.normal((3,)), gt.random.Generator(1)
    first = generator.normal((3,))
    with gt.backend("pretend"):
        gt.random.set_seed(5)
        generator.set_seed(1)
        there, elsewhere = gt.random.normal((3,)), gt.random.Generator(1)
    np.testing.assert_array_equal(here, there.to("numpy"))
    np.testing.assert_array_equal(first, generator.normal((3,)))
    drawn = elsewhere.normal((3,))
    elsewhere.set_seed(1)  # and the other way round
    assert drawn.tolist() == elsewhere.normal((3,)).tolist() == first.tolist()


def test_ops_and_gradients_stay_on_the_backend() -> None:
    x = gt.constant([0.5, 2.0]).to("pretend")
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.sin(x) * x + 1.0
    g = tape.gradient(y, x)
    assert g.device == "pretend:0"
    host = x.numpy()
    np.testing.assert_allclose(g.numpy(), np.cos(host) * host + np.sin(host), rtol=1e-6)


def test_second_order_and_reductions() -> None:
    x = gt.constant([[0.5, 2.0], [1.0, 3.0]]).to("pretend")
    with gt.GradientTape() as outer:
        outer.watch(x)
        with gt.GradientTape() as inner:
            inner.watch(x)
            y = gt.sum(gt.exp(x) * x)
        g = inner.gradient(y, x)
    h = outer.gradient(g, x)
    host = x.numpy()
    np.testing.assert_allclose(h.numpy(), np.exp(host) * (host + 2), rtol=1e-5)


def test_a_kernel_of_the_plugin_replaces_the_portable_one_there_only() -> None:
    gt.cos(gt.constant([1.0]))
    assert calls == []
    x = gt.cos(gt.constant([1.0]).to("pretend"))
    assert calls == [1]
    assert x.numpy() == pytest.approx(np.cos(1.0))


def test_a_transfer_is_recorded_by_tapes() -> None:
    x = gt.constant([1.0, 2.0])
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.sum(x.to("pretend") ** 2)
    g = tape.gradient(y, x)
    assert g.device == "numpy:cpu"
    assert g.numpy().tolist() == [2.0, 4.0]


def test_mixing_backends_names_the_op_both_backends_and_the_way_out() -> None:
    x, y = gt.constant([1.0]), gt.constant([1.0]).to("pretend")
    with pytest.raises(BackendMismatch, match=r"(?s)add.*numpy and pretend.*tensor\.to\("):
        x + y
    with pytest.raises(BackendMismatch, match="multiply"):
        gt.multiply(y, x)


def test_python_numbers_mix_with_any_backend() -> None:
    x = gt.constant([1.0, 2.0]).to("pretend")
    assert (2 * x + 1).numpy().tolist() == [3.0, 5.0]
    assert (x / 4).dtype == np.float32


def test_a_variable_takes_no_value_of_another_backend() -> None:
    v = gt.Variable([1.0])
    with pytest.raises(BackendMismatch, match=r"pretend.*must be on numpy"):
        v.assign(gt.constant([2.0]).to("pretend"))
    assert v.numpy().tolist() == [1.0]


def test_a_module_moves_with_all_its_variables() -> None:
    class Scale(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.factors = [gt.Variable(2.0), gt.Variable([1.0, 3.0])]

        def __call__(self, x: Any) -> Any:
            return x * self.factors[0] + self.factors[1]

    model = Scale()
    assert model.to("pretend:1") is model
    out = model(gt.constant([1.0, 1.0]).to("pretend:1"))
    assert out.device == "pretend:1"
    assert out.numpy().tolist() == [3.0, 5.0]
    assert model.to("numpy").factors[1].numpy().tolist() == [1.0, 3.0]


def test_a_traced_function_runs_on_either_backend() -> None:
    @gt.function(input_signature=[gt.TensorSpec([None])])
    def f(x: Any) -> Any:
        return gt.sin(x) * x

    x = gt.constant([1.0, 2.0])
    expected = f(x).numpy()
    moved = f(x.to("pretend"))
    assert moved.device == "pretend:0"
    np.testing.assert_allclose(moved.numpy(), expected)


def test_the_value_is_shown_and_read_from_the_device() -> None:
    x = gt.constant([1.5]).to("pretend")
    assert "1.5" in repr(x)
    assert float(x[0]) == 1.5
    assert np.asarray(x).tolist() == [1.5]


def test_an_unknown_array_type_is_refused_by_name() -> None:
    other = pretend_gpu.make("elsewhere").array([1.0])
    with pytest.raises(TypeError):
        gt.sin(other)


def test_an_unknown_backend_names_those_that_exist() -> None:
    with (
        pytest.raises(LookupError, match=r"no plugin provides the backend 'tpu'.*numpy"),
        gt.backend("tpu"),
    ):
        pass


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: gt.median(x),
        lambda x: gt.quantile(x, [0.2, 0.7], axis=0),
        lambda x: gt.diff(x, prepend=0.0),
        lambda x: gt.repeat(x, [2, 0, 1], axis=1),
        lambda x: gt.compress([True, False, True], x, axis=1),
        lambda x: gt.choose([0, 1, 0], [x, x * x]),
        lambda x: gt.float_power(x, 2),
        lambda x: x.at[0, [0, 0]].add(2.0),
        lambda x: gt.gradient(x, 0.5, axis=1),
        lambda x: gt.cumulative_sum(x, axis=1, include_initial=True),
    ],
)
def test_what_a_function_makes_itself_goes_where_the_tensor_is(fn: Any) -> None:
    x = gt.constant([[0.5, 2.0, -1.0], [1.0, 3.0, 0.25]])
    results = []
    for tensor in (x, x.to("pretend")):
        with gt.GradientTape() as tape:
            tape.watch(tensor)
            y = fn(tensor)
        results.append((y.numpy(), tape.gradient(y, tensor).numpy()))
        assert y.device == tensor.device
    for mine, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)
