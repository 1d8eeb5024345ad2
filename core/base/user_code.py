"""The user's code: its lines in messages, and where it reads the value of a tensor.

Code that needs a value during tracing gets an error that names the line. A tape cannot follow a
value that Python or NumPy reads: messages name the line, the call, and what becomes of the value,
which the running code's instructions show.
"""

from __future__ import annotations

import dis
import os
import sys
import warnings
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple

from .instructions import (
    ITEM,
    at,
    called,
    instructions,
    is_call,
    is_item_store,
    names_at,
    number_at,
    parameters,
    span,
)
from .table import PACKAGE, public_package, registry
from .targets import how_to_write, locals_of, target_of

# The packages whose frames are not user code.
_NOT_USERS = frozenset({PACKAGE, "numpy", "contextlib"})
# The packages of installed plugins: user code calls them, or is in one of them.
_PLUGINS: set[str] = set()
# The packages for whose functions a plugin has others: their own code computes with NumPy arrays.
_ON_ARRAYS: frozenset[str] = frozenset()


class Place(NamedTuple):
    """A line of code, and the global names of its module."""

    file: str
    line: int
    scope: dict[str, Any]


def user_line() -> str:
    """Return FILE:LINE of the innermost frame outside gradtape and NumPy, for messages.

    Returns
    -------
    str
        The place; ``"?"`` if there is none.

    Examples
    --------
    >>> from gradtape.plugin import user_line
    >>> user_line().rpartition(":")[2].isdigit()
    True
    """
    frame = users_frame()
    return "?" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def is_users_call() -> bool:
    """Return whether the caller of this function was called from outside gradtape."""
    return package_of(sys._getframe(2)) != PACKAGE


def line_of(error: BaseException) -> str:
    """Return FILE:LINE of the innermost frame of an error outside gradtape and NumPy.

    Empty if there is none. Python's own frames of an import are none.
    """
    place = ""
    trace = error.__traceback__
    while trace is not None:
        if package_of(trace.tb_frame) not in (*_NOT_USERS, "importlib"):
            place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def count_as_library(packages: Iterable[str], on_arrays: Iterable[str] = ()) -> None:
    """Count packages as code that users call: warnings point at the line that calls it.

    Parameters
    ----------
    packages
        The packages of installed plugins.
    on_arrays
        The packages of the hook ``gradtape_functions``.
    """
    global _ON_ARRAYS, _computes
    _PLUGINS.clear()
    _PLUGINS.update(packages)
    # in this order: another thread may be about to write what it found for the earlier packages
    _ON_ARRAYS = frozenset(on_arrays)
    _computes = {}


def is_kernels_module(name: str) -> bool:
    """Return whether a module is gradtape's or a plugin's, which have kernels."""
    package = name.partition(".")[0]
    return package == PACKAGE or package in _PLUGINS


def warn_user(text: str, category: type[Warning], place: Place | None = None) -> None:
    """Warn at a place, by default the user's running line: once, by Python's default filters.

    Parameters
    ----------
    text
        The message.
    category
        The class of the warning.
    place
        Another place than the running line; plugins leave it out.

    Raises
    ------
    Warning
        The warning itself, if a filter turns it into an error.

    Examples
    --------
    >>> import warnings
    >>> from gradtape.plugin import warn_user
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always")
    ...     warn_user("acme: the cache is full", RuntimeWarning)
    >>> str(found[0].message)
    'acme: the cache is full'
    """
    frame = users_frame()
    if place is None and frame is not None:
        place = Place(frame.f_code.co_filename, frame.f_lineno, frame.f_globals)
    if place is None:
        warnings.warn(text, category, stacklevel=2)
        return
    file, line, scope = place
    # without a name, a warning would be dropped
    name, registry = scope.get("__name__") or file, scope.setdefault("__warningregistry__", {})
    warnings.warn_explicit(text, category, file, line, name, registry)


def users_frame() -> FrameType | None:
    """Return the innermost frame outside gradtape and NumPy, and outside plugins if there is one.

    A plugin's package may also be the whole program: its innermost frame is then the user's.
    """
    frame: FrameType | None = sys._getframe(1)
    of_plugin: FrameType | None = None
    while frame is not None:
        scope = frame.f_globals
        if id(scope) not in _scopes:
            package = package_of(frame)
            if package not in _NOT_USERS:
                if package not in _PLUGINS:
                    return frame
                of_plugin = of_plugin or frame
            elif "__spec__" in scope:  # a module's; those of plans have arrays, and end
                _scopes[id(scope)] = scope
        frame = frame.f_back
    return of_plugin


#: The global names of modules that are not user code, by their addresses.
_scopes: dict[int, dict[str, Any]] = {}


