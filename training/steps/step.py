"""``Step``: a step of training or evaluation, compiled if that is worthwhile and correct."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ...core.errors import TraceError
from ...core.extend import ConcreteFunction, flatten, function, pack_like, structure, to_numpy
from .constants import Constant, differing, put_back

__all__ = ["MODES", "Step"]

MODES = ("auto", True, False)
#: The number of steps of one shape that are worth a trace; and, where that number is unknown, the
#: number of steps after which the step is traced.
_WORTH, _PATIENCE = 64, 32
#: The divisor of both for steps with recurrent loops, which gain most from a trace.
_QUICKER = 4


class Step:
    """A function of a batch, run as Python or as a graph for each shape.

    Parameters
    ----------
    step
        A function of the parts of a batch and of ``look=``. It returns a tuple that begins with the
        loss.
    mode
        ``"auto"`` runs a graph for shapes that occur often enough, ``True`` always or raises, and
        ``False`` never.
    what
        The name of the step in messages.
    variables
        A function that returns the variables that a step may change.
    attributes
        A function that returns the values that a trace takes from Python objects, by name.
    loops
        Whether the step has recurrent loops, which gain most from a trace.
    everything
        Whether to check a trace by everything that the step returns, instead of the loss.
    """

    def __init__(
        self,
        step: Callable[..., Any],
        mode: Any,
        what: str,
        variables: Callable[[], Iterable[Any]],
        attributes: Callable[[], dict[str, Constant]],
        loops: bool = False,
        everything: bool = False,
    ) -> None:
        self.step, self.mode, self.what = step, mode, what
        self._variables, self._attributes = variables, attributes
        self._share = _QUICKER if loops else 1
        self._everything = everything
        self._ready: dict[Any, ConcreteFunction] = {}
        self._traced_with: dict[str, Constant] = {}
        self._served = 0
        #: The number of batches of each size to expect, if known.
        self.expected: Mapping[int, int] | None = None
        #: The examples of a batch on all ranks, and how ranks share it; None for one process.
        self.size: int | None = None
        self.layout: Any = None
        #: The number of batches of each shape so far, used where ``expected`` is unknown.
        self.met: dict[Any, int] = {}
        self.refused = mode is False

    def __call__(self, batch: tuple[Any, ...], look: Any = None) -> Any:
        """Return the step's result for a batch; only a step in Python gets ``look``."""
        if self.refused:
            return self.step(*batch, look=look)
        leaves = flatten(batch)
        shapes = [(x.array.shape, x.array.dtype) for x in leaves]
        key = (structure(batch), self.layout, *shapes)
        known = self._ready.get(key)
        if known is not None and known.of_other_plugins:
            self._ready, known = {}, None
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
        if self.size is not None:  # the same on all ranks: all compile, or none
            key = (key[0], self.size, *[(x.array.shape[1:], x.array.dtype) for x in leaves])
        told = repr(key)
        self.met[told] = self.met.get(told, 0) + 1
        return self.met[told] > _PATIENCE // self._share

    def _first(self, key: Any, batch: tuple[Any, ...], leaves: list[Any], look: Any) -> Any:
        """Trace the step for a shape; keep the graph if its loss is the same as in Python."""
        before = self._attributes()
        try:
            traced = function(lambda *given: self.step(*pack_like(batch, list(given)), look=None))
            concrete = traced.get_concrete_function(*leaves)
        except Exception as error:
            put_back(before, self._attributes())
            self._refuse(str(error).partition("\n")[0], error)
            return self.step(*batch, look=look)
        held = {v: v.array for v in (*concrete.graph.variables, *self._variables())}

        def back() -> None:
            for variable, array in held.items():
                variable.set_array(array)

        expected = self.step(*batch, look=look)
        back()
        after = self._attributes()
        changed = differing(before, after)
        if changed:
            put_back(before, after)  # counters that count both runs
            self._refuse(f"it changes {changed}, which a graph would not do in each step")
            return self.step(*batch)
        found = concrete.call_flat(leaves)
        told = self._differ(found, expected)
        if told:
            self._refuse(
                f"{told}: something in the step differs from run to run, such as random numbers of "
                "NumPy; draw them with gt.random"
            )
            back()
            return self.step(*batch)
        self._ready[key] = concrete
        self._traced_with = before
        return found

    def _differ(self, found: Any, expected: Any) -> str:
        """Return how a trace's result differs from Python's; an empty text if it does not."""
        if self._everything:
            pairs = zip(flatten(found), flatten(expected), strict=True)
            alike = all(_close(a, b) for a, b in pairs)
            return "" if alike else "its trace returns another result than Python"
        a, b = found[0], expected[0]
        if _close(a, b):
            return ""
        return f"the loss of its trace is {float(a):.6g}, but {float(b):.6g} in Python"

    def revise(self) -> None:
        """Drop the graphs if the values that they took from Python objects have changed."""
        if not self._ready:
            return
        changed = differing(self._traced_with, self._attributes())
        if not changed and not any(x.outdated for x in self._ready.values()):
            return
        if changed and self.mode == "auto" and self._served < _WORTH:
            self._refuse(f"{changed} changes too often in the run")
        self._ready, self._served = {}, 0

    def _refuse(self, reason: str, error: Exception | None = None) -> None:
        message = f"the {self.what} step cannot be compiled: {reason}"
        if self.mode is True:
            raise TraceError(f"{message}; compile='auto' runs it in Python") from error
        self.refused = True
        warnings.warn(
            f"{message}. It runs in Python, which is slower; set compile=False to do so silently",
            stacklevel=2,
        )


def _close(a: Any, b: Any) -> bool:
    """Return whether two tensors are equal up to rounding, relative to their largest elements."""
    x, y = (np.asarray(to_numpy(v.array)) for v in (a, b))
    if y.dtype.kind not in "fc":
        return bool(np.array_equal(x, y))
    tolerance = 5e-2 if y.itemsize < 4 else 1e-3
    size = float(np.max(np.abs(y), initial=0.0, where=np.isfinite(y)))
    return bool(np.allclose(x, y, rtol=0, atol=tolerance * size + 1e-6, equal_nan=True))
