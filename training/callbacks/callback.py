"""``Callback``: receives the events of a training run."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ...core.extend import Tensor, to_numpy, warn_user
from ..names import nearest

__all__ = ["Callback", "LambdaCallback"]


def number_of(value: Any) -> float | None:
    """Return a value of an epoch as a float, also that of a tensor; None if it is not a number."""
    if not isinstance(value, (bool, int, float, np.generic, np.ndarray, Tensor)):
        return None
    found = to_numpy(value.array) if isinstance(value, Tensor) else np.asarray(value)
    return float(found) if found.ndim == 0 and found.dtype.kind in "biuf" else None


class Callback:
    """Base class of callbacks: override the methods that you need.

    Epochs and batches are counted from 0. ``logs`` maps names such as ``"loss"`` to floats. The run
    ends if ``on_epoch_end`` returns ``True``. It ends after the current batch if a method sets
    ``self.model.stop_training = True``.

    Attributes
    ----------
    model
        The model that is trained, set before the run begins.
    optimizer
        Its optimizer.

    Examples
    --------
    >>> class Losses(gt.training.Callback):
    ...     def on_train_begin(self):
    ...         self.losses = []
    ...     def on_epoch_end(self, epoch, logs):
    ...         self.losses.append((epoch, logs["loss"]))
    >>> seen, model = Losses(), gt.layers.Sequential([gt.layers.Dense(1)])
    >>> x, y = np.zeros((4, 1)), np.ones((4, 1))
    >>> run = gt.training.fit(model, (x, y), epochs=2, loss="mse", callbacks=[seen], verbose=0)
    >>> [epoch for epoch, loss in seen.losses]
    [0, 1]
    """

    _gradtape_internal = "measured own_steps"
    _gradtape_hooks = (
        "load_state_dict on_epoch_begin on_epoch_end on_test_batch_begin on_test_batch_end "
        "on_test_begin on_test_end on_train_batch_begin on_train_batch_end on_train_begin "
        "on_train_end state_dict writes_files"
    )

    model: Any = None
    optimizer: Any = None
    #: Whether it writes files, so that in a job of several ranks it belongs to rank 0 alone.
    writes_files: ClassVar[bool] = False
    #: The settings of the run: its ``epochs``, its ``steps`` in an epoch (None if unknown) and
    #: ``verbose``.
    params: ClassVar[dict[str, Any]] = {}
    #: The names of the values of an epoch with validation, if they are known beforehand; ``val_*``
    #: for unknown names of validation.
    measured: tuple[str, ...] | None = None
    #: Whether a model's own steps return the values: their names are unknown beforehand.
    own_steps = False

    def _ask_to_stop(self) -> bool:
        """Ask ``fit`` to end the run, even if a subclass does not return this answer: true."""
        self._asks_to_stop = True
        return True

    def on_train_begin(self) -> None:
        """Called when the run begins."""

    def on_epoch_begin(self, epoch: int) -> None:
        """Called when an epoch begins."""

    def on_train_batch_begin(self, batch: int) -> None:
        """Called before each training step."""

    def on_train_batch_end(self, batch: int, logs: dict[str, float]) -> None:
        """Called after each training step, with the means over the epoch so far."""

    def on_test_begin(self) -> None:
        """Called when the validation after an epoch begins."""

    def on_test_batch_begin(self, batch: int) -> None:
        """Called before each batch of the validation."""

    def on_test_batch_end(self, batch: int) -> None:
        """Called after each batch of the validation."""

    def on_test_end(self, logs: dict[str, float]) -> None:
        """Called when the validation ends, with its values."""

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> bool | None:
        """Called when an epoch ends, with its values; return ``True`` to end the run."""
        return None

    def on_train_end(self) -> None:
        """Called when the run has ended."""


#: Parts of the names of values that should grow, and of those that should fall. The latter win.
_GROWING = (
    "acc auc precision recall score io_u top_k similarity sensitivity specificity true_".split()
)
_FALLING = (
    "loss error entropy hinge divergence log_cosh logcosh false_ poisson huber perplexity".split()
)
_FALLING_NAMES = "mse mae rmse msle mape kld dice tversky".split()
#: Names that are often meant.
_USUAL = "loss accuracy binary_accuracy categorical_accuracy precision recall mse mae".split()


class MonitorCallback(Callback):
    """Base class of callbacks that watch one value for improvements."""

    _gradtape_internal = "*"

    #: The attributes that a resumed run needs.
    kept: ClassVar[tuple[str, ...]] = ()
    #: Those of them that are lists of arrays, which the class checks; others are numbers.
    kept_arrays: ClassVar[tuple[str, ...]] = ()

    def __init__(self, monitor: str, mode: str, min_delta: float = 0.0) -> None:
        kind = type(self).__name__
        if mode not in ("auto", "min", "max"):
            raise ValueError(f"{kind}: mode must be 'auto', 'min' or 'max', got {mode!r}")
        self.monitor, self.mode = str(monitor), mode
        self.min_delta = abs(float(min_delta))
        self._resumed = False

    def begin(self) -> None:
        """Reset the state of an earlier run."""

    def on_train_begin(self) -> None:
        """Reset the state of an earlier run, unless this one continues it."""
        if not self._resumed:
            self.begin()

    def on_train_end(self) -> None:
        """Note that the run has ended, so that the next one starts afresh."""
        self._resumed = False

    def state_dict(self) -> dict[str, Any]:
        """Return the state that a resumed run needs."""
        return {name: getattr(self, name) for name in self.kept}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state.

        Raises
        ------
        ValueError
            If ``state`` is not a state of this class: a file is not trusted.
        """
        found = {name: state[name] for name in self.kept}
        for name, value in found.items():
            if not (value is None or number_of(value) is not None or name in self.kept_arrays):
                raise ValueError(f"{type(self).__name__}: {name} is not a number: {value!r:.80}")
        self._resumed = True
        vars(self).update(found)

    @property
    def larger_is_better(self) -> bool:
        """Whether the value should grow."""
        if self.mode != "auto":
            return self.mode == "max"
        name = self.monitor.removeprefix("val_")
        falls = any(part in name for part in _FALLING)
        falls = falls or name.rpartition("_")[2] in _FALLING_NAMES
        if not falls and not any(part in name for part in _GROWING):
            close = nearest(name, _USUAL)
            meant = "" if close is None else self.monitor.replace(name, close)
            hint = f"; did you mean {meant!r}? Otherwise" if meant else ";"
            raise ValueError(
                f"{type(self).__name__}: the name {self.monitor!r} does not say whether a larger "
                f"value is better{hint} give mode='max' or mode='min'"
            )
        return not falls

    @property
    def worst(self) -> float:
        """A value that every other one improves on."""
        return -math.inf if self.larger_is_better else math.inf

    def value(self, logs: dict[str, float]) -> float | None:
        """Return the value; ``None`` in an epoch without validation.

        Raises
        ------
        ValueError
            If no epoch has such a value. With a model's own training steps, it is a warning.
        """
        found = logs.get(self.monitor)
        known = self.measured or ()
        if found is None and self.monitor not in known:
            if "val_*" in known and self.monitor.startswith("val_"):
                return None
            there = {**dict.fromkeys(x for x in known if x != "val_*"), **logs}
            close = nearest(self.monitor, there)
            hint = "; there" if close is None else f"; did you mean {close!r}? There"
            told = f"{type(self).__name__}: there is no {self.monitor!r}{hint} are "
            told += ", ".join(there)
            if not self.own_steps:
                raise ValueError(told)
            warn_user(f"{told}; it does nothing", UserWarning)
        return found

    def better(self, value: float, best: float) -> bool:
        """Return whether a value improves on the best one by more than ``min_delta``."""
        if self.larger_is_better:
            return value - self.min_delta > best
        return value + self.min_delta < best


