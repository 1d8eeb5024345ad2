"""The parts of the loop over epochs: a session, callbacks, and a history."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any

import numpy as np

from ...core.extend import Module, flatten, hinted, warn_user
from ..callbacks.callback import Callback
from .callback_state import Snapshot, load_attributes, shared_attributes

__all__ = ["Callbacks", "History", "Session"]

#: The events, with the number of arguments of each. Methods that take one more, as Keras's
#: callbacks do, get an empty dictionary of values.
_EVENTS = {
    "on_train_begin": 0,
    "on_epoch_begin": 1,
    "on_train_batch_begin": 1,
    "on_train_batch_end": 2,
    "on_test_begin": 0,
    "on_test_batch_begin": 1,
    "on_test_batch_end": 1,
    "on_test_end": 1,
    "on_epoch_end": 2,
    "on_train_end": 0,
}
#: Keras's older names of events, for callbacks without a method of the newer name.
_OLDER = {"on_train_batch_begin": "on_batch_begin", "on_train_batch_end": "on_batch_end"}


def _never_called(callback: Any) -> list[str]:
    """Return the methods whose names look like events, but are misspelt or of other libraries."""
    known = {*_EVENTS, *_OLDER.values()}
    return [
        name
        for cls in reversed(type(callback).__mro__)
        for name, value in vars(cls).items()
        if name.startswith("on_") and name not in known and callable(value)
    ]


class Session:
    """Base class of objects that train something, one batch at a time."""

    #: What is trained.
    model: Any
    #: The names of the values, if they are known before an epoch.
    names: tuple[str, ...] = ()
    #: Whether the model's own steps return the values, whose names are then unknown.
    own_steps = False

    def prepare(self, batch: Any) -> None:
        """Create, with a batch, all variables of the training; a file's values go into them."""
        raise NotImplementedError

    def trackables(self) -> dict[str, Any]:
        """Return the objects that a checkpoint keeps, by name."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """Return the state of the epoch: plain values."""
        return {}

    def load(self, state: dict[str, Any]) -> None:
        """Continue within an epoch in this state."""

    def begin_epoch(self) -> None:
        """Prepare for an epoch, before its first batch."""

    def train(self, batch: Any) -> dict[str, float]:
        """Train on a batch; return the values of the epoch so far."""
        raise NotImplementedError

    def settle(self) -> None:
        """Finish the training steps of an epoch, before validation and checkpoints."""

    def ahead(self, batches: Iterable[Any], early: bool) -> Iterable[Any]:
        """Return the batches to train on, perhaps copied to the model's device.

        Parameters
        ----------
        batches
            The batches of the data.
        early
            Whether a batch may be read during the step on the previous one.
        """
        return batches

    def evaluate(
        self, batches: Iterable[Any], stop: Callable[[], bool] = lambda: False
    ) -> dict[str, float]:
        """Return the values of these batches at inference; end early if ``stop()``."""
        raise NotImplementedError

    def finish(self) -> None:
        """Finish the run, after its last epoch."""

    def restore(self) -> None:
        """Restore the beginning of the epoch, if possible, after an exception."""


class History:
    """The values of a training run.

    Attributes
    ----------
    history : dict of str to list of float
        One value per finished epoch for ``"loss"`` and each metric; with validation data, also for
        each of these names prefixed with ``"val_"``.
    epoch : list of int
        The finished epochs, counted from 0.
    epochs_of : dict of str to list of int
        The epochs in which each value was measured. With ``validation_freq``, these may not be all.
    params : dict
        The settings of the run: ``"epochs"``, ``"steps"`` (None if unknown) and ``"verbose"``.
    interrupted : bool
        Whether Ctrl-C ended the run.

    Examples
    --------
    >>> history = gt.training.History()
    >>> history.append(0, {"loss": 0.5})
    >>> history.history
    {'loss': [0.5]}
    """

    def __init__(self) -> None:
        self.params: dict[str, Any] = {}
        self.history: dict[str, list[float]] = {}
        self.epoch: list[int] = []
        self.epochs_of: dict[str, list[int]] = {}
        self.interrupted = False

    def append(self, epoch: int, logs: dict[str, float]) -> None:
        """Add the values of an epoch."""
        self.epoch.append(epoch)
        for name, value in logs.items():
            self.history.setdefault(name, []).append(value)
            self.epochs_of.setdefault(name, []).append(epoch)

    def __repr__(self) -> str:
        last = ", ".join(f"{name}={values[-1]:.4g}" for name, values in self.history.items())
        stopped = ", interrupted" if self.interrupted else ""
        return f"<History of {len(self.epoch)} epochs{stopped}{': ' if last else ''}{last}>"


hinted(History, "training.History")


class Callbacks:
    """Callbacks, by the events that they handle.

    Parameters
    ----------
    callbacks
        Functions of an epoch and its values, or objects with methods named after events.
    stored
        Whether checkpoints keep their state.

    Raises
    ------
    TypeError
        If a callback is neither.

    Attributes
    ----------
    stopped : bool
        Whether a callback asked to stop: it returned ``True`` for an epoch, set the model's
        ``stop_training``, or called ``_ask_to_stop``.
    """

    def __init__(self, callbacks: Iterable[Any], stored: bool = False) -> None:
        self.stopped, self._stored = False, stored
        self._model: Any = None
        self._kept: list[Any] = []
        #: With their attributes before the first epoch.
        self._objects: list[tuple[Any, Snapshot]] = []
        self.by_event: dict[str, list[Callable[..., Any]]] = {event: [] for event in _EVENTS}
        for callback in callbacks:
            if isinstance(callback, type) and not _is_namespace(callback):
                raise TypeError(
                    f"fit: a callback is the class {callback.__name__}; pass an object: "
                    f"{callback.__name__}(...)"
                )
            methods = {event: _method(callback, event) for event in _EVENTS}
            if not any(methods.values()):
                if not callable(callback):
                    raise TypeError(
                        "fit: a callback must be a function, or have one of the methods "
                        f"{', '.join(_EVENTS)}, got {callback!r}"
                    )
                methods["on_epoch_end"] = callback
            for event, method in methods.items():
                if method is not None:
                    self.by_event[event].append(_with_argument_count(method, _EVENTS[event]))
            waiting = _never_called(callback)
            if waiting:
                warn_user(
                    f"fit: {type(callback).__name__} has {', '.join(waiting)}, which fit never "
                    f"calls; it calls {', '.join(_EVENTS)}",
                    UserWarning,
                )
            if not isinstance(callback, FunctionType):
                self._objects.append((callback, Snapshot(callback)))

    def attach(
        self,
        session: Session,
        measured: Iterable[str] | None = None,
        params: dict[str, Any] | None = None,
    ) -> None:
        """Set the attributes ``model`` and ``optimizer`` of callbacks that have them.

        ``measured`` holds the names of the values, if they are known; ``params`` the settings.
        """
        self._model = getattr(session, "model", None)
        self._kept = flatten(session.trackables()) if self._stored else []
        if self._model is not None:  # from an earlier run, or a loop that you write
            vars(self._model).pop("stop_training", None)
        for callback, _ in self._objects:
            _requests_stop(callback)
            if hasattr(type(callback), "measured"):
                callback.measured = None if measured is None else tuple(measured)
            if hasattr(type(callback), "params"):
                callback.params = params or {}
            for name in ("model", "optimizer", "own_steps"):
                if hasattr(type(callback), name) and hasattr(session, name):
                    setattr(callback, name, getattr(session, name))

    def objects(self) -> list[Any]:
        """Return the callbacks that are not plain functions."""
        return [callback for callback, _ in self._objects]

    def notify(self, event: str, *arguments: Any) -> bool:
        """Call the callbacks for an event; return whether one has asked to stop."""
        answers = [listener(*arguments) for listener in self.by_event[event]]  # all are called
        if event == "on_train_begin":  # what it made belongs to this run: paths, times, settings
            self._objects = [(x, self._snapshot(x)) for x, _ in self._objects]
        # comparisons with NumPy's numbers give NumPy's booleans
        yes = [isinstance(answer, (bool, np.bool_)) and bool(answer) for answer in answers]
        asked = event == "on_epoch_end" and any(yes)
        # removed again, because attributes that change during a run prevent compilation
        if answers and bool(vars(self._model).pop("stop_training", False)):
            asked = True
        for callback, _ in self._objects if answers else ():
            asked = _requests_stop(callback) or asked
        self.stopped = self.stopped or asked
        return self.stopped

    def _snapshot(self, callback: Any) -> Snapshot:
        whole = self._stored and not _has_state(callback)
        return Snapshot(callback, whole, self._stored_elsewhere() if whole else ())

    def _stored_elsewhere(self) -> set[int]:
        """Return the ids of the objects that a checkpoint of the run keeps."""
        found = {id(callback) for callback, _ in self._objects}
        for kept in self._kept:
            found.add(id(kept))
            if isinstance(kept, Module):
                found.update(map(id, (*kept.submodules, *kept.variables)))
        return found

    def around(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the batches of a validation, and call the callbacks around each."""
        listeners = (self.by_event["on_test_batch_begin"], self.by_event["on_test_batch_end"])
        if not any(listeners):
            yield from batches
            return
        for i, batch in enumerate(batches):
            self.notify("on_test_batch_begin", i)
            yield batch
            self.notify("on_test_batch_end", i)

    def states(self) -> list[dict[str, Any]]:
        """Return the state of each callback that is an object.

        This is the result of its ``state_dict``. Without that method, it is its plain attributes:
        those after ``on_train_begin``, and the current ones, with arrays that have changed.
        """
        found, stored = [], self._stored_elsewhere()
        for callback, given in self._objects:
            if _has_state(callback):
                state = callback.state_dict()
            else:
                now = {**Snapshot(callback).plain, **given.changed(callback, stored)}
                state = {"given": given.plain, "now": now, "same": shared_attributes(callback, now)}
            found.append({"type": type(callback).__qualname__, "state": state})
        return found

    def load(self, states: Iterable[dict[str, Any]]) -> None:
        """Restore states; those of callbacks of one class, in their order."""
        waiting = list(self._objects)
        for record in states:
            of_class = (x for x in waiting if type(x[0]).__qualname__ == record["type"])
            place = next(of_class, None)
            if place is None:
                continue
            waiting = [x for x in waiting if x is not place]
            callback, given = place
            state = record["state"]
            if _has_state(callback):
                callback.load_state_dict(state)
                continue
            load_attributes(callback, state, given.plain)


