"""``Step``: a step of training or of measuring, compiled where that pays and gives the same."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ..core.errors import TraceError
from ..core.extend import ConcreteFunction, flatten, function, pack_like, structure, to_numpy
from .session import is_plain

__all__ = ["MODES", "Step", "attributes_of", "differing"]

MODES = ("auto", True, False)
#: How many steps of one shape make up for a trace, and after how many it is made where their
#: number is not known before.
_WORTH, _PATIENCE = 64, 32
#: By what these are divided where a loop over rows is one op of a trace.
_QUICKER = 4


class Step:
    """A function of a batch, run as Python or as a graph for each shape.

    Parameters
    ----------
    step
        A function of the parts of a batch and of ``look=``; it returns a tuple whose first is the
        loss.
    mode
        ``"auto"``: a graph where a shape comes often enough; ``True``: always, or an error;
        ``False``: never.
    what
        What it is called in messages.
    variables
        A function that returns the variables that a step may change.
    attributes
        A function that returns what a trace takes from Python objects, by name.
    loops
        Whether it has loops over rows, which gain most by a trace.
    everything
        Whether all that the step returns tells that a trace is right, in place of the loss.
    """

    def __init__(
        self,
        step: Callable[..., Any],
        mode: Any,
        what: str,
        variables: Callable[[], Iterable[Any]],
        attributes: Callable[[], dict[str, Any]],
        loops: bool = False,
        everything: bool = False,
    ) -> None:
        self.step, self.mode, self.what = step, mode, what
        self._variables, self._attributes = variables, attributes
        self._share = _QUICKER if loops else 1
        self._everything = everything
        self._ready: dict[Any, ConcreteFunction] = {}
        self._traced_with: dict[str, Any] = {}
        self._served = 0
        #: How often a batch of a size will come, if that is known.
        self.expected: Mapping[int, int] | None = None
        #: How many examples all ranks have of a batch, and how they share it; None for one process.
        self.size: int | None = None
        self.layout: Any = None
        #: How often a shape came, where that is not known.
        self.met: dict[Any, int] = {}
        self.refused = mode is False

    def __call__(self, batch: tuple[Any, ...], look: Any = None) -> Any:
        """Return what the step returns for a batch; ``look`` is handed on to a step in Python."""
        if self.refused:
            return self.step(*batch, look=look)
        leaves = flatten(batch)
        shapes = [(x.array.shape, x.array.dtype) for x in leaves]
        key = (structure(batch), self.layout, *shapes)
        known = self._ready.get(key)
        if known is not None and look is None:
            self._served += 1
            return known.call_flat(leaves)
        if known is None and not self._is_worth(key, leaves):
            return self.step(*batch, look=look)
        return self._first(key, batch, leaves, look)

    def _is_worth(self, key: Any, leaves: list[Any]) -> bool:
        if self.mode is True:
            return True
        if self.expected is not None:
            size = len(leaves[0]) if self.size is None else self.size
            return self.expected.get(size, 0) >= _WORTH // self._share
        if self.size is not None:  # whoever of the ranks asks: all compile, or none
            key = (key[0], self.size, *[(x.array.shape[1:], x.array.dtype) for x in leaves])
        told = repr(key)
        self.met[told] = self.met.get(told, 0) + 1
        return self.met[told] > _PATIENCE // self._share

    def _first(self, key: Any, batch: tuple[Any, ...], leaves: list[Any], look: Any) -> Any:
        """Trace the step for a shape; take the graph if it gives the loss that Python gives."""
        before = self._attributes()
        try:
            traced = function(lambda *given: self.step(*pack_like(batch, list(given)), look=None))
            concrete = traced.get_concrete_function(*leaves)
        except Exception as error:
            self._refuse(str(error).partition("\n")[0], error)
            return self.step(*batch, look=look)
        held = {v: v.array for v in (*concrete.graph.variables, *self._variables())}

        def back() -> None:
            for variable, array in held.items():
                variable.set_array(array)

        expected = self.step(*batch, look=look)
        back()
        changed = differing(before, self._attributes())
        if changed:
            self._refuse(f"it changes {changed}, which a trace would not do in each step")
            return self.step(*batch)
        found = concrete.call_flat(leaves)
        told = self._differ(found, expected)
        if told:
            self._refuse(
                f"{told}: something in it is another each time, as random numbers of NumPy are; "
                "draw them with gt.random"
            )
            back()
            return self.step(*batch)
        self._ready[key] = concrete
        self._traced_with = before
        return found

    def _differ(self, found: Any, expected: Any) -> str:
        """Return how what a trace gave differs from what Python gave; nothing if it does not."""
        if self._everything:
            pairs = zip(flatten(found), flatten(expected), strict=True)
            alike = all(_close(a, b) for a, b in pairs)
            return "" if alike else "what its trace returns differs from what Python returns"
        a, b = found[0], expected[0]
        if _close(a, b):
            return ""
        return f"the loss of its trace is {float(a):.6g}, and {float(b):.6g} in Python"

    def revise(self) -> None:
        """Forget the graphs if what they took from Python objects has changed."""
        if not self._ready:
            return
        changed = differing(self._traced_with, self._attributes())
        if not changed:
            return
        if self.mode == "auto" and self._served < _WORTH:
            self._refuse(f"{changed} changes too often in the run")
        self._ready, self._served = {}, 0

    def _refuse(self, reason: str, error: Exception | None = None) -> None:
        message = f"the {self.what} step cannot be compiled: {reason}"
        if self.mode is True:
            raise TraceError(f"{message}; compile='auto' runs it in Python") from error
        self.refused = True
        warnings.warn(
            f"{message}. It runs in Python, which is slower; compile=False asks for that",
            stacklevel=2,
        )


def attributes_of(modules: Iterable[Any]) -> dict[str, Any]:
    """Return the attributes of modules that a trace takes as they are, in a form to compare."""
    found: dict[str, Any] = {}
    for i, module in enumerate(modules):
        for name, value in vars(module).items():
            if not name.startswith("_gradtape"):
                known = repr(value) if is_plain(value) else id(value)
                found[f"{name!r} of {getattr(module, 'name', 'the loss')!r} ({i})"] = known
    return found


def differing(before: dict[str, Any], after: dict[str, Any]) -> str:
    """Return the first name under which two dicts have different things; nothing if none."""
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return "" if not names else names[0].rpartition(" (")[0]


def _close(a: Any, b: Any) -> bool:
    """Return whether two tensors are one but for rounding, by their largest elements."""
    x, y = (np.asarray(to_numpy(v.array)) for v in (a, b))
    if y.dtype.kind not in "fc":
        return bool(np.array_equal(x, y))
    tolerance = 5e-2 if y.itemsize < 4 else 1e-3
    size = float(np.max(np.abs(y), initial=0.0, where=np.isfinite(y)))
    return bool(np.allclose(x, y, rtol=0, atol=tolerance * size + 1e-6, equal_nan=True))
