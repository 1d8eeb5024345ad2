"""What code does with a value: it shows the value, keeps it, or computes with it."""

from __future__ import annotations

import dis
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from types import CodeType

from .instructions import (
    Span,
    called,
    has_place,
    instructions,
    is_call,
    is_item_store,
    names_at,
    number_at,
    parameters,
    span,
    start_of,
)

#: Calls that only ask about a number, compare it or show it: nothing is computed from it.
LOOKS = frozenset(
    "allclose array_equal array_equiv isclose isfinite isinf isnan signbit print "
    "debug info warning error critical exception _saferepr".split()
)


@lru_cache(maxsize=1024)
def unread_argument(code: CodeType, place: int) -> str:
    """Return the argument that ``v += x`` at ``place`` sets, if the function does not read it then.

    A function that changes its caller's array is written so. The text is empty for anything else.
    """
    every, number = instructions(code), number_at(code, place)
    name = _set_in_place(every, number)
    if not name or name not in parameters(code) or "locals" in code.co_names:
        return ""
    # the loads for `v += x` itself, which in a loop come after it, too
    of_updates = {
        start_of(every, n) - 1 for n in range(len(every)) if _set_in_place(every, n) == name
    }
    first, last = number + 2, len(every)
    while first < last:  # a jump back from there leads to what comes before
        last = first
        targets = [number_at(code, one.argval) for one in every[first:] if one.opcode in _JUMPS]
        first = min([first, *targets])
    reads = (
        n
        for n, one in enumerate(every[first:], first)
        if one.opname.startswith(("LOAD_FAST", "LOAD_NAME")) and one.argval == name
    )
    return "" if set(reads) - of_updates else name


_JUMPS = frozenset({*dis.hasjrel, *dis.hasjabs})


def _set_in_place(every: Sequence[dis.Instruction], number: int) -> str:
    """Return the variable of ``v += x`` if this is the instruction of the operator."""
    operator, store = every[number], every[min(number + 1, len(every) - 1)]
    is_update = operator.opname == "BINARY_OP" and operator.argrepr.endswith("=")
    return str(store.argval) if is_update and store.opname == "STORE_FAST" else ""


@lru_cache(maxsize=1024)
def use_of(code: CodeType, place: int, seen: frozenset[str] = frozenset()) -> str:
    """Return what code does with the value that the instruction at ``place`` gives.

    ``"shown"`` if it is printed, formatted, compared or tested; ``"kept"`` if it is only put into a
    container or an attribute that outlives the function; ``"local"`` for a container of the
    function's own; ``"returned"``; an empty text for anything else. ``seen`` are the variables
    whose uses are looked at.
    """
    every, first = instructions(code), number_at(code, place)
    if first < 0 or every[first].opname.startswith("STORE_"):
        return ""  # an array keeps it: what follows is another statement
    inner, placed = span(every[first]), has_place(every[first])
    plain = True  # nothing is computed from it
    shown = "shown"  # a function may compute a gradient that depends on it, and show that
    copies, uses = 0, list[str]()
    for number in range(first + 1, len(every)):
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
        if outer is None or not (
            _is_around(outer, inner) if placed else start_of(every, number + 1) <= first
        ):
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
            if function in LOOKS:
                return shown
            if function == "append" or following.opname == "POP_TOP":
                return _use_of_container(code, one, seen)
            inner, placed, shown = outer, True, "kept"
        plain = False
    return ""


def _is_around(outer: Span, inner: Span) -> bool:
    """Return whether the expression at ``outer`` has the one at ``inner`` as a part."""
    return outer != inner and outer[0] <= inner[0] and outer[1] >= inner[1]


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
    return any(where is not None and where[0] == start for where in texts)


#: The instructions that end the expression, other than those that keep its value.
_ENDS = ("STORE_", "RETURN_", "YIELD_", "JUMP_", "POP_", "LIST_", "SET_")
