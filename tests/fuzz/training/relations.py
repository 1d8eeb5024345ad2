"""Relations: what must hold for every model, and the random programs that check them."""

from __future__ import annotations

import collections
import io
import os
import random
import re
import tempfile
import traceback
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

import gradtape as gt
from fuzz.training import parts

__all__ = [
    "RELATIONS",
    "Line",
    "Pairs",
    "Program",
    "Relation",
    "differs",
    "held",
    "hold",
    "reduced",
    "relation",
    "shown",
    "tensorflow",
]

#: What a relation yields: what is compared, the value, and the value that it must equal.
Pairs = Iterator[tuple[Any, ...]]

#: Relations by ``"class.name"``; :func:`relation` adds to it.
RELATIONS: dict[str, Relation] = {}

#: Errors that are never clear ones.
_RAW = (AssertionError, AttributeError, IndexError, KeyError, RecursionError, UnboundLocalError)
_PACKAGE = Path(gt.__file__).parent


class Line(NamedTuple):
    """The expression of a program's line, in which ``ITEMS`` stands for a list of expressions."""

    text: str
    items: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text.replace("ITEMS", ", ".join(self.items))

    def simpler(self) -> Iterator[Line]:
        """Give lines with fewer items, then with fewer options in them."""
        for i in range(len(self.items)):
            yield self._replace(items=self.items[:i] + self.items[i + 1 :])
        for i, item in enumerate(self.items):
            for option in _OPTION.finditer(item):
                shorter = item[: option.start()] + item[option.end() :]
                yield self._replace(items=(*self.items[:i], shorter, *self.items[i + 1 :]))


_OPTION = re.compile(r", \w+=[\w.'-]+(\([^()]*\))?(?=[,)])")


class Program(NamedTuple):
    """Lines ``name = expression`` that make a model, data and settings."""

    lines: Mapping[str, Line]

    def __str__(self) -> str:
        return "\n".join(f"{name} = {line}" for name, line in self.lines.items())

    def run(self) -> SimpleNamespace:
        """Return the objects by name."""
        scope = {**vars(parts), "collections": collections, "types": types}
        if "tf." in str(self):
            scope["tf"] = tensorflow()
        exec(compile(str(self), "<program>", "exec"), scope)
        return SimpleNamespace(**{name: scope[name] for name in self.lines})

    def simpler(self) -> Iterator[Program]:
        """Give programs in which one line is simpler."""
        for name, line in self.lines.items():
            for other in line.simpler():
                yield Program({**self.lines, name: other})


def tensorflow() -> Any:
    """Return ``gradtape.compat.tensorflow``, which is above this package."""
    return import_module("gradtape.compat.tensorflow")


class Relation(NamedTuple):
    """A relation: programs are drawn by ``draw``, and ``check`` yields what must be equal."""

    name: str
    draw: Callable[[random.Random], Program]
    check: Callable[[Any], Pairs]
    exact: bool

    @property
    def kind(self) -> str:
        """The class of the relation."""
        return self.name.partition(".")[0]

    def drawn(self, seed: int) -> Program:
        """Draw a program; other relations do not change it."""
        return self.draw(random.Random(f"{self.name} {seed}"))


def relation(
    kind: str,
    draw: Callable[[random.Random], Program],
    *,
    exact: bool = False,
    name: str | None = None,
) -> Callable[[Callable[[Any], Pairs]], Callable[[Any], Pairs]]:
    """Return a decorator that registers a function of a program's objects as a relation.

    Parameters
    ----------
    kind
        The class of the relation.
    draw
        A function of a random generator that returns a :class:`Program`.
    exact
        Whether values must be identical, types included; otherwise they may differ by rounding.
    name
        The relation's name, that of the function by default.
    """

    def register(check: Callable[[Any], Pairs]) -> Callable[[Any], Pairs]:
        whole = f"{kind}.{name or check.__name__}"
        RELATIONS[whole] = Relation(whole, draw, check, exact)
        return check

    return register


# -- holding a program to a relation ---------------------------------------------------------------


