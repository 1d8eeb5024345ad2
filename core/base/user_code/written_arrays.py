"""Unknown values, and code that writes tensors into NumPy arrays: ``a[i] = x``, ``a += x``.

NumPy asks the tensor for its value, and stores a number. A gradient of what is computed from the
array would lack a part. Such code is therefore an error, which names the array and what to write.
"""

from __future__ import annotations

import dis
import threading
from collections.abc import Iterable, Sequence
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

from ...errors import TraceError
from .frames import is_library, user_line, users_frame
from .instructions import (
    Step,
    at,
    called,
    instructions,
    is_given,
    is_item_store,
    loads_of_owners,
    path_at,
    path_written,
    span,
)
from .targets import Target, aliases, array_on, how_to_write, target_of
from .uses import use_of


def advice(code: CodeType, target: Target) -> str:
    """Return what to write instead of an assignment of code to elements of an array."""
    name = target.name
    how = f"{target.how(code)}: {name}[i] = x and {name} += x then have gradients"
    if target.owner != name or is_given(code, name):
        return how
    if target.call == "fill_diagonal":
        return f"{how}. Or write {name} = gradtape.fill_diagonal({name}, x)"
    return (
        f"{how}. Or put the parts in a list for numpy.stack, or write "
        f"{name} = {name}.at[i].set(x) for a tensor, {name} = gradtape.constant({name})"
    )


def refuse_to_assign(tapes: Iterable[Any]) -> None:
    """Raise for ``a[i] = x`` if the running code of the user assigns so and computes with ``a``.

    An array that is only shown, or that outlives the function, is a log. An array with which the
    code computes only after the blocks in which it recorded is a log, too.

    Parameters
    ----------
    tapes
        The tapes that follow ``x``; ``opened_at`` of each is where its block begins.

    Raises
    ------
    TypeError
        If gradients would be lost.
    """
    frame = users_frame()
    if frame is None or is_library(frame.f_code.co_filename):
        return
    target = target_of(frame)
    if target is None:
        return
    opened = [tape.opened_at for tape in tapes]
    here = all(one is not None and one[0] == id(frame) for one in opened)
    blocks = frozenset([one[1] for one in opened]) if here else None
    names = aliases(frame, target.array)
    if not _computes_with(frame.f_code, target.path, names, blocks):
        return
    error = TypeError(
        f"{_line(frame)}: {target.statement} writes into a NumPy array, which gradients cannot "
        f"follow: {advice(frame.f_code, target)}. If the value is only shown or stored, assign "
        "x.numpy()"
    )
    raise _marked(error)


def not_known(array: Any, what: str) -> TypeError:
    """Return the error for code that asks ``array`` for something unknown, such as its truth."""
    if not hasattr(array, "why_unknown"):
        return TypeError(
            f"{user_line()}: a Tensor wraps an array, but this one was made from a "
            f"{type(array).__name__}; make tensors with gradtape.constant"
        )
    why: str = array.why_unknown()
    return _in_trace(what, why) or TraceError(f"{user_line()}: {what} is not known {why}")


def _in_trace(what: str, why: str) -> TraceError | None:
    """Return the error for a value that is unknown where the user's code assigns it to elements.

    ``None`` if the code does something else.
    """
    frame = users_frame()
    target = None if frame is None else target_of(frame)
    if frame is None or target is None:
        return None
    where = why.partition(". ")[0]
    return _marked(
        TraceError(
            f"{_line(frame)}: {target.statement} writes into a NumPy array, and {what} is not "
            f"known {where}: {advice(frame.f_code, target)}"
        )
    )


def _marked(error: Any) -> Any:
    _last.error = type(error)(*error.args)  # the error itself will hold the frames that it leaves
    _last.error._gradtape_written = error._gradtape_written = True
    return error


#: The last error of this kind in a thread: for ``a.flat[i] = x``, NumPy drops it.
_last = threading.local()


def raise_hidden(error: object) -> None:
    """Raise the error for an assignment to one element, which NumPy replaces by its own.

    NumPy's ValueError says only "setting an array element with a sequence", or "Error setting
    single item of array", which it raises without a cause.
    """
    hidden: Any = getattr(error, "__cause__", None)
    if type(error) is ValueError and str(error).startswith("Error setting single item"):
        hidden = getattr(_last, "error", None)
    _last.error = None
    if type(error) is ValueError and hasattr(hidden, "_gradtape_written"):
        raise hidden from None


def in_place_operator() -> tuple[str, str] | None:
    """Return the statement of the user's running ``a += x``, and what to write instead."""
    frame = users_frame()
    operator = None if frame is None else _in_place(frame.f_code, frame.f_lasti)
    if frame is None or operator is None:
        return None
    path = path_written(frame.f_code, frame.f_lasti)
    found = array_on(frame, path)
    array = path if found is None else found[1]
    name = "".join(map(str, array)) or "a"
    part = "[i]" if len(path) > len(array) or (not path and operator[1]) else ""
    how = how_to_write(frame.f_code, name)
    if not part and not is_given(frame.f_code, name):
        how = f"write {name} = {name} {operator[0][:-1]} x, or {how.removeprefix('write ')}"
    return f"{name}{part} {operator[0]} x", how


