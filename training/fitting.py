"""``fit``: train a model on mini-batches, and tell how it went."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..core.extend import Module
from .data import Arrays, Batches, as_dataset
from .interrupt import DeferredInterrupt
from .loop import Trainer
from .optimizer import Optimizer

__all__ = ["History", "fit"]

_EVENTS = ("on_train_begin", "on_epoch_begin", "on_train_batch_end", "on_epoch_end", "on_train_end")


class History:
    """What a training run measured.

    Attributes
    ----------
    history : dict of str to list of float
        One value per finished epoch for ``"loss"``, each metric, and with validation data for each
        of these with ``"val_"`` before it.
    epoch : list of int
        The finished epochs, from 0.
    interrupted : bool
        Whether Ctrl-C ended the run.
    """

    def __init__(self) -> None:
        self.history: dict[str, list[float]] = {}
        self.epoch: list[int] = []
        self.interrupted = False

    def append(self, epoch: int, logs: dict[str, float]) -> None:
        """Add the values of an epoch."""
        self.epoch.append(epoch)
        for name, value in logs.items():
            self.history.setdefault(name, []).append(value)

    def __repr__(self) -> str:
        last = ", ".join(f"{name}={values[-1]:.4g}" for name, values in self.history.items())
        stopped = ", interrupted" if self.interrupted else ""
        return f"<History of {len(self.epoch)} epochs{stopped}{': ' if last else ''}{last}>"


def fit(
    model: Module,
    data: Any,
    *,
    epochs: int = 1,
    batch_size: int = 32,
    optimizer: Optimizer | str = "adam",
    loss: Any = "sparse_categorical_crossentropy",
    metrics: Sequence[Any] | None = None,
    validation_data: Any = None,
    validation_split: float = 0.0,
    shuffle: bool = True,
    seed: int | None = None,
    verbose: bool = True,
    callbacks: Iterable[Any] = (),
) -> History:
    """Train a model.

    Parameters
    ----------
    model
        A module that is called with a batch, and with ``training=True`` if it takes that.
    data
        A pair of arrays ``(x, y)``, or an iterable of such batches.
    epochs
        How often to go through the data.
    batch_size
        The size of the batches that arrays are cut into.
    optimizer
        An optimizer, or the name of one with its defaults: ``"adam"``, ``"sgd"``.
    loss
        ``"sparse_categorical_crossentropy"`` (of logits), ``"mean_squared_error"``, or a function
        of labels and predictions; its mean over the batch is minimised.
    metrics
        Names (``"accuracy"``) or functions of labels and predictions. By default accuracy for the
        cross-entropy, and nothing for another loss.
    validation_data
        What to evaluate after each epoch, as ``data``.
    validation_split
        Instead, the fraction at the end of the arrays to set apart for that.
    shuffle
        Whether to take the examples of arrays in a new random order in each epoch.
    seed
        The seed of these orders; by default a new one each time.
    verbose
        Whether to show a progress bar.
    callbacks
        Functions ``f(epoch, logs)``, called after each epoch; one that returns ``True`` ends the
        training. Or objects with any of the methods ``on_train_begin()``,
        ``on_epoch_begin(epoch)``, ``on_train_batch_end(batch, logs)``, ``on_epoch_end(epoch,
        logs)``, ``on_train_end()``.

    Returns
    -------
    A :class:`History` of the finished epochs. After Ctrl-C training stops at the next batch's end,
    and the history says ``interrupted``.

    Raises
    ------
    ValueError
        If the data or an argument are unusable; nothing has changed then.
    FloatingPointError
        If the loss is not finite.

    Notes
    -----
    If an exception ends an epoch, model and optimizer are as they were when that epoch began.

    Examples
    --------
    >>> model = gt.layers.Sequential([gt.layers.Dense(1)])
    >>> x = np.linspace(0, 1, 64, dtype="float32")[:, None]
    >>> run = gt.training.fit(model, (x, 2 * x), loss="mse", epochs=2, verbose=False)
    >>> len(run.history["loss"])
    2
    """
    if epochs != int(epochs) or epochs < 0:
        raise ValueError(f"fit: epochs must be a non-negative integer, got {epochs!r}")
    trainer = Trainer(model, loss, metrics, optimizer)
    dataset, held_out = _datasets(data, validation_data, validation_split, batch_size, epochs)
    listeners = _Listeners(callbacks or ())
    generator = np.random.default_rng(seed) if shuffle else None
    run = History()
    listeners.tell("on_train_begin")
    with DeferredInterrupt() as interrupt:
        for epoch in range(int(epochs)):
            listeners.tell("on_epoch_begin", epoch)
            with _progress(dataset, f"epoch {epoch + 1}/{epochs}", verbose) as bar:
                try:
                    logs = _epoch(trainer, dataset.batches(generator), interrupt, listeners, bar)
                    if held_out is not None and not interrupt.requested:
                        values = trainer.evaluate(held_out.batches(), lambda: interrupt.requested)
                        logs |= {f"val_{name}": value for name, value in values.items()}
                except BaseException:
                    trainer.restore()
                    raise
                bar.set_postfix_str(_line(logs))
            if interrupt.requested:
                break
            run.append(epoch, logs)
            if listeners.tell("on_epoch_end", epoch, logs) or interrupt.requested:
                break
    run.interrupted = interrupt.requested
    listeners.tell("on_train_end")
    return run


def _epoch(
    trainer: Trainer, batches: Any, interrupt: DeferredInterrupt, listeners: _Listeners, bar: Any
) -> dict[str, float]:
    """Do the steps of one epoch, or those until Ctrl-C; return the means over its examples."""
    totals = dict.fromkeys(trainer.names, 0.0)
    count = 0
    for i, (x, y) in enumerate(batches):
        if i == 0:
            trainer.begin(x)
        for name, value in trainer.step(x, y).items():
            totals[name] += value * len(x)
        count += len(x)
        logs = {name: total / count for name, total in totals.items()}
        bar.postfix = _line(logs)
        bar.update()
        listeners.tell("on_train_batch_end", i, logs)
        if interrupt.requested:
            break
    if not count:
        raise ValueError("fit: data has no batches")
    return logs


def _datasets(
    data: Any, validation_data: Any, validation_split: float, batch_size: int, epochs: int
) -> tuple[Arrays | Batches, Arrays | Batches | None]:
    """Return what to train on, and what to validate on."""
    if not 0.0 <= validation_split < 1.0:
        raise ValueError(f"fit: validation_split must be in [0, 1), got {validation_split!r}")
    dataset = as_dataset(data, batch_size, epochs)
    if validation_data is not None:
        if validation_split:
            raise ValueError("fit: give validation_data or validation_split, not both")
        return dataset, as_dataset(validation_data, batch_size, epochs, "validation_data")
    if not validation_split:
        return dataset, None
    if not isinstance(dataset, Arrays):
        raise ValueError("fit: validation_split needs data that is a pair of arrays (x, y)")
    return dataset.split(validation_split)


class _Listeners:
    """Callbacks by the event that they listen to."""

    def __init__(self, callbacks: Iterable[Any]) -> None:
        self.by_event: dict[str, list[Callable[..., Any]]] = {event: [] for event in _EVENTS}
        for callback in callbacks:
            methods = {event: getattr(callback, event, None) for event in _EVENTS}
            if not any(methods.values()):
                if not callable(callback):
                    raise TypeError(
                        f"fit: a callback is a function or has one of the methods {_EVENTS}, "
                        f"got {callback!r}"
                    )
                methods["on_epoch_end"] = callback
            for event, method in methods.items():
                if method is not None:
                    self.by_event[event].append(method)

    def tell(self, event: str, *arguments: Any) -> bool:
        """Call those who listen; return whether one of them returned ``True``."""
        answers = [listener(*arguments) for listener in self.by_event[event]]  # all are told
        return any(answer is True for answer in answers)


def _progress(dataset: Arrays | Batches, label: str, verbose: bool) -> Any:
    from tqdm.auto import tqdm  # takes as long to import as all of gradtape

    total = len(dataset) if isinstance(dataset, Arrays) else dataset.length
    return tqdm(total=total, desc=label, unit="batch", disable=not verbose)


def _line(logs: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.4f}" for name, value in logs.items())
