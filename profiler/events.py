"""What a profile notes of each thing that ran, and where in the user's program that was."""

from __future__ import annotations

import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from ..core.extend import Module, snake_case

__all__ = ["Event", "Places"]

#: The packages whose frames are not the user's line.
_NOT_USERS = frozenset({__name__.partition(".")[0], "numpy", "contextlib"})
#: A source line, and the layers around it, the outermost first.
Place = tuple[str, tuple[str, ...]]


class Event:
    """Something that ran.

    Attributes
    ----------
    name
        What it is called: an op, a step of a plan, a function, a stage.
    kind
        ``"kernel"`` of an op, ``"rule"`` of one, ``"graph"``, or ``"step"`` of a graph or of the
        program.
    phase
        ``"forward"``, ``"backward"``, ``"compiled"`` or ``"other"``.
    place
        The source line and the layers.
    parent
        The event in which it ran.
    seconds, inner
        How long it took, and what ran in it and is noted too.
    noting
        The nanoseconds that it cost to note what ran in it.
    bytes, peak
        Those of its results; and of host memory beyond what there was before, if it was measured.
    """

    __slots__ = (
        "before",
        "began",
        "bytes",
        "inner",
        "kind",
        "name",
        "noting",
        "parent",
        "peak",
        "phase",
        "place",
        "seconds",
        "start",
        "stop",
        "thread",
        "watch",
    )

    def __init__(
        self, name: str, kind: str, phase: str, place: Place, parent: Event | None, watch: Any
    ) -> None:
        self.name, self.kind, self.phase, self.place = name, kind, phase, place
        self.parent, self.watch = parent, watch
        self.thread = self.bytes = self.peak = self.began = self.before = 0
        self.noting = 0
        self.seconds = self.inner = 0.0
        self.start: Any = None
        self.stop: Any = None

    @property
    def own(self) -> float:
        """The seconds in which nothing ran in it that is noted too."""
        return max(0.0, self.seconds - self.inner)


class Places:
    """Finds where in the user's program something runs.

    Parameters
    ----------
    outermost
        The frame in which the profile began: nothing outside it is looked at.
    """

    def __init__(self, outermost: FrameType) -> None:
        self._outermost: FrameType | None = outermost
        self._kinds: dict[CodeType, tuple[bool, bool]] = {}
        self._lines: dict[tuple[CodeType, int], str] = {}
        self._layers: dict[int, tuple[Module, str]] = {}
        self._counts: dict[str, int] = {}

    def forget(self) -> None:
        """Let go of frames and modules."""
        self._outermost = None
        self._layers.clear()

    def here(self) -> Place:
        """Return the user's line that is running, and the layers that are being called."""
        frame: FrameType | None = sys._getframe(2)
        line = ""
        layers: list[str] = []
        last = None
        while frame is not None:
            code = frame.f_code
            kind = self._kinds.get(code)
            if kind is None:
                kind = self._kinds[code] = _kind_of(frame)
            users, call = kind
            if users and not line:
                line = self._line(code, frame.f_lineno)
            if call:
                module = frame.f_locals.get("self")
                if isinstance(module, Module) and module is not last:
                    layers.append(self._layer(module))
                    last = module
            if frame is self._outermost:
                break
            frame = frame.f_back
        return line, tuple(layers[::-1])

    def _line(self, code: CodeType, number: int) -> str:
        found = self._lines.get((code, number))
        if found is None:
            found = f"{Path(code.co_filename).name}:{number}"
            self._lines[code, number] = found
        return found

    def _layer(self, module: Module) -> str:
        known = self._layers.get(id(module))
        if known is None:  # the module is held, or its id might become another's
            kind = type(module).__name__
            name = getattr(module, "name", None)
            kind = name if type(name) is str and name != snake_case(kind) else kind
            count = self._counts[kind] = self._counts.get(kind, 0) + 1
            known = self._layers[id(module)] = (module, kind if count == 1 else f"{kind}_{count}")
        return known[1]


def _kind_of(frame: FrameType) -> tuple[bool, bool]:
    """Return whether a frame is of the user's code, and whether it may be a layer's call."""
    code = frame.f_code
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    call = code.co_name in ("__call__", "call") and code.co_varnames[:1] == ("self",)
    return package not in _NOT_USERS, call