def computes_with_arrays(frame: FrameType | None) -> bool:
    """Return whether a frame runs a library's code that expects NumPy arrays.

    These are the libraries of the hook ``gradtape_functions``. What NumPy's functions return there
    often reaches compiled code, which takes nothing else. NumPy's own code counts as its caller's.
    """
    known = _computes
    while frame is not None:
        module = frame.f_globals.get("__name__")
        try:
            found = known[module]
        except KeyError:
            package = package_of(frame)
            found = known[module] = None if package == "numpy" else package in _ON_ARRAYS
        if found is not None:
            return found
        frame = frame.f_back
    return False


#: Whether a module's code expects NumPy arrays, by name; every call of NumPy's asks. NumPy's: None.
_computes: dict[Any, bool | None] = {}


def package_of(frame: FrameType) -> str:
    """Return the name of the package whose code a frame runs."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


# -- reads of values -------------------------------------------------------------------------------


#: Calls that only ask about a number, compare it or show it: nothing is computed from it.
_LOOKS = frozenset(
    "allclose array_equal array_equiv isclose isfinite isinf isnan signbit print "
    "debug info warning error critical exception _saferepr".split()
)
#: Calls by which a program says that it wants a Python number, as logs do.
_MEANT = frozenset({"complex", "float", "int", "item", "tolist"})
_KEEP = "compute with the tensor itself, or with gradtape.stack([...]) of a list of tensors"
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
        if package == PACKAGE and not _is_method(inner):
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
    if name in _LOOKS:
        return None
    shown = call if call == ITEM else f"{call or name}(...)"
    meant = method in ("item", "tolist") or call.rpartition(".")[2] in _MEANT
    use = use_of(frame.f_code, frame.f_lasti)
    if use == "shown":
        return None
    target = target_of(frame)
    if target is not None:
        shown = call if call == ITEM else target.statement.removesuffix(" x")
        advice = f"{target.how(frame.f_code)}, {_PARTS}, {_BY_AT}"
    elif call == ITEM:
        advice = f"{how_to_write(frame.f_code, 'a')}, {_PARTS}, {_BY_AT}"
    else:
        advice = _advice(name, package_of(running), theirs)
    if use == "returned":  # a result of the function that gradtape runs
        use = "kept" if frame.f_back and package_of(frame.f_back) == PACKAGE else ""
    use = use if meant else ""
    return Site(frame.f_code.co_filename, frame.f_lineno, shown, advice, use), frame


def _outside_libraries(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame that is not a library's, or the frame itself if there is none."""
    outer = frame
    while outer is not None and (is_library(outer.f_code.co_filename) or _is_method(outer)):
        outer = outer.f_back
        if outer is not None and package_of(outer) == PACKAGE and not _is_method(outer):
            return frame  # the library uses gradtape
    return outer or frame


def is_library(file: str) -> bool:
    """Return whether a file belongs to an installed package or to Python itself."""
    return file.startswith(_STANDARD) or "site-packages" in file or "dist-packages" in file


_STANDARD = os.path.dirname(os.__file__)


def reader() -> FrameType | None:
    """Return the innermost frame of the caller's callers that is no method of a tensor."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and _is_method(frame):
        frame = frame.f_back
    return frame


def _is_method(frame: FrameType) -> bool:
    """Return whether a method of a tensor runs, which may call the other operand's."""
    return frame.f_globals.get("__name__") in _METHODS


_METHODS = frozenset(f"{PACKAGE}.core.tensors.{x}" for x in ("methods", "tensor", "value_holder"))


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


def _advice(name: str, package: str, theirs: list[str]) -> str:
    found = registry().replacements.instead_of(package, theirs)
    if found is not None:
        return f"{found[0]} reads the values of tensors: use {found[1]}"
    if package == "pandas":
        return "a data frame keeps values: put the tensor first, or use gradtape.constant(frame)"
    if name in _ADVICE:
        return _ADVICE[name]
    ours = getattr(public_package(), name, None)
    if name not in _MEANT and callable(ours) and not isinstance(ours, type):  # no dtype
        return f"use gradtape.{name} on the tensor (a list of tensors: gradtape.stack([...]))"
    return _KEEP