class LambdaCallback(Callback):
    """A callback made from functions.

    Parameters
    ----------
    on_epoch_begin, on_epoch_end, on_train_begin, on_train_end
        Functions for the events; ``None``, the default, does nothing.
    on_train_batch_begin, on_train_batch_end
        Functions for the beginning and the end of each training step, likewise.

    Raises
    ------
    TypeError
        If an argument is neither a function nor ``None``.

    Examples
    --------
    >>> callback = gt.training.LambdaCallback(on_epoch_end=lambda epoch, logs: print(epoch))
    >>> callback.on_epoch_end(3, {})
    3
    """

    def __init__(
        self,
        on_epoch_begin: Callable[..., Any] | None = None,
        on_epoch_end: Callable[..., Any] | None = None,
        on_train_begin: Callable[..., Any] | None = None,
        on_train_end: Callable[..., Any] | None = None,
        *,
        on_train_batch_begin: Callable[..., Any] | None = None,
        on_train_batch_end: Callable[..., Any] | None = None,
    ) -> None:
        given = {
            "on_epoch_begin": on_epoch_begin,
            "on_epoch_end": on_epoch_end,
            "on_train_begin": on_train_begin,
            "on_train_end": on_train_end,
            "on_train_batch_begin": on_train_batch_begin,
            "on_train_batch_end": on_train_batch_end,
        }
        for event, function in given.items():
            if function is None:
                continue
            if not callable(function):
                raise TypeError(f"LambdaCallback: {event} is a function, got {function!r}")
            vars(self)[event] = function
