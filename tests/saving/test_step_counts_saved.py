"""The steps of each variable come back: from checkpoints, files and pickles, for all optimizers."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import registry
from gradtape.training import Checkpoint, Optimizer


class Decaying(Optimizer):
    """It has no state but the steps."""

    def settings(self, rate: Any, step: Any) -> tuple[Any, ...]:
        return (rate / step,)

    def update(self, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
        return value - gradient * settings[0], state


def _makers() -> dict[str, Callable[[], Optimizer]]:
    found: dict[str, Callable[[], Optimizer]] = {"own": partial(Decaying, 0.1)}
    for name, cls in registry().modules.items():
        if issubclass(cls, Optimizer) and cls is not gt.training.LBFGS:  # which takes no gradients
            first = "adam" if "inner" in str(inspect.signature(cls)) else 0.1
            found[name] = partial(cls, first)
    for option in ({"use_ema": True}, {"gradient_accumulation_steps": 2}):
        found[str(option)] = partial(gt.training.Adam, 0.1, **option)
    return found


OPTIMIZERS = _makers()
BEFORE = {
    "all": ["ab"] * 3,
    "one": ["a"] * 3,
    "late": ["a", "a", "ab"],
    "turns": ["a", "b", "a"],
    "left": ["ab", "ab", "a"],
}
AFTER = ["abc", "c", "ab", "abc"]


def weights() -> gt.Module:
    model = gt.Module("model")
    model.a, model.b = gt.Variable([1.0, 2.0], name="a"), gt.Variable([3.0], name="b")
    model.c = gt.Variable([4.0, 5.0, 6.0], name="c")
    return model


def train(model: Any, optimizer: Optimizer, steps: Sequence[str]) -> list[Any]:
    for names in steps:
        chosen = [getattr(model, name) for name in names]
        optimizer.apply_gradients([(np.sin(v.numpy()) + 0.5, v) for v in chosen])
    return [v.numpy().tolist() for v in (model.a, model.b, model.c)]


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_what_is_restored_goes_on_like_what_was_saved(
    name: str, before: str, tmp_path: Path
) -> None:
    make = OPTIMIZERS[name]
    model, optimizer = weights(), make()
    train(model, optimizer, BEFORE[before])
    Checkpoint(model=model, optimizer=optimizer).save(tmp_path / "now.ckpt")
    pickled = pickle.dumps((model, optimizer))
    kept = gt.Module("kept")
    kept.model, kept.optimizer = model, optimizer
    if name != "own":  # a class that no file knows
        gt.save(kept, tmp_path / "now.h5")
    wanted = train(model, optimizer, AFTER)

    assert train(*pickle.loads(pickled), AFTER) == wanted
    if name != "own":
        kept = gt.load(tmp_path / "now.h5")
        assert train(kept.model, kept.optimizer, AFTER) == wanted
    for met in ([], ["c", "b"], ["abc"] * 5):
        model, optimizer = weights(), make()
        train(model, optimizer, met)
        Checkpoint(model=model, optimizer=optimizer).restore(tmp_path / "now.ckpt")
        assert train(model, optimizer, AFTER) == wanted, met


@pytest.mark.parametrize("through", ["file", "pickle"])
def test_variables_that_were_not_trained_get_no_state_of_others(
    through: str, tmp_path: Path
) -> None:
    model = gt.Module()
    model.a, model.b = gt.Variable([1.0, 2.0]), gt.Variable([3.0, 5.0])
    model.optimizer = gt.training.Adam(0.1)
    gradient = gt.constant([1.0, -2.0])
    for _ in range(5):
        model.optimizer.apply_gradients([(gradient, model.a)])
    if through == "file":
        gt.save(model, tmp_path / "m.h5")
        twin = gt.load(tmp_path / "m.h5")
    else:
        twin = pickle.loads(pickle.dumps(model))
    for x in (model, twin):
        x.optimizer.apply_gradients([(-gradient, x.b)])
        x.optimizer.apply_gradients([(gradient, x.a)])
    np.testing.assert_allclose(twin.b, model.b, rtol=1e-6)
    np.testing.assert_allclose(twin.a, model.a, rtol=1e-6)