@lru_cache(maxsize=1024)
def use_of(code: CodeType, place: int, seen: frozenset[str] = frozenset()) -> str:
    """Return what code does with the value that the instruction at ``place`` gives.

    ``"shown"`` if it is printed, formatted, compared or tested; ``"kept"`` if it is only put into a
    container or an attribute that outlives the function; ``"local"`` for a container of the
    function's own; ``"returned"``; an empty text for anything else. ``seen`` are the variables
    whose uses are looked at.
    """
    found = at(code, place)
    if found is not None and found.opname.startswith("STORE_"):
        return ""  # an array keeps it: what follows is another statement
    inner = None if found is None else span(found)
    plain = True  # nothing is computed from it
    shown = "shown"  # a function may compute a gradient that depends on it, and show that
    copies, uses = 0, list[str]()
    every = instructions(code)
    for number in range(number_at(code, place) + 1, len(every)):
        one, following = every[number], every[min(number + 1, len(every) - 1)]
        name, outer = one.opname, span(one)
        if inner is None:
            break
        if name == "COPY":  # for one more target
            copies += 1
            continue
        if name.startswith("STORE_"):
            uses.append(_use_of_target(code, one, seen))
            copies -= 1
            if copies < 0:
                use = min(uses, key=_USES.index)
                return shown if use == "shown" else use if plain else ""
            if uses[-1] not in ("kept", "shown"):
                return ""
            continue
        if name.startswith("POP_JUMP"):  # it is tested, and x or y also keeps it
            return "" if copies else shown
        if name.startswith("RETURN_") and plain:
            return "returned"
        if name.startswith(_ENDS):
            break
        if outer is None or outer == inner or outer[0] > inner[0] or outer[1] < inner[1]:
            continue
        if name in ("COMPARE_OP", "IS_OP", "CONTAINS_OP"):
            return shown
        if name == "MAP_ADD" or (name.startswith("BUILD_") and "MAP" in name):
            return "local"
        if name in ("BUILD_TUPLE", "BUILD_LIST") or one.argrepr == "+=":
            continue
        if name.startswith("FORMAT") or (one.argrepr == "%" and _is_text(code, outer[0])):
            return shown
        if is_call(one):
            function = called(code, one.offset).rpartition(".")[2]
            if function in _LOOKS:
                return shown
            if function == "append" or following.opname == "POP_TOP":
                return _use_of_container(code, one, seen)
            inner, shown = outer, "kept"
        plain = False
    return ""


#: Uses of a value, those that matter most first.
_USES = ("", "returned", "local", "kept", "shown")


def _use_of_target(code: CodeType, one: dis.Instruction, seen: frozenset[str]) -> str:
    """Return what becomes of a value that an instruction assigns."""
    if is_item_store(one) or one.opname == "STORE_ATTR":
        return _use_of_container(code, one, seen)
    return _use_of_variables(code, one.offset, seen)


def _use_of_variables(code: CodeType, place: int, seen: frozenset[str]) -> str:
    """Return what code does with the variables that it assigns from ``place`` on."""
    uses = set[str]()
    for one in instructions(code):
        if one.offset < place:
            continue
        if one.opname not in ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL"):
            return "" if one.opname.startswith("STORE_") else min(uses, key=_USES.index)
        name = str(one.argval)
        if name.startswith("@py_"):  # pytest's, in an assertion
            return "shown"
        if one.opname == "STORE_GLOBAL" or name in seen:
            uses.add("kept")
            continue
        found = _uses_of_variable(code, name, seen)
        # another cell or module may use a global name
        uses.update(found or ("kept" if one.opname == "STORE_FAST" else "",))
    return ""


def _uses_of_variable(code: CodeType, name: str, seen: frozenset[str]) -> set[str]:
    return {
        use_of(code, one.offset, seen | {name})
        for one in instructions(code)
        if one.opname.startswith(_LOADS) and one.argval == name
    }


_LOADS = ("LOAD_FAST", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLOSURE")


def _use_of_container(code: CodeType, one: dis.Instruction, seen: frozenset[str]) -> str:
    """Return what code does with a container or object into which it puts a value.

    ``one`` is the assignment, or the call of a method or another function.
    """
    names = names_at(code, one)
    if not names or names[0] in seen or names[0] in parameters(code):
        return "kept"
    before = {
        first.opname
        for first, then in pairwise(instructions(code))
        if then.opname in ("STORE_FAST", "STORE_NAME", "STORE_DEREF") and then.argval == names[0]
    }
    if not before:
        return "kept"
    is_alias = all(x in _ELSEWHERE for x in before)
    if is_call(one) and len(names) == 1:  # a function, or a method that has a name
        return "local" if is_alias and "LOAD_ATTR" in before else "kept"
    uses = () if is_alias else _uses_of_variable(code, names[0], seen)
    return "kept" if {"kept", "shown"}.issuperset(uses) else "local"


#: Instructions that give an object that others hold too.
_ELSEWHERE = frozenset({"LOAD_ATTR", "LOAD_GLOBAL", "LOAD_DEREF", "IMPORT_NAME", "IMPORT_FROM"})


def _is_text(code: CodeType, start: tuple[int, int]) -> bool:
    """Return whether an expression begins with a text."""
    texts = (
        span(one)
        for one in instructions(code)
        if one.opname == "LOAD_CONST" and isinstance(one.argval, str)
    )
    return any(span is not None and span[0] == start for span in texts)


#: The instructions that end the expression, other than those that keep its value.
_ENDS = ("STORE_", "RETURN_", "YIELD_", "JUMP_", "POP_", "LIST_", "SET_")