def _requests_stop(callback: Any) -> bool:
    """Return whether a callback of gradtape asks to stop; the next call returns false."""
    return isinstance(callback, Callback) and bool(vars(callback).pop("_asks_to_stop", False))


def _is_namespace(kind: type) -> bool:
    """Return whether a class handles events itself, with static methods or class methods."""
    found = [inspect.getattr_static(kind, event, None) for event in _EVENTS]
    held = [x for x in found if x is not None]
    return bool(held) and all(isinstance(x, (staticmethod, classmethod)) for x in held)


def _method(callback: Any, event: str) -> Any:
    """Return a callback's method for an event, under either of its names; None without one."""
    method, older = (getattr(callback, name, None) for name in (event, _OLDER.get(event, event)))
    base = getattr(Callback, event)
    return older if method is None or getattr(method, "__func__", None) is base else method


def _with_argument_count(method: Callable[..., Any], count: int) -> Callable[..., Any]:
    """Return a method that takes ``count`` arguments; Keras's take ``logs`` as one more."""
    try:
        signature = inspect.signature(method)
        signature.bind(*range(count))
    except ValueError:  # not written in Python
        return method
    except TypeError:
        with contextlib.suppress(TypeError):
            signature.bind(*range(count + 1))
            return lambda *given: method(*given, {})
    return method


def _has_state(callback: Any) -> bool:
    return all(callable(getattr(callback, x, None)) for x in ("state_dict", "load_state_dict"))