def held(kept: Relation, program: Program) -> tuple[str, str]:
    """Return ``"held"``, ``"refused"``, ``"empty"`` or ``"off"``, and the message.

    A relation holds if all pairs are equal. ``"refused"`` means that gradtape raised a clear error,
    and ``"empty"`` that there was nothing to compare.
    """
    with (
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
        tempfile.TemporaryDirectory() as folder,
        chdir(folder),
        redirect_stdout(io.StringIO()),
        redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        gt.random.set_seed(0)
        count = 0
        try:
            for what, got, want in kept.check(program.run()):
                count += 1
                said = differs(got, want, kept.exact)
                if said:
                    return "off", f"{what}: {said}"
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            return ("refused", said) if _is_clear(error) else ("off", said + _place(error))
    return ("held" if count else "empty"), ""


def _is_clear(error: Exception) -> bool:
    """Return whether one of gradtape's ``raise`` statements made the error."""
    if isinstance(error, gt.errors.GradtapeError):
        return not isinstance(error, gt.saving.LoadError)  # files are refused when they are written
    last = traceback.extract_tb(error.__traceback__)[-1]
    own = _PACKAGE in Path(last.filename).parents
    return own and not isinstance(error, _RAW) and (last.line or "").lstrip().startswith("raise")


def _place(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f" ({os.path.basename(last.filename)}, line {last.lineno}: {last.line})"


def differs(got: Any, want: Any, exact: bool = False) -> str:
    """Return how two nested values differ; an empty text if they do not."""
    got, want = (x.numpy() if isinstance(x, (gt.Tensor, gt.Variable)) else x for x in (got, want))
    if exact and type(got) is not type(want) and not _are_numbers(got, want):
        return f"{got!r} for {want!r}"
    if isinstance(want, types.SimpleNamespace) and type(got) is type(want):
        got, want = vars(got), vars(want)
    if isinstance(want, Mapping):
        return _items_differ(got, want, exact)
    if isinstance(want, (list, tuple, collections.deque)):
        if not isinstance(got, (list, tuple, collections.deque)) or len(got) != len(want):
            return f"{got!r} for {want!r}"
        found = ((i, differs(a, b, exact)) for i, (a, b) in enumerate(zip(got, want, strict=True)))
        return next((f"[{i}] {said}" for i, said in found if said), "")
    if not isinstance(want, (int, float, complex, np.ndarray, np.generic)):
        return "" if got == want else f"{got!r} for {want!r}"
    mine, right = np.asarray(got), np.asarray(want)
    if mine.shape != right.shape or (exact and mine.dtype.kind != right.dtype.kind):
        return f"{_short(got)} for {_short(want)}"
    if right.dtype.kind not in "biufc":
        return "" if np.array_equal(mine, right) else f"{_short(got)} for {_short(want)}"
    scale = max(1.0, float(np.abs(right[np.isfinite(right)]).max(initial=0.0)))
    near = 0.0 if exact else 2e-4 * scale
    same = np.allclose(mine, right, 0.0, near, equal_nan=True)
    return "" if same else f"{_short(got)} for {_short(want)}"


def _are_numbers(got: Any, want: Any) -> bool:
    """Return whether both are numbers of one kind, of Python or NumPy."""
    found = [np.asarray(x) for x in (got, want) if isinstance(x, (int, float, complex, np.generic))]
    return len(found) == 2 and found[0].dtype.kind == found[1].dtype.kind


def _items_differ(got: Any, want: Mapping[Any, Any], exact: bool) -> str:
    if not isinstance(got, Mapping) or not _same_keys(list(got), list(want)):
        return f"keys {list(got) if isinstance(got, Mapping) else got!r} for {list(want)}"
    found = ((key, differs(got[key], value, exact)) for key, value in want.items())
    return next((f"[{key!r}] {said}" for key, said in found if said), "")


def _same_keys(got: list[Any], want: list[Any]) -> bool:
    """Return whether keys are equal and of the same type, be it Python's or NumPy's."""
    kinds = [
        [type(key.item() if isinstance(key, np.generic) else key) for key in keys]
        for keys in (got, want)
    ]
    return got == want and kinds[0] == kinds[1]


def _short(value: Any) -> str:
    found = value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
    return re.sub(r"(\d\.\d{6})\d+", r"\1", str(found))[:160]


def reduced(kept: Relation, program: Program, rounds: int = 60) -> Program:
    """Return the smallest program found that is off in the same way."""
    kind = _kind(held(kept, program)[1])
    tried, smaller = 0, True
    while smaller and tried < rounds:
        smaller = False
        for other in program.simpler():
            tried += 1
            outcome, said = held(kept, other)
            if outcome == "off" and _kind(said) == kind:
                program, smaller = other, True
                break
    return program


def _kind(said: str) -> str:
    """Return the part of a message that does not depend on values."""
    return re.sub(r"\d+", "", said.partition(":")[0])


def shown(kept: Relation, program: Program) -> str:
    """Return a program that can be pasted, and prints whether the relation holds."""
    start = "from fuzz.training import hold"
    return f'{start}\n\nprint(hold("{kept.name}", """\n{program}\n"""))'


def hold(name: str, text: str) -> tuple[str, str]:
    """Hold the program of a text, with lines ``name = expression``, to the relation of a name.

    Returns
    -------
    What :func:`held` returns.
    """
    pairs = (line.split(" = ", 1) for line in text.strip().splitlines())
    return held(RELATIONS[name], Program({left: Line(right) for left, right in pairs}))
