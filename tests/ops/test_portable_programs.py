"""Layers, training, transformations and files on a library whose dtypes are not NumPy's."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import array_api_strict as strict
import numpy as np
import pytest
from strict_backend import NAME

import gradtape as gt

pytestmark = pytest.mark.usefixtures("strict")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 4)).astype("float32")
Y = RNG.integers(0, 3, 12)


def network() -> gt.Module:
    layers = [gt.layers.Dense(8, "tanh"), gt.layers.BatchNorm(), gt.layers.Dense(3)]
    return gt.layers.Sequential(layers)


def loss(y: Any, p: Any) -> Any:
    return gt.mean(gt.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=p))


def trained(optimizer: str) -> list[Any]:
    gt.random.set_seed(1)
    model, data = network(), (gt.constant(X), gt.constant(Y))
    options: dict[str, Any] = {"loss": loss, "metrics": ["accuracy"]}
    history = gt.training.fit(
        model, data, optimizer=optimizer, epochs=2, batch_size=4, seed=3, verbose=False, **options
    )
    found = gt.training.evaluate(model, data, **options)
    return [history.history["loss"], found["loss"], gt.training.predict(model, data[0])]


def transformed() -> list[Any]:
    x = gt.constant(X)
    return [
        gt.vmap(lambda row: gt.sum(gt.sin(row)))(x),
        gt.jacobian(gt.tanh)(x[0]),
        gt.hessian(lambda a: gt.sum(a**3))(x[0]),
        *gt.jvp(gt.sin, (x,), (x,)),
        gt.function(gt.nn.softmax)(x),
        gt.function(lambda a: gt.reshape(a, -1), input_signature=[gt.TensorSpec([None, 4])])(x),
        gt.cond(gt.sum(x) > 0, lambda: x * 2, lambda: x),
        gt.scan(lambda c, a: (c + a, c), x[0], x)[0],
        gt.grad(gt.recompute_grad(lambda a: gt.sum(gt.sin(a))))(x),
        pickle.loads(pickle.dumps(x)),
        x.astype("int32"),
    ]


def values(results: list[Any]) -> list[Any]:
    return [y.numpy() if isinstance(y, gt.Tensor) else np.asarray(y) for y in results]


@pytest.mark.parametrize(
    ("program", "arguments"),
    [*((trained, (name,)) for name in ("sgd", "adam", "rmsprop", "adagrad")), (transformed, ())],
)
def test_a_program_gives_what_it_gives_on_numpy(program: Any, arguments: Any) -> None:
    wanted = values(program(*arguments))
    with gt.backend(NAME):
        found = program(*arguments)
    for mine, want in zip(values(found), wanted, strict=True):
        assert mine.dtype == want.dtype
        np.testing.assert_allclose(mine, want, rtol=2e-4, atol=1e-6)
    assert found[-1].device.startswith(NAME)


def test_a_tensor_tells_its_shape_and_dtype_as_numpy_does(tmp_path: Path) -> None:
    with gt.backend(NAME):
        x, model = gt.constant(X[:1, :2]), network()
        model(gt.constant(X))
    assert repr(x).startswith("<Tensor shape=(1, 2) dtype=float32 value=")
    assert str(x).endswith("shape=(1, 2), dtype=float32)")
    gt.save(model, tmp_path / "model.h5")
    again = gt.load(tmp_path / "model.h5")
    here = again(gt.constant(X))
    np.testing.assert_allclose(here, model(gt.constant(X).to(NAME)).to("numpy"), rtol=1e-5)


def test_dtypes_of_other_libraries_are_taken_and_other_things_refused() -> None:
    assert gt.constant(1.0, dtype=strict.float64).dtype == np.float64
    assert gt.TensorSpec([2], strict.int32).dtype == np.int32
    for thing in (object(), strict, gt.testing.Sample(), "float33", ..., [1]):
        with pytest.raises(TypeError, match="is not a dtype; use a name such as 'float32'"):
            gt.TensorSpec([2], thing)
