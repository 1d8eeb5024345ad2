"""Where in the user's program something runs: a source line, and the layers around it."""

from __future__ import annotations

import sys
from pathlib import Path
from types import CodeType, FrameType

from ..core.extend import Module, locals_of, snake_case

#: The packages whose frames do not count as the user's line.
_NOT_USERS = frozenset({__name__.partition(".")[0], "numpy", "contextlib"})
#: A source line, and the layers around it, the outermost first.
Place = tuple[str, tuple[str, ...]]


class Places:
    """Finds where in the user's program something runs.

    Parameters
    ----------
    outermost
        The frame in which the profile began. Frames outside it are ignored.
    """

    def __init__(self, outermost: FrameType) -> None:
        self._outermost: FrameType | None = outermost
        self._kinds: dict[CodeType, tuple[bool, bool]] = {}
        self._lines: dict[tuple[CodeType, int], str] = {}
        self._layers: dict[int, tuple[Module, str]] = {}
        self._counts: dict[str, int] = {}

    def forget(self) -> None:
        """Release frames and modules."""
        self._outermost = None
        self._layers.clear()

    def here(self) -> Place:
        """Return the user's line that is running, and the layers whose calls are active."""
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
                module = locals_of(frame).get(code.co_varnames[0])  # most name it self
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
        if known is None:  # keep the module alive, or its id might be reused
            kind = type(module).__name__
            name = getattr(module, "name", None)
            kind = name if type(name) is str and name != snake_case(kind) else kind
            count = self._counts[kind] = self._counts.get(kind, 0) + 1
            known = self._layers[id(module)] = (module, kind if count == 1 else f"{kind}_{count}")
        return known[1]


def _kind_of(frame: FrameType) -> tuple[bool, bool]:
    """Return whether a frame belongs to the user's code, and whether it may be a layer's call."""
    code = frame.f_code
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    call = code.co_name in ("__call__", "call") and code.co_argcount > 0
    return package not in _NOT_USERS, call
