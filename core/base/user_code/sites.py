"""Where the user's code reads the value of a tensor, which a tape cannot follow.

Messages name the line, the call, and what becomes of the value.
"""

from __future__ import annotations

from types import FrameType, FunctionType
from typing import Any, NamedTuple

from ..table import PACKAGE, public_package, registry
from .frames import is_library, is_method, locals_of, package_of, reader, users_frame
from .instructions import ITEM, called
from .targets import how_to_write, target_of
from .uses import LOOKS, use_of

#: Calls by which a program says that it wants a Python number, as logs do.
_MEANT = frozenset({"complex", "float", "int", "item", "tolist"})
_KEEP = "compute with the tensor itself, or with gradtape.stack([...]) of a list of tensors"
_BY_LIBRARY = (
    "{} reads the values of tensors: write the formula with functions of numpy or gradtape, or "
    "give the call a gradient by gradtape.custom_gradient"
)
_PARTS = "put the parts in a list for gradtape.stack"
_BY_AT = "or use a.at[index].set(value) of a tensor, gradtape.constant(a)"
_ADVICE = {
    "normal": "use loc + scale * gradtape.random.normal(shape)",
    "uniform": "use low + (high - low) * gradtape.random.uniform(shape)",
    "vectorize": "call the function on the tensor itself, or use gradtape.vmap",
    "array": "use gradtape.stack([...]) for a list, and a tensor as it is",
    "asarray": "use gradtape.stack([...]) for a list, and a tensor as it is",
    "fsum": "use gradtape.sum(gradtape.stack([...]))",
    "__dlpack__": "keep the computation in gradtape, or give it a gradtape.custom_gradient",
}


class Site(NamedTuple):
    """A place of the user's code that reads values."""

    file: str
    line: int
    #: The call that reads, as far as it is known: ``math.sin(...)``.
    call: str
    #: What to write so that tapes can follow.
    advice: str
    #: ``"kept"`` if the code asked for a number and only keeps it in a place that outlives its
    #: function, as logs do; ``"local"`` if it keeps it in a container of its own; else empty.
    use: str

    @property
    def reason(self) -> str:
        """Why a gradient ends here."""
        return (
            f"a value that depends on it was read by {self.call} at {self.file}:{self.line}, and "
            f"what is computed from it there is a constant for the tape ({self.advice}; if it is "
            "only shown or stored, read it with .numpy())"
        )


def site_of(method: str) -> tuple[Site, FrameType] | None:
    """Return where the user's code reads a value by ``method``, and its frame.

    Returns
    -------
    tuple or None
        None if the value is not lost: gradtape reads it itself, or it is formatted or tested.
    """
    running = users_frame()
    frame = _outside_libraries(running)
    if running is None or frame is None:
        return None
    inner: Any = reader()
    outer = ""
    theirs = _names_of(running, frame)
    while inner is not None and inner is not frame:
        package = package_of(inner)
        if package == PACKAGE and not is_method(inner):
            return None
        if package == "numpy":
            outer = f"{inner.f_globals.get('__name__', '')}.{inner.f_code.co_name}"
            if outer.startswith("numpy.testing"):
                return None
        inner = inner.f_back
    call = called(frame.f_code, frame.f_lasti)
    if "%" in (call, called(running.f_code, running.f_lasti)):
        return None
    if call.isidentifier():  # perhaps another name for a function
        call = getattr(locals_of(frame).get(call, frame.f_globals.get(call)), "__name__", call)
    name = call if call == ITEM else call.rpartition(".")[2] or outer.rpartition(".")[2] or method
    if name in LOOKS:
        return None
    shown = call if call == ITEM else f"{call or name}(...)"
    meant = method in ("item", "tolist") or call.rpartition(".")[2] in _MEANT
    use = use_of(frame.f_code, frame.f_lasti)
    if use == "shown":
        return None
    package = package_of(running)
    library = package if running is not frame and package not in ("numpy", PACKAGE) else ""
    target = target_of(frame)
    if target is not None:
        shown = call if call == ITEM else target.statement.removesuffix(" x")
        advice = f"{target.how(frame.f_code)}, {_PARTS}, {_BY_AT}"
    elif call == ITEM and not library:
        advice = f"{how_to_write(frame.f_code, 'a')}, {_PARTS}, {_BY_AT}"
    else:
        advice = _advice(name, package, theirs, library)
    if use == "returned":  # a result of the function that gradtape runs
        use = "kept" if frame.f_back and package_of(frame.f_back) == PACKAGE else ""
    use = use if meant else ""
    return Site(frame.f_code.co_filename, frame.f_lineno, shown, advice, use), frame


def _outside_libraries(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame that is not a library's, or the frame itself if there is none."""
    outer = frame
    while outer is not None and (is_library(outer.f_code.co_filename) or is_method(outer)):
        outer = outer.f_back
        if outer is not None and package_of(outer) == PACKAGE and not is_method(outer):
            return frame  # the library uses gradtape
    return outer or frame


def _names_of(running: FrameType, user: FrameType) -> list[str]:
    """Return the names of the functions that run, those that the user called first."""
    names: list[str] = []
    frame: FrameType | None = running
    while frame is not None and (frame is not user or not names):
        free = frame.f_code.co_freevars
        inside = [*map(locals_of(frame).get, free)] if free else []  # a decorator's
        names += [x.__name__ for x in inside if isinstance(x, FunctionType)]
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    return names[::-1]


def _advice(name: str, package: str, theirs: list[str], library: str) -> str:
    found = registry().replacements.instead_of(package, theirs)
    if found is not None:
        return f"{found[0]} reads the values of tensors: use {found[1]}"
    if package == "pandas":
        return "a data frame keeps values: put the tensor first, or use gradtape.constant(frame)"
    if name in _ADVICE:
        return _ADVICE[name]
    ours = getattr(public_package(), name, None) if name.isidentifier() else None
    if name not in _MEANT and callable(ours) and not isinstance(ours, type):  # no dtype
        return f"use gradtape.{name} on the tensor (a list of tensors: gradtape.stack([...]))"
    return _BY_LIBRARY.format(library) if library else _KEEP
