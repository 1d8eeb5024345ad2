"""``Traces``: those that a function keeps, and a warning that says what makes them many."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from threading import RLock
from typing import Any

from ..base.spec import TensorSpec
from ..base.tree import flatten, sorted_keys
from .concrete import ConcreteFunction

__all__ = ["MAX_TRACES", "Traces"]

#: How many traces a function keeps by default.
MAX_TRACES = 128
# With so many a warning tells which argument makes them.
_MANY = 32
# How many shapes of arguments are known by heart; a trace may serve any number of them.
_MOST_SHAPES = 1024
# Held while traces come and go; one for all, so that functions can be copied.
_LOCK = RLock()


class Traces:
    """The traces of one function: up to ``limit``, and those that were asked for.

    Parameters
    ----------
    name
        The function's name, for the warning.
    limit
        How many of those made by calls are kept; ``None`` for all. Of the oldest, one that was not
        called again since it was looked at last goes first.
    """

    def __init__(self, name: str, limit: int | None) -> None:
        self.name, self.limit = name, limit
        self.by_key: dict[Any, ConcreteFunction] = {}
        #: By the shapes and dtypes of calls with tensors alone, which are the most.
        self.quick: dict[Any, ConcreteFunction] = {}
        self._asked_for: set[Any] = set()
        self._seen: list[Any] | None = []  # the keys so far, until the warning

    def ask_for(self, key: Any, concrete: ConcreteFunction) -> None:
        """Keep a trace whatever comes."""
        with _LOCK:
            self.by_key[key] = concrete
            self._asked_for.add(key)

    def add(self, key: Any, concrete: ConcreteFunction, call: Any, names: Sequence[str]) -> None:
        """Keep a trace that a call has made, of ``call = (args, kwargs)`` with positional names."""
        with _LOCK:
            self.by_key[key] = concrete
            if self.limit is not None and len(self.by_key) - len(self._asked_for) > self.limit:
                self._drop(key)
            if self._seen is None:
                return
            self._seen.append(key)
            if len(self._seen) < _MANY:
                return
            seen, self._seen = self._seen, None
        warnings.warn(_many(self.name, seen, list(_labels(call, names))), stacklevel=4)

    def remember(self, shapes: Any, concrete: ConcreteFunction) -> None:
        """Find a trace by the shapes and dtypes of its arguments from now on."""
        if len(self.quick) >= _MOST_SHAPES:
            self.quick = {}
        self.quick[shapes] = concrete

    def _drop(self, newest: Any) -> None:
        old = [key for key in self.by_key if key not in self._asked_for and key != newest]
        for key in old:
            concrete = self.by_key[key]
            if not concrete.called_again:
                break
            concrete.called_again = False
            self.by_key[key] = self.by_key.pop(key)  # the newest but one
        else:
            key = old[0] if old else newest
        dropped = self.by_key.pop(key)
        self.quick = {shapes: c for shapes, c in self.quick.items() if c is not dropped}


def _labels(call: Any, names: Sequence[str]) -> Iterator[str]:
    """Yield what each leaf of a call's arguments is called."""
    args, kwargs = call
    named = [(names[i] if i < len(names) else None, x) for i, x in enumerate(args)]
    named += [(key, kwargs[key]) for key in sorted_keys(kwargs)]
    for i, (name, x) in enumerate(named):
        yield from [f"argument {i}" if name is None else f"argument {name!r}"] * len(flatten(x))


def _many(name: str, keys: list[Any], labels: list[str]) -> str:
    """Say what makes a function's traces many, and what to write instead."""
    begin = f"function {name!r} was traced {len(keys)} times: "
    structures: dict[Any, list[Any]] = {}
    for tree, leaves in keys:
        structures.setdefault(tree, []).append(leaves)
    alike = structures[keys[-1][0]]  # those that the labels are for
    columns = [list(dict.fromkeys(column)) for column in zip(*alike, strict=True)]
    place = max(range(len(columns)), key=lambda i: len(columns[i]), default=None)
    if place is None or len(columns[place]) < len(structures):
        return (
            f"{begin}its arguments came in {len(structures)} structures (containers of other "
            "lengths, keys or types), and each makes a trace; stack lists of tensors into one "
            "tensor (gradtape.stack)"
        )
    label, values = labels[place], columns[place]
    begin += f"{label} came "
    last = values[-1]
    if isinstance(last, str) or last[0] in (int, complex):
        shown = last if isinstance(last, str) else repr(last[1])
        return (
            f"{begin}as {len(values)} Python numbers (last {shown}), and each makes a trace; pass "
            f"a tensor, gradtape.constant({shown}), which makes one trace for all"
        )
    if isinstance(last[0], type):
        return (
            f"{begin}as {len(values)} Python values (last one of type {last[0].__name__}), and "
            "each makes a trace; pass the same object each time, numbers as a tensor, or make a "
            "function for each"
        )
    spec = _common(values)
    return (
        f"{begin}in {len(values)} shapes or dtypes (last {last[0]} {last[1]}), and each makes a "
        f"trace; make one for all with input_signature=[...], in it {spec!r} for {label}"
    )


def _common(values: list[Any]) -> TensorSpec:
    """Return the spec of the last dtype that takes every shape."""
    shapes, dtype = [shape for shape, _ in values], values[-1][1]
    if any(shape is None for shape in shapes) or len(set(map(len, shapes))) > 1:
        return TensorSpec(None, dtype)
    sizes = zip(*shapes, strict=True)
    return TensorSpec([n[0] if len(set(n)) == 1 else None for n in sizes], dtype)
