"""``Callback``: what is told of the events of a training."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

__all__ = ["Callback", "LambdaCallback"]


class Callback:
    """Base class: define any of the methods; one that returns ``True`` at an epoch's end stops.

    Attributes
    ----------
    model
        The model that is trained, set before the training begins.
    optimizer
        Its optimizer.

    Examples
    --------
    >>> class Counter(gt.training.Callback):
    ...     epochs = 0
    ...     def on_epoch_end(self, epoch, logs):
    ...         self.epochs += 1
    >>> Counter().epochs
    0
    """

    model: Any = None
    optimizer: Any = None
    #: The names of the values of an epoch with validation, where they are known before; ``val_*``
    #: for names of validation that are not.
    measured: tuple[str, ...] | None = None

    def on_train_begin(self) -> None:
        """Be told that the training begins."""

    def on_epoch_begin(self, epoch: int) -> None:
        """Be told that an epoch begins."""

    def on_train_batch_begin(self, batch: int) -> None:
        """Be told that a batch is trained on next."""

    def on_train_batch_end(self, batch: int, logs: dict[str, float]) -> None:
        """Be told that a batch was trained on, and the means over the epoch so far."""

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> bool | None:
        """Be told what an epoch measured; return ``True`` to stop."""
        return None

    def on_train_end(self) -> None:
        """Be told that the training has ended."""


#: Parts of the names of values that are to grow, and of those that are to fall, which come first.
_GROWING = (
    "acc auc precision recall score io_u top_k similarity sensitivity specificity true_".split()
)
_FALLING = (
    "loss error entropy hinge divergence log_cosh logcosh false_ poisson huber perplexity".split()
)
_FALLING_NAMES = "mse mae rmse msle mape kld dice tversky".split()


class Watching(Callback):
    """What watches one value for getting better."""

    #: The attributes that a resumed training needs.
    kept: ClassVar[tuple[str, ...]] = ()

    def __init__(self, monitor: str, mode: str, min_delta: float = 0.0) -> None:
        kind = type(self).__name__
        if mode not in ("auto", "min", "max"):
            raise ValueError(f"{kind}: mode must be 'auto', 'min' or 'max', got {mode!r}")
        self.monitor, self.mode = str(monitor), mode
        self.min_delta = abs(float(min_delta))
        self._resumed = False

    def begin(self) -> None:
        """Forget an earlier training."""

    def on_train_begin(self) -> None:
        """Forget an earlier training, unless this one goes on with it."""
        if not self._resumed:
            self.begin()

    def on_train_end(self) -> None:
        """Be told that the training has ended: another one begins anew."""
        self._resumed = False

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed training needs."""
        return {name: getattr(self, name) for name in self.kept}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._resumed = True
        vars(self).update({name: state[name] for name in self.kept})

    @property
    def larger_is_better(self) -> bool:
        """Whether the value is to grow."""
        if self.mode != "auto":
            return self.mode == "max"
        name = self.monitor.removeprefix("val_")
        falls = any(part in name for part in _FALLING)
        falls = falls or name.rpartition("_")[2] in _FALLING_NAMES
        if not falls and not any(part in name for part in _GROWING):
            raise ValueError(
                f"{type(self).__name__}: the name {self.monitor!r} does not say whether the value "
                "is to grow; give mode='max' or mode='min'"
            )
        return not falls

    @property
    def worst(self) -> float:
        """What any value is better than."""
        return -math.inf if self.larger_is_better else math.inf

    def value(self, logs: dict[str, float]) -> float | None:
        """Return the value; ``None`` in an epoch without validation.

        Raises
        ------
        ValueError
            If no epoch has it.
        """
        found = logs.get(self.monitor)
        known = self.measured or ()
        if found is None and self.monitor not in known:
            if "val_*" in known and self.monitor.startswith("val_"):
                return None
            there = {**dict.fromkeys(x for x in known if x != "val_*"), **logs}
            raise ValueError(
                f"{type(self).__name__}: there is no {self.monitor!r}; there are {', '.join(there)}"
            )
        return found

    def better(self, value: float, best: float) -> bool:
        """Return whether a value is better than the best by more than ``min_delta``."""
        if self.larger_is_better:
            return value - self.min_delta > best
        return value + self.min_delta < best


class LambdaCallback(Callback):
    """A callback of functions.

    Parameters
    ----------
    on_epoch_begin, on_epoch_end, on_train_begin, on_train_end
        Functions for the events; those that are ``None``, the default, do nothing.
    on_train_batch_begin, on_train_batch_end
        As well.

    Raises
    ------
    TypeError
        If one is no function.

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
