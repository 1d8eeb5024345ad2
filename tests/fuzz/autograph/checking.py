"""Runs of a program as plain Python and as a trace: values and two derivatives."""

from __future__ import annotations

import itertools
import linecache
import re
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

import gradtape as gt
from fuzz.autograph.prelude import PRELUDE
from fuzz.autograph.writer import Program

__all__ = ["compared"]

POINTS = np.array([[0.7, -0.45, 0.2], [-0.8, 0.35, 1.1], [0.15, 0.9, -0.25]])
NUMBERS = itertools.count()
# errors that say that a reduced program lacks something
_NO_PROGRAM = ("NameError", "UnboundLocalError", "AttributeError", "TypeError")
_PACKAGE = "gradtape"


class Endless(BaseException):
    """A run takes too long; no ``except`` of a program catches it."""


class Raised:
    """An error of a run."""

    def __init__(self, error: BaseException) -> None:
        self.kind, self.text = _explained(error)
        self.type = type(error).__name__


def compared(program: Program, points: Sequence[int] = (0, 1, 2)) -> tuple[str, str, int]:
    """Return the outcome of a program, what was found, and at which point."""
    try:
        f = _compiled(program.text)
    except SyntaxError as error:
        return "invalid", str(error), 0
    traced = gt.function(f, autograph=True)
    ran = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in points:
            # derivatives take most of the time, and one point shows whether they are right
            slopes = i == points[0]
            wanted = _result(f, POINTS[i], slopes, 2.0 if len(points) > 1 else 0.25)
            if isinstance(wanted, Raised) and (
                wanted.type == "Endless" or (len(points) == 1 and wanted.type in _NO_PROGRAM)
            ):
                return "invalid", wanted.text, i
            found = _result(traced, POINTS[i], slopes)
            if isinstance(found, Raised):
                if isinstance(wanted, Raised):
                    continue
                return found.kind, f"{found.type}: {found.text}", i
            if isinstance(wanted, Raised):
                return "no error", f"point {i}: Python raises {wanted.type}: {wanted.text}", i
            ran = True
            said = _difference(found, wanted, "result")
            if said:
                return "different", f"point {i}: {said}", i
    return ("same" if ran else "both raise"), "", 0


def _compiled(text: str) -> Callable[[Any], Any]:
    scope = _scope()
    _load(text, f"<program {next(NUMBERS)}>", scope)
    made: Callable[[Any], Any] = scope["f"]
    return made


@cache
def _scope() -> dict[str, Any]:
    module = ModuleType("random_programs")
    sys.modules[module.__name__] = module  # data classes look for it
    scope = vars(module)
    _load(PRELUDE, "<prelude>", scope)
    return scope


def _load(text: str, file: str, scope: dict[str, Any]) -> None:
    for old in [name for name in linecache.cache if name.startswith("<program")][:-50]:
        del linecache.cache[old]
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), scope)


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise :class:`Endless` in a block that takes longer: a reduced program may never end."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(*_: Any) -> None:
        raise Endless("it does not end")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, 0.5)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


def _result(f: Callable[[Any], Any], point: Any, slopes: bool, limit: float = 4.0) -> Any:
    """Return a plain value of the result, with two derivatives, or the error."""
    try:
        with _limited(limit):
            return _values(f, point, slopes)
    except (Exception, Endless) as error:
        return Raised(error)


def _values(f: Callable[[Any], Any], point: Any, slopes: bool) -> Any:
    if not slopes:
        return {"result": _plain(f(gt.constant(point)))}
    with gt.GradientTape() as outer:
        x = gt.constant(point)
        outer.watch(x)
        with gt.GradientTape() as inner:
            inner.watch(x)
            result = f(x)
            y = _total(result)
        slope = inner.gradient(y, x, unconnected_gradients="zero")
        bend = gt.sum(gt.sin(slope))
    found = outer.gradient(bend, x, unconnected_gradients="zero")
    return {"result": _plain(result), "derivative": _plain(slope), "second": _plain(found)}


def _total(result: Any) -> Any:
    floats = [x for x in _leaves(result) if isinstance(x, gt.Tensor) and x.dtype.kind == "f"]
    return sum((gt.sum(gt.sin(x)) for x in floats), gt.constant(0.0, dtype="float64"))


def _leaves(x: Any) -> Any:
    if isinstance(x, dict):
        x = [x[key] for key in sorted(x, key=str)]
    if isinstance(x, (list, tuple)):
        for one in x:
            yield from _leaves(one)
    else:
        yield x


def _plain(x: Any) -> Any:
    if isinstance(x, dict):
        return {str(key): _plain(x[key]) for key in sorted(x, key=str)}
    if isinstance(x, (list, tuple)):
        return [_plain(one) for one in x]
    if x is None or isinstance(x, str):
        return x
    return np.asarray(x, "float64")


def _difference(found: Any, wanted: Any, name: str) -> str:
    """Return where two plain values differ, or an empty text."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        if list(wanted) != list(found):
            return f"{name} has keys {list(found)}, wanted {list(wanted)}"
        pairs: Any = [(key, found[key], wanted[key]) for key in wanted]
    elif isinstance(wanted, list) and isinstance(found, list):
        if len(wanted) != len(found):
            return f"{name} has {len(found)} items, wanted {len(wanted)}"
        pairs = list(zip(range(len(wanted)), found, wanted, strict=True))
    else:
        same = type(found) is type(wanted) and (
            np.shape(found) == np.shape(wanted)
            and np.allclose(found, wanted, rtol=1e-5, atol=1e-7, equal_nan=True)
            if isinstance(wanted, np.ndarray)
            else found == wanted
        )
        return "" if same else f"{name} is {found}, wanted {wanted}"
    texts = (_difference(a, b, f"{name}[{key}]") for key, a, b in pairs)
    return next((text for text in texts if text), "")


def _explained(error: BaseException) -> tuple[str, str]:
    """Return how an error of a trace counts, and the class of its message."""
    text = re.sub(r"<program \d+>:\d+", "FILE:LINE", str(error)).split("\n")[0]
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    frame = None if place is None else place.tb_frame
    file = "" if frame is None else frame.f_code.co_filename
    if isinstance(error, Endless):
        return "raw error", text
    notes = getattr(error, "__notes__", [])
    module = "" if frame is None else str(frame.f_globals.get("__name__"))
    source = linecache.getline(file, place.tb_lineno) if place is not None else ""
    where = f"{module}:{place.tb_lineno if place else 0}"
    if isinstance(error, (UnboundLocalError, NameError, AssertionError)):
        return "wrong error", f"{text} [{where}]"
    if any("raised while" in note for note in notes):
        return "refused", "raised while tracing: " + text
    if module.partition(".")[0] == _PACKAGE and _raises(source, file, place):
        named = "FILE:LINE" in text or "<prelude>" in text
        return "refused", text if named else f"(names no line) {text}"
    return "raw error", f"{text} [{where}]"


def _raises(source: str, file: str, place: Any) -> bool:
    """Return whether the line is part of a ``raise`` statement."""
    lines = range(place.tb_lineno, max(0, place.tb_lineno - 8), -1)
    return any(linecache.getline(file, n).lstrip().startswith("raise ") for n in lines)