def running_call() -> str:
    """Return the last part of the name of the function that the user's running line calls."""
    frame = users_frame()
    return "" if frame is None else called(frame.f_code, frame.f_lasti).rpartition(".")[2]


def name_assigned_to() -> str:
    """Return how the user's running ``a[i] = x`` names what it assigns to: ``x`` if unknown."""
    frame = users_frame()
    path = () if frame is None else path_written(frame.f_code, frame.f_lasti)
    return "".join(map(str, path)) or "x"


def how_to_write_argument(function: str) -> str:
    """Return where to make the array writable that the user's running call of NumPy's changes."""
    frame = users_frame()
    name = ""
    if frame is not None and running_call() == function.rpartition(".")[2]:
        found = array_on(frame, path_written(frame.f_code, frame.f_lasti))
        name = "" if found is None else "".join(map(str, found[1]))
    if frame is None or not name:
        return "write a = gradtape.writable(a) once the array a is made"
    return how_to_write(frame.f_code, name)


@lru_cache(maxsize=256)
def _in_place(code: CodeType, place: int) -> tuple[str, bool] | None:
    """Return the operator of ``a += x``, and whether it changes a part, ``a[i] += x``."""
    found = at(code, place)
    if found is None or found.opname != "BINARY_OP" or not found.argrepr.endswith("="):
        return None
    after = (one for one in instructions(code) if one.offset > found.offset)
    store = next((one for one in after if one.opname.startswith("STORE_")), None)
    return found.argrepr, store is not None and is_item_store(store)


def _line(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


@lru_cache(maxsize=256)
def _computes_with(
    code: CodeType, path: tuple[Step, ...], names: frozenset[str], blocks: frozenset[int] | None
) -> bool:
    """Return whether code computes with an array, or returns it alone.

    Parameters
    ----------
    code
        The code, which writes into the array.
    path
        How it names the array. A container or an object that the function did not make outlives
        it: an array in it may be a log.
    names
        The variables that hold the array, views of it, or the array that it is a view of.
    blocks
        The places of the ``with`` statements in which alone that matters, ``None`` if it matters
        everywhere.
    """
    root = path[0].value
    if len(path) > 1 and (root not in code.co_varnames or is_given(code, root)):
        return False
    every, owners = instructions(code), loads_of_owners(code)
    for number, one in enumerate(every):
        is_alias = one.opname.startswith("LOAD_") and one.argval in names
        if not is_alias and path_at(code, number) != path:
            continue
        if blocks is not None and not any(_is_within(code, one.offset, x) for x in blocks):
            continue
        if number in owners or _is_target(every[number:]) or _makes_alias(every[number:], names):
            continue
        use = use_of(code, one.offset, frozenset({root}))
        following = every[number + 1 : number + 2]
        alone = bool(following) and following[0].opname == "RETURN_VALUE"
        if use == "" or (use == "returned" and alone):
            return True
    return False


def _is_target(following: Sequence[dis.Instruction]) -> bool:
    """Return whether the first of these loads the ``a`` of ``a[i] = x`` or ``a[i] += x``."""
    start = span(following[0])
    stores = (span(x) for x in following if is_item_store(x))
    return start is not None and any(x is not None and x[0] == start[0] for x in stores)


def _makes_alias(following: Sequence[dis.Instruction], names: frozenset[str]) -> bool:
    """Return whether the first of these loads the ``a`` of ``row = a[i]``, for a view ``row``."""
    store = next((x for x in following if x.opname.startswith(("STORE_", "RETURN_", "POP_"))), None)
    return store is not None and store.opname.startswith("STORE_") and store.argval in names


def _is_within(code: CodeType, offset: int, block: int) -> bool:
    """Return whether an instruction is in the ``with`` statement that begins at ``block``.

    All that can raise there has the statement's handler, or one that has it in turn. ``True`` if
    the place begins no such statement.
    """
    entries = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]
    names = {one.offset: one.opname for one in instructions(code)}
    after = min((x for x in names if x > block), default=block)
    handler = next((x.target for x in entries if block < x.start <= after), None)
    starts = [names[x] for x in sorted(names) if handler is not None and x >= handler][:2]
    if starts != ["PUSH_EXC_INFO", "WITH_EXCEPT_START"]:
        return True
    met = set[int]()
    while offset not in met:
        met.add(offset)
        offset = next((x.target for x in entries if x.start <= offset < x.end), offset)
        if offset == handler:
            return True
    return False
