"""``fit``, ``evaluate`` and ``predict`` by a model's own steps, for data of any structure.

A model with steps as Keras has them is trained by :func:`gradtape.training.fit`. Here the same loop
calls ``train_step``, ``test_step`` and ``predict_step`` of the model with one batch after another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import gradtape

from ....core.extend import flatten, map_structure
from ....training.data import Batches, Examples
from ....training.epochs import run_epochs
from ....training.resuming import Run, as_epochs
from ....training.session import History, Session

__all__ = ["evaluate", "fit", "is_structure", "numbers", "predict"]


def is_structure(x: Any) -> bool:
    """Return whether ``x`` holds several inputs: arrays in a dictionary, a list or a tuple."""
    if isinstance(x, dict):
        return True
    return isinstance(x, (list, tuple)) and any(hasattr(leaf, "shape") for leaf in x)


def _dataset(x: Any, y: Any, batch_size: int, passes: int = 1) -> Examples | Batches:
    if y is not None or hasattr(x, "shape") or is_structure(x):
        tensors = map_structure(gradtape.as_tensor, x)
        labels = None if y is None else map_structure(gradtape.as_tensor, y)
        return Examples(tensors, labels, batch_size)
    return Batches(x, passes)


def numbers(logs: Any, step: str) -> dict[str, float]:
    """Return what a step returned as Python numbers.

    Raises
    ------
    TypeError
        If it is no dictionary.
    """
    if not isinstance(logs, dict):
        raise TypeError(f"{step} must return a dict of names and values, got {type(logs).__name__}")
    return {name: float(np.mean(np.asarray(value))) for name, value in logs.items()}


def fit(
    model: Any,
    x: Any,
    y: Any,
    *,
    epochs: int,
    batch_size: int,
    validation_data: Any,
    validation_split: float,
    shuffle: bool,
    verbose: bool,
    callbacks: Iterable[Any],
    initial_epoch: int,
    **keeping: Any,
) -> History:
    """Train a model by its ``train_step``.

    As in Keras, an epoch's values are those that its last step returned; the model's metrics, which
    average over the batches, start anew before it.

    Parameters
    ----------
    model
        A ``tf.keras.Model``.
    x, y
        Arrays or containers of arrays; or ``x`` alone, or an iterable of batches.
    epochs, batch_size, validation_data, validation_split, shuffle, verbose, callbacks
        As for :func:`gradtape.training.fit`.
    initial_epoch, keeping
        As well; ``keeping`` is ``checkpoint``, ``save_every`` and ``resume``.
    """
    epochs, initial_epoch = as_epochs(epochs, initial_epoch)
    data, held_out = _dataset(x, y, batch_size, epochs - initial_epoch), None
    if validation_data is not None:
        whole = isinstance(validation_data, tuple) and len(validation_data) == 2
        pair = validation_data if whole else (validation_data, None)
        held_out = _dataset(pair[0], pair[1], batch_size, epochs)
    elif validation_split:
        if not isinstance(data, Examples):
            raise ValueError("fit: validation_split needs data in arrays")
        data, held_out = data.split(validation_split)
    run = Run(
        _Steps(model),
        data,
        callbacks,
        epochs=epochs,
        initial_epoch=initial_epoch,
        shuffle=shuffle,
        **keeping,
    )
    return run_epochs(run, held_out, verbose)


class _Steps(Session):
    """A model's own steps, for the loop over epochs. Only the model knows what they change."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def prepare(self, batch: Any) -> None:
        """Make what training makes, by a step of it: a file's values replace what it changes."""
        self.model.train_step(batch)

    def trackables(self) -> dict[str, Any]:
        """Return the model, and what it was compiled with."""
        inside = {id(module) for module in (self.model, *self.model.submodules)}
        beside = [self.model.optimizer, *self.model.metrics]
        beside = [x for x in beside if x is not None and id(x) not in inside]
        return {"model": self.model, **({"compiled": beside} if beside else {})}

    def begin_epoch(self) -> None:
        """Let the metrics, which average over the batches, start anew."""
        self.model.reset_metrics()

    def train(self, batch: Any) -> dict[str, float]:
        """Return what ``train_step`` returned for a batch."""
        return numbers(self.model.train_step(batch), "fit: train_step")

    def evaluate(
        self, batches: Iterable[Any], stop: Callable[[], bool] = lambda: False
    ) -> dict[str, float]:
        """Return what the last ``test_step`` returned, the metrics reset before."""
        self.model.reset_metrics()
        logs: dict[str, float] = {}
        for batch in batches:
            logs = numbers(self.model.test_step(batch), "evaluate: test_step")
            if stop():
                break
        if not logs:
            raise ValueError("evaluate: data has no batches, or test_step returned no values")
        return logs


def evaluate(model: Any, x: Any, y: Any, batch_size: int) -> dict[str, float]:
    """Return what the last of a model's ``test_step`` returned, with its metrics reset before."""
    return _Steps(model).evaluate(_dataset(x, y, batch_size).batches())


def predict(model: Any, x: Any, batch_size: int) -> Any:
    """Return what a model's ``predict_step`` returns, batches joined, as NumPy arrays."""
    step: Callable[[Any], Any] = model.predict_step
    found = [step(batch) for batch in _dataset(x, None, batch_size).batches()]
    if not found:
        raise ValueError("predict: there are no examples")
    parts = [[np.asarray(leaf) for leaf in flatten(outputs)] for outputs in found]
    joined = iter([np.concatenate(part) for part in zip(*parts, strict=True)])
    return map_structure(lambda _: next(joined), found[0])
