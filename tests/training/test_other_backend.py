"""Models train on a backend other than NumPy, without a copy through the host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pretend_gpu
import pytest

import gradtape as gt
from gradtape.layers import BatchNorm, Dense, Dropout, Sequential
from gradtape.training import SGD, Adagrad, Adam, RMSprop, evaluate, fit, predict

PLUGIN = pretend_gpu.Plugin("faraway")
library = PLUGIN.library


@pytest.fixture(autouse=True)
def plugin() -> Iterator[None]:
    gt.register_plugin(PLUGIN, "faraway")
    yield
    gt.unregister_plugin("faraway")


RNG = np.random.default_rng(6)
X = RNG.normal(size=(40, 5)).astype("float32")
LABELS = RNG.integers(0, 3, 40)


@pytest.mark.parametrize(
    "make",
    [
        Adam,
        lambda: SGD(0.1, 0.9),
        lambda: RMSprop(0.01, momentum=0.5, centered=True),
        lambda: Adagrad(0.1, global_clipnorm=1.0),
    ],
)
def test_training_elsewhere_gives_the_same_weights(make: Any) -> None:
    def train(where: str) -> Any:
        gt.random.set_seed(0)
        with gt.backend(where):
            model = Sequential([Dense(8, use_bias=False), BatchNorm(), gt.nn.relu, Dense(3)])
            model.add(Dropout(0.1, seed=3))
            data = (gt.constant(X), gt.constant(LABELS))
            done = fit(model, data, optimizer=make(), epochs=3, seed=0, verbose=False)
            measured = evaluate(model, data)
            predicted = predict(model, data[0])
        return model, done.history, measured, predicted

    here, near, a, p = train("numpy")
    there, far, b, q = train("faraway")
    assert type(there.layers[0].kernel.array).__module__ == "faraway"
    for v, w in zip(here.variables, there.variables, strict=True):
        np.testing.assert_allclose(library.asnumpy(w.array), v.numpy(), rtol=2e-4, atol=1e-6)
    assert far["loss"] == pytest.approx(near["loss"], rel=1e-4)
    assert b == pytest.approx(a, rel=1e-4)
    np.testing.assert_allclose(library.asnumpy(q.array), p.numpy(), rtol=1e-3, atol=1e-5)


def test_model_and_optimizer_move_together() -> None:
    gt.random.set_seed(0)
    model, optimizer = Sequential([Dense(3)]), Adam(0.1)
    fit(model, (X, LABELS), optimizer=optimizer, verbose=False)
    model.to("faraway")
    data = (gt.constant(X).to("faraway"), gt.constant(LABELS).to("faraway"))
    with pytest.raises(gt.errors.BackendMismatch, match=r"'(bias|kernel)_first_moments'"):
        fit(model, data, optimizer=optimizer, verbose=False)
    optimizer.to("faraway")
    fit(model, data, optimizer=optimizer, verbose=False)
    assert type(model.layers[0].kernel.array).__module__ == "faraway"
    assert optimizer.iterations.item() == 4


@pytest.mark.parametrize("refusing", [False, True])
def test_a_backend_may_run_the_formula_itself(
    monkeypatch: pytest.MonkeyPatch, refusing: bool
) -> None:
    ran: list[int] = []

    def updating(self: Any, formula: Any) -> Any:
        assert hash(formula) is not None

        def run(flat: Any, gradients: Any, settings: Any) -> Any:
            ran.append(len(gradients))
            if refusing:
                return None
            gradient = library.concatenate([g.ravel() for g in gradients])
            values = [*flat, gradient, *settings]
            assert len(values) == formula.arrays + formula.settings
            for ufunc, inputs in formula.steps:
                given = [values[x] if type(x) is int else x for x in inputs]
                values.append(getattr(library, ufunc.__name__)(*given))
            return [values[place] for place in formula.results]

        return run

    def stepped() -> list[Any]:
        with gt.backend("faraway"):
            variables = [gt.Variable(X[:n]) for n in (1, 3)]
            gradients = [gt.constant(X[5 : 5 + n]) for n in (1, 3)]
            optimizer = Adam(0.1, amsgrad=True, weight_decay=0.01)
            for _ in range(3):
                optimizer.apply_gradients(zip(gradients, variables, strict=True))
        held = [v for slot in optimizer.slots for v in getattr(optimizer, slot)]
        return [library.asnumpy(v.array).tolist() for v in (*variables, *held)]

    right = stepped()
    assert not ran
    monkeypatch.setattr(pretend_gpu.PretendBackend, "updating", updating)
    assert stepped() == right
    assert ran == [2, 2, 2]
