"""``fit``, ``evaluate`` and ``predict`` by a model's own steps, for data of any structure.

A model with steps as Keras has them goes through gradtape's own loop, which is faster. This one
calls ``train_step``, ``test_step`` and ``predict_step`` of the model with one batch after another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any

import numpy as np

import gradtape
from gradtape.core.extend import flatten, map_structure
from gradtape.training.data import _rows
from gradtape.training.fitting import History, _line, _Listeners, _progress
from gradtape.training.interrupt import DeferredInterrupt

__all__ = ["evaluate", "fit", "is_structure", "numbers", "predict"]


def is_structure(x: Any) -> bool:
    """Return whether ``x`` holds several inputs: arrays in a dictionary, a list or a tuple."""
    if isinstance(x, dict):
        return True
    return isinstance(x, (list, tuple)) and any(hasattr(leaf, "shape") for leaf in x)


class _Examples:
    """Nested containers of arrays whose first axes count the same examples, cut into batches."""

    def __init__(self, data: Any, batch_size: int) -> None:
        self.data = map_structure(gradtape.as_tensor, data)
        leaves = flatten(self.data)
        shapes = [leaf.shape for leaf in leaves]
        lengths = {shape[0] if shape else 0 for shape in shapes}
        if len(lengths) != 1 or not any(lengths):
            raise ValueError(f"inputs and labels must have the same, positive lengths: {shapes}")
        if batch_size != int(batch_size) or batch_size < 1:
            raise ValueError(f"batch_size must be a positive integer, got {batch_size!r}")
        self.count: int = lengths.pop()
        self.length = -(-self.count // batch_size)
        self.batch_size = int(batch_size)

    def part(self, chosen: Any) -> Any:
        """Return the examples at a slice or at indices."""
        return map_structure(lambda leaf: _rows(leaf, chosen), self.data)

    def batches(self, generator: np.random.Generator | None = None) -> Iterator[Any]:
        """Yield batches, in an order drawn from ``generator`` if there is one."""
        order = None if generator is None else generator.permutation(self.count)
        for start in range(0, self.count, self.batch_size):
            chosen = slice(start, start + self.batch_size)
            yield self.part(chosen if order is None else order[chosen])

    def split(self, fraction: float) -> tuple[_Examples, _Examples]:
        """Return all but the last ``fraction`` of the examples, and that last part."""
        kept = round(self.count * (1.0 - fraction))
        if not 0 < kept < self.count:
            raise ValueError(
                f"validation_split={fraction} of {self.count} examples leaves one part empty"
            )
        head, tail = self.part(slice(0, kept)), self.part(slice(kept, None))
        return _Examples(head, self.batch_size), _Examples(tail, self.batch_size)


class _Ready:
    """Batches as they come, tuples or single tensors."""

    def __init__(self, batches: Iterable[Any]) -> None:
        if not hasattr(batches, "__iter__"):
            raise TypeError(
                f"data must be arrays or an iterable of batches, got {type(batches).__name__}"
            )
        self.source = batches
        self.length = len(batches) if isinstance(batches, Sized) else None

    def batches(self, generator: Any = None) -> Iterator[Any]:
        """Yield the batches in their own order."""
        for batch in self.source:
            yield map_structure(gradtape.as_tensor, batch)


def _dataset(x: Any, y: Any, batch_size: int) -> _Examples | _Ready:
    if y is not None:
        return _Examples((x, y), batch_size)
    if hasattr(x, "shape") or is_structure(x):
        return _Examples(x, batch_size)
    return _Ready(x)


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
    """
    data, held_out = _dataset(x, y, batch_size), None
    if validation_data is not None:
        whole = isinstance(validation_data, tuple) and len(validation_data) == 2
        pair = validation_data if whole else (validation_data, None)
        held_out = _dataset(pair[0], pair[1], batch_size)
    elif validation_split:
        if isinstance(data, _Ready):
            raise ValueError("fit: validation_split needs data in arrays")
        data, held_out = data.split(validation_split)
    generator = np.random.default_rng() if shuffle else None
    listeners, run = _Listeners(callbacks), History()
    listeners.tell("on_train_begin")
    with DeferredInterrupt() as interrupt:
        for epoch in range(epochs):
            listeners.tell("on_epoch_begin", epoch)
            model.reset_metrics()
            logs: dict[str, float] = {}
            with _progress(data, f"epoch {epoch + 1}/{epochs}", verbose) as bar:  # type: ignore[arg-type]
                for i, batch in enumerate(data.batches(generator)):
                    logs = numbers(model.train_step(batch), "fit: train_step")
                    bar.postfix = _line(logs)
                    bar.update()
                    listeners.tell("on_train_batch_end", i, logs)
                    if interrupt.requested:
                        break
                if not logs:
                    raise ValueError("fit: data has no batches, or train_step returned no values")
                if held_out is not None and not interrupt.requested:
                    values = _tested(model, held_out)
                    logs |= {f"val_{name}": value for name, value in values.items()}
                bar.set_postfix_str(_line(logs))
            if interrupt.requested:
                break
            run.append(epoch, logs)
            if listeners.tell("on_epoch_end", epoch, logs) or interrupt.requested:
                break
    run.interrupted = interrupt.requested
    listeners.tell("on_train_end")
    return run


def evaluate(model: Any, x: Any, y: Any, batch_size: int) -> dict[str, float]:
    """Return what the last of a model's ``test_step`` returned, with its metrics reset before."""
    return _tested(model, _dataset(x, y, batch_size))


def _tested(model: Any, data: _Examples | _Ready) -> dict[str, float]:
    model.reset_metrics()
    logs: dict[str, float] = {}
    for batch in data.batches():
        logs = numbers(model.test_step(batch), "evaluate: test_step")
    if not logs:
        raise ValueError("evaluate: data has no batches, or test_step returned no values")
    return logs


def predict(model: Any, x: Any, batch_size: int) -> Any:
    """Return what a model's ``predict_step`` returns, batches joined, as NumPy arrays."""
    step: Callable[[Any], Any] = model.predict_step
    found = [step(batch) for batch in _dataset(x, None, batch_size).batches()]
    if not found:
        raise ValueError("predict: there are no examples")
    parts = [[np.asarray(leaf) for leaf in flatten(outputs)] for outputs in found]
    joined = iter([np.concatenate(part) for part in zip(*parts, strict=True)])
    return map_structure(lambda _: next(joined), found[0])
